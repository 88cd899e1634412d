"""Who waits for whom: ranks on a circle, and an arrow from each that waits to those without which it cannot go on."""

import math
from collections.abc import Collection, Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch

from course_utils.draw import style
from course_utils.words import capital, join, ranks_in_words

_RADIUS, _NODE = 0.95, 0.27  # inches: of the circle on which the ranks stand, and of a rank
_DONE, _WORKS = "#EFEFEF", "#BFD9EA"
_ROOM = 2.0  # inches for the words beside a rank


def waits(
    doing: Mapping[int, str],
    waits_for: Mapping[int, Sequence[int]],
    circle: Sequence[int] = (),
    title: str | None = None,
    returned: Collection[int] = (),
) -> Figure:
    """Draw an arrow from each rank that waits to the ranks that it waits for.

    Args:
        doing: for each rank what it does, "recv(source=1), line 3 of your cell", "has returned".
        waits_for: for each rank that is stuck, those without which it cannot go on.
        circle: ranks of which each waits for the next, and the last for the first; their arrows stand out.
        title: said first; the finding then stands under it.
        returned: ranks that are done.
    """
    found = waits_finding(waits_for, circle, returned)
    places = positions(sorted(doing))
    top = max(abs(y) for _, y in places.values()) + _NODE + 0.1
    picture, (ax,) = style.new_picture(title, found, heights=[2 * top], left=0.1, right=0.1, below=0.1)
    ax.axis("off")
    ax.set_xlim(0.1 - style.WIDTH / 2, style.WIDTH / 2 - 0.1)
    ax.set_ylim(-top, top)
    pairs = set(zip(circle, [*circle[1:], *circle[:1]], strict=True))
    for rank, others in waits_for.items():
        for other in others:
            draw_arrow(ax, places[rank], places[other], (rank, other) in pairs or not circle)
    for rank, (x, y) in places.items():
        colour = style.STUCK if rank in waits_for else _DONE if rank in returned else _WORKS
        ax.add_patch(Circle((x, y), _NODE, facecolor=colour, edgecolor="white", linewidth=1.5, zorder=3))
        ink = style.ink_on(colour) if rank in waits_for else style.INK
        ax.text(x, y, str(rank), ha="center", va="center", fontsize=style.TITLE, weight="bold", color=ink, zorder=4)
        write_beside(ax, x, y, doing[rank])
    activities = "; ".join(f"rank {rank}: {text}" for rank, text in sorted(doing.items()))
    picture.alt_text = f"Which rank is waiting for which: {found}. {activities}."
    return picture


def waits_finding(waits_for: Mapping[int, Sequence[int]], circle: Sequence[int], returned: Collection[int]) -> str:
    """The circle, or whom the stuck ranks wait for."""
    if not waits_for:
        return "No rank is waiting for something that can never arrive"
    if circle:
        following = [*circle[1:], circle[0]]
        pairs = [f"{waiting} for {other}" for waiting, other in zip(circle, following, strict=True)]
        return f"The ranks are waiting in a circle: {join(pairs)}"
    others = sorted({other for mine in waits_for.values() for other in mine} - set(waits_for))
    stuck = sorted(waits_for)
    verb = "is" if len(stuck) == 1 else "are"
    text = f"{ranks_in_words(stuck)} {verb} waiting for {ranks_in_words(others) if others else 'each other'}"
    gone = others and set(others) <= set(returned)
    text += f", which {'has' if len(others) == 1 else 'have'} returned" if gone else ""
    return capital(text)


def positions(ranks: Sequence[int]) -> dict[int, tuple[float, float]]:
    """A place on the circle for each, clockwise, the first on the left above."""
    step = 2 * math.pi / max(len(ranks), 1)
    angles = [math.pi / 2 + step / 2 - index * step for index in range(len(ranks))]
    return {
        rank: (_RADIUS * math.cos(angle), _RADIUS * math.sin(angle)) for rank, angle in zip(ranks, angles, strict=True)
    }


def draw_arrow(ax: Axes, start: tuple[float, float], end: tuple[float, float], strong: bool) -> None:
    """From rank to rank, slightly bent, so that two ranks that wait for each other have an arrow each."""
    reach = style.DOTS * _NODE * 72 / style.DOTS + 3
    arrow = FancyArrowPatch(
        start,
        end,
        arrowstyle="-|>",
        mutation_scale=16,
        connectionstyle="arc3,rad=0.18",
        color=style.STUCK if strong else style.FAINT,
        linewidth=2.2 if strong else 1.0,
        shrinkA=reach,
        shrinkB=reach,
        zorder=2,
    )
    ax.add_patch(arrow)


def write_beside(ax: Axes, x: float, y: float, text: str) -> None:
    """What a rank does, on the side of it that looks outwards: the call, and the line on a line of its own."""
    side = -1 if x < -0.01 else 1
    parts = text.replace(", line ", "\nline ").split("\n")
    lines = [line for part in parts for line in style.wrap(part, style.TEXT, width=_ROOM * style.DOTS)]
    align = "right" if side < 0 else "left"
    at = {"ha": align, "va": "center", "fontsize": style.TEXT, "color": style.INK, "parse_math": False}
    ax.text(x + side * (_NODE + 0.12), y, "\n".join(lines), **at)
