"""Bars of time cut into parts: how forward, backward, communication and step share a training step."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator, NullLocator

from course_utils.draw import style
from course_utils.errors import CourseError
from course_utils.words import join, percent, seconds_text, time_unit

_ORDER = ("computing", "forward", "backward", "weight gradient", "communication", "step", "optimizer", "wait", "idle")


def stacked_bars(bars: Mapping[str, Mapping[str, float]], title: str | None = None) -> Figure:
    """Draw one horizontal bar for each entry, cut into parts of time.

    Args:
        bars: seconds of each part, by the bar's name ("serial", "4 ranks") and the part's ("forward", …).
        title: said first; the finding (the share of communication, or of the largest part) then stands under it.
    """
    parts = parts_in_order(bars)
    totals = {name: sum(seconds.values()) for name, seconds in bars.items()}
    found = bars_finding(bars, totals)
    longest = max(totals.values(), default=0.0) or 1e-3
    scale, unit = time_unit(longest)
    left = 0.3 + max((style.text_width(name, style.TEXT) for name in bars), default=40) / style.DOTS
    right = 0.3 + style.text_width(seconds_text(longest), style.TEXT) / style.DOTS
    heading = (title, found) if title else (found, "")
    above = style.legend_height(parts, left, right)
    height = 0.42 * max(len(bars), 1)
    picture, (ax,) = style.new_picture(*heading, heights=[height], left=left, right=right, above=above)
    ax.set_xlim(0, longest * scale)
    ax.set_ylim(max(len(bars), 1) - 0.5, -0.5)
    pixels = (style.WIDTH - left - right) * style.DOTS / (longest * scale)
    colours = style.colours_of(parts)
    for row, (name, seconds) in enumerate(bars.items()):
        start = 0.0
        for part in parts:
            length = seconds.get(part, 0.0) * scale
            look = {"color": colours[part], "edgecolor": "white", "linewidth": 0.6}
            ax.barh(row, length, left=start, height=0.68, **look)
            words = seconds_text(length / scale)
            if length > 0 and style.text_width(words) + 8 <= length * pixels:
                ink = "white" if colours[part] in (style.COLOURS["forward"], style.COLOURS["step"]) else style.INK
                ax.text(start + length / 2, row, words, ha="center", va="center", fontsize=style.SMALL, color=ink)
            start += length
        place = {"xytext": (5, 0), "textcoords": "offset points", "va": "center"}
        ax.annotate(seconds_text(totals[name]), (start, row), fontsize=style.TEXT, fontweight="bold", **place)
    ax.set_yticks(range(len(bars)), list(bars), parse_math=False)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.xaxis.set_major_locator(MaxNLocator(7, steps=[1, 2, 5, 10]) if any(totals.values()) else NullLocator())
    ax.set_xlabel(f"time, in {unit}", fontsize=style.TEXT, color="#555555")
    style.draw_legend(ax, {part: Patch(facecolor=colours[part]) for part in parts})
    told = []
    for name, total in totals.items():
        lengths = ", ".join(f"{part} {seconds_text(length)}" for part, length in bars[name].items())
        told.append(f"{name}: {lengths}, together {seconds_text(total)}.")
    picture.alt_text = " ".join([f"Stacked bars of time. {found}.", *told])
    return picture


def parts_in_order(bars: Mapping[str, Mapping[str, float]]) -> list[str]:
    """The parts' names: those with a meaning in their fixed order, then the rest as they come."""
    named: list[str] = []
    for bar, seconds in bars.items():
        if not isinstance(seconds, Mapping):
            raise CourseError(
                f'stacked_bars: {bar!r} needs its parts by name, e.g. {{"forward": 0.2, "backward": 0.4}}.'
            )
        wrong = [part for part, length in seconds.items() if not np.isfinite(length) or length < 0]
        if wrong:
            raise CourseError(
                f"stacked_bars: {wrong[0]!r} of {bar!r} is {seconds[wrong[0]]}; seconds are never below 0."
            )
        named += [part for part in seconds if part not in named]
    return [part for part in _ORDER if part in named] + [part for part in named if part not in _ORDER]


def bars_finding(bars: Mapping[str, Mapping[str, float]], totals: Mapping[str, float]) -> str:
    """The share of communication in each bar; where there is none, the largest part of the longest bar."""
    filled = {name: seconds for name, seconds in bars.items() if totals[name] > 0}
    if not filled:
        return "No time was measured"
    shares = {name: seconds.get("communication", 0.0) / totals[name] for name, seconds in filled.items()}
    if any(shares.values()):
        if len(shares) > 4:
            low, high = min(shares.values()), max(shares.values())
            return f"Communication takes {percent(low)} to {percent(high)} of the time"
        said = [f"{percent(share)} ({name})" for name, share in shares.items() if share]
        return f"Communication takes {join(said)}"
    longest = max(filled, key=totals.__getitem__)
    part = max(filled[longest], key=filled[longest].__getitem__)
    return f"{part[:1].upper()}{part[1:]} takes {percent(filled[longest][part] / totals[longest])} of {longest}"
