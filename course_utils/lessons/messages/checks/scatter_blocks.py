"""The check of `scatter_blocks`: NumPy's `array_split` says who gets what; nobody may be sent the whole vector."""

from collections.abc import Iterator

import numpy as np

from course_utils.checks.cases import fewer
from course_utils.checks.compare import difference
from course_utils.checks.exercise import Case, Cost, Exercise, Mistake, Outcome
from course_utils.checks.recognisers import hangs, nothing_returned, raised, results_are
from course_utils.lessons.messages.checks import LESSON
from course_utils.lessons.messages.checks.common import LEAST, other_roots, random_vector, too_long
from course_utils.words import count, ranks

UNSET = ("NameError", "UnboundLocalError")
HEADERS = 4096  # bytes that lengths, dtypes and pickles may add


def _cases(rng: np.random.Generator, world_size: int) -> Iterator[Case]:
    world_size = max(world_size, LEAST)

    def case(size: int, length: int, root: int, dtype: str = "float64") -> Case:
        vector = random_vector(rng, length, dtype)
        label = f"{count(length, f'{dtype} number')} over {ranks(size)}, root {root}"
        arguments = [(vector.copy() if rank == root else None, root) for rank in range(size)]
        cost = Cost(bytes_per_rank=vector.nbytes + HEADERS)
        kept = [{0: vector} if rank == root else {} for rank in range(size)]
        return Case(label, arguments, np.array_split(vector, size), kept, cost=cost, judge=_not_to_everybody)

    yield case(world_size, 2 * world_size, 0)
    yield case(world_size, 2 * world_size + 2, 0)
    yield case(world_size, 5 * world_size - 1, 0, "int32")
    for root in other_roots(rng, world_size):
        yield case(world_size, int(rng.integers(50, 500)), root, "float32")
    for size in fewer(world_size):
        dtype = str(rng.choice(["complex128", "int8", "bool"]))
        yield case(size, int(rng.integers(20, 500)), int(rng.integers(size)), dtype)
    yield case(world_size, 1, 0)
    yield case(world_size, 0, world_size - 1, "int64")
    yield case(world_size, 50_002, int(rng.integers(world_size)))


def _vector(case: Case) -> np.ndarray:
    return next(vector for vector, _ in case.arguments if vector is not None)


def _root(case: Case) -> int:
    return case.arguments[0][1]


def _not_to_everybody(outcome: Outcome) -> str | None:
    size = _vector(outcome.case).nbytes
    for reply in outcome.attempt.replies:
        for event in reply.events or ():
            whole = event.kind == "collective" and event.name.lower() in ("bcast", "ibcast", "allgather", "alltoall")
            if whole and event.bytes >= size > HEADERS and outcome.world_size > 1:
                return f"the blocks are right, but {event.name} brought all {size} bytes to every rank"
    return None


def _too_much(case: Case, outcome: Outcome) -> bool:
    return "the blocks are right" in outcome.wrong or "the result is right" in outcome.wrong


def _vector_changed(case: Case, outcome: Outcome) -> bool:
    root = _root(case)
    changed = difference(root, outcome.arguments[root][0], case.expected_arguments[root][0]) is not None
    return changed and results_are(outcome, case.expected)


def _lengths(outcome: Outcome) -> list[int]:
    return [len(result) for result in outcome.results]


def _wanted(case: Case) -> list[int]:
    return [len(block) for block in case.expected]


def _rank_0_has_nothing(case: Case, outcome: Outcome) -> bool:
    return _root(case) != 0 and outcome.attempt.replies[0].error is not None


def _other_ranks_have_nothing(case: Case, outcome: Outcome) -> bool:
    errors = [reply.error for reply in outcome.attempt.replies if reply.rank != _root(case) and reply.error]
    return any("NoneType" in error.message for error in errors)


def _unknown_elsewhere(case: Case, outcome: Outcome) -> bool:
    """Only ranks other than the root miss a variable: it was set on the root alone."""
    missing = {reply.rank for reply in outcome.attempt.replies if reply.error and reply.error.type in UNSET}
    return bool(missing) and _root(case) not in missing


def _broken_off(case: Case, outcome: Outcome) -> bool:
    """MPI itself ended a rank, for what arrived did not fit, where the numbers are not of NumPy's usual dtype."""
    return any(reply.kind == "lost" for reply in outcome.attempt.replies) and _vector(case).dtype != "float64"


def _other_dtype(case: Case, outcome: Outcome) -> bool:
    return any(type(result) is np.ndarray and result.dtype != _vector(case).dtype for result in outcome.results)


def _root_keeps_all(case: Case, outcome: Outcome) -> bool:
    wanted, lengths = _wanted(case), _lengths(outcome)
    wanted[_root(case)] = len(_vector(case))
    return outcome.world_size > 1 and lengths == wanted


def _not_equal(case: Case, outcome: Outcome) -> bool:
    return max(_lengths(outcome)) - min(_lengths(outcome)) > 1


def _other_order(case: Case, outcome: Outcome) -> bool:
    return sorted(_lengths(outcome)) == sorted(_wanted(case)) and _lengths(outcome) != _wanted(case)


SCATTER_BLOCKS = Exercise(
    name="scatter_blocks",
    library="course_utils.lessons.messages.broadcast_and_scatter:scatter_blocks",
    lesson=LESSON,
    place=4,
    minutes=15,
    difficulty=2,
    turn="tell everybody the length, then hand out the blocks",
    title="a block for every rank, also where P does not divide",
    cases=_cases,
    hints=(
        "Every rank has to know how long its block is before it can make room for it. Who knows the length, and how "
        "do the others hear of it? And what do 7 elements over 4 ranks look like: 2, 2, 2, 1?",
        "First `comm.bcast((len(vector), vector.dtype) …)` from the root. The count of rank r is length // P, and one "
        "more where r < length % P. Then `comm.Scatterv([vector, counts], block, root=root)`, None off the root.",
    ),
    mistakes=(
        Mistake("Does the vector come from `root`?", _rank_0_has_nothing),
        Mistake("Which rank has the vector?", _other_ranks_have_nothing),
        Mistake("Does every rank of the communicator call it, the root too?", _unknown_elsewhere),
        Mistake("Has your block the dtype of the vector?", _broken_off),
        Mistake("Where did the last elements go?", lambda case, outcome: too_long(outcome)),
        Mistake(
            "What happens to a length that does not divide?",
            lambda case, outcome: raised(outcome, "") and len(_vector(case)) % outcome.world_size > 0,
        ),
        Mistake("Does every rank of the communicator call it, the root too?", hangs),
        Mistake("Is there a `return`?", nothing_returned),
        Mistake("Does the root still have its vector?", _vector_changed),
        Mistake("Does every rank need the whole vector?", _too_much),
        Mistake("Has your block the dtype of the vector?", _other_dtype),
        Mistake("Did the root keep more than its own block?", _root_keeps_all),
        Mistake(
            "Where did the last elements go?",
            lambda case, outcome: sum(_lengths(outcome)) < len(_vector(case)),
        ),
        Mistake("Are your blocks as equal as possible?", _not_equal),
        Mistake("Which ranks get one element more?", _other_order),
        Mistake(
            "Are the elements of a block neighbours in the vector?",
            lambda case, outcome: _lengths(outcome) == _wanted(case),
        ),
    ),
    praise=lambda outcome: (
        f"{len(_vector(outcome.case))} elements over {ranks(outcome.world_size)}, no block more than one longer than "
        "another, and each element sent once"
    ),
)
