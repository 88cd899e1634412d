"""Bars of measured times with the range of all runs; published ones stand beside them, hatched."""

from collections.abc import Collection, Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from course_utils.draw import style
from course_utils.measuring import Measured
from course_utils.words import seconds_text, time_unit

PUBLISHED = "published, not measured here"
_GREY = "#9A9A9A"


def measured_bars(
    groups: Mapping[str, Mapping[str, Measured]],
    title: str,
    subtitle: str = "",
    published: Collection[str] = (),
    x: str = "time",
) -> Figure:
    """Draw horizontal bars of seconds in groups of one colour each: the median, and a whisker from lowest to highest.

    Args:
        groups: group → the bar's name → seconds.
        published: groups that nobody measured here; hatched and grey.
        x: what the axis shows.
    """
    bars = [(group, name, values) for group, inside in groups.items() for name, values in inside.items()]
    longest = max(values.median for _, _, values in bars)
    longest = min(1.6 * longest, max(values.high for _, _, values in bars))  # one disturbed run must not dwarf the rest
    scale, unit = time_unit(longest)
    names = [name for _, name, _ in bars]
    left = 0.3 + max(style.text_width(name, style.TEXT) for name in names) / style.DOTS
    labels = {group: f"{group} ({PUBLISHED})" if group in published else group for group in groups}
    above = style.legend_height(list(labels.values()), left, 0.75)
    picture, (ax,) = style.new_picture(title, subtitle, heights=[0.36 * len(bars)], left=left, right=0.75, above=above)
    colours = dict(zip([group for group in groups if group not in published], style.CURVES, strict=False))
    looks = {group: look_of(colours.get(group)) for group in groups}
    for row, (group, _, values) in enumerate(bars):
        ax.barh(row, scale * values.median, height=0.7, **looks[group])
        if values.high > values.low:
            reach = scale * np.array([[values.median - values.low], [values.high - values.median]])
            ax.errorbar(scale * values.median, row, xerr=reach, color=style.INK, elinewidth=1, capsize=2.5)
        text, end = seconds_text(values.median), scale * min(values.high, longest)
        ax.annotate(text, (end, row), xytext=(5, 0), textcoords="offset points", va="center", fontsize=style.TEXT)
    finish(ax, names, f"{x}, in {unit}")
    ax.set_xlim(0, scale * longest)
    style.draw_legend(ax, {labels[group]: Patch(**looks[group]) for group in groups})
    told = "; ".join(
        f"{labels[group]}, {name}: {seconds_text(values.median)} "
        f"({seconds_text(values.low)} to {seconds_text(values.high)})"
        for group, name, values in bars
    )
    picture.alt_text = f"Bars of time. {title}. {subtitle} {told}."
    return picture


def look_of(colour: str | None) -> dict:
    """How the bars of a group look: filled, or hatched where the values are published ones."""
    if colour is None:
        return {"facecolor": "white", "edgecolor": _GREY, "hatch": "///", "linewidth": 0.8}
    return {"facecolor": colour, "edgecolor": "white", "linewidth": 0.8}


def finish(ax: Axes, names: list[str], x: str) -> None:
    """Name the rows and the axis."""
    ax.set_yticks(range(len(names)), names, parse_math=False)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.set_xlabel(x, fontsize=style.TEXT, color="#555555")
