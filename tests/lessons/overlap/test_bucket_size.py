"""The best bucket predicted, steps timed by turns, what is said of them, and their pictures."""

import dataclasses

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch import nn

from course_utils.data import digits
from course_utils.lessons.autodiff_and_optimizers.ready_order import BackwardTimes
from course_utils.lessons.data_parallel.replicas import all_reduce_each, unsynchronised
from course_utils.lessons.data_parallel.timed_steps import last_step
from course_utils.lessons.overlap import sentences
from course_utils.lessons.overlap.bucket_size import (
    BucketModel,
    backward_times,
    sizes_to_try,
)
from course_utils.lessons.overlap.buckets import overlapped
from course_utils.lessons.overlap.compressed_training import Compressed, train_compressed
from course_utils.lessons.overlap.pictures import behind_the_step, bucket_sweep, compression_methods, on_rank, waited
from course_utils.lessons.overlap.step_times import (
    ALONE,
    StepTimes,
    batch_step_times,
    one_step,
    slowest,
    step_seconds,
    step_times,
)
from course_utils.measuring import BUSY
from course_utils.ranks.run import Run
from course_utils.trace.events import Event

MODEL = BucketModel(
    names=("first", "second", "third", "last"),
    sizes=(1000, 1000, 1000, 1000),
    ready=(0.04, 0.03, 0.02, 0.01),
    forward=0.02,
    backward=0.04,
    alpha=0.004,
    beta=1e-6,
)


def test_a_bucket_pays_alpha_once_and_waits_for_its_last_gradient() -> None:
    assert MODEL.exposed(1000) == pytest.approx(0.005)  # the first layer's own message, all others are gone
    assert MODEL.exposed(2000) == pytest.approx(0.006)
    assert MODEL.exposed(4000) == pytest.approx(0.008)  # one bucket hides nothing
    assert MODEL.communication(1000) == pytest.approx(4 * 0.005)
    assert MODEL.communication(4000) == pytest.approx(0.008)
    assert MODEL.step(4000) == pytest.approx(0.068)


@pytest.mark.parametrize(("alpha", "best"), [(0.0, 1000), (0.1, 4000)])
def test_without_latency_small_buckets_are_best_with_much_of_it_one(alpha, best) -> None:
    assert dataclasses.replace(MODEL, alpha=alpha, beta=1e-5).best([1000, 2000, 4000]) == best


def test_the_best_bucket_is_no_worse_than_any_other_by_more_than_two_percent(seed) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(20):
        sizes = tuple(int(size) for size in rng.integers(100, 100_000, 12))
        ready = tuple(sorted(rng.random(12).tolist(), reverse=True))
        model = BucketModel(tuple("abcdefghijkl"), sizes, ready, 0.5, 1.0, float(rng.random() / 20), 2e-6)
        best, tried = sizes_to_try(model)
        assert best in tried and tried == sorted(tried)
        assert len(model.names) == 12 and tried[0] < best or best == tried[0]
        assert model.step(best) <= 1.025 * min(map(model.step, tried))


def test_the_model_orders_gradients_as_the_parameters_stand() -> None:
    seconds = np.array([[0.1, 0.3], [0.2, 0.4], [0.1, 0.3]])
    times = BackwardTimes(("last", "first"), (8, 4), seconds, np.array([0.5, 0.6, 0.5]), np.array([0.2, 0.2, 0.3]))
    model = BucketModel.of(times, ["first", "frozen", "last"], 0.1, 0.01)
    assert model.names == ("first", "last") and model.sizes == (4, 8) and model.ready == (0.3, 0.1)
    assert (model.forward, model.backward) == (0.2, 0.5)


def test_the_slowest_rank_counts() -> None:
    assert slowest([{"a": [1.0, 5.0]}, {"a": [2.0, 4.0]}]) == {"a": [2.0, 5.0]}


def times_of(**seconds: list[float]) -> StepTimes:
    return StepTimes({ALONE if name == "alone" else name: values for name, values in seconds.items()})


def test_exposed_is_what_a_step_takes_beyond_one_without_communication() -> None:
    times = times_of(alone=[1.0, 2.0, 1.0], flat=[3.0, 5.0, 2.5])
    assert times.exposed("flat") == 2.0
    assert times.bars == {ALONE: {"computing": 1.0}, "flat": {"computing": 1.0, "communication": 2.0}}
    faster = times_of(alone=[1.0], fast=[0.5])
    assert faster.exposed("fast") == 0.0 and faster.bars["fast"] == {"computing": 0.5, "communication": 0.0}


@pytest.mark.parametrize(
    ("ours", "said"),
    [
        ([1.5] * 3, "500 ms with ours, 50% less"),
        ([1.0] * 3, "none with ours, 100% less"),
        ([1.5, 2.5, 1.5], "500 ms with ours; 3 rounds are too few to tell them apart"),
        ([2.2] * 3, "nothing is gained here"),
    ],
)
def test_what_is_said_of_hiding(ours, said) -> None:
    assert said in sentences.hiding_text(times_of(alone=[1.0] * 3, flat=[2.0] * 3, ours=ours), "ours", "flat")


