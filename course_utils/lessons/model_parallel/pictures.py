"""Drawings of lesson 9: a matrix product cut over ranks, who holds what, and what training keeps in memory."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from course_utils.draw import style
from course_utils.draw.bars import (
    PARTS,
    amounts_in_words,
    draw_parts,
    name_rows,
    room_for_ends,
    room_for_names,
    write_end,
)
from course_utils.draw.block_panels import RANK_COLOURS, colour_of
from course_utils.draw.style import paler
from course_utils.errors import CourseError
from course_utils.lessons.model_parallel.held_parts import HeldMatrix, HeldPart
from course_utils.lessons.model_parallel.memory_parts import Memory
from course_utils.words import bytes_text, join, percent

if TYPE_CHECKING:
    import torch

_BATCH, _IN, _OUT = 0.54, 0.86, 0.95  # inches: how the three dimensions are drawn
_PLACES = (0.0, 1.26, 2.61, 4.9)  # inches: left ends of x, W, y, and of `weight`, W as torch stores it
_SHEET = 0.04  # inches from one term of a sum to the next, drawn behind it
_WHOLE = "#E4E4E4"

Shape = tuple[int, int]


@dataclass(frozen=True)
class Cut:
    """What one rank has of a linear layer.

    Attributes:
        x: (rows, in), as this rank uses it.
        weight: (out, in), as this rank has it and torch stores it. On paper, W is (in, out).
        y: (rows, out), as this rank computes it. Whole although the weight is cut: a term of a sum.
    """

    x: Shape
    weight: Shape
    y: Shape


def cut_of(held: Mapping[str, "torch.Tensor"]) -> Cut:
    """Return the shapes of the matrices "x", "W" (as on paper) and "y"."""
    rows, columns = held["W"].shape
    return Cut(tuple(held["x"].shape), (columns, rows), tuple(held["y"].shape))


def matrix_cuts(
    held: Mapping[str, Sequence[Mapping[str, "torch.Tensor"]]], whole: Mapping[str, "torch.Tensor"], title: str
) -> Figure:
    """Draw x · W = y for each way to cut it, and beside it W as torch stores it, as rows of `weight`.

    Each rank's part has a colour and a number; what is grey is on every rank.

    Args:
        held: for each cut's name what each rank holds, as matrices "x", "W" and "y".
        whole: the same matrices, whole.
        title: the finding.
    """
    size = len(next(iter(held.values()), ()))
    if not 2 <= size <= len(RANK_COLOURS):
        raise CourseError(f"matrix_cuts: one way at least, and 2 to {len(RANK_COLOURS)} ranks.")
    heights = [_OUT + 0.25] * len(held)
    picture, axes = style.new_picture(title, heights=heights, left=0.3, right=0.1, below=0.1, above=0.22, between=0.36)
    entire, texts = cut_of(whole), []
    for ax, (name, results) in zip(axes, held.items(), strict=True):
        cut = cut_of(results[0])
        _draw(ax, name, cut, entire, size)
        texts.append(f"{name}: a rank has {_held(cut)}")
    picture.alt_text = f"A matrix product cut over {size} ranks. {title}. {'; '.join(texts)}."
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
    ax.set_title(f"{name}: {_in_words(cut, whole)}", fontsize=style.TEXT, fontweight="bold", loc="left", pad=6)
    sum_of_terms = cut.y == whole.y and cut.weight != whole.weight
    parts = [
        ("x", cut.x, whole.x, (_IN, _BATCH), False),
        ("W", cut.weight[::-1], whole.weight[::-1], (_OUT, _IN), False),
        ("y", cut.y, whole.y, (_OUT, _BATCH), sum_of_terms),
        ("weight", cut.weight, whole.weight, (_IN, _OUT), False),
    ]
    for left, (letter, part, entire, size, summed) in zip(_PLACES, parts, strict=True):
        _matrix(ax, left, (part, entire), size, ranks, summed)
        under = {"ha": "center", "va": "top", "fontsize": style.SMALL, "color": "#555555"}
        depth = _SHEET * (ranks - 1) if summed else 0
        ax.text(left + size[0] / 2, size[1] + depth + 0.05, f"{letter}: {part[0]} × {part[1]}", **under)
    for sign, at in (("·", _PLACES[1] - 0.2), ("=", _PLACES[2] - 0.2)):
        ax.text(at, _BATCH / 2, sign, ha="center", va="center", fontsize=style.TITLE)
    _dimension_0(ax, _PLACES[3])


def _dimension_0(ax: Axes, left: float) -> None:
    """An arrow down the side of `weight`, along its dimension 0."""
    at = left - 0.09
    ax.annotate(
        "", (at, _OUT), (at, 0), arrowprops={"arrowstyle": "->", "color": style.FAINT, "shrinkA": 0, "shrinkB": 0}
    )
    words = {"rotation": 90, "ha": "right", "va": "center", "fontsize": style.SMALL, "color": "#555555"}
    ax.text(at - 0.04, _OUT / 2, "dimension 0", **words)


def _in_words(cut: Cut, whole: Cut) -> str:
    """Return what is cut, on paper and in torch."""
    if cut.weight[0] != whole.weight[0]:
        return "columns of W, rows of torch's weight (its dimension 0)"
    if cut.weight[1] != whole.weight[1]:
        return "rows of W, columns of torch's weight (its dimension 1)"
    return "rows of x, and all of W on every rank"


def _matrix(ax: Axes, left: float, shapes: tuple[Shape, Shape], size: tuple[float, float], ranks: int, summed: bool):
    """One matrix: stripes where it is cut, sheets one behind the other where it is a sum, grey where all have it."""
    part, entire = shapes
    width, height = size
    colours = [paler(colour, 0.45) for colour in RANK_COLOURS[:ranks]]
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
    named: Sequence[tuple[str, Shape]] = (("x", cut.x), ("weight", cut.weight), ("y", cut.y))
    return ", ".join(f"{name} {shape[0]} by {shape[1]}" for name, shape in named)


COMPUTED, COUNTED = "computed", "counted"
_NEAR = 0.05  # within which a formula is called right


def memory(computed: Mapping[str, Memory], counted: Mapping[str, Memory], title: str | None = None) -> Figure:
    """Draw two horizontal bars for each entry, cut into parts: computed, hatched, above counted.

    Args:
        computed: for each name ("4 ranks, sequence cut") what `training_memory` says.
        counted: with the same names, what `measured_memory` found.
        title: said first; the finding (how far the two are apart) then stands under it.
    """
    if not computed or list(computed) != list(counted):
        raise CourseError("memory: one entry at least, and the same names in what was computed and what was counted.")
    bars = {name: (memory, counted[name]) for name, memory in computed.items()}
    found = memory_finding(bars)
    parts = [part for part in PARTS if any(part in both[0].parts() for both in bars.values())]
    longest = max(memory.total for both in bars.values() for memory in both) or 1.0
    left = room_for_names(bars)
    right = room_for_ends([_end(*named) for both in bars.values() for named in _named(both)])
    heading = (title, found) if title else (found, "")
    marks = {part: Patch(facecolor=PARTS[part]) for part in parts}
    above = style.legend_height(list(marks), left, 0.0)
    picture, (ax,) = style.new_picture(*heading, heights=[0.62 * len(bars)], left=left, right=right, above=above)
    ax.set_xlim(0, longest)
    for row, both in enumerate(bars.values()):
        for (name, memory), y in zip(_named(both), (row - 0.2, row + 0.2), strict=True):
            hatch = {"hatch": "////"} if name == COMPUTED else {}
            looks = {part: {"facecolor": PARTS[part], **hatch} for part in memory.parts()}
            end = draw_parts(ax, y, memory.parts(), looks, height=0.36)
            write_end(ax, y, end, _end(name, memory), bold=name == COUNTED)
    name_rows(ax, bars)
    amounts_in_words(ax, bytes_text)
    ax.set_xlabel("bytes on the rank", fontsize=style.TEXT, color="#555555")
    style.draw_legend(ax, marks)
    texts = [f"{name}: {join([_memory_text(*named) for named in _named(both)])}." for name, both in bars.items()]
    picture.alt_text = " ".join([f"Bars of memory. {found}.", *texts])
    return picture


def _named(both: tuple[Memory, Memory]) -> list[tuple[str, Memory]]:
    return list(zip((COMPUTED, COUNTED), both, strict=True))


def _end(name: str, memory: Memory) -> str:
    return f"{bytes_text(memory.total)} {name}"


def _memory_text(name: str, memory: Memory) -> str:
    inside = ", ".join(f"{part} {bytes_text(amount)}" for part, amount in memory.parts().items())
    return f"{name} {inside}, together {bytes_text(memory.total)}"


def differences(computed: Memory, counted: Memory) -> dict[str, float]:
    """How much more than counted was computed, as a share, for each part that there is."""
    pairs = zip(counted.parts().items(), computed.parts().values(), strict=True)
    return {part: predicted / amount - 1 for (part, amount), predicted in pairs if amount}


def memory_finding(bars: Mapping[str, tuple[Memory, Memory]]) -> str:
    """How far the formula is from what was counted, at most, and where."""
    each = [(abs(gap), gap, part, name) for name, both in bars.items() for part, gap in differences(*both).items()]
    if not each:
        return "Nothing was counted"
    most, gap, part, name = max(each)
    if most < 0.0005:
        return "Computed and counted bytes agree in every part"
    where = f"{part} of {name}" if len(bars) > 1 else part
    if most <= _NEAR:
        return f"The computed bytes are within {percent(most)} of what was counted, in every part"
    more = "more" if gap > 0 else "less"
    return f"{where[:1].upper()}{where[1:]}: {percent(most)} {more} was computed than counted"


_SIDE, _PITCH = 0.44, 0.53  # inches: a matrix, and from one rank to the next
_LEFT, _RIGHT, _HEAD, _BETWEEN = 0.75, 0.15, 0.6, 0.1
_MOST = 1.35  # inches from one matrix to the next
_EVERYWHERE = "#BDBDBD"
_PAPER = "#F6F6F6"


def what_is_where(panels: Mapping[str, Sequence[HeldMatrix]], title: str) -> Figure:
    """Draw what each rank holds, a panel for each name.

    Args:
        panels: for each name what the ranks hold, from left to right.
    """
    if not panels or not all(panels.values()):
        raise CourseError("what_is_where: one panel at least, and something that the ranks hold in each.")
    size = max(len(matrix.parts) for matrices in panels.values() for matrix in matrices)
    wide = style.WIDTH - _LEFT - _RIGHT
    high = _HEAD + size * _PITCH
    labels = {f"rank {rank}": Patch(color=colour_of(rank)) for rank in range(size)}
    if any(matrix.is_everywhere for matrices in panels.values() for matrix in matrices):
        labels["the same on every rank"] = Patch(color=_EVERYWHERE)
    above = style.legend_height(list(labels), _LEFT, _RIGHT)
    picture, (ax,) = style.new_picture(
        title,
        _caption(panels),
        heights=[len(panels) * high + (len(panels) - 1) * _BETWEEN],
        **{"left": _LEFT, "right": _RIGHT, "below": 0.08, "above": above},
    )
    ax.set(xlim=(0, wide), ylim=(len(panels) * high + (len(panels) - 1) * _BETWEEN, 0))
    ax.axis("off")
    for index, (name, matrices) in enumerate(panels.items()):
        _draw_panel(ax, name if len(panels) > 1 else "", matrices, index * (high + _BETWEEN), wide)
    style.draw_legend(ax, labels)
    texts = [f"{name}: {'; '.join(_matrix_text(matrix) for matrix in matrices)}." for name, matrices in panels.items()]
    picture.alt_text = " ".join([f"{title}.", *texts])
    return picture


def _draw_panel(ax: Axes, name: str, matrices: Sequence[HeldMatrix], top: float, wide: float) -> None:
    step = min(_MOST, wide / len(matrices))
    if name:
        ax.text(-_LEFT + 0.15, top + 0.1, name, fontsize=style.TEXT, fontweight="bold", va="center")
    for column, matrix in enumerate(matrices):
        left = column * step + 0.1
        middle = left + _SIDE / 2
        words = {"fontsize": style.SMALL, "ha": "center", "va": "center"}
        ax.text(middle, top + 0.33, matrix.name, color=style.INK, **words)
        shapes = {part.shape for part in matrix.parts}
        if len(shapes) == 1:
            ax.text(middle, top + 0.5, "{} × {}".format(*next(iter(shapes))), color="#555555", **words)
        for rank, part in enumerate(matrix.parts):
            down = top + _HEAD + rank * _PITCH
            if column == 0:
                ax.text(-0.1, down + _SIDE / 2, f"rank {rank}", fontsize=style.SMALL, ha="right", va="center")
            _draw_part(ax, matrix, part, rank, (left, down))


def _draw_part(ax: Axes, matrix: HeldMatrix, part: HeldPart, rank: int, corner: tuple[float, float]) -> None:
    """Draw a matrix: empty where the rank holds nothing, hatched where it holds a term of a sum."""
    x, y = corner
    ranks = len(matrix.parts)
    left, up = x + part.columns[0] * _SIDE, y + part.rows[0] * _SIDE
    wide, high = ((end - start) * _SIDE for start, end in (part.columns, part.rows))
    ax.add_patch(Rectangle((x, y), _SIDE, _SIDE, facecolor=_PAPER, edgecolor="none"))
    if part.is_term:
        pale = style.paler(colour_of(rank), 0.55)
        hatch = {"facecolor": pale, "edgecolor": colour_of(rank), "hatch": "/////", "linewidth": 0}
        ax.add_patch(Rectangle((left, up), wide, high, **hatch))
    else:
        colour = _EVERYWHERE if matrix.is_everywhere else colour_of(rank)
        ax.add_patch(Rectangle((left, up), wide, high, facecolor=colour, linewidth=0))
    cuts = {"color": "white", "linewidth": 0.8}
    for number in range(1, ranks):
        at = number * _SIDE / ranks
        ax.plot((x + at, x + at), (y, y + _SIDE), **cuts)
        ax.plot((x, x + _SIDE), (y + at, y + at), **cuts)
    ax.add_patch(Rectangle((x, y), _SIDE, _SIDE, facecolor="none", edgecolor="#9A9A9A", linewidth=0.8))


def _caption(panels: Mapping[str, Sequence[HeldMatrix]]) -> str:
    """How to read the squares."""
    text = "Each square is a whole matrix. It is filled where the rank holds its numbers"
    parts = [part for matrices in panels.values() for matrix in matrices for part in matrix.parts]
    return text + (", and hatched where it holds only its term of a sum." if any(p.is_term for p in parts) else ".")


def _matrix_text(matrix: HeldMatrix) -> str:
    if matrix.is_everywhere:
        return f"{matrix.name}, the same on every rank"
    return f"{matrix.name}, " + ", ".join(f"rank {rank} {_part_text(part)}" for rank, part in enumerate(matrix.parts))


def _part_text(part: HeldPart) -> str:
    if part.is_term:
        return "a term"
    places = [
        f"{name} from {start:.0%} to {end:.0%}"
        for name, (start, end) in (("rows", part.rows), ("columns", part.columns))
        if (start, end) != (0, 1)
    ]
    return " and ".join(places) or "all of it"
