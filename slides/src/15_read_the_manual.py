"""The pictures of deck 15: two paragraphs, one step in four frameworks, and what naive data parallelism uses."""

from functools import cache, partial

import torch
from matplotlib.figure import Figure
from torch.nn.functional import cross_entropy

import course_utils as course
from course_utils.draw.style import SLIDE_WIDTH
from course_utils.lessons.data_parallel.training import digits_mlp
from course_utils.lessons.read_the_manual import pictures
from course_utils.lessons.read_the_manual.capstone.pictures import budget_bars
from course_utils.lessons.read_the_manual.capstone.trial import naive_data_parallel, tried
from course_utils.lessons.read_the_manual.framework_steps import Stepped, apart, parts, step_seen
from course_utils.lessons.read_the_manual.lightning import is_there
from course_utils.lessons.read_the_manual.passages import PASSAGES
from course_utils.lessons.read_the_manual.sentences import same_text, sends_most, sent_and_kept_text, words_text
from workshop.build.definitions import definitions

IMAGES = 240  # of each node, for the naive training
LIGHTNING = True
DRAFT = {"IMAGES": 16, "LIGHTNING": False}
WAYS = {"by hand": "by_hand", "DDP": "with_ddp", "FSDP2": "with_fsdp", "Lightning": "with_lightning"}
UNLIKE = "FSDP2, unlike seeds"


@cache
def nodes():
    """The ranks that all pictures of this deck run on."""
    return course.start(4, link="100 Mbit/s")


@cache
def batch() -> tuple[torch.Tensor, torch.Tensor]:
    """The page's 64 digits."""
    x, y, *_ = course.data.digits("float64")
    return x[:64], y[:64]


@cache
def alone() -> torch.Tensor:
    """The weights of one process after the step."""
    model = digits_mlp(seed=0).double()
    cross_entropy(model(batch()[0]), batch()[1]).backward()
    return torch.cat([(one - 0.1 * one.grad).detach().flatten() for one in model.parameters()])


@cache
def steps() -> dict[str, list[Stepped]]:
    """The page's four ways on two ranks, and FSDP2 again with unlike seeds."""
    ways = dict(zip(WAYS, definitions("15_read_the_manual", WAYS.values()).values(), strict=True))
    if not (LIGHTNING and is_there()):
        del ways["Lightning"]
    ways[UNLIKE] = partial(ways["FSDP2"], same_seed=False)
    return {name: nodes().run(step_seen, way, *batch(), backend="gloo", ranks=2).results for name, way in ways.items()}


def text(lessons: bool) -> Figure:
    """The two paragraphs, with the lessons of their words or without."""
    title, under = "Two paragraphs of TensorFlow's manual", "Underlined: words to know"
    if lessons:
        title, under = words_text(PASSAGES), "Below each word: the lesson that taught it"
    return pictures.reading(PASSAGES, title, under, lessons, width=SLIDE_WIDTH)


def unlike() -> Figure:
    """How far the weights are from one process's."""
    bars = {name: {"difference": apart(seen, alone())} for name, seen in steps().items()}
    panel = course.draw.SharesPanel("largest difference from one process's weights", bars, say=_difference)
    return course.draw.shares([panel], same_text(UNLIKE, steps()[UNLIKE], alone()))


def _difference(value: float) -> str:
    return "0" if value == 0 else f"{value:.0e}" if value < 1e-9 else f"{value:.2g}"


def shares() -> Figure:
    """What each way sends and keeps."""
    ways = {name: seen for name, seen in steps().items() if name != UNLIKE}
    sent, kept = parts(ways)
    count = "{:,.0f}".format
    panels = [course.draw.SharesPanel("rank 0 sends", sent, say=count)]
    panels.append(course.draw.SharesPanel("rank 0 keeps", kept, say=count))
    return course.draw.shares(panels, sent_and_kept_text(ways, sends_most(ways)), "Numbers, as rings send them")


def naive() -> Figure:
    """Naive data parallelism against the capstone's budgets."""

    def some(model, images, labels):
        return naive_data_parallel(model, images[:IMAGES], labels[:IMAGES])

    return budget_bars(tried(nodes(), some, seed=0))


FIGURES = {
    "15_before": partial(text, False),
    "15_unlike": unlike,
    "15_shares": shares,
    "15_naive": naive,
    "15_after": partial(text, True),
}
