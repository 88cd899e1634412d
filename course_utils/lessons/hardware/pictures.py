"""Drawings of lesson 3: the roofline with a network's layers under it, and time over the number of hands."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, NullLocator

from course_utils.draw import style
from course_utils.draw.lines import BROKEN, in_words, label, measured_points, name_ends, room_for_names, round_numbers
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
    layout = {"above": above, "between": 0.85, "below": below, "left": 0.95}
    picture, (roof, *under) = style.new_picture(title, subtitle, heights=heights, **layout)
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
    """The layers in words, kind by kind: where they lie on the roofline, and how far from it."""
    by_kind: dict[str, list[Layer]] = {}
    for layer in layers:
        by_kind.setdefault(layer.kind, []).append(layer)
    return " ".join(kind_text(kind, own) for kind, own in by_kind.items())


def kind_text(kind: str, layers: "Sequence[Layer]") -> str:
    """Layers of one kind in words."""
    intensities = [layer.intensity for layer in layers]
    factors = [layer.measured.median / layer.predicted for layer in layers]
    predicted = sum(layer.predicted for layer in layers)
    measured = sum(layer.measured.median for layer in layers)
    return (
        f"{count(len(layers), f'{kind} layer')}, {range_text(intensities)} FLOP per byte: predicted "
        f"{seconds_text(predicted)} together, measured {seconds_text(measured)} ({range_text(factors)} times the "
        "prediction)."
    )


def range_text(values: Sequence[float]) -> str:
    """From the smallest to the largest: "7.9 to 133"; one number where they are equal."""
    low, high = f"{min(values):.3g}", f"{max(values):.3g}"
    return low if low == high else f"{low} to {high}"


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
    ax.axvline(ridge, color=style.FAINT, linewidth=0.8, linestyle=BROKEN, zorder=1)
    ax.vlines(x, y, allowed, color="#B8B8B8", linewidth=1, zorder=2)
    colours = [KINDS.get(layer.kind, style.INK) for layer in layers]
    ax.scatter(x, y, s=26, c=colours, zorder=4, edgecolors="white", linewidths=0.5)
    ax.set_ylim(min(y.min(), allowed.min()) / 2, max(peak, y.max()) * 3)
    words = {"fontsize": style.SMALL, "color": style.INK, "parse_math": False}
    anchor = {"textcoords": "offset points", "ha": "left"}
    speed = f"{number_text(peak / 1e9)} GFLOP/s"  # left of the corner: right of it layers lie at the roof
    ax.annotate(speed, (ridge, peak), xytext=(-6, 3), va="bottom", **(anchor | {"ha": "right"}), **words)
    flow = f"{bytes_text(bandwidth)}/s"
    slope = left * (ridge / left) ** 0.8  # above the slope, where no layer's dot or line is
    ax.annotate(flow, (slope, bandwidth * slope), xytext=(-6, 3), va="bottom", **(anchor | {"ha": "right"}), **words)
    beside = {"xycoords": ax.get_xaxis_transform(), "xytext": (4, 3), "textcoords": "offset points", "va": "bottom"}
    ax.annotate(f"ridge: {number_text(ridge)} FLOP per byte", (ridge, 0), **beside, **words)
    longest = {
        layer.kind: index for index, layer in sorted(enumerate(layers), key=lambda pair: pair[1].measured.median)
    }
    for index in longest.values():
        at, height = {"xytext": (7, 0), "ha": "left", "va": "center"}, y[index]
        if x[index] > 0.2 * right:  # near the edge there is no room beside the dot: over or under it and its neighbours
            high, near = y[index] >= allowed[index], y[abs(np.log(x / x[index])) < 0.5]
            height = near.max() if high else near.min()
            at = {"xytext": (0, 6 if high else -6), "ha": "center", "va": "bottom" if high else "top"}
        ax.annotate(layers[index].name, (x[index], height), textcoords="offset points", **at, **words)
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value / 1e9:g}"))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_minor_locator(NullLocator())
    ax.set_xlabel("arithmetic intensity, in FLOP per byte", fontsize=style.TEXT)
    ax.set_ylabel("GFLOP per second", fontsize=style.TEXT)
    ax.grid(color="#EEEEEE", linewidth=0.7)


def draw_times(ax: Axes, layers: "Sequence[Layer]") -> None:
    """For each layer a wide grey bar, the roofline's prediction, and a narrow one in it, the measurement."""
    positions = np.arange(len(layers))
    measured = np.array([layer.measured.median for layer in layers])
    predicted = np.array([layer.predicted for layer in layers])
    scale, unit = time_unit(max(measured.max(), predicted.max()))
    around = [[layer.measured.median - layer.measured.low for layer in layers]]
    around.append([layer.measured.high - layer.measured.median for layer in layers])
    colours = [KINDS.get(layer.kind, style.INK) for layer in layers]
    ax.bar(positions, scale * predicted, width=0.86, color=_PREDICTED, zorder=2)
    whiskers = {"elinewidth": 0.8, "ecolor": style.INK, "capsize": 1.2}
    ax.bar(
        positions,
        scale * measured,
        width=0.44,
        color=colours,
        zorder=3,
        yerr=scale * np.array(around),
        error_kw=whiskers,
    )
    ax.set_xticks(positions, [layer.name for layer in layers], rotation=90, fontsize=style.SMALL - 0.5)
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
    middle, high = (np.array([getattr(times[count], name) for count in counts]) for name in ("median", "high"))
    scale, unit = time_unit(middle.max())
    ax.axvline(cores, color=style.FAINT, linewidth=1, linestyle=BROKEN)
    fine = np.linspace(counts[0], counts[-1], 200)
    ax.plot(fine, scale * middle[0] * counts[0] / fine, color=style.FAINT, linewidth=1.2, zorder=1)
    runs = [times[count].values for count in counts]
    measured_points(ax, counts, runs, style.CURVES[0], scale, fmt="o-", markersize=6, linewidth=1.8, elinewidth=1.2)
    ax.set_ylim(0, scale * min(1.18 * high.max(), 1.8 * middle.max()))  # one disturbed run must not flatten the rest
    spaced = counts[-1] > 12
    if spaced:
        ax.set_xscale("log")
    in_words(ax.xaxis, counts)
    words = {"fontsize": style.SMALL, "color": "#555555", "textcoords": "offset points"}
    text = f"{count(cores, 'core')} allowed"
    at_the_right = cores > 0.75 * counts[-1]
    anchor = {"xytext": (-5 if at_the_right else 5, -2), "ha": "right" if at_the_right else "left", "va": "top"}
    ax.annotate(text, (cores, 1), xycoords=ax.get_xaxis_transform(), **anchor, **words)
    end = (counts[-1], scale * middle[0] * counts[0] / counts[-1])
    ax.annotate("if p threads were p times as fast", end, xytext=(0, -5), ha="right", va="top", **words)
    label(ax, "threads", f"time, in {unit}", grid="y")
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
    right = room_for_names(["max(W/p, D)", *others])
    picture, (ax,) = style.new_picture(title, subtitle, heights=[3.0], left=0.75, right=right, below=0.55)
    low, high = (np.array([bounds[count][side] for count in counts]) for side in (0, 1))
    ax.set(xscale="log", yscale="log")
    ax.fill_between(counts, low, high, color="#CFE3F1", linewidth=0, zorder=1)
    ax.plot(counts, low, color=style.CURVES[0], linewidth=1.3)
    ax.plot(counts, high, color=style.CURVES[0], linewidth=1.3)
    for values in others.values():
        ax.plot(counts, values, color=_OTHER, linewidth=1.5, linestyle=(0, (4, 2)))
    measured_points(ax, counts, [measured[count].values for count in counts], style.INK, zorder=4)
    ax.set_xlim(counts[0] / 1.08, counts[-1] * 1.08)
    in_words(ax.xaxis, counts)
    in_words(ax.yaxis, round_numbers(*ax.get_ylim()))
    label(ax, "workers", "time, in tasks")
    ends = {"W/p + D": high[-1], "max(W/p, D)": low[-1]} | {name: values[-1] for name, values in others.items()}
    name_ends(ax, ends, {name: _OTHER if name in others else style.CURVES[0] for name in ends})
    times_by_count = ", ".join(
        f"{count}: {measured[count].median:.1f} between {bounds[count][0]:.1f} and {bounds[count][1]:.1f}"
        for count in counts
    )
    lines = "".join(f" Dashed, {name}: {', '.join(map(number_text, values))}." for name, values in others.items())
    picture.alt_text = f"Time over the number of workers, with bounds. {title}. {subtitle} {times_by_count}.{lines}"
    return picture
