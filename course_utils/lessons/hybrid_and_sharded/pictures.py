"""Drawings of lesson 11: a device mesh, and what fits on how many GPUs."""

from collections.abc import Mapping
from itertools import pairwise

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch

from course_utils.draw import style
from course_utils.errors import CourseError
from course_utils.lessons.hybrid_and_sharded.device_mesh import mesh_groups, place_of
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
