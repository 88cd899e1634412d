"""The check of `pack_samples`: the file is read back number by number, without the learner's or the library's help."""

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from course_utils.checks.compare import describe
from course_utils.checks.exercise import NO_RESULT, Case, Exercise, Mistake, Outcome
from course_utils.checks.recognisers import Recogniser, raised
from course_utils.lessons.hardware.checks import LESSON
from course_utils.lessons.hardware.checks.common import offsets_of, packed

OLD = b"what stood here before, and longer than that what comes now" * 40


def written(function: Callable, samples: Sequence[bytes], there_already: bool) -> dict:
    """What stands in the file that the learner's function wrote."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "packed"
        if there_already:
            path.write_bytes(OLD)
        returned = function(samples, str(path))
        found = path.read_bytes() if path.is_file() else None
        others = sorted(set(os.listdir(folder)) - {path.name})
    return taken_apart(found, returned, others)


def taken_apart(found: bytes | None, returned: object = None, others: Sequence[str] = ()) -> dict:
    """The parts of a packed file, as far as there are any; what was returned, and other files, if there are any."""
    if found is None:
        return {"file": "missing"}
    numbers = [int.from_bytes(found[at : at + 8], "little") for at in range(0, len(found) - 7, 8)]
    count = numbers[0] if numbers else None
    parts = {"file": "there", "number of samples": count}
    if count is not None and count < len(numbers):
        offsets = numbers[1 : count + 2]
        parts |= {"offsets": offsets, "samples": found[8 * (count + 2) :]}
        parts |= {f"sample {i}": found[a:b] for i, (a, b) in enumerate(zip(offsets, offsets[1:], strict=False))}
    parts["bytes"] = len(found)
    if returned is not None:
        parts["returned"] = describe(returned)
    if others:
        parts["other files"] = list(others)
    return parts


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(label: str, samples: Sequence[bytes], there_already: bool = False) -> Case:
        expected = taken_apart(packed(samples))
        given = (samples, there_already)
        return Case(label, [given], [expected], with_comm=False, harness=written)

    def some(count: int, longest: int = 300) -> list[bytes]:
        return [rng.bytes(int(length)) for length in rng.integers(1, longest, count)]

    yield case("3 samples", [b"cat", b"goose", b"ox"])
    yield case("samples of many lengths", some(int(rng.integers(5, 12))))
    yield case("samples of one length", [rng.bytes(64) for _ in range(6)])
    yield case("one sample", some(1))
    yield case("an empty sample among others", [b"one", b"", b"three", b""])
    yield case("no samples", [])
    yield case("bytes that look like the ends of lines", [b"a\nb\r\n", b"\n\n", b"\x00\xff\x1a"])
    yield case("a longer file is there already", some(4), there_already=True)
    yield case("a tuple of samples", tuple(some(3)))
    yield case("300 samples", some(300, 40))
    yield case("one of 300,000 bytes", [b"small", rng.bytes(300_000), b"last"])


def _parts(outcome: Outcome) -> dict:
    result = outcome.results[0]
    return {} if result is NO_RESULT else result


def _raw(case: Case) -> list[bytes]:
    return list(case.arguments[0][0])


def _offsets(formula: Callable[[list[bytes]], list[int]]) -> Recogniser:
    """A recogniser of other offsets, from the samples."""

    def recognises(case: Case, outcome: Outcome) -> bool:
        samples, parts = _raw(case), _parts(outcome)
        return len(samples) > 1 and parts.get("offsets") == formula(samples)

    return recognises


def _one_off(samples: list[bytes]) -> list[int]:
    """Offsets as if there were only n of them."""
    return [place - 8 for place in offsets_of(samples)]


def _lengths(samples: list[bytes]) -> list[int]:
    return [len(sample) for sample in samples]


def _all_as_long_as_the_first(samples: list[bytes]) -> list[int]:
    return [offsets_of(samples)[0] + i * len(samples[0]) for i in range(len(samples) + 1)]


def _in_turn(case: Case, outcome: Outcome) -> bool:
    """Behind the first offset stands sample 0, where the second one should."""
    samples, offsets = _raw(case), _parts(outcome).get("offsets") or []
    return len(offsets) > 1 and offsets[1].to_bytes(8, "little")[0] == samples[0][0]


def _size(change: Callable[[int, int], int]) -> Recogniser:
    """A recogniser of the file's size, from the right size and the number of samples."""

    def recognises(case: Case, outcome: Outcome) -> bool:
        samples, parts = _raw(case), _parts(outcome)
        right = len(packed(samples))
        return parts.get("bytes") == change(right, len(samples)) != right

    return recognises


