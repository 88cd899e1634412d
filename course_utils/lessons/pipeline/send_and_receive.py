"""From computations to the whole program of each rank: what has to be sent and received, and where in the list."""

from collections.abc import Mapping, Sequence

from course_utils.lessons.pipeline.actions import (
    BACKWARD,
    FORWARD,
    INPUT,
    RECV_B,
    RECV_F,
    SEND_B,
    SEND_F,
    Action,
    Schedule,
    rank_of_stages,
)


def with_messages(schedule: Sequence[Sequence[Action]]) -> Schedule:
    """The same schedule with every send and receive: received just before it is needed, sent as soon as it is there.

    Between two stages on one rank nothing is sent. Sends do not wait (`isend`); where they would, see `validate`.

    Args:
        schedule: computations only; messages that it has already are left out and written anew.
    """
    rank_of = rank_of_stages(schedule)

    def on_other_rank(stage: int, other: int) -> bool:
        return other in rank_of and rank_of[other] != rank_of[stage]

    program = []
    for actions in schedule:
        lines: list[Action] = []
        for action in filter(lambda action: action.computes, actions):
            stage, index = action.stage, action.micro_batch
            if action.kind == FORWARD:
                before = [Action(RECV_F, stage, index)] if on_other_rank(stage, stage - 1) else []
                after = [Action(SEND_F, stage, index)] if on_other_rank(stage, stage + 1) else []
            elif action.kind in (BACKWARD, INPUT):
                before = [Action(RECV_B, stage, index)] if on_other_rank(stage, stage + 1) else []
                after = [Action(SEND_B, stage, index)] if on_other_rank(stage, stage - 1) else []
            else:
                before, after = [], []
            lines += [*before, action, *after]
        program.append(lines)
    return program


def other_end(action: Action) -> Action:
    """The receive that belongs to a send, or the send that belongs to a receive."""
    kind, step = {
        SEND_F: (RECV_F, 1),
        RECV_F: (SEND_F, -1),
        SEND_B: (RECV_B, -1),
        RECV_B: (SEND_B, 1),
    }[action.kind]
    return Action(kind, action.stage + step, action.micro_batch)


def address(action: Action, rank_of: Mapping[int, int]) -> tuple[int, int]:
    """The rank at the other end of a message, and its tag: the same at both ends, and unlike every other message's.

    The tag says micro-batch, border between stages, and direction. A computation stays where it is, with tag −1.

    Args:
        rank_of: stage → rank, as `rank_of_stages` gives it.
    """
    if action.computes:
        return rank_of[action.stage], -1
    other = other_end(action).stage
    forward = action.kind in (SEND_F, RECV_F)
    return rank_of[other], 2 * (1000 * action.micro_batch + max(action.stage, other)) + forward
