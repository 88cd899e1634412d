"""The check of `who_is_there`: everybody's name on every rank, in rank order."""

from collections.abc import Iterator

import numpy as np

from course_utils.checks.exercise import Case, Exercise, Mistake, Outcome
from course_utils.checks.recognisers import nothing_returned, raised
from course_utils.lessons.first_steps.checks import LESSON
from course_utils.lessons.first_steps.checks.common import all_are, are_lists, only_some_returned, world_sizes
from course_utils.words import ranks

NAMES = ("Ada", "Grace", "Emmy", "Alan", "Edsger", "Barbara", "Katherine", "Niklaus", "Radia", "Tony", "Ða Nang", "李")


def _names(rng: np.random.Generator, world_size: int) -> Iterator[Case]:
    for size in world_sizes(world_size):
        names = _people(rng, size)
        if names == sorted(names):  # so that the order of the ranks never is the order of the alphabet
            names.reverse()
        yield Case(ranks(size), [(name,) for name in names], [names] * size)
    twins = [str(rng.choice(NAMES))] * world_size
    yield Case(f"{ranks(world_size)} of one name", [(name,) for name in twins], [twins] * world_size)
    nameless = ["", *_people(rng, world_size - 1)]
    yield Case("rank 0 has the empty name", [(name,) for name in nameless], [nameless] * world_size)


def _people(rng: np.random.Generator, number: int) -> list[str]:
    """So many different names, in any order; the second Ada is "Ada 2"."""
    rounds = -(-number // len(NAMES))
    names = [name if turn == 1 else f"{name} {turn}" for turn in range(1, rounds + 1) for name in NAMES]
    return [str(name) for name in rng.permutation(names[: max(number, len(NAMES))])][:number]


def _own_names(case: Case, outcome: Outcome) -> bool:
    names = [name for (name,) in case.arguments]
    return len(set(names)) > 1 and (all_are(outcome, names) or all_are(outcome, [[name] for name in names]))


def _with_numbers(case: Case, outcome: Outcome) -> bool:
    return are_lists(outcome) and any(type(entry) in (tuple, list, int) for got in outcome.results for entry in got)


def _other_order(case: Case, outcome: Outcome) -> bool:
    names = sorted(name for (name,) in case.arguments)
    return are_lists(outcome) and all(sorted(got) == names for got in outcome.results)


def _too_few(case: Case, outcome: Outcome) -> bool:
    return are_lists(outcome) and any(len(got) < outcome.world_size for got in outcome.results)


def _waits(case: Case, outcome: Outcome) -> bool:
    return any(reply.kind == "interrupted" for reply in outcome.attempt.replies) and not raised(outcome)


def _all_receive(case: Case, outcome: Outcome) -> bool:
    return all((reply.waiting or "").startswith("recv") for reply in outcome.attempt.replies)


def _one_text(case: Case, outcome: Outcome) -> bool:
    return all(type(result) is str for result in outcome.results)


WHO_IS_THERE = Exercise(
    name="who_is_there",
    library="course_utils.lessons.first_steps.rank_and_size:who_is_there",
    lesson=LESSON,
    place=2,
    minutes=5,
    difficulty=1,
    turn="put this rank's name in, return everybody's",
    title="every rank knows all names",
    cases=_names,
    hints=(
        "A rank knows only its own name. Which call lets each rank put one thing in and get everybody's out?",
        "`comm.allgather(thing)` returns the list of all ranks' things, in rank order, on every rank. "
        "Every rank must call it.",
    ),
    mistakes=(
        Mistake("Who sends, while everybody waits for a message?", _all_receive),
        Mistake("Do all ranks make the same call?", _waits),
        Mistake("Is there a `return`?", nothing_returned),
        Mistake("Who hears the names: one rank, or all of them?", only_some_returned),
        Mistake("Are the names asked for, or the ranks' numbers as well?", _with_numbers),
        Mistake("Did the ranks tell each other their names?", _own_names),
        Mistake("Is one text asked for, or a list of names?", _one_text),
        Mistake("May two ranks bear one name, or none at all?", _too_few),
        Mistake("In which order do the names stand, and in which should they?", _other_order),
    ),
    praise=lambda outcome: "every rank knows all the names, in rank order",
    picture=False,
)
