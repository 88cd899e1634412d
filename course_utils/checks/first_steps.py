"""The exercises of lesson 0: two small functions, to see what a check does."""

from collections.abc import Iterator

import numpy as np

from course_utils.checks.exercise import NO_RESULT, Case, Exercise, Mistake, Outcome

LESSON = "00_first_steps"
NAMES = ("Ada", "Grace", "Emmy", "Alan", "Edsger", "Barbara", "Katherine", "Niklaus", "Radia", "Tony", "Ða Nang", "李")


def _world_sizes(world_size: int) -> list[int]:
    """All of them first, because that is what the learner has just seen; then fewer."""
    return list(range(world_size, 0, -1))


def _squares(rng: np.random.Generator, world_size: int) -> Iterator[Case]:
    for size in _world_sizes(world_size):
        squares = [sum(2 * n + 1 for n in range(rank)) for rank in range(size)]  # the sum of the first odd numbers
        yield Case(_ranks(size), [()] * size, squares)


def _names(rng: np.random.Generator, world_size: int) -> Iterator[Case]:
    for size in _world_sizes(world_size):
        names = [str(name) for name in rng.choice(NAMES, size, replace=False)]
        if names == sorted(names):  # so that the order of the ranks never is the order of the alphabet
            names.reverse()
        yield Case(_ranks(size), [(name,) for name in names], [names] * size)
    twins = [str(rng.choice(NAMES))] * world_size
    yield Case(f"{_ranks(world_size)} of one name", [(name,) for name in twins], [twins] * world_size)
    nameless = [""] + [str(name) for name in rng.choice(NAMES, world_size - 1, replace=False)]
    yield Case("rank 0 has the empty name", [(name,) for name in nameless], [nameless] * world_size)


def _ranks(number: int) -> str:
    return "1 rank" if number == 1 else f"{number} ranks"


def _all_are(outcome: Outcome, wanted: list) -> bool:
    """Whether the results are `wanted`, type by type; never asks a learner's object whether it is equal."""
    return all(type(got) is type(want) and got == want for got, want in zip(outcome.results, wanted, strict=True))


def _numbers(formula) -> object:
    """A recogniser of results that follow a formula of (rank, world size)."""

    def recognises(case: Case, outcome: Outcome) -> bool:
        return _all_are(outcome, [formula(rank, outcome.world_size) for rank in range(outcome.world_size)])

    return recognises


def _nothing_returned(case: Case, outcome: Outcome) -> bool:
    return all(result is None for result in outcome.results)


def _printed(case: Case, outcome: Outcome) -> bool:
    return _nothing_returned(case, outcome) and any(reply.output for reply in outcome.attempt.replies)


def _only_some_returned(case: Case, outcome: Outcome) -> bool:
    returned = [result is not None for result in outcome.results]
    return any(returned) and not all(returned) and not any(result is NO_RESULT for result in outcome.results)


def _are_lists(outcome: Outcome) -> bool:
    return all(type(result) in (list, tuple) for result in outcome.results)


def _own_names(case: Case, outcome: Outcome) -> bool:
    names = [name for (name,) in case.arguments]
    return len(set(names)) > 1 and (_all_are(outcome, names) or _all_are(outcome, [[name] for name in names]))


def _with_numbers(case: Case, outcome: Outcome) -> bool:
    return _are_lists(outcome) and any(type(entry) in (tuple, list, int) for got in outcome.results for entry in got)


def _other_order(case: Case, outcome: Outcome) -> bool:
    names = sorted(name for (name,) in case.arguments)
    return _are_lists(outcome) and all(sorted(got) == names for got in outcome.results)


def _too_few(case: Case, outcome: Outcome) -> bool:
    return _are_lists(outcome) and any(len(got) < outcome.world_size for got in outcome.results)


def _waits(case: Case, outcome: Outcome) -> bool:
    return any(reply.kind == "interrupted" for reply in outcome.attempt.replies)


EXERCISES = (
    Exercise(
        name="rank_squared",
        lesson=LESSON,
        title="every rank returns its square",
        cases=_squares,
        hints=(
            "Every rank runs the same line. Which value in it is different on each?",
            "`comm.rank` is this rank's number. Square it, and hand it back with `return`.",
        ),
        mistakes=(
            Mistake("It was printed, but was it returned?", _printed),
            Mistake("Is there a `return` that every rank reaches?", _nothing_returned),
            Mistake("Is there a `return` that every rank reaches?", _only_some_returned),
            Mistake("In Python, is `^` a power?", _numbers(lambda rank, size: rank ^ 2)),
            Mistake("Was it doubled where it should be squared?", _numbers(lambda rank, size: 2 * rank)),
            Mistake("Do ranks count from 0 or from 1?", _numbers(lambda rank, size: (rank + 1) ** 2)),
            Mistake("Is that the rank, or how many ranks there are?", _numbers(lambda rank, size: size**2)),
            Mistake("Was the rank squared?", _numbers(lambda rank, size: rank)),
            Mistake("Is this rank's own square asked for, or all of them?", lambda case, outcome: _are_lists(outcome)),
            Mistake(
                "Should the result be a number or a text?",
                lambda case, outcome: all(type(result) is str for result in outcome.results),
            ),
        ),
        praise=lambda outcome: "each rank returned the square of its own number",
        picture=False,
    ),
    Exercise(
        name="who_is_there",
        lesson=LESSON,
        title="every rank knows all names",
        cases=_names,
        hints=(
            "A rank knows only its own name. Which call lets each rank put one thing in and get everybody's out?",
            "`comm.allgather(thing)` returns the list of all ranks' things, in rank order, on every rank. "
            "Every rank must call it.",
        ),
        mistakes=(
            Mistake("Do all ranks make the same call?", _waits),
            Mistake("Is there a `return`?", _nothing_returned),
            Mistake("Who hears the names: one rank, or all of them?", _only_some_returned),
            Mistake("Are the names asked for, or the ranks' numbers as well?", _with_numbers),
            Mistake("Did the ranks tell each other their names?", _own_names),
            Mistake("May two ranks bear one name, or none at all?", _too_few),
            Mistake("In which order do the names stand, and in which should they?", _other_order),
        ),
        praise=lambda outcome: "every rank knows all the names, in rank order",
        picture=False,
    ),
)
