"""The check of `speed_up_1`: the same losses from the same photos, in less of the processor's time."""

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from course_utils.checks.exercise import Case, Exercise, Mistake, Outcome
from course_utils.lessons.profiling.checks import LESSON
from course_utils.lessons.profiling.checks.common import (
    bars_of,
    from_the_start,
    later_call,
    longest_part,
    no_numbers,
    nothing_found,
    praised,
    races_well,
    too_few,
    too_slow,
)
from course_utils.lessons.profiling.checks.races import MOST, race

TARGET = 1.5
READING, TRAINING = "reading and decoding", "everything else"
PLACES = {READING: [("photos.py", "decode"), ("pathlib.py", "read_bytes")]}


def beside_slow_1(function: Callable, seed: int, count: int, epochs: int, rounds: int) -> dict:
    """Both on photos in a folder of this rank's own, with other photos in the same files in every round."""
    import torch

    from course_utils.lessons.profiling.slow.input_pipeline import slow_1

    with tempfile.TemporaryDirectory(prefix="course-photos-") as folder:

        def inputs(number: int) -> tuple:
            random = np.random.default_rng([seed, number])
            paths = [Path(folder) / f"{place:04d}.jpeg" for place in range(count)]
            for path in paths:
                path.write_bytes(photo(random))
            return paths, torch.from_numpy(random.integers(0, 10, count)), epochs

        own_time = {"clock": time.process_time, "meet": float, "places": PLACES}
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
        return Case(label, given, with_comm=False, harness=beside_slow_1, judge=races_well(TARGET, _lost))

    yield case(20, 2)
    yield case(5, 1)
    yield case(16, 4, MOST)


def _lost(outcome: Outcome) -> str:
    return longest_part(outcome, TRAINING)


def _copied(case: Case, outcome: Outcome) -> bool:
    """The second epoch's losses are those of the first."""
    found, wanted = outcome.results[0]["found"], outcome.results[0]["wanted"]
    each = len(wanted) // case.arguments[0][2]
    return each < len(found) and list(found[each : 2 * each]) == list(found[:each])


SPEED_UP_1 = Exercise(
    name="speed_up_1",
    library="course_utils.lessons.profiling.slow.input_pipeline:speed_up_1",
    begins_with="course_utils.lessons.profiling.slow.input_pipeline:slow_1",
    lesson=LESSON,
    place=3,
    minutes=5,
    difficulty=1,
    turn="take this line out, and make what is below it faster",
    title="slow program 1",
    cases=_cases,
    needs_torch=True,
    drawing=bars_of(TRAINING),
    praise=praised(TARGET),
    hints=(
        "What does the profile show between two training steps? Is the work that is done there in the second epoch "
        "any other work than in the first?",
        "Before the first epoch: `photos = torch.stack([decode(path.read_bytes()) for path in paths])`. In the epochs, "
        "`for x, y in zip(photos.split(BATCH), labels.split(BATCH))`.",
    ),
    mistakes=(
        Mistake("What does the function return?", nothing_found),
        Mistake("Are the losses plain numbers, in a list?", no_numbers),
        Mistake("Is there one loss for each step, the one with a small last batch too?", too_few),
        Mistake("How often is the same photo decoded?", too_slow),
        Mistake("Do the files still hold what they held in the call before?", later_call),
        Mistake("Is every epoch trained, or is one copied?", _copied),
        Mistake("Are the first weights the same, and the batches, in the same order?", from_the_start),
        Mistake(
            "Does every step see the photos that it saw before, and change the weights as before?",
            lambda case, outcome: True,
        ),
    ),
)
