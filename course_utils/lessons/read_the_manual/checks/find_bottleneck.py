"""The check of `find_bottleneck`: lanes that were made up so that most time is lost to a cause that is known."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from course_utils.checks.exercise import Case, Exercise, Outcome, Recogniser
from course_utils.checks.finding import Finding, Kind, own
from course_utils.lessons.profiling import intervals
from course_utils.lessons.profiling.lanes import Lanes
from course_utils.lessons.read_the_manual.large_training.bottleneck import Cause
from course_utils.lessons.read_the_manual.large_training.made_lanes import late_input_lanes, made_lanes
from course_utils.words import count, percent

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LATE, PREFETCHED = "late-input", "prefetched"


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(lanes: list[Lanes], cause: Cause, rank: int | None, key: str = "") -> Case:
        label = f"a trace of {count(len(lanes), 'rank')}, {count(lanes[0].steps, 'step')}"
        label += ", the ranks in a different order" if key == "shuffled" else ""
        return Case(label, [(lanes,)], with_comm=False, key=key, judge=lambda outcome: _wrong(outcome, cause, rank))

    def made(cause: Cause, ranks: int, key: str = "") -> Case:
        slow = int(rng.integers(1, ranks))
        lanes = made_lanes(rng, cause, ranks, slow, prefetched=key == PREFETCHED)
        if key == "shuffled":
            lanes = [lanes[rank] for rank in rng.permutation(ranks)]
            if lanes[slow].rank == slow:
                lanes = [*lanes[1:], lanes[0]]
        return case(lanes, cause, slow if cause is Cause.STRAGGLER else None, key)

    for cause in (Cause.MESSAGES, Cause.INPUT, Cause.OPTIMIZER, Cause.AGAIN, Cause.STRAGGLER, Cause.BUBBLE):
        yield made(cause, 4)
    for cause in (Cause.AGAIN, Cause.OPTIMIZER, Cause.MESSAGES):
        yield made(cause, 4, PREFETCHED)
    yield made(Cause.STRAGGLER, 5, "shuffled")
    slow = int(rng.integers(1, 4))
    yield case(late_input_lanes(rng, 4, slow), Cause.STRAGGLER, slow, LATE)
    for cause in rng.permutation(list(Cause)):
        yield made(cause, int(rng.integers(3, 9)))


def lost_shares(lanes: Sequence[Lanes]) -> dict[Cause, float]:
    """Which share of the ranks' time is lost to each cause, counted apart from the exercise's own answer."""
    least = min(intervals.length(each.exposed) for each in lanes)
    total = sum(each.end - each.begin for each in lanes)
    lost = dict.fromkeys(Cause, 0.0)
    for each in lanes:
        lost[Cause.MESSAGES] += least
        lost[Cause.STRAGGLER] += intervals.length(each.exposed) - least
        for cause, name in ((Cause.AGAIN, "again"), (Cause.OPTIMIZER, "optimizer")):
            lost[cause] += intervals.length(intervals.intersection(each.computing, each.phases.get(name, [])))
        waited = intervals.length(intervals.intersection(each.idle, each.phases.get("input", [])))
        lost[Cause.INPUT] += waited
        lost[Cause.BUBBLE] += intervals.length(each.idle) - waited
    return {cause: seconds / total for cause, seconds in lost.items()}


def _wrong(outcome: Outcome, cause: Cause, rank: int | None) -> Finding | None:
    answer = outcome.results[0]
    if answer is None:
        return Finding(Kind.NOTHING, expected="a cause and a rank")
    if not isinstance(answer, tuple) or len(answer) != 2:
        return own(
            "not-a-pair", "{who} returned {got}, and a pair of a cause and a rank is asked for", got=repr(answer)
        )
    if not isinstance(answer[0], Cause):
        return own("not-a-cause", "{who} returned {got} as the cause, which is none of `Cause`", got=repr(answer[0]))
    if answer[0] is not cause:
        shares = lost_shares(outcome.case.arguments[0][0])
        words = "{who} named {got}, to which {small} of the ranks' time is lost, and {large} is lost to {expected}"
        measured = {"small": percent(shares[answer[0]]), "large": percent(shares[cause])}
        return own(
            f"{answer[0].name}-for-{cause.name}".lower(), words, measured, got=answer[0].value, expected=cause.value
        )
    if answer[1] != rank:
        words = "the cause is {cause}, as you found, but {who} blamed {got}, and {expected} is to blame"
        named = {"got": _blamed(answer[1]), "expected": _blamed(rank)}
        return own("no-rank-to-blame" if rank is None else "rank", words, cause=cause.value, **named)
    return None


def _blamed(rank: int | None) -> str:
    return "no single rank" if rank is None else f"rank {rank}"


def _named(cause: Cause) -> Recogniser:
    """A recogniser of answers that name this cause where it is a different one."""
    return lambda case, outcome: outcome.finding.got == cause.value


def _largest(outcome: Outcome) -> list[tuple[Cause, float]]:
    shares = lost_shares(outcome.case.arguments[0][0])
    return sorted(shares.items(), key=lambda item: -item[1])


def _praise(outcome: Outcome) -> str:
    (cause, most), (second, less), *_ = _largest(outcome)
    return (
        "right for traces with each of the six causes. In the last one, most time is lost to "
        f"{cause.value}, {percent(most)}; {second.value} is next with {percent(less)}"
    )


def _drawing(outcome: Outcome) -> "Figure | None":
    from course_utils.lessons.profiling import pictures

    lanes = sorted(outcome.case.arguments[0][0], key=lambda own: own.rank)
    (cause, most), *_ = _largest(outcome)
    title = f"{percent(most)} of the ranks' time is lost to {cause.value}"
    return pictures.profile(lanes, title, outcome.case.label)


EXERCISE = Exercise(
    library="large_training.bottleneck",
    number=5,
    minutes=30,
    difficulty=3,
    turn="count what each cause costs, and name the one that costs the most",
    title="what makes this training slow?",
    cases=_cases,
    hints=(
        "Look at the picture of a slow rank. All ranks leave the all-reduce at the same time, but they enter it at "
        "different times. On which rank does the exposed communication last only as long as the messages themselves "
        "do? What have the other ranks waited for in the rest of theirs?",
        "Add up seconds for each cause over all lanes. `slowest` is the rank with the least `exposed_seconds`. These "
        "seconds are lost to messages on every rank, and what a rank has beyond them is lost to the slow rank. "
        "`length(intersection(own.idle, own.phases.get('input', [])))` is lost to input, and the rest of `own.idle` to "
        "the bubble. For the two others, take the intersection of `own.computing` and the phase. Then return the "
        "largest, with `slowest` only for `Cause.STRAGGLER`.",
    ),
    symptoms={
        "messages are named": _named(Cause.MESSAGES),
        "a slow rank is named": _named(Cause.STRAGGLER),
        "the bubble is named": _named(Cause.BUBBLE),
        "input is named": _named(Cause.INPUT),
        "computing again is named": _named(Cause.AGAIN),
        "the optimizer is named": _named(Cause.OPTIMIZER),
    },
    praise=_praise,
    drawing=_drawing,
)
