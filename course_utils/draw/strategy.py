"""Strategies as pictures: which device has which part of each operator, and what the search came to on its way."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator

from course_utils.draw import style
from course_utils.draw.rows import boxes, paler
from course_utils.errors import CourseError
from course_utils.lessons.strategy_search.graph.configurations import CUTS, Config, Strategy
from course_utils.lessons.strategy_search.graph.operator_graph import OperatorGraph
from course_utils.words import seconds_text

WHOLE, SEVERAL = "whole", "cut in two ways"
_COLOURS = {**dict(zip(CUTS, ("#56B4E9", "#E69F00", "#009E73"), strict=True)), WHOLE: "#666666", SEVERAL: "#A6A1D6"}
_ROW, _GAP = 0.2, 0.1  # inches; the gap is a share of a cell
_BEST, _KNOWN = "shortest of all so far", "the optimum"


def strategies(
    graph: OperatorGraph, chosen: Mapping[str, Strategy], title: str, subtitle: str = "", devices: Sequence[str] = ()
) -> Figure:
    """Draw strategies side by side: a row for each operator, a column for each device, a cell for each part.

    Args:
        chosen: by name, a configuration for each operator; the input's is not shown.
        devices: their names; without them, their numbers.
    """
    if not chosen or any(len(strategy) != len(graph) for strategy in chosen.values()):
        raise CourseError("strategies: one strategy at least, each with a configuration for every operator.")
    number = 1 + max(device for strategy in chosen.values() for config in strategy for device in config.devices)
    columns = list(devices) or [f"device {device}" if number < 3 else str(device) for device in range(number)]
    names = [operator.name for operator in graph.operators[1:]]
    used = {meaning(config) for strategy in chosen.values() for config in strategy[1:]}
    legend = {word: Patch(facecolor=colour) for word, colour in _COLOURS.items() if word in used}
    left = 0.25 + max(style.text_width(name) for name in names) / style.DOTS
    look = {"left": left, "right": 0.1, "below": 0.1, "side_by_side": True}
    above = style.legend_height(list(legend)) + 0.5
    heights = [_ROW * len(names)] * len(chosen)
    picture, axes = style.new_picture(title, subtitle, heights=heights, above=above, **look)
    for ax, (name, strategy) in zip(axes, chosen.items(), strict=True):
        _cells(ax, strategy[1:], columns)
        ax.set_yticks(range(len(names)), names, fontsize=style.SMALL)
        room = (style.WIDTH / len(chosen) - look["right"]) * style.DOTS
        ax.text(
            0,
            1 + 0.27 / heights[0],
            style.shorten(name, room, style.TEXT),
            transform=ax.transAxes,
            va="bottom",
            fontsize=style.TEXT,
            fontweight="bold",
            parse_math=False,
        )
    style.draw_legend(axes[0], legend, offset=0.5)
    told = "; ".join(f"{name}: {_told(graph, strategy)}" for name, strategy in chosen.items())
    picture.alt_text = f"Operators in rows, devices in columns. {title}. {subtitle} {told}."
    return picture


def meaning(config: Config) -> str:
    """How an operator is cut, in one word: "sample", "attribute", "parameter", in several ways, or not."""
    cuts = [cut for cut, parts in zip(CUTS, config.parts, strict=True) if parts > 1]
    return SEVERAL if len(cuts) > 1 else cuts[0] if cuts else WHOLE


def _cells(ax: Axes, strategy: Strategy, columns: Sequence[str]) -> None:
    """One strategy on its axes; a part's share stands in its cell where there is room."""
    boxes(
        ax,
        [(0, len(columns), row - 0.5 + _GAP, row + 0.5 - _GAP) for row in range(len(strategy))],
        facecolor="#F2F2F2",
        edgecolor="none",
    )
    for row, config in enumerate(strategy):
        corners = [(device + 0.02, device + 0.98, row - 0.5 + _GAP, row + 0.5 - _GAP) for device in config.devices]
        boxes(ax, corners, facecolor=paler(_COLOURS[meaning(config)], 0.15), edgecolor="none", zorder=2)
    ax.set_xlim(0, len(columns))
    ax.set_ylim(len(strategy) - 0.5, -0.5)
    ax.set_xticks(np.arange(len(columns)) + 0.5, columns, fontsize=style.SMALL)
    ax.xaxis.tick_top()
    ax.tick_params(length=0, pad=2)
    ax.spines[["left", "bottom"]].set_visible(False)


