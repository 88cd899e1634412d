"""Which micro-batch is where in each step of a schedule, and the picture of it."""

import pytest

from course_utils.errors import CourseError
from course_utils.lessons.pipeline import pictures
from course_utils.lessons.pipeline.actions import BACKWARD, FORWARD
from course_utils.lessons.pipeline.interleaved import interleaved_schedule
from course_utils.lessons.pipeline.micro_batch_frames import MicroBatchState, micro_batch_frames, most_kept
from course_utils.lessons.pipeline.schedules import gpipe_schedule, one_f_one_b_schedule
from course_utils.lessons.pipeline.validate import peak_in_flight
from course_utils.lessons.pipeline.zero_bubble import zb_h1_schedule

LETTERS = {
    MicroBatchState.NOT_YET: ".",
    MicroBatchState.FORWARD: FORWARD,
    MicroBatchState.KEPT: "k",
    MicroBatchState.BACKWARD: BACKWARD,
    MicroBatchState.DONE: "-",
}


def rows(schedule, rank: int) -> list[str]:
    """A rank's micro-batches in each step, a letter for each."""
    return ["".join(LETTERS[state] for state in frame[rank]) for frame in micro_batch_frames(schedule)]


def test_each_step_shows_what_a_rank_works_on_and_keeps() -> None:
    assert rows(gpipe_schedule(2, 2), 0) == ["F.", "kF", "kk", "kk", "Bk", "-B"]
    assert rows(gpipe_schedule(2, 2), 1) == ["..", "F.", "kF", "Bk", "-B", "--"]
    assert rows(one_f_one_b_schedule(2, 2), 1) == ["..", "F.", "B.", "-F", "-B", "--"]


@pytest.mark.parametrize("make", [gpipe_schedule, one_f_one_b_schedule])
@pytest.mark.parametrize(("ranks", "micro_batches"), [(1, 1), (2, 3), (4, 8), (4, 2)])
def test_it_keeps_what_the_validator_counts(make, ranks, micro_batches) -> None:
    schedule = make(ranks, micro_batches)
    frames = micro_batch_frames(schedule)
    assert len(frames) == 2 * (micro_batches + ranks - 1)
    assert most_kept(frames) == peak_in_flight(schedule)


@pytest.mark.parametrize("schedule", [interleaved_schedule(2, 2), zb_h1_schedule(2, 2)])
def test_what_has_no_single_square_is_rejected(schedule) -> None:
    with pytest.raises(CourseError, match="one stage"):
        micro_batch_frames(schedule)


def test_the_picture_says_the_same_in_words() -> None:
    text = pictures.micro_batches(one_f_one_b_schedule(2, 2), "Two ranks").alt_text
    assert "Two ranks" in text and "step 2: rank 0 0 kept for the backward pass and 1 forward; rank 1 0 forward" in text
    assert "step 1: rank 0 0 forward; rank 1 nothing" in text
