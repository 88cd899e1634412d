"""Drawings of lesson 12: operators cut into parts, strategies, simulated steps, and what a search came to."""

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby, pairwise, product

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Polygon, Rectangle
from matplotlib.ticker import FuncFormatter, MaxNLocator

from course_utils.draw import style
from course_utils.draw.lines import BROKEN, in_words, label, measured_points, round_numbers
from course_utils.draw.style import boxes, paler
from course_utils.errors import CourseError
from course_utils.lessons.strategy_search.graph.configurations import (
    CUTS,
    ROW,
    Box,
    Config,
    Strategy,
    common,
    input_box,
    output_box,
    replicas,
    volume,
)
from course_utils.lessons.strategy_search.graph.operator_graph import Operator, OperatorGraph
from course_utils.lessons.strategy_search.simulator.simulate import simulate
from course_utils.lessons.strategy_search.simulator.task_graph import Task
from course_utils.words import join, seconds_text, time_unit

OWN, FETCHED, ELSEWHERE = "on this device", "fetched from another", "on others"
_BOX_COLOURS = {OWN: style.COLOURS["forward"], FETCHED: style.COLOURS["communication"], ELSEWHERE: "#DDDDDD"}
_SIZES = (0.62, 1.0, 1.0)  # inches along samples (into the depth), channels (to the right) and height (upwards)
_DEPTH = (0.62, 0.40)  # where an inch into the depth goes: to the right, upwards
_BOX_GAP = 0.55
_TINTS = {"front": 0.0, "side": 0.28, "top": 0.5}  # share of white


def operator_cuts(
    before: Operator, operator: Operator, configs: Mapping[str, Config], part: int = 0, title: str = ""
) -> Figure:
    """Draw, for each configuration, the input and the output of an operator as boxes, as one device sees them.

    The operator before is cut in the same way. Boxes reach from sample to sample into the depth, from channel to
    channel to the right, from row to row downwards.

    Args:
        before: makes the input; both have outputs of (samples, channels, height, width).
        part: which of a configuration's parts is looked at.
    """
    if not configs or len(before.shape) != 4 or len(operator.shape) != 4:
        raise CourseError("operator_cuts: one configuration at least, and operators that make images.")
    found = [cut_text(before, operator, config, part) for config in configs.values()]
    title = title or cuts_title(before, operator, configs, part)
    margins = {"left": 0.12, "right": 0.08, "above": 0.52, "below": 0.46, "side_by_side": True}
    high = _SIZES[2] + _SIZES[0] * _DEPTH[1] + 0.1
    picture, axes = style.new_picture(title, heights=[high] * len(configs), **margins)
    for ax, (name, config), (fetches, sums) in zip(axes, configs.items(), found, strict=True):
        width = _panel(ax, before, operator, config, part)
        inches = style.WIDTH / len(configs) - margins["left"] - margins["right"]
        ax.set_xlim(0, max(inches, width))
        ax.set_ylim(-0.05, high)
        ax.axis("off")
        ax.set_title(name, fontsize=style.TEXT, fontweight="bold", loc="left", pad=4)
        for row, text in enumerate((fetches, sums)):
            at = {"transform": ax.transAxes, "va": "top", "fontsize": style.SMALL, "color": style.INK}
            ax.text(0, -0.04 - row * 0.15 / high, text, **at)
    style.draw_legend(axes[0], {word: Patch(facecolor=colour) for word, colour in _BOX_COLOURS.items()}, offset=0.28)
    cuts_text = " ".join(f"{name}: {fetches}; {sums}." for name, (fetches, sums) in zip(configs, found, strict=True))
    picture.alt_text = f"An operator's input and output as boxes. {title}. {cuts_text}"
    return picture


def cuts_title(before: Operator, operator: Operator, configs: Mapping[str, Config], part: int) -> str:
    """Which cuts fetch the least in the forward pass, and which add up no weight gradients in the backward pass."""
    fetched = {name: fetched_numbers(before, operator, config, part) for name, config in configs.items()}
    least = [name for name, numbers in fetched.items() if numbers == min(fetched.values())]
    unsummed = [name for name, config in configs.items() if len(replicas(config)[0]) == 1]
    text = f"A cut {join(least)} fetches {'the least' if min(fetched.values()) else 'nothing'}"
    return text + (f"; a cut {join(unsummed)} adds up no weight gradients" if unsummed else "")


