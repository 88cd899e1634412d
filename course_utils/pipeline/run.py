"""A schedule on real ranks: each does the actions of its list, and talks to its neighbours by plain send and recv."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import torch
from torch import nn

from course_utils.errors import CourseError
from course_utils.pipeline.actions import (
    BACKWARD,
    FORWARD,
    INPUT,
    RECV_B,
    RECV_F,
    SEND_F,
    WEIGHT,
    Action,
    rank_of_stages,
)
from course_utils.pipeline.messages import other_end, with_messages
from course_utils.pipeline.pace import Pace, at_work
from course_utils.pipeline.split import Later, Stage

if TYPE_CHECKING:  # a notebook's kernel imports this module and must not load MPI: the ranks do
    from mpi4py import MPI

Loss = Callable[[torch.Tensor, int], torch.Tensor]
"""(output of the last stage, micro-batch) → its share of the batch's loss."""


def run_schedule(
    comm: "MPI.Intracomm",
    schedule: Sequence[Sequence[Action]],
    stages: Mapping[int, nn.Module],
    micro_batches: Sequence[torch.Tensor],
    loss: Loss,
    pace: Pace | None = None,
) -> float:
    """One forward and backward pass of the whole batch, as the schedule says; gradients are added to `parameter.grad`.

    Activations go from rank to rank, gradients of activations come back, each as one message. Nothing else moves.

    Args:
        schedule: of `comm.size` lists. Messages are put in if it has none.
        stages: this rank's parts of the model, by number.
        micro_batches: the inputs; read where stage 0 is.
        loss: called where the last stage is. The shares add up to the batch's loss.
        pace: how long an action shall take at least, see `course_utils.pipeline.pace`.

    Returns:
        The batch's loss where the last stage is, 0.0 elsewhere.
    """
    rank_of = rank_of_stages(schedule)
    last = max(rank_of)
    inputs: dict[tuple[int, int], torch.Tensor] = {}
    outputs: dict[tuple[int, int], torch.Tensor] = {}
    gradients: dict[tuple[int, int], torch.Tensor] = {}  # of a stage's output
    later: dict[tuple[int, int], list[Later]] = {}
    on_their_way, total = [], 0.0

    def forward(stage: int, index: int) -> None:
        nonlocal total
        x = micro_batches[index] if stage == 0 else inputs[stage, index]
        y = stages[stage](x)
        if stage == last:
            y = loss(y, index)
            total += y.item()
        elif stage + 1 in stages:
            inputs[stage + 1, index] = y.detach().requires_grad_()
        inputs[stage, index], outputs[stage, index] = x, y

    def backward(stage: int, index: int) -> None:
        x, y = inputs.pop((stage, index)), outputs.pop((stage, index))
        y.backward(gradients.pop((stage, index), None))
        later[stage, index] = _put_aside(stages[stage])
        if stage > 0:
            gradients[stage - 1, index] = x.grad

    def weights(stage: int, index: int) -> None:
        for work in later.pop((stage, index)):
            work()

    for action in with_messages(schedule)[comm.rank]:
        stage, index = action.stage, action.micro_batch
        if action.computes:
            with at_work(action, pace):
                if action.kind == FORWARD:
                    forward(stage, index)
                if action.kind in (BACKWARD, INPUT):
                    backward(stage, index)
                if action.kind in (BACKWARD, WEIGHT):
                    weights(stage, index)
            continue
        peer = rank_of[other_end(action).stage]
        if action.kind == RECV_F:
            inputs[stage, index] = _tensor(comm.recv(source=peer, tag=_tag(action))).requires_grad_()
        elif action.kind == RECV_B:
            gradients[stage, index] = _tensor(comm.recv(source=peer, tag=_tag(action)))
        elif action.kind == SEND_F:
            on_their_way.append(comm.isend(outputs[stage, index].detach().numpy(), dest=peer, tag=_tag(action)))
        else:
            gradient = gradients.pop((stage - 1, index)).numpy()
            on_their_way.append(comm.isend(gradient, dest=peer, tag=_tag(action)))
    for request in on_their_way:
        request.wait()
    return total


def _tensor(array) -> torch.Tensor:
    return torch.from_numpy(array.copy())  # what came out of a message may be read-only


def _put_aside(stage: nn.Module) -> list[Later]:
    return stage.take() if isinstance(stage, Stage) else []


def _tag(message: Action) -> int:
    """The same at both ends, and unlike every other message's: micro-batch, border between stages, direction."""
    forward = message.kind in (SEND_F, RECV_F)
    border = max(message.stage, other_end(message).stage)
    return 2 * (1000 * message.micro_batch + border) + forward


def split_model(layers: Sequence[nn.Module], cuts: Sequence[int]) -> list[Stage]:
    """A model cut into stages.

    Args:
        layers: of the whole model, in order.
        cuts: how many layers each stage gets.

    Raises:
        CourseError: the cuts do not add up to the layers.
    """
    if sum(cuts) != len(layers):
        raise CourseError(f"{len(layers)} layers cannot be cut into {list(cuts)}: these are {sum(cuts)}.")
    starts = [sum(cuts[:place]) for place in range(len(cuts))]
    return [Stage(*layers[start : start + size]) for start, size in zip(starts, cuts, strict=True)]
