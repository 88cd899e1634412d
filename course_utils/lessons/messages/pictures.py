"""Drawings of lesson 4: the time of a message over its size, with the line α + β·n through it."""

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from course_utils.draw import style
from course_utils.draw.lines import BROKEN, in_words, label, round_numbers
from course_utils.errors import CourseError
from course_utils.words import bytes_text, seconds_text


def alpha_beta(
    sizes: Sequence[float], seconds: Sequence[float], alpha: float, beta: float, title: str | None = None
) -> Figure:
    """Draw the time of a message over its size on logarithmic axes, with the line seconds = α + β · bytes.

    Args:
        sizes: bytes in each message measured; a message of 0 bytes stands at the left edge.
        seconds: the time of each, one way.
        alpha: seconds that every message costs, however short.
        beta: seconds that each byte adds.
    """
    n, t = np.asarray(sizes, float), np.asarray(seconds, float)
    if n.shape != t.shape or n.ndim != 1 or not len(n):
        raise CourseError("alpha_beta: give as many seconds as sizes, at least one of each.")
    found = alpha_beta_finding(alpha, beta)
    heading = (title, found) if title else (found, "")
    picture, (ax,) = style.new_picture(*heading, heights=[2.9], left=0.85, right=0.3, below=0.55)
    smallest = n[n > 0].min() if (n > 0).any() else 1.0
    zero = smallest / 8
    ax.set_xscale("log")
    ax.set_yscale("log")
    line = np.geomspace(zero if (n == 0).any() else smallest / 1.5, 1.5 * max(n.max(), smallest), 200)
    fitted = alpha + beta * line
    ax.plot(line, np.where(fitted > 0, fitted, np.nan), color=style.COLOURS["communication"], linewidth=2.2, zorder=2)
    shown = t > 0
    ax.plot(np.where(n > 0, n, zero)[shown], t[shown], "o", color=style.INK, markersize=5, zorder=3)
    top = max(t[shown].max(initial=1e-9), np.nanmax(fitted))
    bottom = min(t[shown].min(initial=np.inf), np.nanmin(np.where(fitted > 0, fitted, np.nan)))
    ax.set_ylim(bottom / 2.2, top * 1.8)
    ax.set_xlim(line[0] / 1.2, line[-1])
    _sizes_in_words(ax, zero if (n == 0).any() else None)
    in_words(ax.yaxis, round_numbers(*ax.get_ylim()), seconds_text)
    label(ax, "size of the message", "time, one way")
    if alpha > 0 and beta > 0:
        describe_parts(ax, alpha, beta)
    measured = ", ".join(f"{bytes_text(size)} in {seconds_text(time)}" for size, time in zip(n, t, strict=True))
    picture.alt_text = (
        f"Time of a message over its size, logarithmic axes: measured points and a line. {found}. {measured}."
    )
    return picture


def alpha_beta_finding(alpha: float, beta: float) -> str:
    """α and β in words: what a message costs before its first byte, and what the bytes cost."""
    if alpha <= 0 or beta <= 0:
        return f"The line does not describe messages: α = {alpha:.2g} s, β = {beta:.2g} s per byte"
    start = f"A message costs {seconds_text(alpha)} (α)"
    each = seconds_text(beta * 1e6)
    return f"{start} plus {each} for each MB (β): {bytes_text(1 / beta)}/s"


def _sizes_in_words(ax: Axes, zero: float | None) -> None:
    """Bytes at the powers of ten, and where messages of no bytes stand."""
    left, right = ax.get_xlim()
    powers = [10.0**power for power in range(13)]
    inside = [size for size in powers if left <= size <= right and (zero is None or size > 2 * zero)]
    in_words(ax.xaxis, [*([zero] if zero else []), *inside], lambda size: "0 B" if size == zero else bytes_text(size))


def describe_parts(ax: Axes, alpha: float, beta: float) -> None:
    """Draw α and β · n on their own, thinly, and the size at which both are equal."""
    sizes = np.array(ax.get_xlim())
    line_style = {"color": style.FAINT, "linewidth": 1, "linestyle": BROKEN, "zorder": 1}
    ax.plot(sizes, [alpha, alpha], **line_style)
    ax.plot(sizes, beta * sizes, **line_style)
    words = {"fontsize": style.SMALL, "color": "#555555", "parse_math": False}
    even = alpha / beta
    if sizes[0] * 3 < even < sizes[1] / 3:
        ax.axvline(even, **line_style)
        text = f"both parts equal: {bytes_text(even)}"
        late = math.log(even / sizes[0]) > 0.6 * math.log(sizes[1] / sizes[0])
        where = {"xytext": (-5 if late else 5, -4), "textcoords": "offset points", "ha": "right" if late else "left"}
        ax.annotate(text, (even, 1), xycoords=ax.get_xaxis_transform(), va="top", **where, **words)
    if alpha > ax.get_ylim()[0]:
        text_position = {"xytext": (-3, -4), "textcoords": "offset points", "ha": "right", "va": "top"}
        ax.annotate(f"α = {seconds_text(alpha)}", (sizes[1], alpha), **text_position, **words)
