"""The search for the best schedule of a puzzle: from a good start, one small change after the other.

All micro-batches are alike, so a rank may take them in order: what is searched is only the order of F, I and W on each
rank. `python -m workshop.best_schedules` searches for the shared puzzles and writes
`best_known.py` anew.

Source: Kirkpatrick, Gelatt, Vecchi 1983, "Optimization by Simulated Annealing".
"""

import argparse
import math
import pprint
import random
from collections import Counter
from pathlib import Path

from course_utils.lessons.pipeline.actions import FORWARD, INPUT, WEIGHT, Action, Schedule, write_schedule
from course_utils.lessons.pipeline.puzzle import best_known
from course_utils.lessons.pipeline.puzzle.beat_1f1b import beat_1f1b
from course_utils.lessons.pipeline.puzzle.makespan_bound import lower_bound
from course_utils.lessons.pipeline.puzzle.puzzle import PUZZLES, Puzzle, judge
from course_utils.lessons.pipeline.puzzle.puzzle import best_known as known_for

Orders = list[list[str]]
"""For each rank the letters F, I and W in the order in which it does them."""


def anneal(puzzle: Puzzle, seed: int, steps: int, warmth: float = 0.02) -> Schedule:
    """Simulated annealing: a worse schedule is taken now and then, at first more often.

    Args:
        seed: of the random numbers; the same seed and steps give the same schedule.
        steps: changes that are tried.
        warmth: of the first step, as a share of the schedule's seconds.
    """
    draw = random.Random(seed)
    orders = [[action.kind for action in actions] for actions in beat_1f1b(puzzle)]
    now = best = cost(puzzle, orders)
    found = [list(order) for order in orders]
    for step in range(steps):
        temperature = warmth * best * (1 - step / steps) ** 2 + 1e-12
        # One action of one rank moves to another place.
        # Micro-batches are numbered afterwards, so most orders are valid.
        order = draw.choice(orders)
        old = list(order)
        letter = order.pop(draw.randrange(len(order)))
        order.insert(draw.randrange(len(order) + 1), letter)
        new = cost(puzzle, orders) if order != old else now
        # A worse schedule may lie on the way to a better one.
        if new <= now or draw.random() < math.exp((now - new) / temperature):
            now = new
            if new < best:
                best, found = new, [list(order) for order in orders]
        else:
            order[:] = old
    return numbered(found)


def numbered(orders: Orders) -> Schedule:
    """The schedule that takes the micro-batches in order."""
    schedule = []
    for rank, order in enumerate(orders):
        times: Counter[str] = Counter()
        actions = []
        for kind in order:
            actions.append(Action(kind, rank, times[kind]))
            times[kind] += 1
        schedule.append(actions)
    return schedule


def cost(puzzle: Puzzle, orders: Orders) -> float:
    """Seconds until the last rank is done, infinite where it cannot be run; what `judge` says, many times faster.

    A little of all ranks' own ends is added: it tells which of two equal schedules is nearer to a better one.
    """
    if not all(_fits(order, allowed) for order, allowed in zip(orders, puzzle.memory, strict=True)):
        return math.inf
    ranks = puzzle.ranks
    seconds = {FORWARD: puzzle.forward, INPUT: puzzle.input_gradient, WEIGHT: puzzle.weight_gradient}
    positions, clock, link = [0] * ranks, [0.0] * ranks, [0.0] * ranks
    came: dict[str, list[list[float]]] = {kind: [[] for _ in range(ranks)] for kind in (FORWARD, INPUT)}
    used = {kind: [0] * ranks for kind in (FORWARD, INPUT)}
    moved = True
    while moved:
        moved = False
        for rank, order in enumerate(orders):
            while positions[rank] < len(order):
                kind = order[positions[rank]]
                if kind != WEIGHT:
                    sender, receiver = (rank - 1, rank + 1) if kind == FORWARD else (rank + 1, rank - 1)
                    if 0 <= sender < ranks:
                        arrived, number = came[kind][rank], used[kind][rank]
                        if number == len(arrived):
                            break
                        clock[rank] = max(clock[rank], arrived[number])
                        used[kind][rank] += 1
                clock[rank] += seconds[kind][rank]
                if kind != WEIGHT and 0 <= receiver < ranks:
                    link[rank] = max(clock[rank], link[rank]) + puzzle.message
                    came[kind][receiver].append(link[rank] + puzzle.latency)
                positions[rank] += 1
                moved = True
    if any(at < len(order) for at, order in zip(positions, orders, strict=True)):
        return math.inf
    return max(clock) + 1e-3 * sum(clock) / ranks


def _fits(order: list[str], memory: int) -> bool:
    """Whether F, I and W follow each other, and no more than `memory` micro-batches are kept."""
    forward = first = second = 0
    for kind in order:
        forward += kind == FORWARD
        first += kind == INPUT
        second += kind == WEIGHT
        if not (second <= first <= forward <= second + memory):
            return False
    return True


def main() -> None:
    """Search for every shared puzzle, and keep what is better than what was known."""
    parser = argparse.ArgumentParser(prog="python -m workshop.best_schedules", description=main.__doc__)
    parser.add_argument("--steps", type=int, default=40_000)
    parser.add_argument("--seeds", type=int, default=4)
    options = parser.parse_args()
    kept = {}
    for name, puzzle in PUZZLES.items():
        candidates = [anneal(puzzle, seed, options.steps) for seed in range(options.seeds)]
        before = known_for(puzzle)
        candidates += [before.schedule] if before else []
        schedule = min(candidates, key=lambda candidate: round(judge(puzzle, candidate).seconds, 9))
        judged = judge(puzzle, schedule)
        kept[name] = tuple(write_schedule(schedule).splitlines())
        print(f"{name}: {judged}; at least {lower_bound(puzzle):.2f} s")
    file = Path(best_known.__file__)
    head = file.read_text(encoding="utf-8").partition("= {")[0]
    file.write_text(f"{head}= {pprint.pformat(kept, width=118)}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
