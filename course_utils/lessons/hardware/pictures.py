"""Drawings of lesson 3: the roofline with a network's layers under it, and time over the number of hands."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from course_utils.draw import style
from course_utils.measuring import Measured
from course_utils.words import bytes_text, count, number_text, seconds_text, time_unit

if TYPE_CHECKING:
    from course_utils.lessons.hardware.layer_costs import Layer

KINDS = {"conv": "#0072B2", "norm": "#E69F00", "relu": "#009E73", "pool": "#D55E00", "linear": "#CC79A7"}
_PREDICTED = "#D5D5D5"


def layer_roofline(
    layers: "Sequence[Layer]",
    peak: float,
    bandwidth: float,
    title: str,
    subtitle: str = "",
    times: bool = True,
) -> Figure:
    """Draw FLOP/s over FLOP per byte under the roof min(peak, bandwidth · intensity), and below it each layer's time.

    Args:
        layers: in the order in which they run.
        peak, bandwidth: FLOP and bytes per second.
        times: whether to draw the lower half.
    """
    kinds = [kind for kind in KINDS if any(layer.kind == kind for layer in layers)]
    above = style.legend_height(kinds)
    heights, below = ([2.9, 1.7], 0.75) if times else ([2.9], 0.5)
    look = {"above": above, "between": 0.85, "below": below, "left": 0.95}
    picture, (roof, *under) = style.new_picture(title, subtitle, heights=heights, **look)
    draw_roof(roof, layers, peak, bandwidth)
    for ax in under:
        draw_times(ax, layers)
    handles = {kind: Line2D([], [], marker="o", linestyle="none", color=KINDS[kind]) for kind in kinds}
    style.draw_legend(roof, handles)
    picture.alt_text = f"Roofline. {title}. {subtitle} {layers_text(layers)}"
    return picture


def layer_times(layers: "Sequence[Layer]", title: str, subtitle: str = "") -> Figure:
    """Draw each layer's time alone, as predicted and as measured: the lower half of `layer_roofline`."""
    picture, (ax,) = style.new_picture(title, subtitle, heights=[2.4], above=0.25, below=0.75, left=0.95)
    draw_times(ax, layers)
    picture.alt_text = f"Time of each layer. {title}. {subtitle} {layers_text(layers)}"
    return picture


def layers_text(layers: "Sequence[Layer]") -> str:
    """Every layer in words."""
    return " ".join(
        f"{layer.name}: {layer.flops / layer.nbytes:.3g} FLOP per byte, predicted "
        f"{seconds_text(layer.predicted)}, measured {seconds_text(layer.measured.median)}."
        for layer in layers
    )


def draw_roof(ax: Axes, layers: "Sequence[Layer]", peak: float, bandwidth: float) -> None:
    """The roof, each layer's measured rate, and a line from it to what the roof allows."""
    x = np.array([layer.flops / layer.nbytes for layer in layers])
    y = np.array([layer.flops / layer.measured.median for layer in layers])
    allowed = np.minimum(peak, bandwidth * x)
    ridge = peak / bandwidth
    left, right = min(x.min(), ridge) / 2, max(x.max(), ridge) * 2.5
    edge = np.array([left, ridge, right])
    ax.set(xscale="log", yscale="log", xlim=(left, right))
    ax.plot(edge, np.minimum(peak, bandwidth * edge), color=style.INK, linewidth=2, zorder=3)
    ax.axvline(ridge, color=style.FAINT, linewidth=0.8, linestyle=(0, (4, 3)), zorder=1)
    ax.vlines(x, y, allowed, color="#B8B8B8", linewidth=1, zorder=2)
    colours = [KINDS.get(layer.kind, style.INK) for layer in layers]
    ax.scatter(x, y, s=26, c=colours, zorder=4, edgecolors="white", linewidths=0.5)
    ax.set_ylim(min(y.min(), allowed.min()) / 2, max(peak, y.max()) * 3)
    words = {"fontsize": style.SMALL, "color": style.INK, "parse_math": False}
    place = {"textcoords": "offset points", "ha": "left"}
    speed = f"{number_text(peak / 1e9)} GFLOP/s"
    ax.annotate(speed, (ridge, peak), xytext=(6, 5), va="bottom", **place, **words)
    flow = f"{bytes_text(bandwidth)}/s"
    slope = left * (ridge / left) ** 0.8  # above the slope, where no layer's dot or line is
    ax.annotate(flow, (slope, bandwidth * slope), xytext=(-6, 3), va="bottom", **(place | {"ha": "right"}), **words)
    beside = {"xycoords": ax.get_xaxis_transform(), "xytext": (4, 3), "textcoords": "offset points", "va": "bottom"}
    ax.annotate(f"ridge: {number_text(ridge)} FLOP per byte", (ridge, 0), **beside, **words)
    longest = {layer.kind: index for index, layer in sorted(enumerate(layers), key=lambda one: one[1].measured.median)}
    for index in longest.values():
        high = y[index] >= allowed[index]
        over = {"xytext": (0, 6 if high else -6), "ha": "center", "va": "bottom" if high else "top"}
        beside_it = {"xytext": (7, 0), "ha": "left", "va": "center"}
        at = over if x[index] > 0.2 * right else beside_it  # near the edge there is no room beside the dot
        ax.annotate(layers[index].name, (x[index], y[index]), textcoords="offset points", **at, **words)
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / 1e9:g}"))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_minor_locator(NullLocator())
    ax.set_xlabel("arithmetic intensity, in FLOP per byte", fontsize=style.TEXT)
    ax.set_ylabel("GFLOP per second", fontsize=style.TEXT)
    ax.grid(color="#EEEEEE", linewidth=0.7)


