"""Drawings of lesson 4: the time of a message over its size, the cluster behind the ranks, and who has trained what."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from course_utils.draw import style
from course_utils.draw.bars import name_rows, room_for_ends, room_for_names, write_end
from course_utils.draw.lines import BROKEN, in_words, label, round_numbers
from course_utils.errors import CourseError
from course_utils.words import bytes_text, count, seconds_text


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


def cluster(notebook: int, controller: str, engines: Sequence[int], title: str | None = None) -> Figure:
    """Draw a cluster of ipyparallel: the notebook, its controller, the engines, and MPI between the engines.

    Args:
        notebook: the number of the notebook's process.
        controller: where it listens, such as "127.0.0.1:41229".
        engines: the number of each engine's process, in the order of ranks.
    """
    if not engines:
        raise CourseError("cluster: give the process of one engine at least.")
    found = "Code reaches the ranks through the controller; messages bypass it"
    heading = (title, found) if title else (found, "")
    ranks = len(engines)
    picture, (ax,) = style.new_picture(*heading, heights=[0.56 * max(ranks, 2)], left=0.15, right=0.15, below=0.15)
    ax.set_axis_off()
    ax.set_xlim(-0.03, 10)
    ax.set_ylim(max(ranks, 2) - 0.5, -0.5)
    middle = (max(ranks, 2) - 1) / 2
    steps, messages = style.COLOURS["computing"], style.COLOURS["communication"]
    _box(ax, (0.0, 2.3), middle, f"your notebook\nprocess {notebook}", style.paler(steps))
    _box(ax, (3.5, 5.8), middle, f"controller\n{controller}", style.GRID)
    _arrow(ax, (2.3, middle), (3.5, middle), steps)
    rows = [row + (max(ranks, 2) - ranks) / 2 for row in range(ranks)]
    for rank, (row, process) in enumerate(zip(rows, engines, strict=True)):
        _box(ax, (7.0, 9.0), row, f"engine {rank}\nprocess {process}", style.paler(steps))
        _arrow(ax, (5.8, middle), (7.0, row), steps)
    if ranks > 1:
        ax.plot([9.3, 9.3], [rows[0], rows[-1]], color=messages, linewidth=5, solid_capstyle="round")
        for row in rows:
            ax.plot([9.0, 9.3], [row, row], color=messages, linewidth=2.5)
        ax.text(9.45, middle, "MPI", color=style.SEND, fontsize=style.TEXT, fontweight="bold", va="center")
    listed = ", ".join(f"engine {rank} is process {process}" for rank, process in enumerate(engines))
    picture.alt_text = (
        f"A cluster of ipyparallel. {found}. Your notebook, process {notebook}, is joined to a controller at "
        f"{controller}, and the controller to {count(ranks, 'engine')}: {listed}. MPI joins the engines."
    )
    return picture


def _box(ax: Axes, sides: tuple[float, float], row: float, words: str, colour: object) -> None:
    left, right = sides
    frame = {"facecolor": colour, "edgecolor": style.FAINT, "linewidth": 0.8}
    ax.barh(row, right - left, left=left, height=0.78, **frame)
    middle = {"ha": "center", "va": "center", "fontsize": style.SMALL, "color": style.INK, "linespacing": 1.4}
    ax.text((left + right) / 2, row, words, **middle)


def _arrow(ax: Axes, start: tuple[float, float], end: tuple[float, float], colour: str) -> None:
    looks = {"arrowstyle": "<->", "color": colour, "linewidth": 1.2, "shrinkA": 1, "shrinkB": 1}
    ax.annotate("", end, start, arrowprops=looks)


def dealt_trainings(ways: Mapping[str, Sequence[Mapping[str, int]]], title: str | None = None) -> Figure:
    """Draw which rank has made which trainings, as bars whose length is the number of gradient steps.

    Args:
        ways: how the trainings were dealt out → for each rank, the name of each of its trainings → its steps.
    """
    if not ways or any(len(deal) != len(next(iter(ways.values()))) for deal in ways.values()):
        raise CourseError("dealt_trainings: every way needs the same ranks, and there must be one at least.")
    found = dealing_finding({way: busiest(deal) for way, deal in ways.items()})
    heading = (title, found) if title else (found, "")
    ranks = len(next(iter(ways.values())))
    names = [f"rank {rank}" for rank in range(ranks)]
    longest = max(busiest(deal) for deal in ways.values())
    margins = {"left": room_for_names(names), "right": room_for_ends([f"{longest:,} steps"], 0.15), "above": 0.28}
    picture, axes = style.new_picture(*heading, heights=[0.36 * ranks] * len(ways), **margins, below=0.25, between=0.45)
    for ax, (way, deal) in zip(axes, ways.items(), strict=True):
        ax.set_xlim(0, longest or 1)
        for rank, trainings in enumerate(deal):
            _draw_trainings(ax, rank, trainings, last=sum(trainings.values()) == busiest(deal))
        name_rows(ax, names)
        ax.set_xticks([])
        ax.spines["bottom"].set_visible(False)
        ax.set_title(way, fontsize=style.TEXT, fontweight="bold", loc="left", pad=4)
    picture.alt_text = f"Bars of gradient steps. {found}. " + " ".join(
        f"{way}: {'; '.join(f'rank {rank}: {_trainings_text(each)}' for rank, each in enumerate(deal))}."
        for way, deal in ways.items()
    )
    return picture


def _draw_trainings(ax: Axes, rank: int, trainings: Mapping[str, int], last: bool) -> None:
    """Draw the trainings of a rank, each with its name where there is room, and how many steps they are together."""
    colours = style.COLOURS["computing"], style.OTHERS[0]  # by turns, so that neighbours can be told apart
    pixels = ax.get_position().width * ax.figure.get_figwidth() * style.DOTS / ax.get_xlim()[1]
    start = 0
    for number, (name, steps) in enumerate(trainings.items()):
        colour = colours[number % 2]
        ax.barh(rank, steps, left=start, height=0.7, color=colour, edgecolor="white", linewidth=0.8)
        if style.text_width(name) + 4 <= steps * pixels:
            centred = {"ha": "center", "va": "center", "fontsize": style.SMALL, "color": style.ink_on(colour)}
            ax.text(start + steps / 2, rank, name, **centred)
        start += steps
    write_end(ax, rank, start, f"{start:,} steps", bold=last)


def _trainings_text(trainings: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {steps}" for name, steps in trainings.items()) or "nothing"


def busiest(deal: Sequence[Mapping[str, int]]) -> int:
    """Return the steps of the rank that makes the most of them."""
    return max((sum(trainings.values()) for trainings in deal), default=0)


def dealing_finding(most: Mapping[str, int]) -> str:
    """Return in words which way of dealing leaves the busiest rank the least to do.

    Args:
        most: how the trainings were dealt out → the steps of its busiest rank.
    """
    first, *others = sorted(most, key=most.__getitem__)
    if not others or most[others[-1]] == most[first]:
        return f"The busiest rank makes {most[first]:,} steps"
    return f"Dealt out {first}, the busiest rank makes {most[first]:,} steps, not {most[others[-1]]:,}"
