"""What is where: ranks are rows, and each square is a matrix, filled where the rank holds it."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from course_utils.draw import style
from course_utils.draw.block_panels import colour_of
from course_utils.errors import CourseError
from course_utils.lessons.model_parallel.held_parts import HeldMatrix, HeldPart

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
