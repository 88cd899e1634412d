"""What is wrong with a schedule, found before it is run and hangs or computes something different."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from course_utils.lessons.pipeline.actions import (
    BACKWARD,
    FORWARD,
    INPUT,
    RECV_B,
    RECV_F,
    WEIGHT,
    Action,
    micro_batches_of,
    rank_of_stages,
)
from course_utils.lessons.pipeline.send_and_receive import other_end
from course_utils.lessons.pipeline.timing import PerStage, Stuck, needs, number_for, simulate_schedule


class ProblemKind(StrEnum):
    """What can be wrong with a schedule."""

    # of another form
    NO_LISTS = "no-lists"
    NUMBER_OF_LISTS = "number-of-lists"
    NOT_AN_ACTION = "not-an-action"
    STAGE_ELSEWHERE = "stage-elsewhere"
    NO_SUCH_MICRO_BATCH = "no-such-micro-batch"
    # what is computed
    ON_TWO_RANKS = "on-two-ranks"
    REPEATED = "repeated"
    NO_FORWARD = "no-forward"
    NO_BACKWARD = "no-backward"
    WHOLE_AND_HALF = "whole-and-half"
    NO_WEIGHT_GRADIENT = "no-weight-gradient"
    NOT_ASKED_FOR = "not-asked-for"
    # when, and with which messages
    TOO_EARLY = "too-early"
    NEVER_SENT = "never-sent"
    NEVER_RECEIVED = "never-received"
    CIRCULAR_WAIT = "circular-wait"
    TOO_MUCH_MEMORY = "too-much-memory"


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with a schedule; `str` words it.

    Attributes:
        kind: what is wrong.
        rank: on which rank; None where it is no single one.
        action: the action that is wrong or missing; what is in the list instead of one; of ON_TWO_RANKS, the stage.
        other: the action that it needs, waits for or lacks.
        number, expected: how often, how many or how much there is, and may be; of ON_TWO_RANKS, the other rank.
        waiting: of CIRCULAR_WAIT, for each rank the action at which it waits, and the rank and action it waits for.
    """

    kind: ProblemKind
    rank: int | None = None
    action: Any = None
    other: Action | None = None
    number: float | None = None
    expected: float | None = None
    waiting: Mapping[int, tuple[Action, int | None, Action | None]] = field(default_factory=dict)

    def __str__(self) -> str:
        if self.kind == ProblemKind.CIRCULAR_WAIT:
            return "a deadlock: " + ", ".join(f"rank {rank} waits {_until(*at)}" for rank, at in self.waiting.items())
        return _WORDS[self.kind].format(**vars(self))


_WORDS = {
    ProblemKind.NO_LISTS: "a schedule is a list of lists, one for each rank",
    ProblemKind.NUMBER_OF_LISTS: "the number of lists is {number}, the number of ranks {expected}",
    ProblemKind.NOT_AN_ACTION: "rank {rank} has {action!r} in its list, which is not an Action",
    ProblemKind.STAGE_ELSEWHERE: (
        "rank {rank} has {action} in its list; in this puzzle, stage {action.stage} is on a different rank"
    ),
    ProblemKind.NO_SUCH_MICRO_BATCH: (
        "rank {rank} has {action} in its list, but micro-batches are numbered from 0 to {expected}"
    ),
    ProblemKind.ON_TWO_RANKS: "stage {action} is on rank {rank} and on rank {number}",
    ProblemKind.REPEATED: "{action} is done {number} times",
    ProblemKind.NO_FORWARD: "{action} is missing: stage {action.stage} never sees micro-batch {action.micro_batch}",
    ProblemKind.NO_BACKWARD: (
        "{action} is missing: stage {action.stage} gets no gradient from micro-batch {action.micro_batch}"
    ),
    ProblemKind.WHOLE_AND_HALF: "{action} is the whole backward pass; {other} repeats it",
    ProblemKind.NO_WEIGHT_GRADIENT: "{action} has no {other}: the weights get no gradient",
    ProblemKind.NOT_ASKED_FOR: "{action} is more than was asked for",
    ProblemKind.TOO_EARLY: "rank {rank} does {action} before {other}, which it needs",
    ProblemKind.NEVER_SENT: "{action} waits for {other}, which no rank sends",
    ProblemKind.NEVER_RECEIVED: "{action} is never received: {other} is missing",
    ProblemKind.TOO_MUCH_MEMORY: "rank {rank} keeps {number:g} after {action}, and has room for {expected:g}",
}


def _until(action: Action, peer: int | None, awaited: Action | None) -> str:
    return f"at {action}" if awaited is None else f"at {action}, until rank {peer} comes to {awaited}"


def in_flight(actions: Sequence[Action], sizes: PerStage = 1) -> list[float]:
    """What a rank keeps after each of its actions: activations, from a forward pass to the end of its backward pass.

    Where the backward pass is cut in two, they are kept until the second half.

    Args:
        sizes: of one micro-batch's activations, for all stages or for each: 1 counts micro-batches, or bytes.
    """
    kept, after = 0.0, []
    for action in actions:
        size = number_for(action.stage, sizes)
        if action.kind == FORWARD:
            kept += size
        elif action.kind in (BACKWARD, WEIGHT):
            kept -= size
        after.append(kept)
    return after


def peak_in_flight(schedule: Sequence[Sequence[Action]], sizes: PerStage = 1) -> list[float]:
    """The most that each rank keeps at any time; min(P − r, m) micro-batches in 1F1B, m in GPipe. See `in_flight`."""
    return [max(in_flight(actions, sizes), default=0) for actions in schedule]


