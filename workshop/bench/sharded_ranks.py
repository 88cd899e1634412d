"""What the bench of sharded training does on the ranks: a small model, and the stages' steps timed by turns."""

import contextlib
import inspect
import time
from collections.abc import Iterator

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy

from course_utils.lessons.hybrid_and_sharded.mesh_training import Batches
from course_utils.lessons.hybrid_and_sharded.zero_stages import prepared
from course_utils.lessons.model_parallel.text import CHARACTERS, character_text, text_batches
from course_utils.lessons.model_parallel.transformer import character_model

BATCH, CONTEXT = 8, 8
TIMED_BUCKET = 1 << 20  # bytes: three or four buckets


def small_model() -> nn.Sequential:
    """Four layers in float64, 10,000 parameters."""
    return character_model(len(CHARACTERS), 16, heads=2, depth=2, context=CONTEXT).double()


def timed_model() -> nn.Sequential:
    """Six layers in float32, 800,000 parameters."""
    return character_model(len(CHARACTERS), 128, heads=4, depth=4, context=CONTEXT)


def text_of(steps: int) -> Batches:
    """The same on every rank, and in the process that asks."""
    return text_batches(character_text().training, BATCH, CONTEXT, steps)


@contextlib.contextmanager
def unrecorded() -> Iterator[None]:
    """torch's own collectives inside: times must not pay for being recorded, some with a thread for each call."""
    traced = {name: getattr(dist, name) for name in ("all_reduce", "all_gather_single", "reduce_scatter_single")}
    for name, function in traced.items():
        setattr(dist, name, inspect.unwrap(function))
    try:
        yield
    finally:
        for name, function in traced.items():
            setattr(dist, name, function)


def stage_seconds(rounds: int, warm_up: int = 2) -> dict[int, list[float]]:
    """On every rank: seconds of a step of each stage, by turns; every stage has a model of its own."""
    models = {stage: timed_model() for stage in range(4)}
    trainings = {stage: prepared(stage, model, bucket_bytes=TIMED_BUCKET) for stage, model in models.items()}
    taken: dict[int, list[float]] = {stage: [] for stage in models}
    x, y = (part.chunk(dist.get_world_size())[dist.get_rank()] for part in text_of(1)[0])
    with unrecorded():
        for _ in range(warm_up + rounds):
            for stage, model in models.items():
                dist.barrier()
                begin = time.perf_counter()
                trainings[stage].step(cross_entropy(model(x).flatten(0, 1), y.flatten()))
                taken[stage].append(time.perf_counter() - begin)
    return {stage: seconds[warm_up:] for stage, seconds in taken.items()}


def largest_gap(ours: dict[str, torch.Tensor], theirs: dict[str, torch.Tensor]) -> float:
    """The largest difference of any entry of any parameter of ours."""
    return max((one - theirs[name]).abs().max().item() for name, one in ours.items())


def alone(collective: str, numbers: int, times: int) -> None:
    """On every rank: a collective of a vector of so many float32, again and again."""
    whole = torch.zeros(numbers)
    part = torch.zeros(numbers // dist.get_world_size())
    for _ in range(times):
        if collective == "reduce-scatter":
            dist.reduce_scatter_single(part, whole)
        elif collective == "all-gather":
            dist.all_gather_single(whole, part)
        else:
            dist.all_reduce(whole)
