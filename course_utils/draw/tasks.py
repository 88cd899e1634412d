"""Simulated training steps as timelines, and predictions beside what was measured."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from course_utils.draw import style
from course_utils.draw.rows import boxes
from course_utils.errors import CourseError
from course_utils.lessons.strategy_search.simulator.simulate import simulate
from course_utils.lessons.strategy_search.simulator.task_graph import Task
from course_utils.words import seconds_text, time_unit

FORWARD, BACKWARD, COMMUNICATION, IDLE = "forward", "backward", "communication", "idle"
_ROW = 0.3  # inches
_MARKS = "os^D"


def task_timelines(
    steps: Mapping[str, Sequence[Task]], title: str, subtitle: str = "", devices: Sequence[str] = ()
) -> Figure:
    """Draw simulated steps one under the other on one axis: a row for each device, a box for each task.

    Args:
        steps: by name, the tasks of a step.
        devices: their names; without them, their numbers.
    """
    if not any(steps.values()):
        raise CourseError("task_timelines: one step with one task at least.")
    number = max(len(devices), 1 + max(task.device for tasks in steps.values() for task in tasks))
    rows = list(devices) or [f"device {device}" for device in range(number)]
    spans = {name: simulate(tasks) for name, tasks in steps.items()}
    ends = {name: max((end for _, end in own), default=0) for name, own in spans.items()}
    longest = max(ends.values()) or 1
    used = {meaning(task) for tasks in steps.values() for task in tasks}
    words = [word for word in (FORWARD, BACKWARD, COMMUNICATION, IDLE) if word in used or word == IDLE]
    legend = {word: Patch(facecolor=style.COLOURS[word]) for word in words}
    left = max(0.8, 0.25 + max(style.text_width(row, style.TEXT) for row in rows) / style.DOTS)
    above = style.legend_height(list(legend)) + 0.24
    look = {"left": left, "between": 0.42, "above": above}
    picture, axes = style.new_picture(title, subtitle, heights=[_ROW * number] * len(steps), **look)
    for ax, (name, tasks) in zip(axes, steps.items(), strict=True):
        _timeline(ax, tasks, spans[name], longest, rows)
        heading = f"{name}: {seconds_text(ends[name] / 1e9)}"
        ax.set_title(heading, fontsize=style.TEXT, fontweight="bold", loc="left", pad=3)
        if ax is not axes[-1]:
            ax.set_xticklabels([])
    axes[-1].set_xlabel(f"time, in {time_unit(longest / 1e9)[1]}, simulated", fontsize=style.SMALL, labelpad=1)
    style.draw_legend(axes[0], legend, offset=0.24)
    told = "; ".join(f"{name} takes {seconds_text(end / 1e9)}" for name, end in ends.items())
    picture.alt_text = f"Simulated steps, a row for each device, a box for each task. {title}. {subtitle} {told}."
    return picture


def meaning(task: Task) -> str:
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
        mine = [(task, span) for task, span in zip(tasks, spans, strict=True) if meaning(task) == word]
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
    """Draw measured step times over predicted ones; on the line both are equal.

    Args:
        groups: for each network, its strategies: seconds predicted, and seconds measured in each round. A point is the
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
    legend["measured = predicted"] = Line2D([], [], color=style.FAINT, linewidth=1.2, linestyle=(0, (4, 3)))
    above = style.legend_height(list(legend), 0.85) + 0.24
    picture, (ax,) = style.new_picture(title, subtitle, heights=[3.6], left=0.85, right=1.9, below=0.55, above=above)
    ax.plot([low, high], [low, high], color=style.FAINT, linewidth=1.2, linestyle=(0, (4, 3)), zorder=1)
    for index, group in enumerate(groups.values()):
        x, middle = np.array([p for p, _ in group]), np.array([np.median(own) for _, own in group])
        reach = np.abs(np.array([[min(own), max(own)] for _, own in group]).T - middle)
        look = {"markersize": 4.5, "linewidth": 1.0, "alpha": 0.85, "zorder": 2 + index}
        ax.errorbar(x, middle, reach, fmt=_MARKS[index % 4], color=style.CURVES[index], **look)
    for axis, set_scale in ((ax.xaxis, ax.set_xscale), (ax.yaxis, ax.set_yscale)):
        set_scale("log")
        axis.set_major_locator(FixedLocator(round_seconds(low, high)))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(lambda value, _: seconds_text(value)))
    ax.set(xlim=(low, high), ylim=(low, high))
    ax.set_xlabel("step, predicted", fontsize=style.TEXT)
    ax.set_title("step, measured", fontsize=style.TEXT, loc="left", color="#555555", pad=4)
    ax.grid(color=style.GRID, linewidth=0.7)
    style.draw_legend(ax, legend, offset=0.26)
    told = "; ".join(
        f"{name}: " + ", ".join(f"{seconds_text(p)} and {seconds_text(np.median(own))}" for p, own in group)
        for name, group in groups.items()
    )
    picture.alt_text = f"Step times, predicted and measured, a point for each strategy. {title}. {subtitle} {told}."
    return picture


def round_seconds(low: float, high: float) -> list[float]:
    """Round numbers between two, few enough to be read: of every decade 1, 2, 5, or more of them where it is short."""
    digits = (1, 1.5, 2, 3, 4, 5, 7) if high / low < 8 else (1, 2, 5) if high / low < 300 else (1,)
    powers = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    return [digit * 10.0**power for power in powers for digit in digits if low <= digit * 10.0**power <= high]