@pytest.mark.parametrize(
    ("ours", "said"),
    [
        ([3.0] * 3, "2 s with 64: the larger batch hides no more here"),
        ([1.2] * 3, "200 ms with 64: more is hidden"),
        ([1.5, 1.5, 1.52], "500 ms with 64: no clear difference"),
        ([1.2, 1.8, 2.4], "800 ms with 64: no clear difference"),  # the rounds disagree
    ],
)
def test_what_a_larger_batch_changes(ours, said) -> None:
    before = times_of(alone=[1.0] * 3, ours=[1.5] * 3)
    text = sentences.batch_text({32: before, 64: times_of(alone=[1.0] * 3, ours=ours)}, "ours")
    assert text == f"Communication adds 500 ms with 32 images and {said}"
    assert sentences.batch_text({32: before, 64: times_of(alone=[1.0], ours=[0.5])}, "ours") == BUSY
    hidden = times_of(alone=[1.0] * 3, ours=[1.0] * 3)
    assert sentences.batch_text({32: hidden, 64: hidden}, "ours").endswith(
        "none with 32 images and none with 64: no clear difference"
    )


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        ((1.05, 1.95), "Every measured step is within 10% of the calculated one"),
        ((1.2, 2.8), "At all 2 sizes the step took longer than calculated, by 20% to 40%"),
        ((0.8, 1.2), "At all 2 sizes the step took less time than calculated, by 20% to 40%"),
        ((0.5, 2.4), "The measured steps take between 50% less and 20% more time than calculated"),
    ],
)
def test_how_good_a_calculation_is(seconds, said) -> None:
    measured = {1000: [seconds[0]] * 2, 2000: [seconds[1]] * 2}
    assert sentences.calculation_text(measured, lambda size: size / 1000) == said


@pytest.mark.parametrize(
    ("small", "said"),
    [
        ([1.2, 1.3], "1 MB calculated, 1 MB measured"),
        ([0.99, 0.99], "the 1% between their steps are within the spread"),
        ([0.5, 0.5], "1 KB measured, whose step is 100% faster"),
    ],
)
def test_the_best_bucket_in_words(small, said) -> None:
    assert said in sentences.best_text(10**6, {1000: small, 10**6: [1.0, 1.0]})


@pytest.mark.parametrize(
    ("ours", "letter", "said"),
    [(0.5, "a", "ours is 2 times as fast"), (1.0, "b", "no clear difference"), (2.0, "c", "flat is 2 times as fast")],
)
def test_what_is_said_where_there_is_nothing_to_hide_behind(ours, letter, said) -> None:
    times = times_of(flat=[1.0] * 4, ours=[ours] * 4)
    assert sentences.loopback_letter(times, "flat", "ours") == letter
    assert said in sentences.loopback_text(times, "flat", "ours", cores=2, ranks=2)


def test_scaling_alpha_and_bytes_in_words() -> None:
    assert sentences.efficiency_text("strong", {2: 0.9, 4: 0.4}, cores=2).endswith(
        "(at most 50% with 4 ranks on 2 cores)"
    )
    assert sentences.efficiency_text("strong", {4: 0.6}, cores=2).endswith("on 2 cores)")
    assert sentences.efficiency_text("weak", {2: 0.9}, cores=8) == "weak scaling: 90% with 2"
    said = sentences.line_text(0.005, 2e-8, 34, 2_000_000)
    assert "alpha is 5 ms, and beta is 20 ms per MB" in said and "34 gradients take 210 ms" in said
    assert said.endswith("in one message take 45 ms.")
    said = sentences.fewer_bytes_text([8, 8], [2, 2], 4)
    assert said.endswith("That is 25% of the bytes, because it was one backward pass of 4")
    assert sentences.fewer_bytes_text([8] * 2, [4] * 2, 4).endswith("That is 50% of the bytes")


@pytest.mark.parametrize(
    ("speed_up", "said"),
    [
        (2.4, "4 ranks are 2.4 times as fast as one"),
        (1.01, "4 ranks are no faster than one"),
        (0.5, "4 ranks take 2 times as long as one"),
    ],
)
def test_strong_scaling_in_words(speed_up, said) -> None:
    speed_ups = {2: 1.6, 4: speed_up}
    assert sentences.speed_up_text(speed_ups, cores=4) == said
    assert sentences.speed_up_text(speed_ups, cores=2) == f"{said}, but they share 2 cores"


def test_amdahls_formula_is_not_applied_to_two_ranks_that_gain_nothing() -> None:
    by_formula = {workers: 1 / (0.25 + 0.75 / workers) for workers in (4, 64)}
    said = sentences.amdahl_text(2 / 1.6 - 1, by_formula, {2: 1.6, 4: 1.9})
    assert "25% of the work can't be divided" in said
    assert "4 ranks are 2.3 times as fast as one (measured: 1.90)" in said
    assert said.endswith(" and 64 ranks are 3.8 times as fast as one")
    assert "none of the work can be divided" in sentences.amdahl_text(2 / 0.8 - 1, {4: 0.7}, {2: 0.8})
    assert "finds no work that can't be divided" in sentences.amdahl_text(2 / 2.1 - 1, {4: 4.4}, {2: 2.1})


