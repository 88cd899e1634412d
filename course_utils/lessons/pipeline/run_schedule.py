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
    """One forward and backward pass of the whole batch, as the schedule says.

    Activations go from rank to rank, gradients of activations come back, each as one message.
    Nothing else moves. Gradients of weights are added to `parameter.grad`.

    Args:
        schedule: of `comm.size` lists; `with_messages(schedule)` puts the messages in.
        stages: this rank's parts of the model, by number.
        micro_batches: the inputs; read where stage 0 is.
        loss: called where the last stage is. The shares add up to the batch's loss.
        pace: how long an action takes at least, see `course_utils.lessons.pipeline.stage_pace`.

    Returns:
        The batch's loss where the last stage is, 0.0 elsewhere.
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
