"""The pictures of deck 7: training steps on four nodes behind links, timed by turns; then two ranks without links."""

from functools import cache, partial

import torch.distributed as dist
from matplotlib.figure import Figure

import course_utils as course
from course_utils.lessons.autodiff_and_optimizers.pictures import ready_order
from course_utils.lessons.autodiff_and_optimizers.ready_order import layers
from course_utils.lessons.data_parallel import report_figures
from course_utils.lessons.data_parallel.replicas import Replica, all_reduce_each, all_reduce_flat, alone, torch_ddp
from course_utils.lessons.data_parallel.train_way import train_way
from course_utils.lessons.overlap import pictures, sentences
from course_utils.lessons.overlap.bucket_size import BucketModel, all_reduce_line, backward_times, sizes_to_try
from course_utils.lessons.overlap.buckets import overlapped
from course_utils.lessons.overlap.compressed_training import train_compressed
from course_utils.lessons.overlap.pictures import behind_the_step
from course_utils.lessons.overlap.step_times import ALONE, one_step, step_times
from course_utils.machine import allowed_cores

LINK = "400 Mbit/s"
ROUNDS = 7
STEPS = 3
EPOCHS = 2
BATCH = 32  # images on each node
WORKERS = (1, 2, 4)
DRAFT = {"ROUNDS": 2, "STEPS": 1, "EPOCHS": 1, "BATCH": 4, "WORKERS": (1, 4)}


def start_when_ready(model):
    """The lesson's hooks: an all-reduce for each gradient, the moment it is ready."""
    under_way = []

    def ready(parameter):
        under_way.append((dist.all_reduce(parameter.grad, async_op=True), parameter))

    def finish():
        for work, parameter in under_way:
            work.wait()
            parameter.grad /= dist.get_world_size()
        under_way.clear()

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(ready)
    return Replica(model, finish)


@cache
def nodes():
    """The ranks that all pictures but the last run on."""
    return course.start(4, link=LINK)


@cache
def step(name: str):
    """One step of one way."""
    ways = {"loop": all_reduce_each, "hooks": start_when_ready, "buckets": partial(overlapped, bucket_bytes=best())}
    return one_step(nodes(), ways[name], batch=BATCH)


@cache
def backward():
    """When gradients are ready, and the parameters' names."""
    return nodes().run(backward_times, BATCH, ROUNDS, backend="gloo").results[0]


@cache
def model() -> BucketModel:
    """What the prediction of a step needs."""
    return BucketModel.of(*backward(), *all_reduce_line(nodes()))


def best() -> int:
    """The bucket size that is predicted to be best."""
    return sizes_to_try(model())[0]


def three_ways() -> dict:
    """All at the end, in our buckets, in DDP's; and none at all."""
    ours, theirs = (partial(way, bucket_bytes=best()) for way in (overlapped, torch_ddp))
    return {ALONE: alone, "flat": all_reduce_flat, "ours": ours, "DDP": theirs}


@cache
def scaled():
    """DDP with the same work for 1, 2 and 4 workers."""
    ways = {1: "one process"}
    options = {"images": 8 * BATCH, "steps": STEPS, "bucket_bytes": best(), "keep": False}
    return [train_way(nodes(), ways.get(P, "DDP"), world_size=P, **options) for P in WORKERS]


def loop() -> Figure:
    """A step of lesson 6's loop."""
    return behind_the_step({"loop": step("loop")}, "One step of lesson 6's loop, on node 0")


def ready() -> Figure:
    """When gradients are ready."""
    times, _ = backward()
    by_layer = layers(times, lambda layer: layer.replace("norm", "conv"))
    return ready_order(by_layer, times.end, "A backward pass on node 0", times.ends)


def hooks() -> Figure:
    """A step of the loop, and one with hooks."""
    steps = {"loop": step("loop"), "hooks": step("hooks")}
    return behind_the_step(steps, "One step on node 0")


def exposed() -> Figure:
    """Loop and hooks, timed by turns."""
    ways = {ALONE: alone, "loop": all_reduce_each, "hooks": start_when_ready}
    times = step_times(nodes(), ways, BATCH, ROUNDS)
    return course.draw.stacked_bars(times.bars, sentences.hiding_text(times, "hooks", "loop"))


def sweep() -> Figure:
    """The step time over the bucket size, measured and predicted."""
    size, sizes = sizes_to_try(model())
    ways = {each: partial(overlapped, bucket_bytes=each) for each in sizes}
    times = step_times(nodes(), {ALONE: alone} | ways, BATCH, ROUNDS)
    runs = {each: times.seconds[each] for each in sizes}
    free, said = times.median(ALONE), sentences.best_text(size, runs)
    return pictures.bucket_sweep(runs, lambda each: free + model().exposed(each), size, free, said)


def in_buckets() -> Figure:
    """A step with hooks, and one with buckets."""
    return behind_the_step({"hooks": step("hooks"), "buckets": step("buckets")}, "One step on node 0")


def ddp() -> Figure:
    """All at the end, our buckets, DDP."""
    times = step_times(nodes(), three_ways(), BATCH, ROUNDS)
    return course.draw.stacked_bars(times.bars, sentences.bars_text(times, "flat", "DDP"))


def larger_batch() -> Figure:
    """The same with twice the images."""
    times = step_times(nodes(), three_ways(), 2 * BATCH, ROUNDS)
    return course.draw.stacked_bars(times.bars, sentences.bars_text(times, "flat", "DDP"))


def workers() -> Figure:
    """Table 1 of the report, and ours."""
    return report_figures.time_by_workers(scaled())


def traffic() -> Figure:
    """Table 3 of the report, and ours; without links, our processors."""
    sent = [run for run in scaled() if run.sent]
    return report_figures.traffic_by_workers(sent) if sent else report_figures.cpu_by_workers(scaled())


def compressed() -> Figure:
    """Bytes, time and accuracy of four ways to send a gradient."""
    options = {"epochs": EPOCHS, "rate": 0.5, "share": 0.02, "rank": 2, "backend": "gloo"}
    data = course.data.digits("float32")
    found = {
        how: nodes().run(train_compressed, data, how, **options).results[0]
        for how in ("none", "fp16", "top-k", "PowerSGD")
    }
    return pictures.compression(found, sentences.compression_text(found))


def loopback() -> Figure:
    """Two ranks in one memory; the nodes are gone after that."""
    ways = {name: way for name, way in three_ways().items() if name != "DDP"}
    times = step_times(course.start(2), ways, BATCH, ROUNDS)
    said = sentences.loopback_text(times, "flat", "ours", allowed_cores(), ranks=2)
    return course.draw.stacked_bars(times.bars, said)


FIGURES = {
    "07_loop": loop,
    "07_ready": ready,
    "07_hooks": hooks,
    "07_exposed": exposed,
    "07_sweep": sweep,
    "07_in_buckets": in_buckets,
    "07_ddp": ddp,
    "07_larger_batch": larger_batch,
    "07_workers": workers,
    "07_traffic": traffic,
    "07_compressed": compressed,
    "07_loopback": loopback,
}
