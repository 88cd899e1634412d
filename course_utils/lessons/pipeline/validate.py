"""What is wrong with a schedule, in words: before it is run, where it would hang or compute something else."""

from collections import Counter
from collections.abc import Sequence

from course_utils.errors import CourseError
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
from course_utils.words import count

_SHOWN = 5  # problems that a message names


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
) -> list[str]:
    """Everything that is wrong with a schedule, one sentence each; an empty list if it can be run.

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
        f"rank {rank} has {thing!r} in its list, which is not an Action"
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


def validate_schedule(schedule: Sequence[Sequence[Action]], **asked) -> None:
    """Reject a schedule that cannot be run.

    Args:
        asked: as for `problems`.

    Raises:
        CourseError: names what is wrong, up to five things of it.
    """
    found = problems(schedule, **asked)
    if found:
        more = f" And {len(found) - _SHOWN} more." if len(found) > _SHOWN else ""
        raise CourseError("This schedule cannot be run: " + "; ".join(found[:_SHOWN]) + "." + more)


def _homes(schedule: Sequence[Sequence[Action]], rank_of: dict[int, int]) -> list[str]:
    elsewhere = {
        (action.stage, rank)
        for rank, actions in enumerate(schedule)
        for action in actions
        if rank_of.get(action.stage, rank) != rank
    }
    return [f"stage {stage} is on rank {rank_of[stage]} and on rank {rank}" for stage, rank in sorted(elsewhere)]


def _passes(schedule: Sequence[Sequence[Action]], stages: int, micro_batches: int) -> list[str]:
    times = Counter(action for actions in schedule for action in actions)
    found = [f"{action} is done {count(number, 'time')}" for action, number in times.items() if number > 1]
    for stage in range(stages):
        for index in range(micro_batches):
            forward, whole, first, second = (
                times[Action(kind, stage, index)] for kind in (FORWARD, BACKWARD, INPUT, WEIGHT)
            )
            if not forward:
                found.append(f"{stage}F{index} is missing: stage {stage} never sees micro-batch {index}")
            if not whole and not first:
                found.append(f"{stage}B{index} is missing: stage {stage} gets no gradient from micro-batch {index}")
            elif whole and (first or second):
                found.append(
                    f"{stage}B{index} is the whole backward pass; {stage}I{index} or {stage}W{index} repeats it"
                )
            elif first and not second:
                found.append(f"{stage}I{index} has no {stage}W{index}: the weights get no gradient")
    asked = {action for action in times if action.stage >= stages or action.micro_batch >= micro_batches}
    return found + [f"{action} is more than was asked for" for action in sorted(asked, key=str)]


def _order(schedule: Sequence[Sequence[Action]], rank_of: dict[int, int]) -> list[str]:
    """What a rank uses before it is there. In a schedule without messages, what other ranks make comes by itself."""
    complete = any(not action.computes for actions in schedule for action in actions)
    found = []
    for rank, actions in enumerate(schedule):
        seen: set[Action] = set()
        for action in actions:
            if action.computes:
                for need in needs(action, rank, rank_of):
                    if need not in seen and (need.computes or complete) and not _whole_for_half(need, seen):
                        found.append(f"rank {rank} does {action} before {need}, which it needs")
            seen.add(action)
    return found


def _whole_for_half(need: Action, seen: set[Action]) -> bool:
    """Whether a whole backward pass gives what a half is asked for, or the half what the whole is asked for."""
    other = {INPUT: BACKWARD, BACKWARD: INPUT}.get(need.kind)
    return other is not None and Action(other, need.stage, need.micro_batch) in seen


def _messages(schedule: Sequence[Sequence[Action]]) -> list[str]:
    messages = {action for actions in schedule for action in actions if not action.computes}
    alone = [action for action in messages if other_end(action) not in messages]
    return [
        f"{action} waits for {other_end(action)}, which nobody sends"
        if action.kind in (RECV_F, RECV_B)
        else f"{action} is never received: {other_end(action)} is missing"
        for action in sorted(alone, key=str)
    ]


def _deadlock(waiting: dict[int, Action], rank_of: dict[int, int]) -> str:
    def because(action: Action) -> str:
        if action.computes:
            return f"at {action}"
        peer = rank_of[other_end(action).stage]
        return f"at {action}, until rank {peer} comes to {other_end(action)}"

    return "a deadlock: " + ", ".join(f"rank {rank} waits {because(action)}" for rank, action in waiting.items())


def _over_memory(
    schedule: Sequence[Sequence[Action]], memory: float | Sequence[float] | None, sizes: PerStage
) -> list[str]:
    if memory is None:
        return []
    found = []
    for rank, actions in enumerate(schedule):
        allowed = number_for(rank, memory)
        for action, kept in zip(actions, in_flight(actions, sizes), strict=True):
            if kept > allowed:
                found.append(f"rank {rank} keeps {kept:g} after {action}, and {allowed:g} is allowed")
                break
    return found
