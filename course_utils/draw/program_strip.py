"""What a move of the search changes in a training step, and what the simulator keeps: a strip of the program."""

from itertools import groupby

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from course_utils.draw import style
from course_utils.draw.rows import paler
from course_utils.lessons.strategy_search.graph.operator_graph import OperatorGraph

CHANGED = "must be computed again"
_KEPT = ("clocks kept", "one matrix kept", "time left kept")
_HEIGHT = 0.52  # inches of a box


def changed_steps(graph: OperatorGraph, number: int, title: str = "") -> Figure:
    """Draw the operators of one training step in the order of the program, forward and back, and mark what changes.

    Args:
        graph: its input takes no time and is left out.
        number: of the operator that gets another configuration; those that read from it exchange other pieces.
    """
    changed = changed_by(graph, number)
    order = [*range(1, len(graph)), *reversed(range(1, len(graph)))]
    steps, half = len(order), len(order) // 2
    name = graph.operators[number].name
    title = title or f"Another configuration for {name}: {2 * len(changed)} of {steps} steps change"
    marks = {direction: Patch(facecolor=style.COLOURS[direction]) for direction in ("forward", "backward")}
    marks |= {CHANGED: Patch(facecolor=style.STUCK)}
    above = style.legend_height(list(marks), 0.15)
    picture, (ax,) = style.new_picture(title, heights=[_HEIGHT], left=0.15, right=0.15, above=above, below=0.55)
    for place, one in enumerate(order):
        colour = style.COLOURS["forward" if place < half else "backward"]
        face = style.STUCK if one in changed else paler(colour, 0.35)
        ax.add_patch(Rectangle((place, 0), 1, 1, facecolor=face, edgecolor="white", linewidth=1))
        at = {"ha": "center", "va": "center", "fontsize": style.SMALL, "rotation": 90 if steps > 10 else 0}
        ax.text(place + 0.5, 0.5, graph.operators[one].name, color="white" if one in changed else style.INK, **at)
    _say_what_is_kept(ax, [one in changed for one in order])
    ax.set_xlim(0, steps)
    ax.set_ylim(0, 1)
    ax.axis("off")
    style.draw_legend(ax, marks)
    told = ", ".join(graph.operators[one].name for one in order)
    again = ", ".join(graph.operators[one].name for one in sorted(changed))
    picture.alt_text = f"The steps of the program. {title}. In order: {told}. {CHANGED}: {again}, both ways."
    return picture


def changed_by(graph: OperatorGraph, number: int) -> set[int]:
    """Operators whose steps change with the configuration of this one: itself, and those that read from it."""
    return {number, *graph.readers(number)}


def _say_what_is_kept(ax: Axes, changed: list[bool]) -> None:
    """A line and words below the first, the longest inner and the last stretch that does not change."""
    stretches, place = [], 0
    for again, boxes in groupby(changed):
        length = len(list(boxes))
        if not again:
            stretches.append((place, place + length))
        place += length
    inner = [one for one in stretches if one[0] > 0 and one[1] < len(changed)]
    kept = {
        _KEPT[0]: [one for one in stretches if one[0] == 0],
        _KEPT[2]: [s for s in stretches if s[1] == len(changed)],
    }
    kept[_KEPT[1]] = [max(inner, key=lambda one: one[1] - one[0])] if inner else []
    for words, found in kept.items():
        for begin, end in found:
            look = {"color": style.FAINT, "linewidth": 2, "clip_on": False, "solid_capstyle": "butt"}
            ax.plot([begin + 0.08, end - 0.08], [-0.14] * 2, **look)
            side = "left" if begin == 0 else "right" if end == len(changed) else "center"
            x = {"left": begin + 0.08, "right": end - 0.08, "center": (begin + end) / 2}[side]
            ax.text(x, -0.26, words, ha=side, va="top", fontsize=style.SMALL, color=style.INK)
