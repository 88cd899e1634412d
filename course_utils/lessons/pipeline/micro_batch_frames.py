"""Which micro-batch is where: step by step, what each rank of a pipeline has to do with each micro-batch."""

from collections.abc import Sequence
from enum import StrEnum

from course_utils.errors import CourseError
from course_utils.lessons.pipeline.actions import BACKWARD, FORWARD, Action, micro_batches_of
from course_utils.lessons.pipeline.timing import simulate_schedule


class MicroBatchState(StrEnum):
    """What a rank has to do with a micro-batch during one step."""

    NOT_YET = "not there yet"
    FORWARD = "forward"
    KEPT = "kept for the backward pass"
    BACKWARD = "backward"
    DONE = "done"


Frame = list[list[MicroBatchState]]
"""`frame[r][i]` is the state of micro-batch i on rank r."""


def micro_batch_frames(schedule: Sequence[Sequence[Action]]) -> list[Frame]:
    """Return one frame for each step of the schedule, in which every pass takes one step.

    Raises:
        CourseError: a rank has several stages, or a backward pass is cut in two.
    """
    actions = [action for actions in schedule for action in actions]
    one_stage = all(len({action.stage for action in actions}) == 1 for actions in schedule)
    if not one_stage or not {action.kind for action in actions} <= {FORWARD, BACKWARD}:
        raise CourseError("micro_batch_frames: each rank has one stage, and only forward (F) and backward passes (B).")
    plan = simulate_schedule(schedule, forward=1.0, input_gradient=0.5, weight_gradient=0.5)
    frames = [
        [[MicroBatchState.NOT_YET] * micro_batches_of(schedule) for _ in schedule] for _ in range(round(plan.seconds))
    ]
    at_work = {FORWARD: MicroBatchState.FORWARD, BACKWARD: MicroBatchState.BACKWARD}
    after = {FORWARD: MicroBatchState.KEPT, BACKWARD: MicroBatchState.DONE}
    for entry in plan.entries:  # in the order in which they begin: a backward pass replaces what its forward pass left
        step, index, kind = round(entry.start), entry.action.micro_batch, entry.action.kind
        frames[step][entry.rank][index] = at_work[kind]
        for frame in frames[step + 1 :]:
            frame[entry.rank][index] = after[kind]
    return frames


def most_kept(frames: Sequence[Frame]) -> list[int]:
    """Return the most micro-batches whose activations each rank keeps, the one that it is working on included."""
    kept = (MicroBatchState.FORWARD, MicroBatchState.KEPT, MicroBatchState.BACKWARD)
    return [max(sum(state in kept for state in frame[rank]) for frame in frames) for rank in range(len(frames[0]))]
