"""The check of `read_sample`: from good files, from files cut off or packed anew, and by two ranks at once."""

import gc
import os
import struct
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from course_utils import system
from course_utils.checks.compare import describe, difference, with_article
from course_utils.checks.exercise import Case, Exercise, Outcome
from course_utils.checks.finding import Finding, own
from course_utils.lessons.hardware.checks.common import offsets_of, packed
from course_utils.words import count

if TYPE_CHECKING:
    from mpi4py import MPI

Promise = bytes | str
"""What the docstring promises for a sample: its bytes, or the name of the error that is raised."""
BIG, MANY = 4_000_000, 100_000  # bytes of a large sample, and the number of samples in a long index
FEW = 400_000  # bytes, the most that may be read for two small samples: files are read in pieces of some thousand bytes


class RaisedInside(NamedTuple):
    """The name of an error that the learner's function raised, and whether it has a text."""

    error: str
    has_text: bool


def reads(
    function: Callable, comm: "MPI.Intracomm", content: bytes, indices: Sequence[int], kind: Callable = str
) -> list:
    """These samples, read by the learner's function from one file for all ranks; the path a string or a `Path`."""
    with tempfile.TemporaryDirectory() as folder:
        path = comm.bcast(str(Path(folder) / "packed") if comm.rank == 0 else None, root=0)
        if comm.rank == 0:
            Path(path).write_bytes(content)
        comm.Barrier()
        try:
            return [function(kind(path), index) for index in indices]
        finally:
            comm.Barrier()  # rank 0 takes the file away


def reads_after(
    function: Callable, comm: "MPI.Intracomm", before: bytes, content: bytes, indices: Sequence[int]
) -> list:
    """These samples of a file that was packed anew after its first sample was read."""

    with tempfile.TemporaryDirectory() as folder:
        path, other = Path(folder) / "packed", Path(folder) / "new"
        path.write_bytes(before)
        function(str(path), 0)
        other.write_bytes(content)
        os.replace(other, path)
        return [function(str(path), index) for index in indices]


def read_or_error(
    function: Callable, comm: "MPI.Intracomm", content: bytes, indices: Sequence[int], promises: Sequence[Promise]
) -> list:
    """For each index the sample, or which error was raised; not yet compared with what is promised."""

    def attempt(path: str, index: int) -> object:
        try:
            return function(path, index)
        except NotImplementedError:
            raise
        except Exception as error:
            promised = [kind.__name__ for kind in (IndexError, ValueError) if isinstance(error, kind)]
            name = promised[0] if promised else f"{type(error).__module__}.{type(error).__qualname__}"
            return RaisedInside(name.removeprefix("builtins."), bool(str(error).strip()))

    return reads(attempt, comm, content, indices)


def read_frugally(function: Callable, comm: "MPI.Intracomm", content: bytes, indices: Sequence[int]) -> dict:
    """The samples, and how many bytes were read for them."""
    before = bytes_read()
    samples = reads(function, comm, content, indices)
    return {"samples": samples, "read": bytes_read() - before}


def reads_and_closes(function: Callable, comm: "MPI.Intracomm", content: bytes, indices: Sequence[int]) -> dict:
    """The samples, and how many files are still open, if it is one for every call."""
    before = files_open()
    samples = reads(function, comm, content, indices)
    left = files_open() - before
    return {"samples": samples, "the number of files that are still open": left if left >= len(indices) else 0}


def files_open() -> int:
    """How many files this process holds open, beside those that nothing refers to; 0 where the system does not say."""
    gc.collect()
    return len(system.open_files())


