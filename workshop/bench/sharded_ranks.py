"""What the bench of sharded training does on the ranks: a small model, and the stages' steps timed by turns."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy

from course_utils.lessons.hybrid_and_sharded.mesh_training import Adam, Batches, MeshTraining, serial_step
from course_utils.lessons.hybrid_and_sharded.zero_stages import prepared
from course_utils.lessons.model_parallel.text import CHARACTERS, character_text, text_batches
from course_utils.lessons.model_parallel.transformer import character_model
from course_utils.measuring import by_turns
from course_utils.trace.torch.torch_distributed import unrecorded

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


def stage_seconds(rounds: int, warm_up: int = 2) -> dict[int, list[float]]:
    """On every rank: seconds of a step of each stage, by turns; every stage has a model of its own."""
    models = {stage: timed_model() for stage in range(4)}
    trainings = {stage: prepared(stage, model, bucket_bytes=TIMED_BUCKET) for stage, model in models.items()}
    x, y = (part.chunk(dist.get_world_size())[dist.get_rank()] for part in text_of(1)[0])

    def step_seconds(stage: int) -> float:
        dist.barrier()
        begin = time.perf_counter()
        trainings[stage].step(cross_entropy(models[stage](x).flatten(0, 1), y.flatten()))
        return time.perf_counter() - begin

    with unrecorded():
        return by_turns({stage: partial(step_seconds, stage) for stage in models}, rounds, warm_up)


def largest_gap(ours: dict[str, torch.Tensor], theirs: dict[str, torch.Tensor]) -> float:
    """The largest difference of any entry of any parameter of ours."""
    return max((tensor - theirs[name]).abs().max().item() for name, tensor in ours.items())


def repeat_collective(collective: str, numbers: int, times: int) -> None:
    """On every rank: a collective of a vector of this many float32, again and again."""
    whole = torch.zeros(numbers)
    part = torch.zeros(numbers // dist.get_world_size())
    for _ in range(times):
        if collective == "reduce-scatter":
            dist.reduce_scatter_single(part, whole)
        elif collective == "all-gather":
            dist.all_gather_single(whole, part)
        else:
            dist.all_reduce(whole)


@dataclass
class Difference:
    """How far a step on the mesh is from the same step in one process, at most.

    Attributes:
        loss: 0.0 where the last stage is not.
        parameter: of all that this rank has a part of.
    """

    loss: float
    parameter: float


def differences_on_mesh(
    sizes: Mapping[str, int],
    build: Callable[[], nn.Sequential],
    batches: Batches,
    micro_batches: int = 2,
    rate: float = 0.003,
) -> list[Difference]:
    """Train on the mesh, and on every rank the whole model beside it; their differences after each step."""
    serial, training = build(), MeshTraining(build(), sizes, micro_batches, rate)
    adam, found = Adam(serial, rate), []
    last = training.coordinates["pipeline"] == training.sizes["pipeline"] - 1
    for x, y in batches:
        loss, wanted = training.step(x, y), serial_step(serial, adam, x, y)
        theirs = dict(serial.named_parameters())
        gaps = [(tensor - theirs[name]).abs().max().item() for name, tensor in training.parameters().items()]
        found.append(Difference(abs(loss - wanted) if last else 0.0, max(gaps)))
    return found
