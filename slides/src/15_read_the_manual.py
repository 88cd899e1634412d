"""The pictures of deck 15 besides its page's: the text in wide lines, FSDP2 with different seeds, naive training."""

from functools import partial
from types import SimpleNamespace

from matplotlib.figure import Figure

import course_utils as course
from course_utils.draw.style import SLIDE_WIDTH
from course_utils.lessons.read_the_manual import (
    PASSAGES,
    budget_bars,
    largest_difference,
    naive_data_parallel,
    reading,
    same_text,
    tried,
    words_text,
)

IMAGES = 240  # of each node, for the naive training
DRAFT = {"IMAGES": 16}
UNLIKE = "FSDP2, own seeds"


def text(lessons: bool) -> Figure:
    """The page's two paragraphs in lines that fill a slide, with the lessons of their words or without."""
    title, under = "Two paragraphs of TensorFlow's manual", "Underlined: words to know"
    if lessons:
        title, under = words_text(PASSAGES), "Below each word: its lesson"
    return reading(PASSAGES, title, under, lessons, width=SLIDE_WIDTH)


def unlike(page: SimpleNamespace) -> Figure:
    """Draw how far the weights of the page's programs are from those of one process."""
    steps = page.steps | {UNLIKE: page.unlike}
    bars = {name: {"difference": largest_difference(seen, page.alone)} for name, seen in steps.items()}
    panel = course.draw.SharesPanel("largest difference from the weights of one process", bars, say=_difference)
    return course.draw.shares([panel], same_text(UNLIKE, page.unlike, page.alone))


def _difference(value: float) -> str:
    return "0" if value == 0 else f"{value:.0e}" if value < 1e-9 else f"{value:.2g}"


def naive_training(page: SimpleNamespace) -> Figure:
    """Draw naive data parallelism on the page's ranks, against the capstone's budgets."""

    def some(model, images, labels):
        return naive_data_parallel(model, images[:IMAGES], labels[:IMAGES])

    return budget_bars(tried(page.ranks, some, seed=0))


FIGURES = {
    "15_before": partial(text, False),
    "15_unlike": unlike,
    "15_naive": naive_training,
    "15_after": partial(text, True),
}
