"""Lines over a handful of numbers (workers, rates, bytes): points measured, with their spread, and lines predicted."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator

from course_utils.draw import style
from course_utils.errors import CourseError

_FEW_DECADES = 100  # values that span less have marks at 1, 2 and 5 of each decade
PREDICTED = "predicted (points are measured)"


def over_numbers(
    x: Sequence[float],
    lines: Mapping[str, Sequence[float | Sequence[float]]],
    title: str,
    subtitle: str = "",
    *,
    across: str,
    up: str,
    predicted: Mapping[str, Sequence[float]] | None = None,
    unit: Callable[[float], str] = "{:g}".format,
    limits: tuple[float, float] | None = None,
    log: bool = False,
) -> Figure:
    """Draw measured points over the numbers `x`, with a bar from the lowest run to the highest.

    Without a prediction the points are joined; with one, the line is the prediction. Numbers that grow by one factor
    stand at equal distances.

    Args:
        lines: for each name, the runs at each number; a value alone is one run.
        across, up: what the axes show.
        predicted: for each name, a value at each number.
        unit: turns a value into words.
        limits: from where to where the values' axis goes; without it, as they need.
        log: whether that axis is logarithmic.
    """
    predicted = predicted or {}
    if len(x) < 2 or not lines or any(len(line) != len(x) for line in [*lines.values(), *predicted.values()]):
        raise CourseError("over_numbers: two numbers and a line at least, and for each line a value at each number.")
    colours = {name: style.CURVES[index % len(style.CURVES)] for index, name in enumerate(lines)}
    marks = {name: Line2D([], [], color=colours[name], marker="o", markersize=4) for name in lines}
    marks = marks if len(lines) > 1 else {}
    if predicted:
        marks[PREDICTED] = Line2D([], [], color=style.INK if len(lines) > 1 else style.CURVES[0], linewidth=1.6)
    middles = {name: np.array([np.median(runs) for runs in line], float) for name, line in lines.items()}
    left = 0.45 + max(style.text_width(unit(v), style.TEXT) for line in middles.values() for v in line) / style.DOTS
    above = style.legend_height(list(marks), left, 0.25)
    picture, (ax,) = style.new_picture(
        title, subtitle, heights=[2.6], left=left, right=0.25, below=0.55, above=above + 0.22
    )
    place = np.asarray(x, float)
    if _grows_by_one_factor(place):
        ax.set_xscale("log", base=2)
    if log:
        ax.set_yscale("log")
        values = np.concatenate([*middles.values()])
        if values.min() > 0 and values.max() < _FEW_DECADES * values.min():
            ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    for name, line in lines.items():
        ends = np.array([[np.min(runs), np.max(runs)] for runs in line]).T
        reach = np.abs(ends - middles[name])
        ax.errorbar(place, middles[name], reach, fmt="o", color=colours[name], markersize=4.5, linewidth=1.1, zorder=3)
        ax.plot(place, predicted.get(name, middles[name]), color=colours[name], linewidth=1.6, zorder=2)
    if limits is not None:
        ax.set_ylim(*limits)
    elif not log:
        ax.set_ylim(bottom=min(0.0, *(line.min() for line in middles.values())))
    if not log:
        ax.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: unit(value) if value else "0"))
    ax.xaxis.set_major_locator(FixedLocator(list(x)))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda number, _: f"{number:g}"))
    ax.set_xlabel(across, fontsize=style.TEXT)
    ax.set_title(up, fontsize=style.TEXT, loc="left", color="#555555", pad=4)
    ax.grid(color=style.GRID, linewidth=0.7)
    style.draw_legend(ax, marks, offset=0.26)
    told = [f"{name}: {', '.join(unit(value) for value in line)}" for name, line in middles.items()]
    said = [title, subtitle, f"{up} over {across} {', '.join(f'{n:g}' for n in x)}", *told]
    picture.alt_text = " ".join(f"{text}." for text in said if text)
    return picture


def _grows_by_one_factor(numbers: np.ndarray) -> bool:
    """Whether each number is the one before times the same factor, and the last at least 16 times the first."""
    if numbers[0] <= 0 or numbers[-1] < 16 * numbers[0]:
        return False
    factors = numbers[1:] / numbers[:-1]
    return bool(np.allclose(factors, factors[0]))
