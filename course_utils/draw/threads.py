"""Time over the number of hands: threads on cores, and workers on tasks between the two bounds of Brent."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from course_utils.draw import style
from course_utils.draw.roofs import Values
from course_utils.words import count, seconds_text, time_unit

_OTHER = "#D55E00"


def time_by_threads(times: Mapping[int, Values], cores: int, title: str, subtitle: str = "") -> Figure:
    """Draw the median time over the number of threads with all runs' range, the ideal t₁/p, and the number of cores.

    Args:
        times: seconds, by the number of threads.
        cores: that the process may use.
    """
    counts = sorted(times)
    picture, (ax,) = style.new_picture(title, subtitle, heights=[2.7], left=0.75, below=0.55)
    middle = np.array([times[count].median for count in counts])
    low, high = (np.array([getattr(times[count], name) for count in counts]) for name in ("low", "high"))
    scale, unit = time_unit(middle.max())
    ax.axvline(cores, color=style.FAINT, linewidth=1, linestyle=(0, (4, 3)))
    fine = np.linspace(counts[0], counts[-1], 200)
    ax.plot(fine, scale * middle[0] * counts[0] / fine, color=style.FAINT, linewidth=1.2, zorder=1)
    whiskers = {"yerr": scale * np.array([middle - low, high - middle]), "capsize": 3, "elinewidth": 1.2}
    ax.errorbar(counts, scale * middle, color=style.CURVES[0], marker="o", markersize=6, linewidth=1.8, **whiskers)
    ax.set_ylim(0, scale * min(1.18 * high.max(), 1.8 * middle.max()))  # one disturbed run must not flatten the rest
    spaced = counts[-1] > 12
    if spaced:
        ax.set_xscale("log")
    ax.xaxis.set_major_locator(FixedLocator(counts))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda count, _: f"{count:g}"))
    words = {"fontsize": style.SMALL, "color": "#555555", "textcoords": "offset points"}
    text = f"{count(cores, 'core')} allowed"
    at_the_right = cores > 0.75 * counts[-1]
    place = {"xytext": (-5 if at_the_right else 5, -2), "ha": "right" if at_the_right else "left", "va": "top"}
    ax.annotate(text, (cores, 1), xycoords=ax.get_xaxis_transform(), **place, **words)
    end = (counts[-1], scale * middle[0] * counts[0] / counts[-1])
    ax.annotate("if p threads were p times as fast", end, xytext=(0, -5), ha="right", va="top", **words)
    ax.set_xlabel("threads", fontsize=style.TEXT)
    ax.set_ylabel(f"time, in {unit}", fontsize=style.TEXT)
    ax.grid(axis="y", color="#EEEEEE", linewidth=0.7)
    told = ", ".join(f"{count}: {seconds_text(times[count].median)}" for count in counts)
    picture.alt_text = f"Time over the number of threads. {title}. {subtitle} {told}. {text}."
    return picture


def between_bounds(
    measured: Mapping[int, Values],
    bounds: Mapping[int, tuple[float, float]],
    others: Mapping[str, Sequence[float]],
    title: str,
    subtitle: str = "",
) -> Figure:
    """Draw measured times over the number of workers, and the band between the lower and the upper bound.

    Args:
        measured: in units of a task, by the number of workers.
        bounds: (lower, upper) in the same units.
        others: further lines over the same numbers of workers, by name.
    """
    counts = sorted(measured)
    right = 0.3 + max((style.text_width(name, style.SMALL) for name in others), default=0) / style.DOTS
    picture, (ax,) = style.new_picture(title, subtitle, heights=[3.0], left=0.75, right=max(right, 0.9), below=0.55)
    low, high = (np.array([bounds[count][side] for count in counts]) for side in (0, 1))
    ax.set(xscale="log", yscale="log")
    ax.fill_between(counts, low, high, color="#CFE3F1", linewidth=0, zorder=1)
    ax.plot(counts, low, color=style.CURVES[0], linewidth=1.3)
    ax.plot(counts, high, color=style.CURVES[0], linewidth=1.3)
    for values in others.values():
        ax.plot(counts, values, color=_OTHER, linewidth=1.5, linestyle=(0, (4, 2)))
    middle = np.array([measured[count].median for count in counts])
    around = [middle - [measured[count].low for count in counts], [measured[count].high for count in counts] - middle]
    ax.errorbar(
        counts, middle, yerr=around, color=style.INK, marker="o", markersize=5, linestyle="none", capsize=3, zorder=4
    )
    ax.xaxis.set_major_locator(FixedLocator(counts))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_locator(FixedLocator([step * 10**power for power in range(-1, 5) for step in (1, 2, 3, 5)]))
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    name_lines(ax, counts, low, high, others)
    ax.set_xlabel("workers", fontsize=style.TEXT)
    ax.set_ylabel("time, in tasks", fontsize=style.TEXT)
    ax.grid(color="#EEEEEE", linewidth=0.7)
    told = ", ".join(
        f"{count}: {measured[count].median:.1f} between {bounds[count][0]:.1f} and {bounds[count][1]:.1f}"
        for count in counts
    )
    picture.alt_text = f"Time over the number of workers, with bounds. {title}. {subtitle} {told}."
    return picture


def name_lines(
    ax: Axes, counts: Sequence[int], low: np.ndarray, high: np.ndarray, others: Mapping[str, Sequence[float]]
) -> None:
    """Write the names of the bounds and of the other lines at their right ends."""
    ends = {"W/p + D": (high[-1], "bottom", style.CURVES[0]), "max(W/p, D)": (low[-1], "top", style.CURVES[0])}
    ends |= {name: (values[-1], "center", _OTHER) for name, values in others.items()}
    for name, (value, vertical, colour) in ends.items():
        words = {"fontsize": style.SMALL, "color": colour, "fontweight": "bold", "parse_math": False}
        ax.annotate(name, (counts[-1], value), xytext=(6, 0), textcoords="offset points", va=vertical, **words)
