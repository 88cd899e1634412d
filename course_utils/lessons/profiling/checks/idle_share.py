"""The check of `idle_share`: on times that were counted by hand, and on drawn ones, counted moment by moment."""

from collections.abc import Callable, Iterator

import numpy as np

from course_utils.checks.exercise import Case, Exercise, Mistake, Outcome
from course_utils.checks.recognisers import Recogniser, nothing_returned, raised, same
from course_utils.lessons.profiling.checks import LESSON
from course_utils.lessons.profiling.checks.times import (
    Times,
    added,
    drawn,
    drawn_lanes,
    moments,
    on_each_rank,
    times_text,
)
from course_utils.words import ranks

Given = tuple[Times, Times, int, int]


def by_moments(computing: Times, communication: Times, begin: int, end: int) -> float:
    """The share, counted tick by tick."""
    span = set(range(begin, end))
    return len(span - moments([*computing, *communication])) / len(span) if span else 0.0


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(computing: Times, communication: Times, begin: int, end: int, share: float) -> Case:
        label = f"computing {times_text(computing)}, communication {times_text(communication)}, from {begin} to {end}"
        given = [(computing, communication, begin, end)]
        return Case(label, given, [share], with_comm=False)

    yield case([(0, 5)], [(5, 7)], 0, 10, 0.3)
    yield case([(2, 4)], [(5, 6)], 0, 10, 0.7)
    yield case([(1, 6)], [(4, 8)], 0, 10, 0.3)
    yield case([(0, 5), (1, 3)], [(2, 4)], 0, 8, 3 / 8)
    yield case([(0, 3), (3, 5)], [(5, 6)], 0, 8, 0.25)
    yield case([(6, 8), (0, 2)], [(3, 4)], 0, 10, 0.5)
    yield case([(-4, 2)], [(7, 15)], 0, 10, 0.5)
    yield case([(-9, -5), (3, 5)], [(12, 20)], 0, 10, 0.8)
    yield case([(-5, 50)], [], 0, 10, 0.0)
    yield case([(12, 14), (18, 30)], [(13, 15)], 10, 20, 0.5)
    yield case([], [(2, 4)], 0, 10, 0.8)
    yield case([], [], 0, 10, 1.0)
    yield case([(5, 5), (1, 2)], [(7, 7)], 0, 10, 0.9)
    yield case([(0, 1)], [(0, 1)], 3, 3, 0.0)
    yield case([(0, 9)], [(2, 5)], 5, 4, 0.0)
    given = [(drawn(rng, rank), drawn(rng, int(rng.integers(7))), 3, 20) for rank in range(available)]
    wanted = [by_moments(*each) for each in given]
    yield Case(f"{ranks(available)}, each with times of its own", given, wanted, with_comm=False)
    for n in (3, 6, 10):
        one, other, begin = drawn(rng, n), drawn(rng, n + 1), int(rng.integers(9))
        yield case(one, other, begin, begin + 5 * n, by_moments(one, other, begin, begin + 5 * n))
    given = [([(3, 9), (5, 12)], [(1, 4), (11, 15)], 2, 22)]
    yield Case("times from iterators", given, [0.35], with_comm=False, harness=on_each_rank)


def _is(formula: Callable[..., float]) -> Recogniser:
    """A recogniser of what another formula gives on every rank."""

    def recognises(case: Case, outcome: Outcome) -> bool:
        return all(same(got, formula(*given), 1e-6) for got, given in zip(outcome.results, case.arguments, strict=True))

    return recognises


def _busy(computing: Times, communication: Times, begin: int, end: int) -> float:
    return 1 - by_moments(computing, communication, begin, end)


def _of_their_own_span(computing: Times, communication: Times, begin: int, end: int) -> float:
    """From the first event to the last, whatever `begin` and `end` say."""
    ends = [moment for one in [*computing, *communication] for moment in one]
    return by_moments(computing, communication, min(ends), max(ends))


