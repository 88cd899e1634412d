"""What the page draws of a GPU, live or recorded: both ways to launch kernels, and who keeps the GPU fed."""

import warnings
from types import SimpleNamespace

import pytest
import torch
from torch.profiler import ProfilerActivity, profile, schedule

from course_utils.lessons.profiling import gpu_steps, sentences
from course_utils.lessons.profiling.feeding import MADE, NEVER, NO_COPY, RECORDED, Fed, feed, makers
from course_utils.lessons.profiling.lanes import Lanes


def test_both_lanes_begin_at_0_though_their_traces_do_not(monkeypatch) -> None:
    """The numbers are those of two profiles that were recorded one after the other on a GPU, in seconds."""
    begins = iter([(0.0003, 0.0343), (0.0426, 0.0773)])

    def profiled(*_args, **_kwargs) -> SimpleNamespace:
        begin, end = next(begins)
        middle = (begin + end) / 2
        steps = [(begin, middle), (middle, end)]
        return SimpleNamespace(lanes=[Lanes(0, begin, end, steps, [], {"forward": steps}, steps, steps)])

    monkeypatch.setattr(gpu_steps, "own_seat", lambda: SimpleNamespace(gpus=("a GPU",)))
    monkeypatch.setattr(gpu_steps, "machine_text", lambda: "a GPU")
    monkeypatch.setattr(gpu_steps, "profile_ranks", profiled)
    found, where = gpu_steps.profile_launches(None)
    assert where == "a GPU" and list(found) == list(gpu_steps.RUNGS)
    for lanes, seconds in zip(found.values(), (0.034, 0.0347), strict=True):
        assert (lanes.begin, lanes.end) == pytest.approx((0, seconds))
        times = (lanes.computing, lanes.copies, lanes.each_step, lanes.phases["forward"])
        assert all(each[0][0] == 0 and each[-1][1] == pytest.approx(seconds) for each in times)


def test_the_recorded_lanes_begin_at_0() -> None:
    found, where = gpu_steps.profile_launches(None)
    assert where.startswith("recorded on")
    assert all(lanes.begin == 0 and lanes.each_step[0][0] == pytest.approx(0, abs=1e-9) for lanes in found.values())


def fed(copy: list[float], workers: list[float], there: list[float]) -> Fed:
    """Steps of these seconds, with 5 s if the training process makes the batches."""
    seconds = {NEVER: {NO_COPY: there}, MADE: {"pinned": copy}, makers(4): {"pinned": workers}}
    return Fed("a GPU", "today", 512, seconds | {makers(0): {"pinned": [5.0, 5.0]}})


def test_a_step_is_called_longer_only_if_all_its_runs_are() -> None:
    found = fed(copy=[0.8, 0.9], workers=[1.2, 1.3], there=[1.0, 1.1])
    assert sentences.fed_longer(found) == {"this_process": True, "four_workers": True, "copy": False}
    text = sentences.fed_text(found)
    assert "with four workers, and not measurably longer with the copy alone" in text and "0.8" not in text
    slow_copy = fed(copy=[1.15, 1.25], workers=[1.05, 1.3], there=[1.0, 1.1])
    assert sentences.fed_longer(slow_copy) == {"this_process": True, "four_workers": False, "copy": True}
    text = sentences.fed_text(slow_copy)
    assert "not measurably longer with four workers, and 1.1 times as long with the copy alone" in text


def test_the_recorded_copy_costs_too_little_to_be_measured() -> None:
    assert not sentences.fed_longer(Fed.read(RECORDED))["copy"]


def test_ways_to_feed_run_by_turns_as_often_as_asked() -> None:
    found = feed("cpu", workers=(0,), width=0.125, batch=8, steps=2, runs=2)
    assert {maker: list(ways) for maker, ways in found.seconds.items()} == {
        NEVER: [NO_COPY],
        MADE: ["pageable"],
        makers(0): ["pageable"],
    }
    assert all(len(seconds) == 2 for ways in found.seconds.values() for seconds in ways.values())


def test_a_profile_of_one_cycle_as_on_the_page_warns_of_nothing() -> None:
    """A warning that events are cleared would appear before the second cycle, and `repeat=1` has none."""
    plan = schedule(wait=0, warmup=2, active=3, repeat=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            with profile(activities=[ProfilerActivity.CPU], schedule=plan) as profiler:
                for _ in range(5):
                    torch.ones(3).sum()
                    profiler.step()
            assert {row.key for row in profiler.key_averages()} >= {"aten::sum"}