def fetched_numbers(before: Operator, operator: Operator, config: Config, part: int) -> int:
    """How many numbers of its input the part with the number `part` needs from other devices."""
    own, read = _boxes(before, operator, config, part)
    return volume(read) - volume(common(own, read))


def cut_text(before: Operator, operator: Operator, config: Config, part: int) -> tuple[str, str]:
    """What the part fetches in the forward pass, and which weight gradients are added up in the backward pass."""
    numbers = fetched_numbers(before, operator, config, part)
    fetches = f"fetches {numbers:,} numbers" if numbers else "fetches nothing"
    shared = len(replicas(config)[0]) > 1
    weights = operator.parameters // config.parameter
    return fetches, f"adds up {weights:,} weight gradients" if shared else "adds up no weight gradients"


def _boxes(before: Operator, operator: Operator, config: Config, part: int) -> tuple[Box, Box]:
    """What the device has of the input, and what it reads."""
    return output_box(before, config, part), input_box(operator, config, part, before.shape)


def _panel(ax: Axes, before: Operator, operator: Operator, config: Config, part: int) -> float:
    """Input and output side by side; returns how far to the right they reach, in inches."""
    own, read = _boxes(before, operator, config, part)
    made = output_box(operator, config, part)
    _block(ax, 0.0, before.shape, {FETCHED: read, OWN: own})
    wide = _SIZES[1] + _SIZES[0] * _DEPTH[0]
    _block(ax, wide + _BOX_GAP, operator.shape, {OWN: made})
    arrow = {"arrowstyle": "-|>", "color": style.FAINT, "linewidth": 1.2}
    middle = _SIZES[2] / 2 + 0.1
    ax.annotate("", (wide + _BOX_GAP - 0.08, middle), (wide + 0.05, middle), arrowprops=arrow)
    for x, name in ((0.0, before.name), (wide + _BOX_GAP, operator.name)):
        at = {"ha": "center", "va": "center", "fontsize": style.SMALL, "color": style.INK, "zorder": 9}
        at |= {"bbox": {"facecolor": "white", "alpha": 0.8, "linewidth": 0, "pad": 1.5}}
        ax.text(x + _SIZES[1] / 2, 0.82 * _SIZES[2], name, **at)
    return 2 * wide + _BOX_GAP


def _block(ax: Axes, x: float, shape: Sequence[int], marked: Mapping[str, Box]) -> None:
    """A tensor as a box, cut into cells where a marked box begins or ends; a later mark lies over an earlier one."""
    bounds = [sorted({0, shape[d], *(end for box in marked.values() for end in box[d])}) for d in range(3)]
    cells = list(product(*(list(pairwise(edges)) for edges in bounds)))
    for samples, channels, rows in sorted(cells, key=lambda cell: (-cell[0][0], -cell[2][0], cell[1][0])):
        meaning = ELSEWHERE
        for name, box in marked.items():
            if all(b <= low and high <= e for (low, high), (b, e) in zip((samples, channels, rows), box, strict=False)):
                meaning = name
        z, c, r = (
            tuple(size * edge / length for edge in edges)
            for size, edges, length in zip(_SIZES, (samples, channels, rows), shape, strict=False)
        )
        _cuboid(ax, x, c, (_SIZES[2] - r[1], _SIZES[2] - r[0]), z, _BOX_COLOURS[meaning])


def _cuboid(ax: Axes, x: float, across: tuple, up: tuple, deep: tuple, colour: str) -> None:
    """The three faces that one sees of a box."""

    def at(a: float, u: float, d: float) -> tuple[float, float]:
        return x + a + d * _DEPTH[0], u + d * _DEPTH[1]

    (left, right), (low, high), (near, far) = across, up, deep
    faces = {
        "front": [(left, low, near), (right, low, near), (right, high, near), (left, high, near)],
        "side": [(right, low, near), (right, low, far), (right, high, far), (right, high, near)],
        "top": [(left, high, near), (right, high, near), (right, high, far), (left, high, far)],
    }
    for name, corners in faces.items():
        face = paler(colour, _TINTS[name])
        ax.add_patch(Polygon([at(*corner) for corner in corners], facecolor=face, edgecolor="white", linewidth=0.7))


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
    for position, operator in enumerate(order):
        colour = style.COLOURS["forward" if position < half else "backward"]
        face = style.STUCK if operator in changed else paler(colour, 0.35)
        ax.add_patch(Rectangle((position, 0), 1, 1, facecolor=face, edgecolor="white", linewidth=1))
        at = {"ha": "center", "va": "center", "fontsize": style.SMALL, "rotation": 90 if steps > 10 else 0}
        ax.text(
            position + 0.5,
            0.5,
            graph.operators[operator].name,
            color="white" if operator in changed else style.INK,
            **at,
        )
    _say_what_is_kept(ax, [operator in changed for operator in order])
    ax.set_xlim(0, steps)
    ax.set_ylim(0, 1)
    ax.axis("off")
    style.draw_legend(ax, marks)
    names = ", ".join(graph.operators[operator].name for operator in order)
    again = ", ".join(graph.operators[operator].name for operator in sorted(changed))
    picture.alt_text = (
        f"The steps of the program. {title}. In order: {names}. {CHANGED}: {again}, both ways; the rest is kept."
    )
    return picture


