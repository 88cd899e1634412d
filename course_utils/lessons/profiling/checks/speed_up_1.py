"""The check of `speed_up_1`: the same losses from the same photos, in less of the processor's time."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from course_utils.checks.exercise import Case, Outcome
from course_utils.checks.finding import RESULT_KINDS, Finding, own
from course_utils.checks.symptoms import same
from course_utils.lessons.profiling.checks.common import (
    RIGHT,
    SYMPTOMS,
    bars_of,
    longest_part,
    one_step_early,
    races_well,
    slow_program,
)
from course_utils.lessons.profiling.checks.races import CLOSE, MOST, YOURS, processor_seconds, race
from course_utils.lessons.profiling.slow import TARGETS

TARGET = TARGETS[1]
READING, TRAINING = "reading and decoding", "everything else"
PLACES = {READING: [("photos.py", "decode"), ("pathlib.py", "read_bytes")]}


def beside_slow_1(function: Callable, seed: int, count: int, epochs: int, rounds: int) -> dict:
    """Both on photos in a folder of this rank's own, with other photos in the same files in every round."""
    import torch

    from course_utils.lessons.profiling.slow.input_pipeline import slow_1

    with tempfile.TemporaryDirectory(prefix="course-photos-") as folder:

        def inputs(number: int) -> tuple:
            random = np.random.default_rng([seed, number])
            paths = [Path(folder) / f"{index:04d}.jpeg" for index in range(count)]
            for path in paths:
                path.write_bytes(photo(random))
            return paths, torch.from_numpy(random.integers(0, 10, count)), epochs

        own_time = {"clock": processor_seconds, "places": PLACES}
        return race(slow_1, function, inputs, TARGET, rounds=rounds, **own_time)


def photo(random: np.random.Generator) -> bytes:
    """A JPEG file of 160 × 160 pixels: four by four random spots."""
    import io

    from PIL import Image

    spots, file = Image.fromarray(random.integers(0, 256, (4, 4, 3), dtype=np.uint8)), io.BytesIO()
    spots.resize((160, 160), Image.Resampling.BILINEAR).save(file, format="JPEG", quality=85)
    return file.getvalue()


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(count: int, epochs: int, rounds: int = 0) -> Case:
        given = [(int(rng.integers(2**31)), count, epochs, rounds)]
        label = f"{count} photos, {'1 epoch' if epochs == 1 else f'{epochs} epochs'}"
        return Case(
            label, given, with_comm=False, harness=beside_slow_1, judge=races_well(TARGET, _lost, _more_than_once)
        )

    yield case(16, 3)
    yield case(20, 2)
    yield case(5, 1)
    yield case(16, 4, MOST)


def _more_than_once(outcome: Outcome) -> Finding | None:
    """Find a program that reads or decodes a photo more than once."""
    photos = outcome.case.arguments[0][1]
    for function, times in outcome.results[0].get("calls", {}).get(YOURS, {}).items():
        if times > photos:
            words = f"{RIGHT} `{{function}}` was called {{times}} times for {{photos}} photos"
            return own("more-than-once", words, function=function, times=times, photos=photos)
    return None


def _lost(outcome: Outcome) -> str:
    return longest_part(outcome, TRAINING)


def _in_a_later_call(case: Case, outcome: Outcome) -> bool:
    """Whether the results of the first call were right."""
    return outcome.finding.kind in RESULT_KINDS and outcome.results[0]["round"] > 0


def _epochs_alike(case: Case, outcome: Outcome) -> bool:
    """Whether every epoch has the losses of the first."""
    _, _, epochs, _ = case.arguments[0]
    losses = outcome.results[0]["found"]
    steps = len(losses) // epochs
    return epochs > 1 and same(losses[steps:], losses[:-steps], CLOSE)


EXERCISE = slow_program(
    1,
    "input_pipeline",
    minutes=5,
    difficulty=1,
    cases=_cases,
    drawing=bars_of(TRAINING),
    hints=(
        "What does the program do in the gaps between two training steps? Is this work any different in the second "
        "epoch than in the first?",
        "Decode all photos before the first epoch, with `photos = torch.stack([decode(path.read_bytes()) for path in "
        "paths])`. In every epoch, loop over `zip(photos.split(BATCH), labels.split(BATCH))`.",
    ),
    symptoms={
        **SYMPTOMS,
        "the results differ in a later call": _in_a_later_call,
        "every epoch has the losses of the first": _epochs_alike,
        "each loss is that of the next step": one_step_early(),
    },
)
