"""The handwritten digits through a pipeline: a network in eight layers, and its batches in micro-batches."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import torch
from torch import nn

from course_utils.data import CLASSES, digits
from course_utils.lessons.pipeline.actions import INPUT, Action, Schedule, micro_batches_of, rank_of_stages
from course_utils.lessons.pipeline.run_schedule import Loss, run_schedule, split_model
from course_utils.lessons.pipeline.stage_pace import Pace, stage_pace
from course_utils.lessons.pipeline.timing import Timing, timing_of
from course_utils.lessons.pipeline.weight_stashing import StashedTraining, train_with_delay, train_without_flush

if TYPE_CHECKING:  # a notebook's kernel imports this module and must not load MPI: the ranks do
    from mpi4py import MPI

    from course_utils.ranks.ranks import Ranks

LAYERS = 8
BATCH = 64
"""Images of a batch."""
STREAMED = 16
"""Images of a micro-batch, where each gets a step of its own."""


def digit_layers() -> list[nn.Module]:
    """A network for the digits in eight layers, in float64; the same on every rank."""
    torch.manual_seed(0)
    sizes = [64, *[16] * (LAYERS - 1), CLASSES]
    layers = [nn.Sequential(nn.Linear(a, b), nn.Tanh()) for a, b in itertools.pairwise(sizes)]
    return [layer.double() for layer in [*layers[:-1], layers[-1][0]]]


def digit_batches(
    steps: int, micro_batches: int, examples: int = BATCH
) -> Iterator[tuple[Sequence[torch.Tensor], Loss]]:
    """For each step a batch of digits, cut into micro-batches, and the loss of one of them.

    The losses of a batch's micro-batches add up to the mean loss of its images, so their gradients do, too.

    Yields:
        Images, (examples / micro_batches, 64) each; and (output, micro-batch) → its share of the batch's loss.
    """
    data = digits("float64")
    for step in range(steps):
        chosen = torch.arange(step * examples, (step + 1) * examples) % len(data.train_x)
        targets = data.train_y[chosen].tensor_split(micro_batches)

        def loss(output: torch.Tensor, index: int, targets: Sequence[torch.Tensor] = targets) -> torch.Tensor:
            return nn.functional.cross_entropy(output, targets[index], reduction="sum") / examples

        yield data.train_x[chosen].tensor_split(micro_batches), loss


def digit_stream(micro_batches: int, examples: int) -> tuple[list[torch.Tensor], Loss]:
    """Digits for a training run that steps after every micro-batch: images, and (output, micro-batch) → its mean loss.

    Args:
        examples: images of a micro-batch.
    """
    pieces = list(digit_batches(micro_batches, 1, examples))
    return [images[0] for images, _ in pieces], lambda output, index: pieces[index][1](output, 0)


def own_stages(
    schedule: Sequence[Sequence[Action]], rank: int, layers: Sequence[nn.Module], plain: bool = False
) -> dict[int, nn.Sequential]:
    """Return the stages that the schedule puts on one rank; all stages have the same number of layers.

    Args:
        plain: as torch's own `nn.Sequential`; otherwise as `Stage`, if the schedule cuts backward passes in two.
    """
    rank_of = rank_of_stages(schedule)
    share = len(layers) // len(rank_of)
    mine = [stage for stage, home in sorted(rank_of.items()) if home == rank]
    if plain or not any(action.kind == INPUT for actions in schedule for action in actions):
        return {stage: nn.Sequential(*layers[stage * share : (stage + 1) * share]) for stage in mine}
    parts = split_model(layers, [share] * len(rank_of))
    return {stage: parts[stage] for stage in mine}


def train_alone(steps: int, rate: float) -> tuple[nn.Sequential, list[float]]:
    """The network trained in one process on whole batches, and the loss of each batch before its step."""
    model, losses = nn.Sequential(*digit_layers()), []
    optimizer = torch.optim.SGD(model.parameters(), rate)
    for (images,), loss in digit_batches(steps, 1):
        value = loss(model(images), 0)
        value.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(value.item())
    return model, losses


def largest_difference(held: Iterable[Mapping[int, Iterable[torch.Tensor]]], expected: Iterable[torch.Tensor]) -> float:
    """How far what the ranks hold, stage by stage, is from what one process holds.

    Args:
        held: for each rank and each of its stages, arrays.
        expected: the same arrays, in the order of the model's layers.

    Raises:
        ValueError: they are not as many.
    """
    stages = dict(sorted((stage, part) for parts in held for stage, part in parts.items()))
    pairs = zip(itertools.chain.from_iterable(stages.values()), expected, strict=True)
    return max((ours - theirs).abs().max().item() for ours, theirs in pairs)


def step_by_step(
    comm: "MPI.Intracomm", micro_batches: int, stash: bool = True, seconds: float = 0.0, rate: float = 0.2
) -> StashedTraining:
    """A training run without a flush on micro-batches of 16 digits; see `train_without_flush`.

    Args:
        micro_batches: of the whole training run.
        stash: whether a backward pass uses the weights of its forward pass.
        seconds: that a forward pass waits, and each half of a backward pass.
        rate: of SGD.
    """
    images, loss = digit_stream(micro_batches, STREAMED)
    pace = stage_pace(seconds, seconds, seconds)
    return train_without_flush(comm, digit_layers(), images, loss, rate, stash, pace)


def step_by_step_alone(micro_batches: int, delay: int = 0, rate: float = 0.2) -> list[float]:
    """The losses of the same training in one process, with gradients that reach the first stage `delay` steps late."""
    images, loss = digit_stream(micro_batches, STREAMED)
    return train_with_delay(digit_layers(), delay + 1, images, loss, rate)


Runner = Callable[["MPI.Intracomm", Schedule, Mapping[int, nn.Module], Sequence[torch.Tensor], Loss, Pace], float]
"""What carries out a schedule, as `run_schedule` does."""


def paced_batch(comm: "MPI.Intracomm", schedule: Schedule, seconds: float, run_batch: Runner = run_schedule) -> None:
    """Send one batch through stages that sleep for the time of large ones; see `stage_pace`.

    Args:
        seconds: of a rank's forward pass, of the first half of its backward pass and of the second. If a rank has
            several stages, they share this time.
        run_batch: carries out the schedule.
    """
    mine = own_stages(schedule, comm.rank, digit_layers())
    each = seconds / len(mine)
    ((images, loss),) = digit_batches(1, micro_batches_of(schedule))
    comm.Barrier()
    run_batch(comm, schedule, mine, images, loss, stage_pace(each, each, each))


def timed_runs(
    ranks: "Ranks", schedule: Schedule, seconds: float, runs: int = 1, run_batch: Runner = run_schedule
) -> list[Timing]:
    """Return when everything happened in several runs of `paced_batch`, the one with the median idle share first."""
    ranks.run(paced_batch, schedule, 0.0, run_batch)  # torch's first backward pass on a rank takes longer
    events = [ranks.run(paced_batch, schedule, seconds, run_batch).events for _ in range(runs)]
    timings = [timing_of(each, len(schedule)) for each in events]
    timings.sort(key=lambda timing: timing.idle_share)
    return [timings.pop(len(timings) // 2), *timings]
