"""Drawings of lesson 11: a device mesh, and which part of what each of its ranks holds."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, Rectangle

from course_utils.draw import style
from course_utils.errors import CourseError
from course_utils.lessons.hybrid_and_sharded.device_mesh import mesh_groups, place_of
from course_utils.lessons.hybrid_and_sharded.mesh_parts import MeshPart
from course_utils.words import count, join

_BLOCK_GAP = 0.55  # ranks' distances between two blocks, along the first of three axes
_RADIUS = 0.29
_MOST = 32  # ranks that are told apart


def mesh(sizes: Mapping[str, int], title: str = "") -> Figure:
    """Draw a mesh of up to three axes, a panel for each of them; ranks of one colour, joined by lines, are a group.

    The last axis runs to the right, the one before it downwards, the one before that from block to block.

    Args:
        sizes: ranks along each axis, by name.
        title: said first; the finding (who is in how many groups) then stands under it.
    """
    groups = mesh_groups(sizes)
    ranks = sum(map(len, next(iter(groups.values()))))
    if len(sizes) > 3 or ranks > _MOST:
        raise CourseError(f"pictures.mesh: three axes and {_MOST} ranks at most can be drawn, not {dict(sizes)}.")
    places = [_at(rank, sizes) for rank in range(ranks)]
    across, down = (max(position[k] for position in places) + 1 for k in (0, 1))
    found = mesh_finding(groups)
    layout = {"left": 0.15, "right": 0.1, "above": 0.25, "below": 0.1, "side_by_side": True}
    share = style.WIDTH / len(groups) - 0.25
    height = min(down * min(0.75, share / across), 4.0)
    picture, axes = style.new_picture(title or found, found if title else "", heights=[height] * len(groups), **layout)
    for ax, (axis, own) in zip(axes, groups.items(), strict=True):
        _draw(ax, own, places, curved=_jumps(sizes, axis))
        ax.set_title(f"{axis}: {_grouped(own)}", fontsize=style.TEXT, fontweight="bold", loc="left", pad=6)
        _fit(ax, across, down, share / height)
    groups_text = "; ".join(f"{axis}: {', '.join(map(str, own))}" for axis, own in groups.items())
    picture.alt_text = (
        f"A mesh of {count(ranks, 'rank')}, and its groups along each axis. {title} {found}. {groups_text}."
    )
    return picture


def mesh_finding(groups: Mapping[str, list[list[int]]]) -> str:
    """How many ranks, and in how many groups each of them is."""
    ranks = sum(map(len, next(iter(groups.values()))))
    shape = " × ".join(str(len(own[0])) for own in groups.values())
    return f"{shape} = {count(ranks, 'rank')}, each in {count(len(groups), 'group')}: along {join(list(groups))}"


def _grouped(own: list[list[int]]) -> str:
    return f"{count(len(own), 'group')} of {len(own[0])}"


def _at(rank: int, sizes: Mapping[str, int]) -> tuple[float, float]:
    """Where a rank is drawn: to the right, and down."""
    places = list(place_of(rank, sizes).values())
    x, y, block = (*reversed(places), 0, 0)[:3]
    last = list(sizes.values())[-1]
    return x + block * (last + _BLOCK_GAP), y


def _jumps(sizes: Mapping[str, int], axis: str) -> bool:
    """Whether lines along this axis would cross other ranks: from block to block."""
    return len(sizes) == 3 and axis == next(iter(sizes))


def _draw(ax: Axes, groups: list[list[int]], places: list[tuple[float, float]], curved: bool) -> None:
    for index, group in enumerate(groups):
        colour = style.CURVES[index % len(style.CURVES)]
        for first, second in pairwise(group):
            bend = f"arc3,rad={-0.28 if curved else 0}"
            line = {"arrowstyle": "-", "connectionstyle": bend, "color": colour, "linewidth": 3, "zorder": 1}
            ax.add_patch(FancyArrowPatch(places[first], places[second], shrinkA=0, shrinkB=0, **line))
        for rank in group:
            ax.add_patch(Circle(places[rank], _RADIUS, facecolor=colour, edgecolor="white", linewidth=1.5, zorder=2))
            at = {"ha": "center", "va": "center_baseline", "fontsize": style.TEXT, "fontweight": "bold", "zorder": 3}
            ax.text(*places[rank], str(rank), color=style.ink_on(colour), **at)


def _fit(ax: Axes, across: float, down: float, shape: float) -> None:
    """Axes without lines, from the left, whose units are equally long both ways."""
    ax.axis("off")
    low, high = -0.5, down - 0.5
    wide = shape * (high - low)
    ax.set_xlim(-0.5, max(wide, across) - 0.5)
    if wide < across:
        high = low + across / shape
    ax.set_ylim(high, low)


_SIDE = 0.066  # inches: a side of n numbers is drawn √n times as long, so that short sides stay visible
_COLUMN_GAP, _ROW_GAP = 0.26, 0.16  # inches, between matrices and between ranks
_MISSING, _WHOLE = "#F2F2F2", "#BDBDBD"


def mesh_parts(parts: Sequence[Mapping[str, MeshPart]], sizes: Mapping[str, int], title: str) -> Figure:
    """Draw which part of each matrix a rank holds: a row for each rank, a column for each matrix.

    Parts of one colour are held by the same ranks; what a rank has whole is grey, and what it doesn't hold is pale.

    Args:
        parts: for each rank, its part of each matrix, by name.
        sizes: ranks along each axis of the mesh, by name.
    """
    if not parts or not parts[0]:
        raise CourseError("pictures.mesh_parts: one rank and one matrix at least.")
    shapes = {name: part.whole for name, part in parts[0].items()}
    heights, widths = ({name: _SIDE * shape[k] ** 0.5 for name, shape in shapes.items()} for k in (0, 1))
    row_height = max(heights.values()) + _ROW_GAP
    layout = {"left": 0.15, "right": 0.1, "below": 0.1, "above": 0.5}
    picture, (ax,) = style.new_picture(title, heights=[row_height * len(parts)], **layout)
    ax.axis("off")
    ax.set_xlim(0, style.WIDTH - 0.25)
    ax.set_ylim(row_height * len(parts), 0)
    names = [_rank_text(rank, sizes) for rank in range(len(parts))]
    starts, x = {}, max(style.text_width(name, style.TEXT, bold=True) for name in names) / style.DOTS + 0.3
    for name, (rows, columns) in shapes.items():
        words = (name, f"{rows} × {columns}" if columns > 1 else str(rows))
        wide = max(widths[name], *(style.text_width(word, style.SMALL, bold=True) / style.DOTS for word in words))
        starts[name] = x + (wide - widths[name]) / 2
        for line, (word, weight) in enumerate(zip(words, ("bold", "normal"), strict=True)):
            above = {"ha": "center", "va": "bottom", "fontsize": style.SMALL, "fontweight": weight}
            ax.text(x + wide / 2, -0.2 + 0.17 * line, word, **above)
        x += wide + _COLUMN_GAP
    colours = _colours_of_parts(parts)
    for rank, own in enumerate(parts):
        middle = row_height * (rank + 0.5)
        ax.text(0, middle, names[rank], va="center", fontsize=style.TEXT, fontweight="bold")
        for name, part in own.items():
            corner = (starts[name], middle - heights[name] / 2)
            _draw_part(ax, part, corner, (widths[name], heights[name]), colours[name, part])
    held = [f"{names[rank]} holds {_parts_text(own)}" for rank, own in enumerate(parts)]
    picture.alt_text = f"{title}. {'; '.join(held)}."
    return picture


def _rank_text(rank: int, sizes: Mapping[str, int]) -> str:
    return f"rank {rank} ({', '.join(map(str, place_of(rank, sizes).values()))})"


def _colours_of_parts(parts: Sequence[Mapping[str, MeshPart]]) -> dict[tuple[str, MeshPart], str]:
    """Return a colour for each part of each matrix: grey for the whole, else one for each set of ranks that hold it."""
    holders: dict[tuple[str, MeshPart], list[int]] = {}
    for rank, own in enumerate(parts):
        for name, part in own.items():
            holders.setdefault((name, part), []).append(rank)
    sets = list(dict.fromkeys(tuple(ranks) for (_, part), ranks in holders.items() if not part.is_whole))
    return {
        (name, part): _WHOLE if part.is_whole else style.CURVES[sets.index(tuple(ranks)) % len(style.CURVES)]
        for (name, part), ranks in holders.items()
    }


def _draw_part(ax: Axes, part: MeshPart, corner: tuple[float, float], size: tuple[float, float], colour: str) -> None:
    """One matrix, with the part that is held in colour."""
    (x, y), (wide, high), (rows, columns) = corner, size, part.whole
    ax.add_patch(Rectangle((x, y), wide, high, facecolor=_MISSING, edgecolor=style.FAINT, linewidth=0.8))
    left, top = x + wide * part.columns.start / columns, y + high * part.rows.start / rows
    held = (wide * len(part.columns) / columns, high * len(part.rows) / rows)
    ax.add_patch(Rectangle((left, top), *held, facecolor=colour, edgecolor="white", linewidth=0.8))


def _parts_text(own: Mapping[str, MeshPart]) -> str:
    """What a rank holds, in words."""
    return join([f"{name} {'whole' if part.is_whole else _range_text(part)}" for name, part in own.items()])


def _range_text(part: MeshPart) -> str:
    """The rows or the columns that are held, counted from 0."""
    named = (("rows", part.rows, part.whole[0]), ("columns", part.columns, part.whole[1]))
    return " and ".join(f"{word} {held.start} to {held.stop - 1}" for word, held, whole in named if len(held) < whole)