def problems(
    schedule: Sequence[Sequence[Action]],
    stages: int | None = None,
    micro_batches: int | None = None,
    memory: float | Sequence[float] | None = None,
    sizes: PerStage = 1,
    synchronous: bool = False,
) -> list[Problem]:
    """Find everything that is wrong with a schedule; an empty list if it can be run.

    Looked for, in this order: something that is not an action; a stage on two ranks; a forward or backward pass that is
    missing or done twice; a micro-batch used before it is there; a message without its other end; a deadlock; more in
    memory than allowed.

    Args:
        schedule: with messages or without.
        stages, micro_batches: how many there must be; None: as many as the schedule speaks of.
        memory: what a rank may keep, for all ranks or for each, in the unit of `sizes`.
        sizes: of one micro-batch's activations, see `in_flight`.
        synchronous: sends wait for their receive.
    """
    foreign = [
        Problem(ProblemKind.NOT_AN_ACTION, rank, thing)
        for rank, actions in enumerate(schedule)
        for thing in actions
        if not isinstance(thing, Action)
    ]
    if foreign:
        return foreign
    rank_of = rank_of_stages(schedule)
    stages = 1 + max(rank_of, default=-1) if stages is None else stages
    micro_batches = micro_batches_of(schedule) if micro_batches is None else micro_batches
    found = [*_homes(schedule, rank_of), *_passes(schedule, stages, micro_batches)]
    found += _order(schedule, rank_of) or _messages(schedule)
    if not found:
        try:
            simulate_schedule(schedule, synchronous=synchronous)
        except Stuck as stuck:
            found.append(_deadlock(stuck.waiting, rank_of))
    return found + _over_memory(schedule, memory, sizes)


def _homes(schedule: Sequence[Sequence[Action]], rank_of: dict[int, int]) -> list[Problem]:
    elsewhere = {
        (action.stage, rank)
        for rank, actions in enumerate(schedule)
        for action in actions
        if rank_of.get(action.stage, rank) != rank
    }
    return [Problem(ProblemKind.ON_TWO_RANKS, rank_of[stage], stage, number=rank) for stage, rank in sorted(elsewhere)]


def _passes(schedule: Sequence[Sequence[Action]], stages: int, micro_batches: int) -> list[Problem]:
    times = Counter(action for actions in schedule for action in actions)
    found = [
        Problem(ProblemKind.REPEATED, action=action, number=number) for action, number in times.items() if number > 1
    ]
    for stage in range(stages):
        for index in range(micro_batches):
            forward, whole, first, second = (Action(kind, stage, index) for kind in (FORWARD, BACKWARD, INPUT, WEIGHT))
            if not times[forward]:
                found.append(Problem(ProblemKind.NO_FORWARD, action=forward))
            if not times[whole] and not times[first]:
                found.append(Problem(ProblemKind.NO_BACKWARD, action=whole))
            elif times[whole] and (times[first] or times[second]):
                half = first if times[first] else second
                found.append(Problem(ProblemKind.WHOLE_AND_HALF, action=whole, other=half))
            elif times[first] and not times[second]:
                found.append(Problem(ProblemKind.NO_WEIGHT_GRADIENT, action=first, other=second))
    more = {action for action in times if action.stage >= stages or action.micro_batch >= micro_batches}
    return found + [Problem(ProblemKind.NOT_ASKED_FOR, action=action) for action in sorted(more, key=str)]


def _order(schedule: Sequence[Sequence[Action]], rank_of: dict[int, int]) -> list[Problem]:
    """What a rank uses before it is there. In a schedule without messages, what other ranks make comes by itself."""
    complete = any(not action.computes for actions in schedule for action in actions)
    found = []
    for rank, actions in enumerate(schedule):
        seen: set[Action] = set()
        for action in actions:
            if action.computes:
                for need in needs(action, rank, rank_of):
                    if need not in seen and (need.computes or complete) and not _whole_for_half(need, seen):
                        found.append(Problem(ProblemKind.TOO_EARLY, rank, action, need))
            seen.add(action)
    return found


def _whole_for_half(need: Action, seen: set[Action]) -> bool:
    """Whether a whole backward pass gives what a half is asked for, or the half what the whole is asked for."""
    other = {INPUT: BACKWARD, BACKWARD: INPUT}.get(need.kind)
    return other is not None and Action(other, need.stage, need.micro_batch) in seen


def _messages(schedule: Sequence[Sequence[Action]]) -> list[Problem]:
    messages = {action for actions in schedule for action in actions if not action.computes}
    unmatched = [action for action in messages if other_end(action) not in messages]
    return [
        Problem(
            ProblemKind.NEVER_SENT if action.kind in (RECV_F, RECV_B) else ProblemKind.NEVER_RECEIVED,
            action=action,
            other=other_end(action),
        )
        for action in sorted(unmatched, key=str)
    ]


def _deadlock(waiting: dict[int, Action], rank_of: dict[int, int]) -> Problem:
    def at(action: Action) -> tuple[Action, int | None, Action | None]:
        awaited = None if action.computes else other_end(action)
        return action, awaited and rank_of[awaited.stage], awaited

    return Problem(ProblemKind.CIRCULAR_WAIT, waiting={rank: at(action) for rank, action in waiting.items()})


def _over_memory(
    schedule: Sequence[Sequence[Action]], memory: float | Sequence[float] | None, sizes: PerStage
) -> list[Problem]:
    if memory is None:
        return []
    found = []
    for rank, actions in enumerate(schedule):
        allowed = number_for(rank, memory)
        for action, kept in zip(actions, in_flight(actions, sizes), strict=True):
            if kept > allowed:
                found.append(Problem(ProblemKind.TOO_MUCH_MEMORY, rank, action, number=kept, expected=allowed))
                break
    return found
