"""The check of `read_sample`: from good files, from files cut off, and by two ranks at once."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from course_utils.checks.compare import describe
from course_utils.checks.exercise import NO_RESULT, Case, Exercise, Mistake, Outcome
from course_utils.checks.recognisers import raised
from course_utils.lessons.hardware.checks import LESSON
from course_utils.lessons.hardware.checks.common import offsets_of, packed
from course_utils.words import count

if TYPE_CHECKING:
    from mpi4py import MPI

BIG, FEW = 4_000_000, 1_000_000  # bytes of a large file, and the most that reading two samples of it may take


def reads(function: Callable, comm: "MPI.Intracomm", content: bytes, indices: Sequence[int]) -> list:
    """These samples, read by the learner's function from one file for all ranks."""
    with tempfile.TemporaryDirectory() as folder:
        path = comm.bcast(str(Path(folder) / "packed") if comm.rank == 0 else None, root=0)
        if comm.rank == 0:
            Path(path).write_bytes(content)
        comm.Barrier()
        try:
            return [function(path, index) for index in indices]
        finally:
            comm.Barrier()  # rank 0 takes the file away


def read_or_error(
    function: Callable, comm: "MPI.Intracomm", content: bytes, indices: Sequence[int], wanted: Sequence[object]
) -> list:
    """For each index the sample, or the name of the error and whether it says something; not yet compared."""

    def one(path: str, index: int) -> object:
        try:
            return function(path, index)
        except NotImplementedError:
            raise
        except Exception as error:
            kind = f"{type(error).__module__}.{type(error).__qualname__}".removeprefix("builtins.")
            return f"raised {kind}{'' if str(error).strip() else ' without a text'}"

    return reads(one, comm, content, indices)


def read_frugally(function: Callable, comm: "MPI.Intracomm", content: bytes, indices: Sequence[int]) -> dict:
    """The samples, and whether much more than them was read of the file."""
    before = bytes_read()
    samples = reads(function, comm, content, indices)
    return {"samples": samples, "read": "the whole file" if bytes_read() - before > FEW else "little more"}


