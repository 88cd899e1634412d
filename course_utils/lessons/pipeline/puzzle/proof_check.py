"""Follow a proof of `makespan_bound.py` step by step.

Nothing of the search is used: times are fractions, paths are plain.

Source: Carlier & Pinson 1989, "An Algorithm for Solving the Job-Shop Problem".
"""

from collections.abc import Sequence
from fractions import Fraction
from graphlib import CycleError, TopologicalSorter

from course_utils.errors import CourseError
from course_utils.lessons.pipeline.puzzle.makespan_bound import Proof, ProofStep
from course_utils.lessons.pipeline.puzzle.puzzle import Puzzle

Orders = dict[str, list[tuple[str, Fraction]]]
"""What must come after an action, by its short name ("2F0"), and how long after its end."""


def check_proof(proof: Proof) -> int:
    """How many steps were followed.

    Raises:
        CourseError: a step that does not follow, or an end that leaves a schedule open.
    """
    puzzle = proof.puzzle
    lasts, orders = _given(puzzle)
    return _follow(proof.steps, lasts, orders, Fraction(str(proof.seconds)))


def _given(puzzle: Puzzle) -> tuple[dict[str, Fraction], Orders]:
    """How long each action takes, and what the puzzle says of their order."""
    lasts: dict[str, Fraction] = {}
    orders: Orders = {}
    transfer = Fraction(str(puzzle.message)) + Fraction(str(puzzle.latency))
    for s, (f, i, w) in enumerate(zip(puzzle.forward, puzzle.input_gradient, puzzle.weight_gradient, strict=True)):
        for n in range(puzzle.micro_batches):
            lasts |= {f"{s}F{n}": Fraction(str(f)), f"{s}I{n}": Fraction(str(i)), f"{s}W{n}": Fraction(str(w))}
            orders[f"{s}F{n}"] = [(f"{s}I{n}", Fraction(0))]
            orders[f"{s}I{n}"] = [(f"{s}W{n}", Fraction(0))]
            orders[f"{s}W{n}"] = []
            if s + 1 < puzzle.ranks:
                orders[f"{s}F{n}"].append((f"{s + 1}F{n}", transfer))
            if s > 0:
                orders[f"{s}I{n}"].append((f"{s - 1}I{n}", transfer))
            if n + 1 < puzzle.micro_batches:
                for kind in "FIW":
                    orders[f"{s}{kind}{n}"].append((f"{s}{kind}{n + 1}", Fraction(0)))
            if n + puzzle.memory[s] < puzzle.micro_batches:
                orders[f"{s}W{n}"].append((f"{s}F{n + puzzle.memory[s]}", Fraction(0)))
    return lasts, orders


def _follow(steps: Sequence[ProofStep], lasts: dict[str, Fraction], orders: Orders, seconds: Fraction) -> int:
    """Follow the steps of one case; what they put into the order holds in it alone."""
    orders = {action: list(after) for action, after in orders.items()}
    followed = 0
    for step in steps:
        followed += 1
        names = [str(action) for action in step.actions]
        if step.kind == "either":
            first, (other,) = str(step.action), names
            if len(step.cases) != 2 or first[0] != other[0] or step.action.stage != step.actions[0].stage:
                raise CourseError(f"{first} and {other} need two cases, and one rank.")
            for (earlier, later), case in zip(((first, other), (other, first)), step.cases, strict=True):
                followed += _follow(case, lasts, _with(orders, [(earlier, later)]), seconds)
            return followed
        ends = _ends(lasts, orders)
        if ends is None:
            return followed  # in a circle: no such schedule
        heads, tails = ends
        everyone = names if step.action is None else [*names, str(step.action)]
        if len({action.stage for action in step.actions} | ({step.action.stage} if step.action else set())) != 1:
            raise CourseError(f"{', '.join(everyone)} are not on one rank.")
        if len(set(everyone)) != len(everyone):
            raise CourseError(f"{', '.join(everyone)} names an action twice.")
        begin, end = (everyone if step.kind == "last" else names), (everyone if step.kind == "first" else names)
        needs = (
            min(heads[action] for action in begin)
            + sum(lasts[action] for action in everyone)
            + min(tails[action] for action in end)
        )
        if needs < seconds:
            raise CourseError(
                f"{step.kind}, {', '.join(everyone)}: that is {float(needs):g} s, not {float(seconds):g}."
            )
        if step.kind == "too long":
            return followed
        if step.kind not in ("last", "first") or step.action is None:
            raise CourseError(f"{step.kind!r} is no step of a proof.")
        pairs = [(name, str(step.action)) for name in names]
        orders = _with(orders, pairs if step.kind == "last" else [pair[::-1] for pair in pairs])
    raise CourseError("The proof ends, and schedules are left.")


def _with(orders: Orders, pairs: Sequence[tuple[str, str]]) -> Orders:
    changed = dict(orders)
    for earlier, later in pairs:
        changed[earlier] = [*changed[earlier], (later, Fraction(0))]
    return changed


def _ends(lasts: dict[str, Fraction], orders: Orders) -> tuple[dict[str, Fraction], dict[str, Fraction]] | None:
    """Head and tail of each action, in an order in which each comes after what it waits for; None in a circle."""
    waits: dict[str, list[str]] = {action: [] for action in lasts}
    for earlier, after in orders.items():
        for later, _ in after:
            waits[later].append(earlier)
    try:
        line = list(TopologicalSorter(waits).static_order())
    except CycleError:
        return None
    heads = dict.fromkeys(lasts, Fraction(0))
    for action in line:
        for later, wait in orders[action]:
            heads[later] = max(heads[later], heads[action] + lasts[action] + wait)
    tails = dict.fromkeys(lasts, Fraction(0))
    for action in reversed(line):
        tails[action] = max((wait + lasts[later] + tails[later] for later, wait in orders[action]), default=Fraction(0))
    return heads, tails