def _number(of_count: Callable[[int], int]) -> Recogniser:
    """A recogniser of the first number in the file, from the number of samples."""

    def recognises(case: Case, outcome: Outcome) -> bool:
        count = len(_raw(case))
        return count > 0 and _parts(outcome).get("number of samples") == of_count(count) != count

    return recognises


def _file_missing(case: Case, outcome: Outcome) -> bool:
    return _parts(outcome).get("file") == "missing"


def _appended(case: Case, outcome: Outcome) -> bool:
    return case.arguments[0][1] and (_parts(outcome).get("bytes") or 0) >= len(OLD)


def _empty(case: Case, outcome: Outcome) -> bool:
    samples = _raw(case)
    return not samples or b"" in samples


def _returned(case: Case, outcome: Outcome) -> bool:
    return "returned" in _parts(outcome)


def _text(case: Case, outcome: Outcome) -> bool:
    return raised(outcome, "must be str") or raised(outcome, "decode")


def _other_order(case: Case, outcome: Outcome) -> bool:
    got, wanted = _parts(outcome).get("samples"), b"".join(_raw(case))
    return got is not None and got != wanted and sorted(got) == sorted(wanted)


FIRST = "Does the number of samples stand first?"
FROM = "From where are the offsets counted?"
ENDS = "n samples: how many offsets, so that the last one's end is known too?"

PACK_SAMPLES = Exercise(
    name="pack_samples",
    library="course_utils.lessons.hardware.packed_samples:pack_samples",
    lesson=LESSON,
    place=4,
    minutes=10,
    difficulty=2,
    turn="write the number of samples, the offsets, the samples",
    title="many samples in one file",
    cases=_cases,
    picture=False,
    hints=(
        "On paper, for samples of 3, 5 and 2 bytes: how many numbers stand in front, and how many bytes do they take? "
        "So where does sample 0 begin, and where does each of the others?",
        "offsets = [8 + 8 · (n + 1)], and each next one is the last plus that sample's length. Write "
        "struct.pack('<Q', n), then each offset so, then the samples, to a file opened with 'wb'.",
    ),
    mistakes=(
        Mistake("Is something written to `path`?", _file_missing),
        Mistake("Text or bytes: how is the file opened?", _text),
        Mistake("What becomes of a file that is there already?", _appended),
        Mistake("Which byte of a number comes first?", _number(lambda n: n << 56)),
        Mistake("How many bytes does each number take?", _size(lambda right, n: right - 4 * (n + 2))),
        Mistake(FIRST, _number(lambda n: 8 + 8 * (n + 1))),
        Mistake(FIRST, _number(lambda n: 8 * (n + 1))),
        Mistake("Do samples stand in front of the index?", _number(lambda n: int.from_bytes(b"catgoose", "little"))),
        Mistake(
            "n samples: how many offsets, so that the last one's end is known too?", _size(lambda right, n: right - 8)
        ),
        Mistake(
            "From where are the offsets counted?", _offsets(lambda s: [p - 8 * (len(s) + 2) for p in offsets_of(s)])
        ),
        Mistake(FROM, _offsets(_one_off)),
        Mistake(
            "Does offset i say where sample i begins, or how long it is?",
            lambda case, outcome: (_parts(outcome).get("offsets") or [])[: len(_raw(case))] == _lengths(_raw(case)),
        ),
        Mistake("Are all samples of one length?", _offsets(_all_as_long_as_the_first)),
        Mistake("Do all offsets stand together, before the first sample?", _in_turn),
        Mistake("Is there anything between one sample and the next?", _size(lambda right, n: right + n)),
        Mistake("Do the samples keep their order?", _other_order),
        Mistake("What about no samples, and samples of no bytes?", _empty),
        Mistake("Is there anything to return?", _returned),
    ),
    praise=lambda outcome: "every file reads back right: many lengths, none, and over an old one",
)
