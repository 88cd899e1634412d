"""The check of `overlap_share`: on times that were counted by hand, and on drawn ones, counted moment by moment."""

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


def by_moments(computing: Times, communication: Times) -> float:
    """The share, counted tick by tick."""
    sent, busy = moments(communication), moments(computing)
    return len(sent & busy) / len(sent) if sent else 0.0


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(computing: Times, communication: Times, share: float) -> Case:
        label = f"computing {times_text(computing)}, communication {times_text(communication)}"
        return Case(label, [(computing, communication)], [share], with_comm=False)

    yield case([(0, 4)], [(2, 6)], 0.5)
    yield case([(0, 1), (3, 6)], [(0, 2), (4, 9)], 3 / 7)
    yield case([(0, 10)], [(2, 6), (4, 8)], 1.0)
    yield case([(0, 6), (2, 4)], [(3, 9)], 0.5)
    yield case([(0, 4), (2, 6)], [(1, 5), (3, 9)], 5 / 8)
    yield case([(0, 2), (2, 4)], [(1, 3), (3, 5)], 0.75)
    yield case([(8, 9), (0, 3)], [(6, 8), (2, 4)], 0.25)
    yield case([(0, 3)], [(5, 9)], 0.0)
    yield case([(0, 3)], [], 0.0)
    yield case([], [(0, 3)], 0.0)
    yield case([], [], 0.0)
    yield case([(0, 3)], [(1, 1), (2, 2)], 0.0)
    yield case([(1, 1), (0, 3), (2, 2)], [(2, 2), (1, 5), (4, 4)], 0.5)
    yield case([(0, 100)], [(98, 99), (10, 90), (20, 30), (95, 105)], 85 / 90)
    given = [
        (drawn(rng, n), drawn(rng, m)) for n, m in zip(rng.integers(0, 9, available), range(available), strict=True)
    ]
    wanted = [by_moments(*each) for each in given]
    yield Case(f"{ranks(available)}, each with times of its own", given, wanted, with_comm=False)
    for n in (3, 8, 15):
        given = drawn(rng, n), drawn(rng, n + 2)
        yield case(*given, by_moments(*given))
    given = [([(0, 4), (6, 9)], [(2, 7)])]
    yield Case("times from iterators", given, [0.6], with_comm=False, harness=on_each_rank)


def _is(formula: Callable[[Times, Times], float]) -> Recogniser:
    """A recogniser of what another formula gives on every rank; it must not be what is wanted."""

    def recognises(case: Case, outcome: Outcome) -> bool:
        return all(same(got, formula(*given)) for got, given in zip(outcome.results, case.arguments, strict=True))

    return recognises


def _pairs(computing: Times, communication: Times) -> float:
    """What each pair shares, added up."""
    return sum(max(0, min(b, d) - max(a, c)) for a, b in computing for c, d in communication)


def _last_ends(times: Times) -> Times:
    """What touches joined, but up to the end of what began last, not of what ends last."""
    joined: list[tuple[float, float]] = []
    for begin, end in sorted(times):
        if joined and begin <= joined[-1][1]:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((begin, end))
    return joined


def _by_last_ends(computing: Times, communication: Times) -> float:
    return by_moments(_last_ends(computing), _last_ends(communication))


def _shorter(computing: Times, communication: Times) -> float:
    """As if the shorter lane lay wholly within the longer one."""
    return min(added(computing), added(communication)) / (added(communication) or 1)


def _hidden(computing: Times, communication: Times) -> int:
    return len(moments(computing) & moments(communication))


def _of_computing(computing: Times, communication: Times) -> float:
    return _hidden(computing, communication) / len(moments(computing))


def _of_both(computing: Times, communication: Times) -> float:
    return _hidden(computing, communication) / len(moments([*computing, *communication]))


def _of_span(computing: Times, communication: Times) -> float:
    ends = [moment for times in (computing, communication) for one in times for moment in one]
    return _hidden(computing, communication) / (max(ends) - min(ends))


def _fails_on_nothing(case: Case, outcome: Outcome) -> bool:
    return raised(outcome) and any(not moments(one[1]) for one in case.arguments)


def _more_than_all(case: Case, outcome: Outcome) -> bool:
    return any(got > 1 or got < 0 for got in outcome.results)


def _out_of_order(case: Case, outcome: Outcome) -> bool:
    return any(list(times) != sorted(times) for given in case.arguments for times in given)


OVERLAP_SHARE = Exercise(
    name="overlap_share",
    library="course_utils.lessons.profiling.time_shares:overlap_share",
    lesson=LESSON,
    place=1,
    minutes=10,
    difficulty=2,
    turn="of the time with communication, the share with computing, too",
    title="how much communication is hidden?",
    cases=_cases,
    drawing=drawn_lanes,
    also_hidden=tuple(
        f"course_utils.lessons.profiling.{place}"
        for place in ("intervals:union", "intervals:intersection", "intervals:difference", "intervals:length")
    )
    + ("course_utils.lessons.profiling.time_shares:exposed_communication",),
    hints=(
        "Go through time from left to right. At which moments does something change? What do you have to know between "
        "two such moments, to say whether the time counts?",
        "Make a list of changes: (begin, +1, which of the two lists) and (end, -1, which). Go through it sorted, and "
        "keep two numbers: how many computations and how many messages are under way. Up to the next change the time "
        "counts as communication where the second is not 0, and as hidden where the first is not 0 either.",
    ),
    mistakes=(
        Mistake("Where is the `return`?", nothing_returned),
        Mistake("What is the share of no communication at all?", _fails_on_nothing),
        Mistake("Can the same list be gone through twice, whatever it is?", lambda case, _: "iterators" in case.label),
        Mistake("Which share of the communication is not hidden?", _is(lambda *given: 1 - by_moments(*given))),
        Mistake("Is that seconds, or a share?", _is(lambda *given: float(_hidden(*given)))),
        Mistake("A share of what: of computing, or of communication?", _is(_of_computing)),
        Mistake("A share of what: of all the time, or of the communication?", _is(_of_both)),
        Mistake("A share of what: of all the time, or of the communication?", _is(_of_span)),
        Mistake("Can more than everything be hidden?", _more_than_all),
        Mistake(
            "Two events of a lane at once: does their time count twice?",
            _is(lambda *given: _pairs(*given) / (added(given[1]) or 1)),
        ),
        Mistake(
            "Two messages at once: does their time count twice?",
            _is(lambda *given: _hidden(*given) / (added(given[1]) or 1)),
        ),
        Mistake("An event begins and ends within another one: when does the longer one end?", _is(_by_last_ends)),
        Mistake("Are both under way at the same moments, or only equally long?", _is(_shorter)),
        Mistake("Do the events come in order of time?", _out_of_order),
        Mistake("With how many computations can one message overlap?", lambda case, outcome: not raised(outcome)),
    ),
    praise=lambda outcome: "the shares counted by hand, for times that overlap, touch, are empty or in no order",
)
