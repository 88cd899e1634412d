"""A schedule that is made while the clock runs: whoever can begin first, begins."""

from collections import Counter

from course_utils.lessons.pipeline.actions import FORWARD, INPUT, WEIGHT, Action, Schedule
from course_utils.lessons.pipeline.puzzle.puzzle import Puzzle


def beat_1f1b(puzzle: Puzzle) -> Schedule:
    """A schedule for the puzzle that keeps within its memory and is done before 1F1B.

    Any schedule counts: whole backward passes (B) or their halves (I, and W at any later
    time), in any order. `judge(puzzle, schedule)` says what is wrong with one, how long it
    takes and how much of the time the ranks are idle.

    Args:
        puzzle: stage times, link, memory of each rank, micro-batches; stage s lies on rank s.

    Returns:
        For each rank its actions, in order.
    """
    seconds = {FORWARD: puzzle.forward, INPUT: puzzle.input_gradient, WEIGHT: puzzle.weight_gradient}
    link = puzzle.message + puzzle.latency
    schedule: Schedule = [[] for _ in range(puzzle.ranks)]
    clock, done, times = [0.0] * puzzle.ranks, {}, Counter()  # of each rank; when what ended; how often

    # When a rank could start its next action of a kind;
    # None as long as something for it is missing.
    def ready(rank: int, kind: str) -> float | None:
        index = times[rank, kind]
        here = {FORWARD: None, INPUT: (rank, FORWARD, index), WEIGHT: (rank, INPUT, index)}[kind]
        there = {FORWARD: (rank - 1, kind, index), INPUT: (rank + 1, kind, index), WEIGHT: None}[kind]
        if there and not 0 <= there[0] < puzzle.ranks:
            there = None
        kept = times[rank, FORWARD] - times[rank, WEIGHT]
        missing = any(need and need not in done for need in (here, there))
        if index == puzzle.micro_batches or missing or kind == FORWARD and kept == puzzle.memory[rank]:
            return None
        return max(clock[rank], done[there] + link if there else 0.0)

    # Of all that could be next, what can start first;
    # input gradients before forward passes before weight gradients,
    # because others wait for the first two only.
    for _ in range(3 * puzzle.ranks * puzzle.micro_batches):
        can = [(ready(rank, kind), "IFW".index(kind), rank, kind) for rank in range(puzzle.ranks) for kind in seconds]
        start, _, rank, kind = min(candidate for candidate in can if candidate[0] is not None)
        index = times[rank, kind]
        clock[rank] = done[rank, kind, index] = start + seconds[kind][rank]
        times[rank, kind] += 1
        schedule[rank].append(Action(kind, rank, index))
    return schedule