def _up_to_the_last(computing: Times, communication: Times, begin: int, end: int) -> float:
    """Gaps between events are counted, those at the ends are not; but all the time is divided by."""
    ends = [moment for one in [*computing, *communication] for moment in one]
    return by_moments(computing, communication, min(ends), max(ends)) * (max(ends) - min(ends)) / (end - begin)


def _added_up(computing: Times, communication: Times, begin: int, end: int) -> float:
    return 1 - added([*computing, *communication]) / (end - begin)


def _each_merged(computing: Times, communication: Times, begin: int, end: int) -> float:
    """Both lists merged, and what they share counted twice."""
    return 1 - (len(moments(computing)) + len(moments(communication))) / (end - begin)


def _computing_alone(computing: Times, communication: Times, begin: int, end: int) -> float:
    return by_moments(computing, [], begin, end)


def _seconds(computing: Times, communication: Times, begin: int, end: int) -> float:
    return by_moments(computing, communication, begin, end) * (end - begin)


def _not_cut(computing: Times, communication: Times, begin: int, end: int) -> float:
    return 1 - len(moments([*computing, *communication])) / (end - begin)


def _no_time(case: Case, outcome: Outcome) -> bool:
    return any(given[3] <= given[2] for given in case.arguments)


def _fails_on_nothing(case: Case, outcome: Outcome) -> bool:
    return raised(outcome) and any(not given[0] or not given[1] for given in case.arguments)


def _out_of_order(case: Case, outcome: Outcome) -> bool:
    return any(list(times) != sorted(times) for given in case.arguments for times in given[:2])


def _reach_beyond(case: Case, outcome: Outcome) -> bool:
    return any(
        moment < begin or moment > end
        for computing, communication, begin, end in case.arguments
        for one in [*computing, *communication]
        for moment in one
    )


IDLE_SHARE = Exercise(
    name="idle_share",
    library="course_utils.lessons.profiling.time_shares:idle_share",
    lesson=LESSON,
    place=2,
    minutes=5,
    difficulty=2,
    turn="of the time from begin to end, the share in which nothing was under way",
    title="how long does a rank do nothing?",
    cases=_cases,
    drawing=drawn_lanes,
    also_hidden=("course_utils.lessons.profiling.intervals:length", "course_utils.lessons.profiling.intervals:union"),
    hints=(
        "Put computing and communication into one list and sort it. When you have come to an event: which part of it "
        "has been counted before, and which part lies outside of the time that you are asked for?",
        "Keep `counted`, the moment up to which all is done; at first that is `begin`. For each event, sorted: let it "
        "begin at `counted` at the earliest and end at `end` at the latest; if something is left, add it, and go on "
        "from there.",
    ),
    mistakes=(
        Mistake("Where is the `return`?", nothing_returned),
        Mistake("Which share of no time at all is idle?", _no_time),
        Mistake("What if a rank has computed nothing, or sent nothing?", _fails_on_nothing),
        Mistake("Can the same list be gone through twice, whatever it is?", lambda case, _: "iterators" in case.label),
        Mistake("Is this the share in which it is idle, or busy?", _is(_busy)),
        Mistake("Is that seconds, or a share?", _is(_seconds)),
        Mistake("Is a rank idle that communicates?", _is(_computing_alone)),
        Mistake("What is the rank before its first event, and after its last?", _is(_of_their_own_span)),
        Mistake("What is the rank before its first event, and after its last?", _is(_up_to_the_last)),
        Mistake("What of an event counts that reaches beyond the span?", _is(_not_cut)),
        Mistake("Two things at once: does their time count twice?", _is(_added_up)),
        Mistake("Two things at once: does their time count twice?", _is(_each_merged)),
        Mistake("Do the events come in order of time?", _out_of_order),
        Mistake("What of an event counts that reaches beyond the span?", _reach_beyond),
        Mistake("Which event ends last: the one that began last?", lambda case, outcome: not raised(outcome)),
    ),
    praise=lambda outcome: (
        "the shares counted by hand, gaps at both ends included, and what reaches beyond them left out"
    ),
)
