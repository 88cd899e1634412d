"""A schedule on real ranks: each does the actions of its list, and talks to its neighbours by plain send and recv."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import torch
from torch import nn

from course_utils.errors import CourseError
from course_utils.lessons.pipeline.actions import (
    BACKWARD,
    FORWARD,
    INPUT,
    RECV_B,
    RECV_F,
    SEND_B,
    SEND_F,
    Action,
    rank_of_stages,
)
from course_utils.lessons.pipeline.send_and_receive import address, with_messages
from course_utils.lessons.pipeline.split_backward import Stage
from course_utils.lessons.pipeline.stage_pace import Pace
from course_utils.lessons.pipeline.stage_work import Work

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
    """Carry out a schedule on this rank: one forward and one backward pass of the whole batch.

    Activations go from rank to rank, and their gradients come back, each in one message. No
    other messages are sent. Gradients of weights are added to `parameter.grad`. The arguments
    stay as they are.

    Args:
        schedule: a list for each rank, without messages; `with_messages(schedule)` adds them.
        stages: this rank's parts of the model, by number.
        micro_batches: the inputs; only the rank with stage 0 may use them.
        loss: (output of the last stage, micro-batch) → its share of the batch's loss; the
            shares add up to the batch's loss.
        pace: how long each action takes at least; hand it on to `Work`.

    Returns:
        The batch's loss as a number on the rank with the last stage, 0.0 on all others.
    """
    rank_of, work = rank_of_stages(schedule), Work(stages, pace)
    inputs = {(0, index): x for index, x in enumerate(micro_batches)}
    outputs, gradients, requests, total = {}, {}, [], 0.0
    for action in with_messages(schedule)[comm.rank]:
        kind, stage, index = action.kind, action.stage, action.micro_batch
        here, before, after = (stage, index), (stage - 1, index), (stage + 1, index)
        peer, tag = address(action, rank_of)
        with work.on(action):
            if kind == RECV_F:
                # A tensor of its own: the backward pass ends here,
                # and leaves in `.grad` what goes back.
                inputs[here] = torch.tensor(comm.recv(source=peer, tag=tag)).requires_grad_()
            elif kind == RECV_B:
                gradients[here] = torch.tensor(comm.recv(source=peer, tag=tag))
            elif kind in (SEND_F, SEND_B):
                values = outputs[here] if kind == SEND_F else gradients.pop(before)
                # It must not wait: the neighbour may be about to send to this rank, too.
                requests.append(comm.isend(values.detach().numpy(), dest=peer, tag=tag))
            elif kind == FORWARD:
                outputs[here] = stages[stage](inputs[here])
                if stage == max(rank_of):
                    outputs[here] = loss(outputs[here], index)
                    total += outputs[here].item()
                elif stage + 1 in stages:
                    # The next stage is on this rank: no message,
                    # but a tensor of its own as if one had come.
                    inputs[after] = outputs[here].detach().requires_grad_()
            elif kind in (BACKWARD, INPUT):
                # The last stage starts from the loss, the others from the gradient that came back.
                outputs.pop(here).backward(gradients.pop(here, None))
                gradients[before] = inputs.pop(here).grad
    for request in requests:
        request.wait()
    return total


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
    starts = [sum(cuts[:stage]) for stage in range(len(cuts))]
    return [Stage(*layers[start : start + size]) for start, size in zip(starts, cuts, strict=True)]
