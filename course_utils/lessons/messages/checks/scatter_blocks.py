"""The check of `scatter_blocks`: NumPy's `array_split` says who gets what; no rank may be sent the whole vector."""

import dataclasses
from collections.abc import Iterator

import numpy as np

from course_utils.checks.cases import fewer, in_a_row
from course_utils.checks.exercise import Case, Cost, Exercise, Outcome
from course_utils.checks.finding import Finding, own
from course_utils.lessons.messages.checks.common import (
    DTYPES,
    HEADERS,
    LEAST,
    OTHER_ROOT,
    beside_another_sender,
    called_again,
    other_roots,
    random_vector,
    root_not_given,
    root_text,
    turned_round,
)
from course_utils.trace.wait_graph import Send, single_needs
from course_utils.words import count, ranks

WHOLE = ("bcast", "ibcast", "allgather", "allgatherv", "alltoall")


def _cases(rng: np.random.Generator, world_size: int) -> Iterator[Case]:
    world_size = max(world_size, LEAST)

    def case(size: int, length: int, root: int, dtype: str = "float64") -> Case:
        vector = random_vector(rng, length, dtype)
        rest = ", not a multiple" if length % size else ""
        return Case(
            f"{count(length, f'{dtype} number')} over {ranks(size)}{rest}, {root_text(root)}",
            [(vector.copy() if rank == root else None, root) for rank in range(size)],
            np.array_split(vector, size),
            cost=Cost(bytes_per_rank=vector.nbytes + _headers(size)),
            tolerance=0.0,
            judge=_once_as_a_buffer,
            key=OTHER_ROOT if root else "not-a-multiple" if rest else "",
        )

    yield case(world_size, 2 * world_size, 0)
    yield case(
        world_size, 4 * world_size, 0, "float32"
    )  # blocks of whole float64: MPI ends ranks where they do not fit
    yield case(world_size, 2 * world_size + 2, 0)
    yield case(world_size, 5 * world_size - 1, 0, "int32")
    for root in other_roots(rng, world_size):
        yield case(world_size, int(rng.integers(500, 900)), root, "float32")
    for size in fewer(world_size):
        yield case(size, int(rng.integers(20, 500)), int(rng.integers(size)), str(rng.choice(DTYPES)))
    yield case(world_size, 1, 0)
    yield case(world_size, 0, 0, "int64")
    yield root_not_given(case(world_size, 2 * world_size + 1, 0))
    early = case(world_size, 12 * world_size, world_size - 1)
    yield dataclasses.replace(beside_another_sender(early), cost=early.cost)
    roots = case(world_size, 3 * world_size, 0)
    others = [(random_vector(rng, 2 * world_size, "int8"), 0) for _ in range(1, world_size)]
    label = f"{roots.label}, the others have vectors of their own"
    yield dataclasses.replace(roots, label=label, arguments=[roots.arguments[0], *others], key="own-vectors")
    again = case(world_size, 3 * world_size, 0)
    before = np.array_split(turned_round(_vector(again)), world_size)
    yield called_again(again, before)
    yield in_a_row(case(world_size, 3 * world_size, 0, "float32"), case(world_size, 3 * world_size, 0))
    yield in_a_row(case(world_size, 5 * world_size + 2, 0), case(world_size, 3 * world_size + 1, 0))
    for dtype in rng.permutation(DTYPES):
        yield case(world_size, 20_002, int(rng.integers(world_size)), str(dtype))


def _vector(case: Case) -> np.ndarray:
    return next(vector for rank, (vector, root) in enumerate(case.arguments) if rank == root)


def _headers(size: int) -> int:
    """Bytes that lengths and dtypes may add where the root tells each rank its own."""
    return max(HEADERS, 100 * size)


def _once_as_a_buffer(outcome: Outcome) -> Finding | None:
    size, headers = _vector(outcome.case).nbytes, _headers(outcome.world_size)
    events = [event for reply in outcome.attempt.replies for event in reply.events or () if event.bytes > headers]
    for event in events:
        everywhere = event.kind == "collective" and event.name.lower() in WHOLE
        if everywhere and event.bytes >= size and outcome.world_size > 1:
            words = "the blocks are right, but {call} sent the whole vector, {size:,} bytes, to every rank"
            return own("whole-vector-to-all", words, call=event.name, size=size)
        if event.name[:1].islower() and event.kind in ("send", "collective"):
            return own(
                "pickled", "the blocks are right, but {call} pickled them; send them as a buffer", call=event.name
            )
    sent = sum(event.bytes for event in events if event.kind == "send")
    if sent > size + headers:
        words = "the blocks are right, but {sent:,} bytes were sent in all; the vector has {size:,}"
        return own("sent-more-than-once", words, sent=sent, size=size)
    return None


def _sends_to_itself(case: Case, outcome: Outcome) -> bool:
    """Whether a rank waits in a send to itself."""
    waiting = [reply for reply in outcome.attempt.replies if reply.kind == "interrupted"]
    needs = [(reply.rank, need) for reply in waiting for need in single_needs(reply.need)]
    return any(isinstance(need, Send) and need.message.peer == rank for rank, need in needs)


EXERCISE = Exercise(
    library="broadcast_and_scatter",
    number=4,
    minutes=15,
    difficulty=2,
    turn="send the length to all ranks, then send each its block",
    title="a block for every rank, even if P does not divide the length",
    cases=_cases,
    hints=(
        "A rank has to know how long its block is before it can make room for it. Which rank knows the length, and how "
        "do the others learn it? And which ranks get one number more than the others?",
        "The root broadcasts length and dtype with `comm.bcast((len(vector), vector.dtype), root=root)`; the other "
        "ranks call `comm.bcast(None, root=root)`. Rank r gets length // P numbers, and one more if r < length % P. "
        "Then all call `comm.Scatterv(what, block, root=root)`, in which `what` is [vector, counts] on the root and "
        "None on the other ranks.",
    ),
    symptoms={"a rank sends to itself": _sends_to_itself},
    praise=lambda outcome: (
        f"{len(_vector(outcome.case))} numbers on {ranks(outcome.world_size)}, in blocks as equal as possible, and "
        "each number was sent once"
    ),
)
