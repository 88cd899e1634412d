"""The check of `pack_samples`: the file is read back number by number, without the learner's or the library's help."""

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from course_utils.checks.cases import in_a_row
from course_utils.checks.exercise import Case, Exercise
from course_utils.lessons.hardware.checks.common import packed

OLD = b"what stood here before, and longer than that what comes now" * 40


def written(function: Callable, samples: Sequence[bytes], kind: Callable = str, there_already: bool = False) -> dict:
    """What stands in the file that the learner's function wrote, given its path as a string or a `Path`."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "packed"
        if there_already:
            path.write_bytes(OLD)
        function(samples, kind(path))
        found = path.read_bytes() if path.is_file() else None
        others = {*os.listdir(folder)} - {path.name}
    return taken_apart(found, len(others))


def taken_apart(found: bytes | None, others: int = 0) -> dict:
    """The parts of a packed file, as far as there are any, and the number of other files beside it."""
    if found is None:
        return {"the number of files at `path`": 0}
    numbers = [int.from_bytes(found[at : at + 8], "little") for at in range(0, len(found) - 7, 8)]
    count = numbers[0] if numbers else None
    parts: dict[str, object] = {"the number of files at `path`": 1, "the number of samples": count}
    if count is not None and count < len(numbers):
        offsets = numbers[1 : count + 2]
        parts |= {"offsets": offsets, "the number of bytes in all": len(found)}
        parts |= {f"sample {i}": found[a:b] for i, (a, b) in enumerate(zip(offsets, offsets[1:], strict=False))}
    else:
        parts |= {"the file": found}
    return parts | {"the number of other files": others}


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(label: str, samples: Sequence[bytes], *options: object, key: str = "") -> Case:
        given = (samples, *options)
        return Case(label, [given], [taken_apart(packed(samples))], with_comm=False, harness=written, key=key)

    def some(count: int, longest: int = 300) -> list[bytes]:
        return [rng.bytes(int(length)) for length in rng.integers(1, longest, count)]

    yield case("3 samples", [b"cat", b"goose", b"ox"])
    yield case("samples of many lengths", some(int(rng.integers(5, 12))))
    yield case("samples of one length", [rng.bytes(64) for _ in range(6)])
    yield case("one sample", some(1))
    yield case("the path is a Path", some(3), Path, key="path")
    first, second = some(2)
    yield case("equal samples", [first, second, first, first], key="equal-samples")
    yield case("nothing in some of the samples", [b"one", b"", b"three", b""], key="nothing")
    yield case("nothing to pack", [], Path, key="nothing")
    yield case("bytes that look like the ends of lines", [b"a\nb\r\n", b"\n\n", b"\x00\xff\x1a", b"\x00 \x00"])
    yield case("a longer file is there already", some(4), str, True, key="old-file")
    yield case("a tuple of samples", tuple(some(3)))
    yield in_a_row(case("2 samples", some(2)), case("2 samples", some(2)))
    yield in_a_row(case("7 samples", some(7)), case("4 samples", some(4)))
    yield case("300 samples", some(300, 40))
    yield case("one of 300,000 bytes", [b"small", rng.bytes(300_000), b"last"], Path)


EXERCISE = Exercise(
    library="packed_samples",
    number=4,
    minutes=10,
    difficulty=2,
    turn="write the number of samples, the offsets, the samples",
    title="many samples in one file",
    cases=_cases,
    hints=(
        "Take three samples of 3, 5 and 2 bytes. How many numbers come before them, and how many bytes do these "
        "numbers take? So where does sample 0 begin, and where do the others?",
        "Begin with offsets = [8 + 8 · (n + 1)], and for each sample append the last offset plus its length. Then open "
        "the file with 'wb', and write struct.pack('<Q', n), each offset in the same form, and the samples.",
    ),
    praise=lambda outcome: "every file reads back right: many lengths, none, and over an old one",
)