def bytes_read() -> int:
    """Bytes that this process has read from files; 0 where the system does not count them."""
    return system.own_io("rchar")


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def some(number: int, longest: int = 300) -> list[bytes]:
        """Samples of 1 byte and more; zeros and spaces at an end have a case of their own."""
        return [rng.bytes(int(length)) + b"." for length in rng.integers(0, longest, number)]

    def case(label: str, samples: list[bytes], *orders: Sequence[int], kind: Callable = str, key: str = "") -> Case:
        content = packed(samples)
        arguments = [(content, [int(index) for index in order], kind) for order in orders]
        expected = [[samples[index] for index in order] for order in orders]
        return Case(label, arguments, expected, harness=reads, key=key)

    def rejected(
        label: str, samples: list[bytes], size: int | None, promises: dict[int, Promise], key: str = ""
    ) -> Case:
        given = (packed(samples)[:size], list(promises), list(promises.values()))
        return Case(label, [given], harness=read_or_error, judge=_kept_its_word, key=key)

    yield case("sample 0 of 3", [b"cat", b"goose", b"ox"], [0])
    yield case("all of 3 samples, the last first", [b"cat", b"goose", b"ox"], [2, 1, 0], key="last-first")
    many = some(40)
    yield case("40 samples in a random order", many, rng.permutation(40))
    yield case("one sample", some(1), [0, 0])
    yield case("the path is a Path", some(3), [1, 0, 2], kind=Path, key="path")
    yield case("empty samples among others", [b"", b"one", b"", b"\n\r\n", b""], [0, 1, 2, 3, 4])
    yield case("nothing but empty samples", [b"", b"", b""], [2, 0, 1], key="all-empty")
    yield case("300 samples", some(300, 20), [299, 0, 256, 255, 257])
    ends = [b"\0\0one\0", b" two \n", b"\0", b"\t\0 "]
    yield case("zeros and spaces at the samples' ends", ends, [0, 1, 2, 3], key="zeros-and-spaces")
    now, order = some(30), [29, 0, 17]
    given, wanted = (packed(some(5)), packed(now), order), [now[index] for index in order]
    label = "another file of the same name was read before"
    yield Case(label, [given], [wanted], harness=reads_after, key="packed-anew")
    yield case("two ranks at once", many, rng.permutation(40), rng.permutation(40))
    n = int(rng.integers(6, 12))
    few = some(n)
    beyond = {0: few[0], n + 1000: "IndexError", n: "IndexError", n - 1: few[-1]}
    yield rejected(f"{n} samples, and numbers beyond the last", few, None, beyond, "beyond-the-last")
    below = {-1: "IndexError", -n: "IndexError"}
    yield rejected(f"{n} samples, and numbers below 0", few, None, below, "below-0")
    yield rejected("a file without samples", [], None, {0: "IndexError", -1: "IndexError"})
    offsets = offsets_of(few)
    last = {0: few[0], n - 2: few[n - 2], n - 1: "ValueError"}
    yield rejected("the last byte is missing", few, offsets[-1] - 1, last)
    yield rejected("the last sample is missing", few, offsets[-2], last)
    inside = {0: few[0], 1: "ValueError", n - 1: "ValueError"}
    yield rejected("cut off inside sample 1", [few[0], *(b"x" * 20 for _ in few[1:])], offsets[1] + 7, inside)
    yield rejected("cut off before the samples", few, offsets[0], {0: "ValueError", n - 1: "ValueError"})
    yield rejected("cut off inside the index", few, 8 + 8 * (n // 2) + 3, {0: "ValueError", n - 1: "ValueError"})
    yield rejected("the last offset is missing", few, offsets[0] - 8, {0: "ValueError", n - 1: "ValueError"})
    yield rejected("the last byte of the index is missing", few, offsets[0] - 1, {n - 1: "ValueError"})
    gone = {0: "ValueError", 1: "ValueError"}
    label = "empty samples, and the last byte of the index is missing"
    yield rejected(label, [b"", b"", few[0]], 39, gone, "empty-samples")
    yield rejected("5 bytes in all", few, 5, {0: "ValueError"})
    yield rejected("7 bytes in all", few, 7, {0: "ValueError"})
    yield rejected("an empty file", few, 0, {0: "ValueError"})
    order = [int(index) for index in rng.integers(0, n, 30)]
    closed = {"samples": [few[index] for index in order], "the number of files that are still open": 0}
    label = "30 samples, one after the other"
    yield Case(label, [(packed(few), order)], [closed], harness=reads_and_closes, key="open-files")
    big = [b"first", rng.bytes(BIG), b"last"]
    given = [(packed(big), [0, 2])]
    yield Case("a file of 4 MB", given, harness=read_frugally, judge=_reads_little, key="large-sample")
    given = [(packed([b"a"] * MANY), [0, MANY - 1])]
    label = f"{MANY:,} samples of one byte"
    yield Case(label, given, harness=read_frugally, judge=_reads_little, key="long-index")


def _reads_little(outcome: Outcome) -> Finding | None:
    """What is wrong with two small samples of a large file, or with what was read for them."""
    [(content, indices)], [found] = outcome.case.arguments, outcome.results
    offsets = [struct.unpack("<QQ", content[8 * index + 8 : 8 * index + 24]) for index in indices]
    wanted = [content[begin:end] for begin, end in offsets]
    if wrong := difference(0, found["samples"], wanted):
        return wrong
    if found["read"] <= FEW:
        return None
    words = "the samples are right, but your function read {read:,} bytes for two samples of {size} bytes in all"
    return own(f"too-much-of-a-{outcome.case.key}", words, {"read": found["read"]}, size=sum(map(len, wanted)))


def _kept_its_word(outcome: Outcome) -> Finding | None:
    """What is wrong with the first sample that did not come, or did not fail, as the docstring promises."""
    [(_, indices, promises)], [found] = outcome.case.arguments, outcome.results
    for index, promised, got in zip(indices, promises, found, strict=True):
        raised = got.error if type(got) is RaisedInside else None
        if type(promised) is bytes and type(got) is bytes and got == promised:
            continue
        if raised == promised and (got.has_text or promised != "ValueError"):
            continue
        key, came = _what_came(got, promised)
        if type(promised) is bytes:
            wanted = f"the file has all of its {count(len(promised), 'byte')}"
        elif key == "error-without-text":
            wanted = "the docstring promises a text"
        else:
            wanted = f"the docstring promises {with_article(promised)}"
        words = "when asked for sample {sample}, {who} {came}; {wanted}"
        return own(key, words, sample=index, came=came, wanted=wanted, got=raised, expected=promised)
    return None


def _what_came(got: object, promised: Promise) -> tuple[str, str]:
    """The key of a finding, and its verb."""
    if type(got) is bytes:
        return "handed-out", f"returned {count(len(got), 'byte')}"
    if type(got) is not RaisedInside:
        return "no-bytes", f"returned {describe(got)}"
    if got.error == promised:
        return "error-without-text", f"raised {with_article(got.error)} without a text"
    return "error", f"raised {with_article(got.error)}"


EXERCISE = Exercise(
    library="packed_samples",
    number=5,
    minutes=10,
    difficulty=3,
    turn="find the two offsets, make sure that the file is whole, read what lies between",
    title="one sample out of many",
    cases=_cases,
    picture=False,
    hints=(
        "At which byte of the file is offset number `index`? What can `os.path.getsize(path)` tell you before you "
        "trust an offset? And what happens if the file ends inside its index?",
        "Read 8 bytes, which are n. If the file is shorter than 8 + 8 · (n + 1), raise a ValueError. If not 0 <= "
        "index < n, raise an IndexError. Seek to 8 + 8 · index and read 16 bytes, which are begin and end. If the file "
        "is shorter than end, raise a ValueError. Then seek to begin and read end − begin bytes.",
    ),
    praise=lambda outcome: "any sample, by any rank, from whole files; and a clear word about those that are cut off",
    shares_files=True,
)
