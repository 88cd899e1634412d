"""The pictures of deck 5 that its page does not have: timelines side by side, and its two levels on virtual ranks."""

from types import SimpleNamespace

from matplotlib.figure import Figure

import course_utils as course
from course_utils.words import seconds_text

PAGE = {"lengths": [4_000, 8_000, 16_000, 32_000, 64_000, 125_000, 200_000]}  # bytes
DRAFT = {"PAGE": {"lengths": [4_000, 200_000], "two_sizes": [4_000, 8_000]}}


def pairs(page: SimpleNamespace) -> Figure:
    """The tree, and recursive doubling."""
    return course.draw.timelines(page.tree, page.doubling, titles=["tree", "recursive doubling"], side_by_side=True)


def segments(page: SimpleNamespace) -> Figure:
    """The ring in rounds, and without."""
    runs = page.round_the_ring, page.segmented
    whole, segmented = (
        max(event.end for event in run.events) - min(event.start for event in run.events) for run in runs
    )
    title = f"Blocks in one piece: {seconds_text(whole)}, in two segments: {seconds_text(segmented)}"
    return course.draw.timelines(*runs, titles=page.titles, side_by_side=True, title=title)


def levels_on_virtual_ranks(page: SimpleNamespace) -> Figure:
    """A flat ring and two levels on the page's two nodes of two, by virtual ranks."""
    runs = page.flat, page.levels
    flat, levels = (seconds_text(run.seconds) for run in runs)
    title = f"Virtual ranks: {flat} round the ring, {levels} on two levels"
    return course.draw.timelines(*runs, titles=["ring", "hierarchical"], side_by_side=True, title=title)


FIGURES = {"05_pairs": pairs, "05_segments": segments, "05_two_levels": levels_on_virtual_ranks}