FOUND = {"none": Compressed(1e6, 0.04, 0.95), "top-k": Compressed(1e5, 0.02, 0.93)}


@pytest.mark.parametrize(
    ("accuracy", "said"),
    [(0.93, "2% fewer images"), (0.95, "as many images"), (0.96, "1% more images")],
)
def test_what_compression_cost(accuracy, said) -> None:
    found = FOUND | {"top-k": Compressed(1e5, 0.02, accuracy)}
    assert sentences.compression_text(found) == f"top-k sends 10 times less and recognises {said}"
    unknown = {how: dataclasses.replace(one, bytes_per_step=None) for how, one in found.items()}
    assert sentences.compression_text(unknown).startswith("Without links")
    assert "not counted" in compression_methods(unknown, "x").alt_text


def test_pictures_tell_what_they_show() -> None:
    picture = bucket_sweep({1000: [0.2, 0.3], 4000: [0.1, 0.2]}, MODEL.step, 4000, 0.06, "A finding")
    assert "Calculated optimum 4 KB" in picture.alt_text and "1 KB: 250 ms" in picture.alt_text
    assert "a step: none: 1 MB; top-k: 100 KB." in compression_methods(FOUND, "x").alt_text
    events = step_of_events(0) + step_of_events(1)
    picture = behind_the_step({"loop": events, "hooks": events}, "One step")
    assert "Waiting for messages: 10 ms (loop) and 10 ms (hooks)" in picture.alt_text
    assert "for 10 ms of 50 ms" in behind_the_step({"loop": events}, "One step").alt_text
    assert "1 all-reduce between 20 ms and 50 ms" in picture.alt_text


def step_of_events(rank: int, begin: float = 1.0) -> list[Event]:
    spans = [("forward", "phase", 0.0, 0.01), ("backward", "phase", 0.01, 0.04), ("communication", "phase", 0.04, 0.05)]
    spans.append(("all_reduce", "collective", 0.02, 0.05))
    return [Event(rank, name, kind, None, None, 4, begin + start, begin + end) for name, kind, start, end in spans]


def test_the_last_step_of_each_rank_and_how_long_steps_take() -> None:
    events = [event for begin in (1.0, 2.0, 4.0) for event in step_of_events(0, begin) + step_of_events(1, begin)]
    last = last_step(Run(results=[], events=events, seconds=0.0)).events
    assert len(last) == 8 and min(event.start for event in last) == 4.0
    assert step_seconds(events) == 1.5
    assert on_rank(last, 1)[0].start == 0.0 and waited(on_rank(last, 1)) == pytest.approx(0.01)


def tiny(seed: int) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 4), nn.Linear(4, 10))


def test_steps_are_timed_by_turns_and_one_can_be_drawn(four_ranks) -> None:
    ways = {ALONE: unsynchronised, "each": all_reduce_each, "ours": overlapped}
    times = step_times(four_ranks, ways, batch=2, rounds=2, build=tiny, world_size=2)
    assert list(times.seconds) == list(ways) and all(len(seconds) == 2 for seconds in times.seconds.values())
    assert all(value > 0 for seconds in times.seconds.values() for value in seconds)
    step = one_step(four_ranks, all_reduce_each, batch=2, build=tiny)
    calls = [event for event in step if event.name == "all_reduce"]
    assert len(calls) == 4 * 4, "two weights and two biases on four ranks"


def test_batches_are_timed_by_turns(four_ranks) -> None:
    ways = {ALONE: unsynchronised, "ours": overlapped}
    of_batch = batch_step_times(four_ranks, ways, [1, 2], rounds=2, warm_up=0)
    assert list(of_batch) == [1, 2]
    for times in of_batch.values():
        assert list(times.seconds) == list(ways) and all(len(seconds) == 2 for seconds in times.seconds.values())


def test_ready_order_on_the_ranks(four_ranks) -> None:
    times, order = four_ranks.run(backward_times, 1, 2, backend="gloo", ranks=2).results[0]
    assert times.names[0].startswith("linear") and times.names[-1].startswith("conv1")
    model = BucketModel.of(times, order, 0.001, 1e-9)
    assert model.names[0] == "conv1.weight" and sum(model.sizes) == 2_319_144


def test_training_with_compressed_gradients_says_what_it_needed(four_ranks) -> None:
    data = type(digits("float32"))(*(part[:64] for part in digits("float32")))
    for one in four_ranks.run(
        train_compressed, data, "top-k", epochs=2, batch_size=16, share=0.1, backend="gloo", ranks=2
    ).results:
        assert one.bytes_per_step is None, "these ranks share memory"
        assert one.step > 0 and 0 <= one.accuracy <= 1
    assert not dist.is_initialized()