def changed_by(graph: OperatorGraph, number: int) -> set[int]:
    """Operators whose steps change with the configuration of this one: itself, and those that read from it."""
    return {number, *graph.readers(number)}


def _say_what_is_kept(ax: Axes, changed: list[bool]) -> None:
    """A line and words below the first, the longest inner and the last stretch that does not change."""
    stretches, position = [], 0
    for again, stretch in groupby(changed):
        length = len(list(stretch))
        if not again:
            stretches.append((position, position + length))
        position += length
    inner = [span for span in stretches if span[0] > 0 and span[1] < len(changed)]
    kept = {
        _KEPT[0]: [span for span in stretches if span[0] == 0],
        _KEPT[2]: [s for s in stretches if s[1] == len(changed)],
    }
    kept[_KEPT[1]] = [max(inner, key=lambda span: span[1] - span[0])] if inner else []
    for words, found in kept.items():
        for begin, end in found:
            line_style = {"color": style.FAINT, "linewidth": 2, "clip_on": False, "solid_capstyle": "butt"}
            ax.plot([begin + 0.08, end - 0.08], [-0.14] * 2, **line_style)
            side = "left" if begin == 0 else "right" if end == len(changed) else "center"
            x = {"left": begin + 0.08, "right": end - 0.08, "center": (begin + end) / 2}[side]
            ax.text(x, -0.26, words, ha=side, va="top", fontsize=style.SMALL, color=style.INK)


WHOLE, SEVERAL = "whole", "cut in two ways"
_COLOURS = dict(zip((*CUTS, ROW), ("#56B4E9", "#E69F00", "#009E73", "#CC79A7"), strict=True))
_COLOURS |= {WHOLE: "#666666", SEVERAL: "#A6A1D6"}
_ROW, _GAP = 0.2, 0.1  # inches; the gap is a share of a cell
_BEST, _KNOWN = "best so far, of all walks", "best of all strategies"


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
    margins = {"left": left, "right": 0.1, "below": 0.1, "side_by_side": True}
    above = style.legend_height(list(legend)) + 0.5
    heights = [_ROW * len(names)] * len(chosen)
    picture, axes = style.new_picture(title, subtitle, heights=heights, above=above, **margins)
    for ax, (name, strategy) in zip(axes, chosen.items(), strict=True):
        _cells(ax, strategy[1:], columns)
        ax.set_yticks(range(len(names)), names, fontsize=style.SMALL)
        room = (style.WIDTH / len(chosen) - margins["right"]) * style.DOTS
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
    texts = "; ".join(f"{name}: {_strategy_text(graph, strategy)}" for name, strategy in chosen.items())
    picture.alt_text = f"Operators in rows, devices in columns. {title}. {subtitle} {texts}."
    return picture


def meaning(config: Config) -> str:
    """How an operator is cut, in one word: "sample", "attribute", "parameter", "row", in several ways, or not."""
    if config.row_cut:
        return ROW
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


