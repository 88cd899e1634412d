"""The check of `reshard`: the reads give the numbers wanted in their order, and nothing else is read."""

from collections.abc import Iterator, Sequence

import numpy as np

from course_utils.checks.cases import in_a_row, rejected
from course_utils.checks.exercise import Case, Exercise
from course_utils.words import count


def by_hand(saved: Sequence[tuple[int, int]], begin: int, end: int) -> list[tuple[int, int, int]]:
    """Number by number: where it is, and whether it continues the read before it."""
    at = {}
    for file, (first, last) in enumerate(saved):
        at |= {number: (file, number - first) for number in range(first, last)}
    reads: list[tuple[int, int, int]] = []
    for file, index in (at[number] for number in range(begin, end)):
        if reads and reads[-1][0] == file:
            reads[-1] = (file, reads[-1][1], index + 1)
        else:
            reads.append((file, index, index + 1))
    return reads


def cut(length: int, parts: int) -> list[tuple[int, int]]:
    """Pieces as equal as possible, as NumPy cuts them."""
    ends = np.cumsum([len(part) for part in np.array_split(np.empty(length), parts)])
    return [(int(end - size), int(end)) for end, size in zip(ends, np.diff(ends, prepend=0), strict=True)]


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(label: str, saved: Sequence[tuple[int, int]], begin: int, end: int, key: str = "") -> Case:
        given = (list(saved), begin, end)
        return Case(f"{label}, {begin} to {end}", [given], [by_hand(*given)], with_comm=False, key=key)

    four = cut(12, 4)
    yield case("4 files of 3 numbers", four, 0, 6)
    yield case("4 files of 3 numbers", four, 4, 8)
    yield case("4 files of 3 numbers", four, 7, 8, key="inside-a-file")
    yield case("4 files of 3 numbers", four, 0, 12)
    yield case("4 files of 3 numbers", four, 3, 6)
    yield case("4 files of 3 numbers", four, 5, 5, key="nothing")
    for before, after in ((4, 3), (3, 4), (7, 2)):
        length = int(rng.integers(20, 90))
        begin, end = cut(length, after)[int(rng.integers(after))]
        yield case(f"{count(length, 'number')} in {before} files", cut(length, before), begin, end)
    yield case("files of different lengths", [(0, 1), (1, 9), (9, 10), (10, 30)], 5, 12)
    yield case("an empty file in between", [(0, 4), (4, 4), (4, 8)], 2, 7, key="empty-file")
    yield case("empty files at both ends", [(0, 0), (0, 4), (4, 8), (8, 8)], 0, 8, key="empty-file")
    yield case("files in another order than the vector", [(6, 9), (0, 4), (4, 6)], 3, 8, key="another-order")
    mixed = cut(50, 6)
    yield case("files in any order", [mixed[index] for index in rng.permutation(6)], 4, 47, key="another-order")
    yield case("files that begin at 100", [(100, 110), (110, 130)], 105, 112)
    yield in_a_row(case("4 files", four, 4, 8), case("2 files", cut(12, 2), 4, 8))
    for saved, begin, end in ([(0, 4), (6, 9)], 2, 8), ([(0, 4)], 2, 5), ([(2, 4)], 0, 3), ([], 0, 1):
        yield rejected(f"reshard({saved}, {begin}, {end})", (saved, begin, end))


EXERCISE = Exercise(
    library="reshard",
    number=3,
    minutes=15,
    difficulty=2,
    turn="what does each file have of the numbers wanted?",
    title="a checkpoint for other numbers of ranks",
    cases=_cases,
    hints=(
        "Draw the numbers of one file and the numbers wanted as two bars, one above the other. Where does their common "
        "part begin, and where does it end? When is there none?",
        "The common part of (first, last) and (begin, end) is from max(first, begin) to min(last, end), if the one is "
        "less than the other. Subtract first from both to count from the start of the file. Go through the files in "
        "the order of their first number, and compare the sum of what you read with end - begin.",
    ),
    praise=lambda outcome: "every number once and in order, from files of any length and in any order",
)
