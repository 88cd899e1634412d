"""What lesson 19 says and draws of a run, chosen by the numbers."""

import pytest

from course_utils.errors import CourseError
from course_utils.lessons.inference import pictures, sentences
from course_utils.measuring import BUSY, Measured

CALM, WILD = (1.0, 1.02, 0.98), (0.2, 3.0, 0.9)


def test_a_pass_is_compared_with_one_for_a_single_token() -> None:
    seconds = {1: Measured(CALM), 64: Measured(tuple(2 * value for value in CALM))}
    assert sentences.reading_text(seconds) == "A pass over 64 tokens takes 2 times as long as a pass over 1 token"
    assert sentences.reading_text({1: Measured(WILD), 64: Measured(WILD)}) == BUSY


@pytest.mark.parametrize(
    ("predicted", "end"), [(7.0, "as the line predicts"), (4.0, "and the line predicts 4 s"), (11.0, "11 s")]
)
def test_a_step_is_compared_with_the_line(predicted, end) -> None:
    text = sentences.step_text({"with": [9 * value for value in CALM], "without": CALM}, predicted)
    assert text.startswith("A token waits 8 s for messages, 89% of its time, ")
    assert text.endswith(end)
    assert sentences.step_text({"with": WILD, "without": WILD}, 1.0) == BUSY


def test_batches_and_places_are_named_with_their_numbers() -> None:
    assert sentences.batching_text({"static": 11, "continuous": 9}) == (
        "The same answers take 11 steps with static batching and 9 steps with continuous batching"
    )
    even = {10: 3.2, 100: 0.4, 400: 0.1}
    assert sentences.apart_text(even).startswith("From about 36 Gbit/s on, moving the cache pays")
    assert sentences.apart_text({10: 3.2}) == "At 10 Gbit/s, moving the cache pays from 3.2 running answers on"


def test_slots_are_drawn_with_every_request_and_its_steps() -> None:
    picture = pictures.slots({"static": [(0, 0, 2), (1, 0, 3), (0, 3, 4)]}, 2, "Four steps")
    boxes = [patch for patch in picture.axes[0].patches if patch.get_width() and patch.get_edgecolor()[3]]
    assert [box.get_width() for box in boxes] == [2, 3, 1]
    assert "request 2 in slot 0 from step 3 to 3" in picture.alt_text
    for nothing in ({}, {"static": []}, {"static": [(0, 0, pictures.MOST_STEPS + 1)]}):
        with pytest.raises(CourseError, match="has room for"):
            pictures.slots(nothing, 2, "Nothing")


def test_the_cache_grows_by_a_square_on_every_rank() -> None:
    picture = pictures.cached_tokens([(1, 1), (2, 2)], ["before", "after"], "A square more")
    assert "before: rank 0: 0, nothing; rank 1: 0, nothing" in picture.alt_text
    assert "after: rank 0: 0, 1; rank 1: 0, 1" in picture.alt_text