def _strategy_text(graph: OperatorGraph, strategy: Strategy) -> str:
    rows = zip(graph.operators[1:], strategy[1:], strict=True)
    return ", ".join(
        f"{operator.name} {meaning(config)} on {', '.join(map(str, config.devices))}" for operator, config in rows
    )


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
    x = np.arange(len(every[0])) if iterations is None else np.asarray(iterations)
    colours = {name: style.CURVES[index % len(style.CURVES)] for index, name in enumerate(walks)}
    legend = {name: Line2D([], [], color=colour, linewidth=1.6) for name, colour in colours.items()}
    best = np.minimum.accumulate(np.min(every, axis=0))
    legend[_BEST] = Line2D([], [], color=style.INK, linewidth=1.8)
    if optimum is not None:
        legend[_KNOWN] = Line2D([], [], color=style.FAINT, linewidth=1.4, linestyle=BROKEN)
    above = style.legend_height(list(legend), 0.75) + 0.24
    picture, (ax,) = style.new_picture(title, subtitle, heights=[2.7], left=0.75, right=0.3, above=above)
    for name, own in walks.items():
        for walk in own:
            ax.plot(x, np.asarray(walk, float), color=colours[name], linewidth=0.9, alpha=0.55, zorder=2)
    ax.plot(x, best, color=style.INK, linewidth=1.8, zorder=4)
    lowest = best[-1] if optimum is None else min(best[-1], optimum)
    if optimum is not None:
        ax.axhline(optimum, color=style.FAINT, linewidth=1.4, linestyle=BROKEN, zorder=5)
    if max(walk.max() for walk in every) > 8 * lowest:
        ax.set_yscale("log")
    else:
        ax.set_ylim(bottom=0)
    style_times(ax)
    ax.set_xlim(x[0], max(x[-1], x[0] + 1))
    ax.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    label(ax, "proposals", "a step takes, simulated", above=True, grid="y")
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
    if ax.get_yscale() == "log":
        in_words(ax.yaxis, round_numbers(*ax.get_ylim()), lambda value: seconds_text(value / 1e9))
    else:
        ax.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: seconds_text(value / 1e9) if value else "0"))


FORWARD, BACKWARD, COMMUNICATION, IDLE = "forward", "backward", "communication", "idle"
_TASK_ROW = 0.3  # inches
_MARKS = "os^D"


def task_timelines(
    steps: Mapping[str, Sequence[Task]],
    title: str,
    subtitle: str = "",
    devices: Sequence[str] = (),
    simulator: Callable[[Sequence[Task]], Sequence[tuple[int, int]]] = simulate,
) -> Figure:
    """Draw simulated steps one under the other on one axis: a row for each device, a box for each task.

    Args:
        steps: by name, the tasks of a step.
        devices: their names; without them, their numbers.
        simulator: calculates when each task begins and ends, in nanoseconds.
    """
    if not any(steps.values()):
        raise CourseError("task_timelines: one step with one task at least.")
    number = max(len(devices), 1 + max(task.device for tasks in steps.values() for task in tasks))
    rows = list(devices) or [f"device {device}" for device in range(number)]
    spans = {name: simulator(tasks) for name, tasks in steps.items()}
    ends = {name: max((end for _, end in own), default=0) for name, own in spans.items()}
    longest = max(ends.values()) or 1
    used = {task_meaning(task) for tasks in steps.values() for task in tasks}
    words = [word for word in (FORWARD, BACKWARD, COMMUNICATION, IDLE) if word in used or word == IDLE]
    legend = {word: Patch(facecolor=style.COLOURS[word]) for word in words}
    left = max(0.8, 0.25 + max(style.text_width(row, style.TEXT) for row in rows) / style.DOTS)
    above = style.legend_height(list(legend)) + 0.24
    margins = {"left": left, "between": 0.42, "above": above}
    picture, axes = style.new_picture(title, subtitle, heights=[_TASK_ROW * number] * len(steps), **margins)
    for ax, (name, tasks) in zip(axes, steps.items(), strict=True):
        _timeline(ax, tasks, spans[name], longest, rows)
        heading = f"{name}: {seconds_text(ends[name] / 1e9)}"
        ax.set_title(heading, fontsize=style.TEXT, fontweight="bold", loc="left", pad=3)
        if ax is not axes[-1]:
            ax.set_xticklabels([])
    axes[-1].set_xlabel(f"time, in {time_unit(longest / 1e9)[1]}, simulated", fontsize=style.SMALL, labelpad=1)
    style.draw_legend(axes[0], legend, offset=0.24)
    texts = " ".join(_step_text(name, tasks, ends[name], rows) for name, tasks in steps.items())
    picture.alt_text = f"Simulated steps, a row for each device, a box for each task. {title}. {subtitle} {texts}"
    return picture


def _step_text(name: str, tasks: Sequence[Task], end: int, rows: Sequence[str]) -> str:
    """What a step takes, and how long each device computes, sends and receives, and waits, in words."""
    devices = []
    for device, row in enumerate(rows):
        own = [task for task in tasks if task.device == device]
        sends = sum(task.nanoseconds for task in own if task_meaning(task) == COMMUNICATION)
        busy = sum(task.nanoseconds for task in own)
        times = {"computes": busy - sends, "communicates": sends, "waits": end - busy}
        devices.append(f"{row} " + join([f"{word} {seconds_text(ns / 1e9)}" for word, ns in times.items() if ns]))
    return f"{name} takes {seconds_text(end / 1e9)}: {'; '.join(devices)}."


