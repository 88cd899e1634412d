"""Lesson 14 on a GPU: who makes the batches and how they are copied, and what a GPU waits for within a step."""

from pathlib import Path

import torch

from course_utils.lessons.gpu_nodes.ladder import QUICK
from course_utils.lessons.profiling.feeding import feed
from gpu.on_ranks import on_ranks
from gpu.registry import Missing, Where, check, equal
from workshop.bench.rows import value_row


@check(14, shows="images per second by who makes the batches and how they are copied, beside a GPU that never waits")
def feeding(where: Where):
    small = {"workers": (0, 2), "width": 0.125, "batch": 8, "steps": 3, "runs": 2}
    found = feed(where.device, **where.pick({}, small))
    if where.out:
        found.write(Path(where.out) / "feeding.json")
    for maker, ways in found.seconds.items():
        for way, seconds in ways.items():
            rates = [found.batch / one for one in seconds]
            yield value_row("gpu", f"{maker}, {way}", rates, "images/s", better="higher")


def profiled_rungs(device: torch.device) -> dict[str, dict]:
    """On a rank: the trace of three steps of the ladder's last two rungs, without the compiler."""
    from course_utils.lessons.profiling.gpu_steps import rung_step
    from course_utils.lessons.profiling.record_profiles import profile_steps

    return {name: profile_steps(rung_step, name, warm_up=4)[0] for name in list(QUICK)[-2:]}


@check(14, shows="what a GPU waits for within a step: orders, one by one or as a graph; brought home as traces")
def orders(where: Where):
    from course_utils.lessons.profiling.chrome_trace import problems, write_trace
    from course_utils.lessons.profiling.intervals import length
    from course_utils.lessons.profiling.lanes import lanes_of
    from course_utils.lessons.profiling.merged_trace import merge

    if not where.cuda:
        yield Missing("", "a GPU")
        return
    for name, trace in on_ranks(where, 1, profiled_rungs)[0].items():
        merged = merge([trace])
        if where.out:
            write_trace(merged, Path(where.out) / f"{name.strip('+ ').replace(' ', '-')}.json.gz")
        yield equal(f"{name}, what is wrong with the trace", len(problems(merged)), target=0)
        lanes = lanes_of(merged)[0]
        yield value_row("gpu", f"{name}, a step", [1e3 * lanes.seconds / lanes.steps], "ms")
        yield value_row("gpu", f"{name}, computes", [length(lanes.computing) / lanes.seconds], "of it", better="higher")
        yield value_row("gpu", f"{name}, idle", [lanes.idle_share], "of it")
