"""Charts of lines, laid out once: points measured with their spread, lines predicted, axes in words, names at the ends.

`over_numbers` is the whole chart. Where a lesson's picture needs more, it is put together from the parts below.
"""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from course_utils.draw import style
from course_utils.errors import CourseError
from course_utils.words import as_sentences

PREDICTED = "line: predicted, dot: measured"
SMOOTH = 200
"""Points of a curve that is drawn from a function."""
BROKEN = (0, (4, 3))
"""The dashes of a line that was not measured: a bound, a target, an ideal."""


def over_numbers(
    x: Sequence[float],
    lines: Mapping[str, Sequence[float | Sequence[float]]],
    title: str,
    subtitle: str = "",
    *,
    across: str,
    up: str,
    predicted: Mapping[str, Sequence[float] | Callable[[float], float]] | None = None,
    unit: Callable[[float], str] = "{:g}".format,
    limits: tuple[float, float] | None = None,
    log: bool = False,
    dots: str = "measured",
) -> Figure:
    """Draw measured points over the numbers `x`, with a bar from the lowest run to the highest.

    Without a prediction the points are joined; with one, the line is the prediction. Numbers that grow by one factor
    stand at equal distances.

    Args:
        lines: for each name, the runs at each number; a value alone is one run.
        across, up: what the axes show.
        predicted: for each name, a value at each number, or a function that is drawn as a curve.
        unit: turns a value into words.
        limits: from where to where the values' axis goes; without it, as they need.
        log: whether that axis is logarithmic.
        dots: what the points are, beside a prediction: measured, or simulated.
    """
    predicted = predicted or {}
    given = [line for line in predicted.values() if not callable(line)]
    if len(x) < 2 or not lines or any(len(line) != len(x) for line in [*lines.values(), *given]):
        raise CourseError("over_numbers: two numbers and a line at least, and for each line a value at each number.")
    colours = {name: style.CURVES[index % len(style.CURVES)] for index, name in enumerate(lines)}
    marks = {name: Line2D([], [], color=colours[name], marker="o", markersize=4) for name in lines}
    marks = marks if len(lines) > 1 else {}
    if predicted:
        legend = PREDICTED.replace("measured", dots)
        marks[legend] = Line2D([], [], color=style.INK, marker="o", markersize=4)
    middles = {name: np.array([np.median(runs) for runs in line], float) for name, line in lines.items()}
    left = 0.45 + max(style.text_width(unit(v), style.TEXT) for line in middles.values() for v in line) / style.DOTS
    above = style.legend_height(list(marks), left, 0.25) + 0.22
    picture, (ax,) = style.new_picture(title, subtitle, heights=[2.6], left=left, right=0.25, below=0.55, above=above)
    positions = np.asarray(x, float)
    if _grows_by_one_factor(positions):
        ax.set_xscale("log", base=2)
    if log:
        ax.set_yscale("log")
    for name, line in lines.items():
        measured_points(ax, positions, line, colours[name])
        expected = predicted.get(name, middles[name])
        along = np.linspace(positions[0], positions[-1], SMOOTH) if callable(expected) else positions
        heights = [expected(at) for at in along] if callable(expected) else expected
        ax.plot(along, heights, color=colours[name], linewidth=1.6, zorder=2)
    if limits is not None:
        ax.set_ylim(*limits)
    elif not log:
        bottom = min(0.0, *(line.min() for line in middles.values()))
        ax.set_ylim(bottom, bottom + (1.06 * (ax.dataLim.ymax - bottom) or 1.0))  # no line lies on the edge
    if log:
        in_words(ax.yaxis, round_numbers(*ax.get_ylim()), unit)
    else:
        ax.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: unit(value) if value else "0"))
    in_words(ax.xaxis, x, "{:,g}".format)
    label(ax, across, up, above=True)
    style.draw_legend(ax, marks, offset=0.26)
    values_texts = [f"{name}: {', '.join(unit(value) for value in line)}" for name, line in middles.items()]
    shown = f"{up} over {across} {', '.join(f'{n:g}' for n in x)}"
    picture.alt_text = as_sentences(title, subtitle, shown, *values_texts)
    return picture


def _grows_by_one_factor(numbers: np.ndarray) -> bool:
    """Whether each number is the one before times the same factor, and the last at least 16 times the first."""
    if numbers[0] <= 0 or numbers[-1] < 16 * numbers[0]:
        return False
    factors = numbers[1:] / numbers[:-1]
    return bool(np.allclose(factors, factors[0]))