def task_meaning(task: Task) -> str:
    """What a task is, as a colour says it: forward, backward or communication."""
    if " → " in task.name or task.name.endswith((" norm", " norm backward", " gradients")):
        return COMMUNICATION
    return BACKWARD if task.name.endswith(" backward") else FORWARD


def _timeline(
    ax: Axes, tasks: Sequence[Task], spans: Sequence[tuple[int, int]], longest: int, rows: Sequence[str]
) -> None:
    """One step on its axes; names stand where there is room."""
    scale = time_unit(longest / 1e9)[0] / 1e9
    whole = max(end for _, end in spans) if spans else 0
    idle = [(0, whole * scale, device - 0.42, device + 0.42) for device in range(len(rows))]
    boxes(ax, idle, facecolor=style.COLOURS[IDLE], edgecolor="none")
    pixels = ax.get_position().width * ax.figure.get_figwidth() * style.DOTS / longest
    for word in (FORWARD, BACKWARD, COMMUNICATION):
        mine = [(task, span) for task, span in zip(tasks, spans, strict=True) if task_meaning(task) == word]
        corners = [(b * scale, e * scale, task.device - 0.42, task.device + 0.42) for task, (b, e) in mine if e > b]
        thin = sum((e - b) * pixels < 4 for _, (b, e) in mine) > len(mine) / 2
        boxes(ax, corners, facecolor=style.COLOURS[word], edgecolor="white", linewidth=0.2 if thin else 0.7, zorder=2)
        for task, (begin, end) in mine:
            name = task.name.removesuffix(" backward")
            if style.text_width(name) + 6 <= (end - begin) * pixels:
                ink = "white" if word == FORWARD else style.INK
                at = {"ha": "center", "va": "center_baseline", "fontsize": style.SMALL, "zorder": 3}
                ax.text((begin + end) / 2 * scale, task.device, name, color=ink, parse_math=False, **at)
    ax.set_xlim(0, longest * scale)
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set_yticks(range(len(rows)), rows)
    ax.tick_params(axis="y", length=0)


def predicted_measured(
    groups: Mapping[str, Sequence[tuple[float, Sequence[float]]]], title: str, subtitle: str = ""
) -> Figure:
    """Draw measured step times over simulated ones; on the line both are equal.

    Args:
        groups: for each network, its strategies: seconds simulated, and seconds measured in each round. A point is the
            median, a bar reaches from the shortest to the longest.
    """
    points = [(predicted, min(own), max(own)) for group in groups.values() for predicted, own in group]
    if not points or min(min(point) for point in points) <= 0:
        raise CourseError("predicted_measured: one strategy at least, with times above 0.")
    low, high = min(min(point) for point in points) / 1.15, max(max(point) for point in points) * 1.15
    legend = {
        name: Line2D([], [], color=style.CURVES[index], marker=_MARKS[index % 4], linestyle="", markersize=5)
        for index, name in enumerate(groups)
    }
    legend["measured = simulated"] = Line2D([], [], color=style.FAINT, linewidth=1.2, linestyle=BROKEN)
    above = style.legend_height(list(legend), 0.85) + 0.24
    picture, (ax,) = style.new_picture(title, subtitle, heights=[3.6], left=0.85, right=1.9, below=0.55, above=above)
    ax.plot([low, high], [low, high], color=style.FAINT, linewidth=1.2, linestyle=BROKEN, zorder=1)
    for index, group in enumerate(groups.values()):
        marker_style = {"fmt": _MARKS[index % 4], "alpha": 0.85, "zorder": 2 + index}
        measured_points(
            ax, [predicted for predicted, _ in group], [own for _, own in group], style.CURVES[index], **marker_style
        )
    ax.set(xscale="log", yscale="log", xlim=(low, high), ylim=(low, high))
    for axis in (ax.xaxis, ax.yaxis):
        in_words(axis, round_numbers(low, high), seconds_text)
    label(ax, "step, simulated", "step, measured", above=True)
    style.draw_legend(ax, legend, offset=0.26)
    texts = "; ".join(
        f"{name}: " + ", ".join(f"{seconds_text(p)} and {seconds_text(np.median(own))}" for p, own in group)
        for name, group in groups.items()
    )
    picture.alt_text = f"Step times, simulated and measured, a point for each strategy. {title}. {subtitle} {texts}."
    return picture
