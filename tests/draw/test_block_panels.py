"""The picture of blocks, drawn from frames that are written down here."""

import pytest

from course_utils.draw.block_frames import BlockFrames, BlockPiece, Frame
from course_utils.draw.block_panels import blocks
from course_utils.errors import CourseError


def frame(name, *rows):
    """A frame from counts: each row has a block for each of its tuples, and None where it holds nothing."""
    return Frame(name, tuple(tuple((BlockPiece(1.0, counts),) if counts else () for counts in row) for row in rows))


START = frame("start", [(1, 0), (1, 0)], [(0, 1), (0, 1)])
ONE_COMPLETE = BlockFrames((START, frame("round 1", [(1, 1), (1, 1)], [(1, 1), (0, 1)])))
ALL = BlockFrames((START, frame("round 1", [(1, 1), (1, 1)], [(1, 1), (1, 1)])))
TWICE = BlockFrames((START, frame("round 1", [(1, 1), (1, 1)], [(2, 1), (1, 1)])))
MOVED = BlockFrames((START, frame("after", [(1, 0), (1, 0)], [(1, 0), (1, 0)])))


def subtitle(picture):
    return " ".join(text.get_text() for text in picture.texts[1:])


def circles(picture):
    """The ticks' discs: patches that are no rectangles."""
    return [patch for ax in picture.axes for patch in ax.patches if type(patch).__name__ == "Circle"]


@pytest.mark.parametrize(
    ("frames", "title"),
    [
        (ALL, "After 1 round every rank holds the sum of all 2 vectors"),
        (ONE_COMPLETE, "After 1 round only rank 0 holds the whole sum"),
        (MOVED, "All 2 ranks hold the data of rank 0"),
    ],
)
def test_the_title_is_what_can_be_seen(frames, title):
    assert blocks(frames).texts[0].get_text() == title == frames.finding()
    assert blocks(frames, title="mine").texts[0].get_text() == "mine"


def test_complete_blocks_have_a_tick_and_others_have_none():
    assert len(circles(blocks(ALL))) == 4
    assert len(circles(blocks(ONE_COMPLETE))) == 3
    assert len(circles(blocks(TWICE))) == 3
    assert not circles(blocks(MOVED))
    assert "tick" in subtitle(blocks(ALL)) and "tick" not in subtitle(blocks(MOVED))


def test_a_count_of_two_is_written_and_described():
    picture = blocks(TWICE, wrong=TWICE.incomplete())
    assert "×2" in [text.get_text() for text in picture.axes[0].texts]
    assert "rank 1: 0 2 times+1, 0+1" in picture.alt_text and picture.alt_text.endswith("Wrong: block 0 of rank 1.")


def test_what_is_no_sum_is_hatched_and_explained():
    unknown = Frame("after", (((BlockPiece(1.0, (0, 0), is_known=False),),) * 2,) * 2)
    picture = blocks(BlockFrames((START, unknown)))
    assert sum(bool(patch.get_hatch()) for patch in picture.axes[0].patches) == 4
    assert "hatched" in subtitle(picture) and "hatched" not in subtitle(blocks(ALL))
    assert "no sum" in picture.alt_text


@pytest.mark.parametrize("number", [1, 2, 6])
def test_panels_keep_apart_and_inside_the_picture(number):
    titles = [f"panel {index}" for index in range(number)]
    picture = blocks(*[ALL] * number, titles=titles)
    (ax,) = picture.axes
    width, height = ax.get_xlim()[1], ax.get_ylim()[0]
    boxes = {(round(p.get_x(), 3), round(p.get_y(), 3)) for p in ax.patches if type(p).__name__ == "Rectangle"}
    assert all(0 <= x < width and 0 <= y < height for x, y in boxes)
    names = {text.get_text(): text.get_position() for text in ax.texts if text.get_text() in titles}
    assert len(names) == len(set(names.values())) == number
    assert all(f"panel {index}, start" in picture.alt_text for index in range(number))


def test_titles_must_be_as_many_as_runs():
    with pytest.raises(CourseError, match="2 runs and 1 title"):
        blocks(ALL, ALL, titles=["only"])
    with pytest.raises(CourseError, match="0 runs"):
        blocks()