def _told(graph: OperatorGraph, strategy: Strategy) -> str:
    rows = zip(graph.operators[1:], strategy[1:], strict=True)
    return ", ".join(f"{one.name} {meaning(config)} on {', '.join(map(str, config.devices))}" for one, config in rows)


def cost_over_iterations(
    walks: Mapping[str, Sequence[Sequence[float]]],
    title: str,
    optimum: float | None = None,
    subtitle: str = "",
    iterations: Sequence[int] | None = None,
) -> Figure:
    """Draw what each walk's strategy takes at each moment of a search, a colour for each kind of walk.

    Args:
        walks: for each kind, its walks; of each the makespans in nanoseconds, as many for all.
        optimum: nanoseconds of the best strategy there is, where that is known; a broken line.
        iterations: proposals made until each makespan; without them, they are counted from 0.
    """
    every = [np.asarray(walk, float) for own in walks.values() for walk in own]
    if not every or len({len(walk) for walk in every}) != 1 or not len(every[0]):
        raise CourseError("cost_over_iterations: one walk at least, and makespans of the same moments for all.")
    place = np.arange(len(every[0])) if iterations is None else np.asarray(iterations)
    colours = {name: style.CURVES[index % len(style.CURVES)] for index, name in enumerate(walks)}
    legend = {name: Line2D([], [], color=colour, linewidth=1.6) for name, colour in colours.items()}
    best = np.minimum.accumulate(np.min(every, axis=0))
    legend[_BEST] = Line2D([], [], color=style.INK, linewidth=1.8)
    if optimum is not None:
        legend[_KNOWN] = Line2D([], [], color=style.STUCK, linewidth=1.4, linestyle=(0, (4, 3)))
    above = style.legend_height(list(legend), 0.75) + 0.24
    picture, (ax,) = style.new_picture(title, subtitle, heights=[2.7], left=0.75, right=0.3, above=above)
    for name, own in walks.items():
        for walk in own:
            ax.plot(place, np.asarray(walk, float), color=colours[name], linewidth=0.9, alpha=0.55, zorder=2)
    ax.plot(place, best, color=style.INK, linewidth=1.8, zorder=4)
    lowest = best[-1] if optimum is None else min(best[-1], optimum)
    if optimum is not None:
        ax.axhline(optimum, color=style.STUCK, linewidth=1.4, linestyle=(0, (4, 3)), zorder=5)
    if max(walk.max() for walk in every) > 8 * lowest:
        ax.set_yscale("log")
    else:
        ax.set_ylim(bottom=0)
    style_times(ax)
    ax.set_xlim(place[0], max(place[-1], place[0] + 1))
    ax.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    ax.set_xlabel("proposals", fontsize=style.TEXT)
    ax.set_title("a step takes, simulated", fontsize=style.TEXT, loc="left", color="#555555", pad=4)
    style.draw_legend(ax, legend, offset=0.26)
    ends = "; ".join(f"{name} from {_range(own, 0)} to {_range(own, -1)}" for name, own in walks.items())
    known = "" if optimum is None else f" The optimum takes {seconds_text(optimum / 1e9)}."
    picture.alt_text = (
        f"Time of a step over the proposals of a search, a line for each walk. {title}. {subtitle} {ends}; shortest of "
        f"all {seconds_text(best[-1] / 1e9)}.{known}"
    )
    return picture


def _range(walks: Sequence[Sequence[float]], moment: int) -> str:
    """The least and the most of some walks' times at a moment, in words."""
    times = sorted({seconds_text(walk[moment] / 1e9): walk[moment] for walk in walks}.items(), key=lambda t: t[1])
    return times[0][0] if len(times) == 1 else f"{times[0][0]}–{times[-1][0]}"


def style_times(ax: Axes) -> None:
    """Words for nanoseconds on the upright axis: 20 ms, 1.5 s; on a logarithmic one at 1, 2 and 5 of each decade."""
    from matplotlib.ticker import LogLocator, NullLocator

    if ax.get_yscale() == "log":
        low, high = ax.get_ylim()
        ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high / low < 200 else (1,)))
        ax.yaxis.set_minor_locator(NullLocator())
    else:
        ax.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: seconds_text(value / 1e9) if value else "0"))
    ax.grid(axis="y", color=style.GRID, linewidth=0.7)
