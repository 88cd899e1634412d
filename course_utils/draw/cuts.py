"""A matrix product y = x Wᵀ cut over ranks: which part of each matrix lies where, and what has to move."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from course_utils.draw import style
from course_utils.draw.rows import paler
from course_utils.errors import CourseError

_BATCH, _IN, _OUT = 0.54, 0.86, 0.95  # inches: how the three dimensions are drawn
_PLACES = (0.0, 1.26, 2.61)  # inches: left ends of x, Wᵀ and y
_WORDS = 4.0  # inches: where the words begin
_SHEET = 0.04  # inches from one term of a sum to the next, drawn behind it
_WHOLE = "#E4E4E4"

Shape = tuple[int, int]


@dataclass(frozen=True)
class Cut:
    """What one rank has of a linear layer, and what its passes move.

    Attributes:
        x: (batch, in), as this rank uses it.
        weight: (out, in), as this rank has it.
        y: (batch, out), as this rank makes it. Whole although the weight is cut: a term of a sum.
        forward, backward: what moves, in words.
    """

    x: Shape
    weight: Shape
    y: Shape
    forward: str
    backward: str


def matrix_cuts(cuts: Mapping[str, Cut], whole: Cut, ranks: int, title: str, subtitle: str = "") -> Figure:
    """Draw x · Wᵀ = y for each way to cut it, a colour and a number for each rank's part; grey is on every rank.

    Args:
        cuts: what each rank has, by the way's name.
        whole: the shapes without a cut.
        ranks: how many there are; at most eight.
    """
    if not cuts or not 2 <= ranks <= len(style.CURVES):
        raise CourseError(f"matrix_cuts: one way at least, and 2 to {len(style.CURVES)} ranks.")
    heights = [_IN + 0.2] * len(cuts)
    picture, axes = style.new_picture(
        title, subtitle, heights=heights, left=0.3, right=0.1, below=0.1, above=0.22, between=0.36
    )
    told = []
    for ax, (name, cut) in zip(axes, cuts.items(), strict=True):
        _draw(ax, name, cut, whole, ranks)
        told.append(f"{name}: forward {cut.forward}, backward {cut.backward}; a rank has {_held(cut)}")
    picture.alt_text = f"A matrix product cut over {ranks} ranks. {title}. {'; '.join(told)}."
    return picture


def _draw(ax: Axes, name: str, cut: Cut, whole: Cut, ranks: int) -> None:
    """One way, on axes whose unit is an inch."""
    wide, high = (
        side * share
        for side, share in zip(
            ax.figure.get_size_inches(), (ax.get_position().width, ax.get_position().height), strict=True
        )
    )
    ax.set_xlim(0, wide)
    ax.set_ylim(high, 0)
    ax.axis("off")
    ax.set_title(name, fontsize=style.TEXT, fontweight="bold", loc="left", pad=6)
    sum_of_terms = cut.y == whole.y and cut.weight != whole.weight
    parts = [
        ("x", cut.x, whole.x, (_IN, _BATCH), False),
        ("Wᵀ", cut.weight[::-1], whole.weight[::-1], (_OUT, _IN), False),
        ("y", cut.y, whole.y, (_OUT, _BATCH), sum_of_terms),
    ]
    for left, (letter, part, entire, size, summed) in zip(_PLACES, parts, strict=True):
        _matrix(ax, left, (part, entire), size, ranks, summed)
        under = {"ha": "center", "va": "top", "fontsize": style.SMALL, "color": "#555555"}
        depth = _SHEET * (ranks - 1) if summed else 0
        ax.text(left + size[0] / 2, size[1] + depth + 0.05, f"{letter}: {part[0]} × {part[1]}", **under)
    for sign, at in (("·", _PLACES[1] - 0.2), ("=", _PLACES[2] - 0.2)):
        ax.text(at, _BATCH / 2, sign, ha="center", va="center", fontsize=style.TITLE)
    lines = [f"Forward: {cut.forward}", f"Backward: {cut.backward}"]
    width = (wide - _WORDS) * style.DOTS
    wrapped = [line for text in lines for line in style.wrap(text, style.TEXT, width=width)]
    ax.text(_WORDS, _IN / 2, "\n".join(wrapped), va="center", fontsize=style.TEXT, linespacing=1.5)


def _matrix(ax: Axes, left: float, shapes: tuple[Shape, Shape], size: tuple[float, float], ranks: int, summed: bool):
    """One matrix: stripes where it is cut, sheets one behind the other where it is a sum, grey where all have it."""
    part, entire = shapes
    width, height = size
    colours = [paler(colour, 0.45) for colour in style.CURVES[:ranks]]
    edge = {"edgecolor": "white", "linewidth": 1.0}
    words = {"ha": "center", "va": "center", "fontsize": style.SMALL}
    if summed:
        for rank, colour in reversed(list(enumerate(colours))):
            ax.add_patch(Rectangle((left + rank * _SHEET, rank * _SHEET), width, height, facecolor=colour, **edge))
        ax.text(left + width / 2, height / 2, " + ".join(map(str, range(ranks))), **words)
    elif part == entire:
        ax.add_patch(Rectangle((left, 0), width, height, facecolor=_WHOLE, edgecolor="none"))
        ax.text(left + width / 2, height / 2, "on every rank", **words)
    else:
        down = part[0] != entire[0]
        for rank, colour in enumerate(colours):
            x, y = (0, height / ranks * rank) if down else (width / ranks * rank, 0)
            stripe = (width, height / ranks) if down else (width / ranks, height)
            ax.add_patch(Rectangle((left + x, y), *stripe, facecolor=colour, **edge))
            ax.text(left + x + stripe[0] / 2, y + stripe[1] / 2, str(rank), **words)


def _held(cut: Cut) -> str:
    named: Sequence[tuple[str, Shape]] = (("x", cut.x), ("W", cut.weight), ("y", cut.y))
    return ", ".join(f"{name} {shape[0]} by {shape[1]}" for name, shape in named)