# --- the parts of such a chart --------------------------------------------------------------------------------------


def measured_points(
    ax: Axes, x: Sequence[float], runs: Sequence[float | Sequence[float]], colour: str, scale: float = 1.0, **properties
) -> np.ndarray:
    """Draw a dot at the median of the runs at each number, and a bar from the lowest to the highest; return medians.

    Args:
        runs: at each number; a value alone is one run.
        scale: what all values are multiplied by.
        look: of the dots, for Matplotlib's `errorbar`.
    """
    middle = scale * np.array([np.median(run) for run in runs], float)
    ends = scale * np.array([[np.min(run), np.max(run)] for run in runs], float)
    properties = {"fmt": "o", "markersize": 4.5, "linewidth": 1.1, "zorder": 3} | properties
    ax.errorbar(x, middle, np.abs(ends.T - middle), color=colour, **properties)
    return middle


def in_words(axis: Axis, places: Sequence[float], say: Callable[[float], str] = "{:g}".format) -> None:
    """Marks at these places of an axis and nowhere else, each with its words."""
    axis.set_major_locator(FixedLocator(list(places)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: say(value)))


def round_numbers(low: float, high: float) -> list[float]:
    """Round numbers between two above 0, for a logarithmic axis: few enough to be read."""
    span = high / low
    few = (1, 2, 3, 5) if span < 12 else (1, 2, 5) if span < 100 else (1, 3) if span < 2000 else (1,)
    digits = (1, 1.5, 2, 3, 4, 5, 7) if span < 5 else few
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [digit * 10.0**power for power in powers for digit in digits if low <= digit * 10.0**power <= high]


def label(ax: Axes, across: str, up: str, above: bool = False, grid: str = "both") -> None:
    """Say what the axes show, and draw the grid.

    Args:
        above: the words of the upright axis stand over it, in reading direction.
        grid: of which axis: "both", "x" or "y".
    """
    ax.set_xlabel(across, fontsize=style.TEXT)
    if above:
        ax.set_title(up, fontsize=style.TEXT, loc="left", color="#555555", pad=4)
    else:
        ax.set_ylabel(up, fontsize=style.TEXT)
    ax.grid(axis=grid, color=style.GRID, linewidth=0.7)
    ax.set_axisbelow(True)


def room_for_names(names: Sequence[str]) -> float:
    """Inches to the right of the axes that `name_ends` needs, three at most."""
    return min(3.0, 0.3 + max((style.text_width(name, style.TEXT, True) for name in names), default=0) / style.DOTS)


def name_ends(ax: Axes, ends: Mapping[str, float], colours: Mapping[str, str]) -> None:
    """Write each line's name beside its right end, moved apart where the ends are close.

    Args:
        ends: each line's last value, on the axes' scale, whose limits must be final.
    """
    ax.get_ylim()  # settles the limits
    to_share = ax.transData + ax.transAxes.inverted()
    right = ax.get_xlim()[1]
    shares = sorted(
        (to_share.transform((right, end))[1], -order, name) for order, (name, end) in enumerate(ends.items())
    )
    line = 1.5 * style.TEXT / 72 / (ax.get_position().height * ax.figure.get_figheight())
    words = {"va": "center", "fontsize": style.TEXT, "fontweight": "bold", "parse_math": False}
    beside = {"xycoords": "axes fraction", "xytext": (7, 0), "textcoords": "offset points"}
    for at, (_, _, name) in zip(spread([share for share, *_ in shares], line, 0.0, 1.0), shares, strict=True):
        ax.annotate(name, (1.0, at), color=colours[name], **beside, **words)


def spread(heights: Sequence[float], distance: float, low: float, high: float) -> list[float]:
    """Move heights, which ascend, apart to at least `distance`, each as little as it needs, inside low … high."""
    moved: list[float] = []
    for height in heights:
        moved.append(max(height, moved[-1] + distance) if moved else max(height, low))
    over = moved[-1] - high if moved else 0
    for index in range(len(moved) - 1, -1, -1):
        limit = high if index == len(moved) - 1 else moved[index + 1] - distance
        moved[index] = min(moved[index], limit) if over > 0 else moved[index]
    return moved
