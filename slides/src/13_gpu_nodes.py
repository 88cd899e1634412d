"""The pictures of deck 13: forty GPUs, launchers, two bandwidths, switches, a training that is killed, and logs."""

import tempfile
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

from matplotlib.figure import Figure
from torch.utils.data import DistributedSampler

import course_utils as course
from course_utils.draw.style import SLIDE_WIDTH
from course_utils.lessons.allreduce.bandwidth import algorithm_bandwidth, bus_bandwidth
from course_utils.lessons.gpu_nodes import pictures
from course_utils.lessons.gpu_nodes import train_ddp as program
from course_utils.lessons.gpu_nodes.failures.recorded_logs import recording
from course_utils.lessons.gpu_nodes.launch_commands import choose_devices, losses_of, run_command
from course_utils.lessons.gpu_nodes.launcher_variables import example_environment
from course_utils.lessons.gpu_nodes.measured_training import allreduce_seconds, step_seconds
from course_utils.lessons.gpu_nodes.sentences import bandwidth_text, by_width, link_text, ways_text, widths_text
from course_utils.lessons.gpu_nodes.settings import Settings
from course_utils.lessons.gpu_nodes.train_ddp import train_ddp
from course_utils.lessons.gpu_nodes.tries import tries_of
from course_utils.words import bytes_text

LINK = 12.5e6  # bytes per second
WORLD_SIZES = (2, 3, 4)
BYTES = 400_000
RUNS = 5
EPOCHS, BATCH, STEPS = 12, 256, 5  # steps in an epoch
TORCHRUN = True  # it takes seconds to start
WIDTHS = (64, 1024)
COMPILED = True  # its kernels take half a minute
DRAFT = {"WORLD_SIZES": (2, 4), "RUNS": 1, "EPOCHS": 3, "TORCHRUN": False, "WIDTHS": (64,), "COMPILED": False}


@cache
def folder() -> tempfile.TemporaryDirectory:
    """Of the checkpoints; it goes with this process."""
    return tempfile.TemporaryDirectory()


@cache
def four():
    """The ranks that all pictures of this deck run on."""
    print(choose_devices(4))
    return course.start(4, link=f"{LINK * 8 / 1e6:.0f} Mbit/s")


def settings(name: str) -> Settings:
    """Of the training, in a folder of its own."""
    return Settings(str(Path(folder().name) / name), EPOCHS, BATCH)


@cache
def on_ranks() -> tuple[list[float], str]:
    """The losses of the training on two ranks, and what it said."""
    run = four().run(train_ddp, settings("ranks"), ranks=2, backend="gloo")
    return run.results[0].losses, run.output[0]


@cache
def under_torchrun(name: str, options: str = "", switches: str = "") -> str:
    """What the training says under torchrun."""
    one = settings(name)
    command = f"{program.__file__} --folder {one.folder} --epochs {EPOCHS} --batch-size {BATCH} {switches}"
    return run_command(f"torchrun --standalone --nproc-per-node=2 {options} {command}")


def forty() -> Figure:
    """Ten nodes with four GPUs each."""
    return pictures.seats([f"gpu{1 + rank // 4:02}" for rank in range(40)], "Forty GPUs", marked=[30])


def eight() -> Figure:
    """What a notebook asks for."""
    return pictures.seats(["gpu01"] * 4 + ["gpu02"] * 4, "Eight ranks for a notebook")


def variables() -> Figure:
    """One process of forty, under two launchers."""
    told = {name: example_environment(name, node=7, local_rank=2, nodes=10, gpus=4) for name in ("torchrun", "srun")}
    return pictures.launchers(told, "One process of forty, told twice")


def ways() -> Figure:
    """The loss under two launchers."""
    losses = {"ranks": on_ranks()[0]}
    if TORCHRUN:
        losses["torchrun"] = losses_of(under_torchrun("whole"))
    return course.draw.loss_curves(losses, ways_text(losses), x="epoch")


def dealt() -> Figure:
    """What two ranks get in three epochs."""

    def share(epoch: int, rank: int) -> list[int]:
        sampler = DistributedSampler(range(24), 2, rank, seed=0)
        sampler.set_epoch(epoch)
        return list(sampler)

    epochs = {f"epoch {epoch}": [share(epoch, rank) for rank in range(2)] for epoch in range(3)}
    return pictures.dealt(epochs, "With set_epoch, every epoch has its own order", batch=8)


def bandwidths() -> Figure:
    """Both bandwidths over the number of ranks, behind links of 100 Mbit/s."""
    times = {}
    for world_size in WORLD_SIZES:
        run = four().run(allreduce_seconds, [BYTES], RUNS, ranks=world_size, backend="gloo")
        backend, (times[world_size],) = run.results[0]
    algorithm = [[algorithm_bandwidth(BYTES, t) for t in taken] for taken in times.values()]
    bus = [[bus_bandwidth("all_reduce", P, BYTES, t) for t in taken] for P, taken in times.items()]
    link = LINK if four().facts["network"] and backend == "gloo" else None
    rate = link or max(map(max, bus))
    lines = {"algorithm bandwidth": algorithm, "bus bandwidth": bus}
    formula = {name: [rate] * len(times) for name in lines}
    formula["algorithm bandwidth"] = [rate * P / (2 * (P - 1)) for P in times]
    found = link_text(backend, BYTES, WORLD_SIZES[-1], bus[-1], link)
    look = {"across": "ranks", "up": "bytes per second", "unit": bytes_text, "predicted": formula}
    return course.draw.over_numbers(WORLD_SIZES, lines, bandwidth_text(WORLD_SIZES, algorithm, bus), found, **look)


def switches() -> Figure:
    """A step in float32, in bfloat16, and compiled."""
    taken = {}
    for width in WIDTHS:
        plain = replace(settings("none"), hidden=width)
        kinds = {"float32": plain, "bfloat16": replace(plain, bf16=True)}
        kinds |= {"compiled": replace(plain, compile=True)} if COMPILED else {}
        _, taken[width] = four().run(step_seconds, kinds, 3 * RUNS, ranks=1, backend="gloo").results[0]
    title, bars = widths_text(taken, "float32"), by_width(taken)
    return course.draw.measured_bars(bars, title, "One step of 256 images", x="time of a step")


def killed() -> Figure:
    """The loss of a training whose rank 1 is killed, and which goes on from its checkpoint."""
    whole, said = on_ranks()
    if TORCHRUN:
        said = under_torchrun("killed", "--max-restarts=1", "--die-at 38")
    title = "Killed, and brought back" if TORCHRUN else "Without torchrun nobody was killed"
    return pictures.tries(tries_of(said, STEPS), whole, title)


def log(name: str, title: str) -> Figure:
    """A recorded failure from above."""
    return pictures.log_map(recording(name).log, title, width=SLIDE_WIDTH)


FIGURES = {
    "13_forty": forty,
    "13_variables": variables,
    "13_ways": ways,
    "13_eight": eight,
    "13_dealt": dealt,
    "13_bandwidths": bandwidths,
    "13_switches": switches,
    "13_killed": killed,
    "13_memory": partial(log, "out of memory", "The loudest line is not the cause"),
    "13_files": partial(log, "no shared files", "One rank went on, the other did not"),
}
