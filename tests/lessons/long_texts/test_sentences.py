"""What lesson 17 says of a run, chosen by the numbers, and its picture of the mask."""

import pytest
import torch

from course_utils.errors import CourseError
from course_utils.lessons.long_texts import pictures
from course_utils.lessons.long_texts.sentences import (
    BUSY,
    difference_text,
    exposed_letter,
    exposed_share,
    exposed_text,
    growth_text,
    sends_text,
    waits_of,
    work_text,
)
from course_utils.lessons.long_texts.zigzag import in_order, zigzag

TOLD = "ring", "in turn", "alone"


def test_growth_is_that_of_the_last_two_lengths() -> None:
    kept = {"all scores": [1, 5, 20], "in blocks": [1, 2, 4]}
    told = growth_text([256, 512, 1024], kept)
    assert told == "From 512 to 1,024 tokens: all scores 4 times, in blocks 2 times the bytes"


def test_work_is_that_of_the_busiest_rank() -> None:
    assert work_text({"in order": [1, 3, 5, 7], "zig-zag": [4, 4, 4, 4]}).endswith("in order 7, zig-zag 1")


@pytest.mark.parametrize(
    ("ring", "share", "letter"), [(1.0, 0.0, "a"), (0.9, 0.0, "a"), (1.5, 0.5, "b"), (2.0, 1.0, "c"), (2.5, 1.0, "c")]
)
def test_what_is_exposed_is_a_share_of_the_waiting(ring, share, letter) -> None:
    seconds = {"alone": [1.0, 1.1], "in turn": [2.0, 2.1], "ring": [ring, ring + 0.1]}
    assert exposed_share(seconds, *TOLD) == share
    assert exposed_letter(share) == letter
    assert exposed_text(seconds, *TOLD).startswith(f"{round(100 * share)}\N{NO-BREAK SPACE}% of the waiting")
    assert min(one["wait"] for one in waits_of(seconds, "alone").values()) >= 0


def test_where_nobody_waits_nothing_is_said_of_hiding() -> None:
    seconds = {"alone": [1.0], "in turn": [1.0], "ring": [1.0]}
    assert exposed_share(seconds, *TOLD) is None and exposed_letter(None) == ""
    assert exposed_text(seconds, *TOLD) == BUSY


def test_nothing_is_said_where_most_runs_scatter() -> None:
    seconds = {"alone": [1.0, 1.0, 1.0], "in turn": [2.0, 5.0, 9.0], "ring": [1.5, 4.0, 8.0]}
    assert exposed_share(seconds, *TOLD) is None and exposed_text(seconds, *TOLD) == BUSY


def test_who_sends_less_is_named() -> None:
    assert sends_text(100, 100, 2) == "2 ranks: ring 100 B, Ulysses 100 B: the same"
    assert "the ring sends less, 50" in sends_text(50, 100, 4)
    assert "Ulysses sends less, 50" in sends_text(100, 50, 4)


def test_the_worst_rank_counts() -> None:
    told = difference_text([{"output": 1e-16, "q": 2e-15}, {"output": 3e-14, "q": 0.0}])
    assert told == "2 ranks: output, q: at most 3e-14 away from one process"


def test_a_mask_says_what_it_shows() -> None:
    picture = pictures.masks({"in order": in_order(64, 4), "zig-zag": zigzag(64, 4)}, "A title")
    assert "A title" in picture.alt_text
    assert "zig-zag: ranks 0 to 3 have 25, 25, 25, 25 percent of the pairs" in picture.alt_text
    with pytest.raises(CourseError, match="one text"):
        pictures.masks({"one": in_order(8, 2), "other": [torch.arange(9)]}, "A title")
