"""A schedule that is built along a simulated clock: the action that can begin first is next."""

from collections import Counter

from course_utils.lessons.pipeline.actions import FORWARD, INPUT, WEIGHT, Action, Schedule
from course_utils.lessons.pipeline.puzzle.puzzle import Puzzle


def beat_1f1b(puzzle: Puzzle) -> Schedule:
    """Return a schedule for the puzzle that needs no more memory than there is and beats 1F1B.

    Any order of actions counts, with whole backward passes (B) or with their halves, where W
    may come at any time after I. `judge(puzzle, schedule)` finds out what is wrong with a
    schedule, how long it takes, and how idle the ranks are.

    Args:
        puzzle: times of each stage, link, memory of each rank and number of micro-batches;
            stage s is on rank s.

    Returns:
        For each rank its actions, in order.
    """
    seconds = {FORWARD: puzzle.forward, INPUT: puzzle.input_gradient, WEIGHT: puzzle.weight_gradient}
    link = puzzle.message + puzzle.latency
    schedule: Schedule = [[] for _ in range(puzzle.ranks)]
    clock, done, times = [0.0] * puzzle.ranks, {}, Counter()  # of each rank; when what ended; how often

    # When a rank could start its next action of this kind,
    # or None if something that it needs is still missing.
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

    # Of all actions that could be next, take the one that can start first.
    # If several can, I comes before F, and F before W, because no other rank waits for W.
    for _ in range(3 * puzzle.ranks * puzzle.micro_batches):
        can = [(ready(rank, kind), "IFW".index(kind), rank, kind) for rank in range(puzzle.ranks) for kind in seconds]
        start, _, rank, kind = min(candidate for candidate in can if candidate[0] is not None)
        index = times[rank, kind]
        clock[rank] = done[rank, kind, index] = start + seconds[kind][rank]
        times[rank, kind] += 1
        schedule[rank].append(Action(kind, rank, index))
    return schedule