def draw_times(ax: Axes, layers: "Sequence[Layer]") -> None:
    """For each layer a wide grey bar, the roofline's prediction, and a narrow one in it, the measurement."""
    place = np.arange(len(layers))
    measured = np.array([layer.measured.median for layer in layers])
    predicted = np.array([layer.predicted for layer in layers])
    scale, unit = time_unit(max(measured.max(), predicted.max()))
    around = [[layer.measured.median - layer.measured.low for layer in layers]]
    around.append([layer.measured.high - layer.measured.median for layer in layers])
    colours = [KINDS.get(layer.kind, style.INK) for layer in layers]
    ax.bar(place, scale * predicted, width=0.86, color=_PREDICTED, zorder=2)
    whiskers = {"elinewidth": 0.8, "ecolor": style.INK, "capsize": 1.2}
    ax.bar(
        place, scale * measured, width=0.44, color=colours, zorder=3, yerr=scale * np.array(around), error_kw=whiskers
    )
    ax.set_xticks(place, [layer.name for layer in layers], rotation=90, fontsize=style.SMALL - 0.5)
    ax.tick_params(axis="x", length=0)
    ax.set_xlim(-0.7, len(layers) - 0.3)
    longest = max(measured.max(), predicted.max())
    ax.set_ylim(0, scale * min(1.05 * max(longest, max(layer.measured.high for layer in layers)), 1.6 * longest))
    ax.set_ylabel(f"time, in {unit}", fontsize=style.TEXT)
    ax.grid(axis="y", color="#EEEEEE", linewidth=0.7)
    handles = [Patch(facecolor=_PREDICTED), Patch(facecolor=KINDS["conv"])]
    words = ["predicted by the roof", "measured (narrow; whisker: all runs)"]
    where = {"loc": "lower right", "bbox_to_anchor": (1, 1.0), "ncols": 2, "frameon": False, "borderaxespad": 0}
    ax.legend(handles, words, fontsize=style.SMALL, handlelength=1.2, columnspacing=1.2, **where)


_OTHER = "#D55E00"


def time_by_threads(times: Mapping[int, Measured], cores: int, title: str, subtitle: str = "") -> Figure:
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
    times_by_count = ", ".join(f"{count}: {seconds_text(times[count].median)}" for count in counts)
    picture.alt_text = f"Time over the number of threads. {title}. {subtitle} {times_by_count}. {text}."
    return picture


def between_bounds(
    measured: Mapping[int, Measured],
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
    times_by_count = ", ".join(
        f"{count}: {measured[count].median:.1f} between {bounds[count][0]:.1f} and {bounds[count][1]:.1f}"
        for count in counts
    )
    picture.alt_text = f"Time over the number of workers, with bounds. {title}. {subtitle} {times_by_count}."
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
