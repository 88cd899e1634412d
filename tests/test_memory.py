"""Memory of training: what is computed beforehand is what the tensors themselves take, on every rank."""

import itertools

import pytest
import torch
import torch.distributed as dist
from torch import nn

from course_utils.errors import CourseError
from course_utils.memory import (
    ONE_RANK,
    Memory,
    Parallelism,
    checkpointed,
    counting_saved,
    measured_memory,
    pipeline_memory,
    training_memory,
)
from course_utils.memory.activations import block_activations
from course_utils.memory.mixed import MixedPrecision
from course_utils.memory.parts import bytes_for_each_parameter
from course_utils.memory.training import layer_parameters
from course_utils.pipeline.run import run_schedule, split_model
from course_utils.pipeline.schedules import gpipe_schedule, one_f_one_b_schedule
from course_utils.tensor_parallel.block import parallelise_block
from course_utils.tensor_parallel.collectives import join_over_ranks, split_over_ranks
from course_utils.transformer import Block, character_model

CHARACTERS, BATCH, LENGTH = 40, 3, 16
MAKE = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, 0.1),
    "momentum": lambda parameters: torch.optim.SGD(parameters, 0.1, momentum=0.9),
    "adam": lambda parameters: torch.optim.Adam(parameters, 0.01),
}
DTYPES = {"float32": torch.float32, "float64": torch.float64, "mixed": torch.bfloat16}


def make_model(dropout: float = 0.0, precision: str = "float32", depth: int = 2) -> nn.Sequential:
    """A small character model."""
    return character_model(CHARACTERS, 32, 4, depth, LENGTH, dropout).to(DTYPES[precision])


def texts(rank: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Characters, and those that follow them."""
    generator = torch.Generator().manual_seed(rank)
    return torch.randint(CHARACTERS, (2, BATCH, LENGTH), generator=generator).unbind()


def loss_of(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """The usual one."""
    return nn.functional.cross_entropy(output.flatten(0, 1), target.flatten())


def step_with(model: nn.Module, optimizer: torch.optim.Optimizer):
    """A step of training, to be called."""
    x, target = texts()

    def step() -> None:
        optimizer.zero_grad()
        loss_of(model(x), target).backward()
        optimizer.step()

    return step


def near(computed: Memory, counted: Memory) -> None:
    """Within 5 % in every part; an Adam's few counters of steps are all that is left out."""
    assert computed.parts() == pytest.approx(counted.parts(), rel=0.05)
    assert computed.total == pytest.approx(counted.total, rel=0.05)


@pytest.mark.parametrize(
    ("optimizer", "precision", "checkpointing"), itertools.product(MAKE, DTYPES, [False, True])
)
@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_one_rank_keeps_what_was_computed(optimizer, precision, checkpointing, dropout) -> None:
    model = make_model(dropout, precision)
    computed = training_memory(model, BATCH, LENGTH, optimizer, precision, ONE_RANK, checkpointing)
    made = MAKE[optimizer]
    chosen = MixedPrecision(model.parameters(), made) if precision == "mixed" else made(model.parameters())
    layers = checkpointed(model) if checkpointing else model
    near(computed, measured_memory(layers, chosen, step_with(layers, chosen)))


class Cut(nn.Module):
    """A move between ranks as a layer."""

    def __init__(self, move) -> None:
        super().__init__()
        self.move = move

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.move(x, 1)


def tensor_parallel(dropout: float, sequence: bool, checkpointing: bool) -> tuple[Memory, Memory]:
    """Computed and counted on this rank."""
    model = make_model(dropout)
    ways = Parallelism(tensor=dist.get_world_size(), sequence=sequence)
    computed = training_memory(model, BATCH, LENGTH, parallelism=ways, checkpointing=checkpointing)
    for block in model[1:-1]:
        parallelise_block(block, sequence=sequence)
    layers = checkpointed(model) if checkpointing else model
    if sequence:
        layers = nn.Sequential(layers[0], Cut(split_over_ranks), *layers[1:-1], Cut(join_over_ranks), layers[-1])
    optimizer = torch.optim.Adam(layers.parameters())
    return computed, measured_memory(layers, optimizer, step_with(layers, optimizer))


@pytest.mark.parametrize("checkpointing", [False, True])
@pytest.mark.parametrize("sequence", [False, True])
@pytest.mark.parametrize(("dropout", "ranks"), [(0.0, 2), (0.0, 4), (0.1, 2), (0.1, 4)])
def test_tensor_parallel_ranks_keep_what_was_computed(four_ranks, ranks, dropout, sequence, checkpointing) -> None:
    for computed, counted in four_ranks.run(
        tensor_parallel, dropout, sequence, checkpointing, ranks=ranks, backend="gloo"
    ).results:
        near(computed, counted)


def pipelined(comm, way: str, micro_batches: int, checkpointing: bool, dropout: float) -> tuple[Memory, Memory]:
    """Computed and counted on this rank."""
    model = make_model(dropout, depth=4)
    cuts = [2, 2, 2] if comm.size == 3 else [3, 3]
    schedule = (gpipe_schedule if way == "gpipe" else one_f_one_b_schedule)(comm.size, micro_batches)
    computed = pipeline_memory(model, cuts, micro_batches, BATCH, LENGTH, checkpointing=checkpointing)[comm.rank]
    if way == "gpipe":
        own = model[sum(cuts[: comm.rank]) :][: cuts[comm.rank]]
        computed = training_memory(own, BATCH, LENGTH, checkpointing=checkpointing, in_flight=micro_batches)
    layers = checkpointed(model) if checkpointing else model
    stage = split_model(layers, cuts)[comm.rank]
    optimizer = torch.optim.Adam(stage.parameters())
    batches = [texts(index) for index in range(micro_batches)]

    def step() -> None:
        run_schedule(
            comm,
            schedule,
            {comm.rank: stage},
            [x for x, _ in batches],
            lambda output, index: loss_of(output, batches[index][1]),
        )
        optimizer.step()

    return computed, measured_memory(stage, optimizer, step)


@pytest.mark.parametrize("dropout", [0.0, 0.1])
@pytest.mark.parametrize("checkpointing", [False, True])
@pytest.mark.parametrize(("way", "ranks", "micro_batches"), [("gpipe", 2, 4), ("1f1b", 3, 5), ("1f1b", 3, 2)])
def test_stages_keep_what_was_computed(four_ranks, way, ranks, micro_batches, checkpointing, dropout) -> None:
    run = four_ranks.run(pipelined, way, micro_batches, checkpointing, dropout, ranks=ranks)
    for computed, counted in run.results:
        near(computed, counted)