def bytes_read() -> int:
    """Bytes that this process has read from files; 0 where the system does not count them."""
    try:
        with open("/proc/self/io") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("rchar"))
    except (OSError, StopIteration):
        return 0


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def some(number: int, longest: int = 300) -> list[bytes]:
        return [rng.bytes(int(length)) for length in rng.integers(1, longest, number)]

    def case(label: str, samples: list[bytes], *orders: Sequence[int]) -> Case:
        content = packed(samples)
        arguments = [(content, [int(index) for index in order]) for order in orders]
        expected = [[samples[index] for index in order] for _, order in arguments]
        return Case(label, arguments, expected, harness=reads)

    def refused(label: str, samples: list[bytes], size: int | None, wanted: dict[int, object]) -> Case:
        given = (packed(samples)[:size], list(wanted), list(wanted.values()))
        return Case(label, [given], harness=read_or_error, judge=_kept_its_word)

    yield case("sample 0 of 3", [b"cat", b"goose", b"ox"], [0])
    yield case("all of 3 samples, the last first", [b"cat", b"goose", b"ox"], [2, 1, 0])
    many = some(40)
    yield case("40 samples in a random order", many, rng.permutation(40))
    yield case("one sample", some(1), [0, 0])
    yield case("empty samples among others", [b"", b"one", b"", b"\n\r\n", b""], [0, 1, 2, 3, 4])
    yield case("300 samples", some(300, 20), [299, 0, 256, 255, 257])
    yield case("two ranks at once", many, rng.permutation(40), rng.permutation(40))
    n = int(rng.integers(3, 9))
    few = some(n)
    beyond = {0: few[0], n: "raised IndexError", n + 1000: "raised IndexError", n - 1: few[-1]}
    yield refused(f"{n} samples, and numbers beyond the last", few, None, beyond)
    yield refused(f"{n} samples, and numbers below 0", few, None, {-1: "raised IndexError", -n: "raised IndexError"})
    yield refused("a file without samples", [], None, {0: "raised IndexError", -1: "raised IndexError"})
    offsets = offsets_of(few)
    last = {0: few[0], n - 2: few[n - 2], n - 1: "raised ValueError"}
    yield refused("the last byte is missing", few, offsets[-1] - 1, last)
    yield refused("the last sample is missing", few, offsets[-2], last)
    inside = {0: few[0], 1: "raised ValueError", n - 1: "raised ValueError"}
    yield refused("cut off inside sample 1", [few[0], *(b"x" * 20 for _ in few[1:])], offsets[1] + 7, inside)
    yield refused("cut off before the samples", few, offsets[0], {0: "raised ValueError", n - 1: "raised ValueError"})
    yield refused(
        "cut off inside the index", few, 8 + 8 * (n // 2) + 3, {0: "raised ValueError", n - 1: "raised ValueError"}
    )
    yield refused(
        "the last offset is missing", few, offsets[0] - 8, {0: "raised ValueError", n - 1: "raised ValueError"}
    )
    yield refused("the last byte of the index is missing", few, offsets[0] - 1, {n - 1: "raised ValueError"})
    yield refused("5 bytes in all", few, 5, {0: "raised ValueError"})
    yield refused("an empty file", few, 0, {0: "raised ValueError"})
    big = [b"first", rng.bytes(BIG), b"last"]
    wanted = {"samples": [b"first", b"last"], "read": "little more"}
    yield Case("a file of 4 MB", [(packed(big), [0, 2])], [wanted], harness=read_frugally)


def _pairs(case: Case, outcome: Outcome) -> list[tuple[int, object, object]]:
    """(index, got, expected) for every sample, on all ranks; nothing where a rank did not return."""
    found = []
    all_wanted = case.expected or [given[2] for given in case.arguments]
    for given, got, wanted in zip(case.arguments, outcome.results, all_wanted, strict=True):
        if got is not NO_RESULT and type(wanted) is list and type(got) is list:
            found += zip(given[1], got, wanted, strict=True)
    return found


def _wrong(case: Case, outcome: Outcome) -> tuple[int, object, object]:
    """The first that is wrong; (0, None, None) without one."""
    wrong = (one for one in _pairs(case, outcome) if type(one[1]) is not type(one[2]) or one[1] != one[2])
    return next(wrong, (0, None, None))


def _kept_its_word(outcome: Outcome) -> str | None:
    """What is wrong with the first sample that did not come, or did not fail, as the docstring promises."""
    index, got, wanted = _wrong(outcome.case, outcome)
    if wanted is None:
        return None
    came = count(len(got), "byte") if type(got) is bytes and type(wanted) is str else describe(got)
    ended = got if type(got) is str and got.startswith("raised ") else f"came as {came}"
    promised = wanted.removeprefix("raised ") if type(wanted) is str else f"its {count(len(wanted), 'byte')}"
    return f"sample {index} {ended}, expected {promised}"


def _not_bytes(case: Case, outcome: Outcome) -> bool:
    pairs = [(got, wanted) for _, got, wanted in _pairs(case, outcome)]
    return any(type(got) not in (bytes, str) or type(got) is str and not got.startswith("raised ") for got, _ in pairs)


def _below_zero(case: Case, outcome: Outcome) -> bool:
    index, _, wanted = _wrong(case, outcome)
    return index < 0 and wanted == "raised IndexError"


def _beyond(case: Case, outcome: Outcome) -> bool:
    _, _, wanted = _wrong(case, outcome)
    return wanted == "raised IndexError"


def _no_text(case: Case, outcome: Outcome) -> bool:
    _, got, wanted = _wrong(case, outcome)
    return got == f"{wanted} without a text"


def _whole_refused(case: Case, outcome: Outcome) -> bool:
    """A sample that is whole was refused because of another one that is not."""
    _, got, wanted = _wrong(case, outcome)
    return type(wanted) is bytes and got == "raised ValueError"


def _sample_cut(case: Case, outcome: Outcome) -> bool:
    _, got, wanted = _wrong(case, outcome)
    return wanted == "raised ValueError" and type(got) is bytes


def _other_error(case: Case, outcome: Outcome) -> bool:
    _, got, wanted = _wrong(case, outcome)
    return wanted == "raised ValueError" and type(got) is str


def _greedy(case: Case, outcome: Outcome) -> bool:
    result = outcome.results[0]
    return type(result) is dict and result.get("read") == "the whole file"


def _neighbour(case: Case, outcome: Outcome) -> bool:
    content = case.arguments[0][0]
    index, got, wanted = _wrong(case, outcome)
    samples = _samples(content)
    near = [samples[i] for i in (index - 1, index + 1) if 0 <= i < len(samples)]
    return got is not None and type(wanted) is bytes and got in near


def _samples(content: bytes) -> list[bytes]:
    number = int.from_bytes(content[:8], "little")
    offsets = [int.from_bytes(content[8 + 8 * i : 16 + 8 * i], "little") for i in range(number + 1)]
    return [content[a:b] for a, b in zip(offsets, offsets[1:], strict=False)]


def _too_long(case: Case, outcome: Outcome) -> bool:
    _, got, wanted = _wrong(case, outcome)
    return type(got) is bytes and type(wanted) is bytes and len(got) > len(wanted) and got.startswith(wanted)


def _elsewhere(case: Case, outcome: Outcome) -> bool:
    _, got, wanted = _wrong(case, outcome)
    return type(got) is bytes and type(wanted) is bytes and got in case.arguments[0][0]


def _to_the_end(case: Case, outcome: Outcome) -> bool:
    """The last sample of a whole file was refused: those before it, which an earlier case read, were not."""
    indices = case.arguments[0][1]
    return case.harness is reads and raised(outcome, "ValueError") and 0 not in indices[:1] and len(indices) > 1


def _first_byte(case: Case, outcome: Outcome) -> bool:
    return any(raised(outcome, name) for name in ("OverflowError", "MemoryError", "IndexError", "ValueError"))


READ_SAMPLE = Exercise(
    name="read_sample",
    library="course_utils.lessons.hardware.packed_samples:read_sample",
    lesson=LESSON,
    place=5,
    minutes=10,
    difficulty=3,
    turn="find the two offsets, make sure that the file is whole, read what lies between",
    title="one sample out of many",
    cases=_cases,
    picture=False,
    hints=(
        "At which byte of the file does offset number `index` stand? What can `os.path.getsize(path)` tell you before "
        "you trust an offset? And which errors are left when the file is cut off earlier still?",
        "Read 8 bytes: n. If the file is shorter than 8 + 8 · (n + 1): ValueError. If not 0 <= index < n: IndexError. "
        "Seek to 8 + 8 · index, read 16 bytes: begin and end. If the file is shorter than end: ValueError. Seek, read.",
    ),
    mistakes=(
        Mistake("What kind of thing is a sample?", _not_bytes),
        Mistake("Would anybody know from the error what to do next?", _no_text),
        Mistake("Is there a sample −1?", _below_zero),
        Mistake("How many samples are there, and from where are they counted?", _beyond),
        Mistake("Are the samples before the cut still whole?", _whole_refused),
        Mistake("Are all of the sample's bytes there? Does `read` complain if they are not?", _sample_cut),
        Mistake("Which error does the docstring promise for a file that is cut off, in its index too?", _other_error),
        Mistake("How much of the file must be read for one sample?", _greedy),
        Mistake("May the last sample end where the file ends?", _to_the_end),
        Mistake("Which byte of a number comes first?", _first_byte),
        Mistake("Where does offset number `index` stand?", _neighbour),
        Mistake("Where does the sample end?", _too_long),
        Mistake("From where are the offsets counted?", _elsewhere),
    ),
    praise=lambda outcome: "any sample, by any rank, from whole files; and a clear word about those that are cut off",
)
