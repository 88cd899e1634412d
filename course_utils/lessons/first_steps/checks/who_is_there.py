"""The check of `who_is_there`: the names of all ranks on every rank, in rank order."""

from collections.abc import Iterator, Sequence

import numpy as np

from course_utils.checks.cases import AFTER_ANOTHER_CALL, after_another_call
from course_utils.checks.exercise import Case, Exercise, Outcome
from course_utils.lessons.first_steps.checks.common import lists_returned, world_sizes
from course_utils.words import ranks

NAMES = ("Ada", "Grace", "Emmy", "Alan", "Edsger", "Barbara", "Katherine", "Niklaus", "Radia", "Tony", "Ða Nang", "李")
ODD = ("Lovelace, Ada", "Grace\tB. M. ", "émilie\ndu Châtelet", "1")


def _names(rng: np.random.Generator, world_size: int) -> Iterator[Case]:
    for size in world_sizes(world_size):
        names = _people(rng, size)
        if names == sorted(names):  # so that the order of the ranks never is the order of the alphabet
            names.reverse()
        yield Case(ranks(size), [(name,) for name in names], [names] * size)
    plain = [name for name in NAMES if " " not in name]  # nothing else may go wrong in these two cases
    for key, label, names in (
        ("twins", f"{ranks(world_size)} of one name", [str(rng.choice(plain))] * world_size),
        ("twins", "the first and the last are of one name", _with_twins(_people(rng, world_size, plain))),
        ("empty-name", "rank 0 has the empty name", ["", *_people(rng, world_size - 1, plain)]),
        (
            "odd-characters",
            "names with spaces, commas, ends of lines and a small é",
            [*_people(rng, world_size), *ODD][-world_size:],
        ),
        ("long-names", "names of 300 letters", [name.ljust(300, "a") for name in _people(rng, world_size)]),
    ):
        yield Case(label, [(name,) for name in names], [names] * world_size, key=key)
    before, names = _people(rng, world_size), _people(rng, world_size)
    again = Case(
        "called once more, with other names",
        [(name,) for name in names],
        [names] * world_size,
        key=AFTER_ANOTHER_CALL,
    )
    yield after_another_call(again, [(f"{name} the elder",) for name in before])


def _with_twins(names: list[str]) -> list[str]:
    return [*names[:-1], names[0]]


def _people(rng: np.random.Generator, number: int, known: Sequence[str] = NAMES) -> list[str]:
    """That many different names, in any order; the second Ada is "Ada 2"."""
    rounds = -(-number // len(known))
    names = [name if turn == 1 else f"{name} {turn}" for turn in range(1, rounds + 1) for name in known]
    return [str(name) for name in rng.permutation(names[: max(number, len(known))])][:number]


def _in_another_order(case: Case, outcome: Outcome) -> bool:
    names = case.expected[0]
    return (
        lists_returned(case, outcome)
        and all(sorted(got) == sorted(names) for got in outcome.results)
        and any(list(got) != names for got in outcome.results)
    )


EXERCISE = Exercise(
    library="rank_and_size",
    number=2,
    minutes=5,
    difficulty=1,
    turn="put in this rank's name, and return the names of all ranks",
    title="every rank knows all the names",
    cases=_names,
    picture=False,
    hints=(
        "A rank knows only its own name. With which call can each rank put in one thing and get back those of all "
        "ranks?",
        "On every rank, `comm.allgather(thing)` returns the list of the things of all ranks, in the order of the "
        "ranks. All ranks have to call it.",
    ),
    symptoms={"the order is another": _in_another_order},
    praise=lambda outcome: "every rank knows all the names, in rank order",
)
