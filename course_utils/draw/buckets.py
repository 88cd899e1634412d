"""Pictures of lesson 7: the step time over the bucket size, and what compressed gradients cost and bring."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from course_utils.draw import style
from course_utils.words import bytes_text, percent, seconds_text, time_unit

if TYPE_CHECKING:
    from course_utils.lessons.overlap.compressed_training import Compressed


def bucket_sweep(
    measured: Mapping[int, Sequence[float]],
    predicted: Callable[[int], float],
    best: int,
    computing: float,
    title: str,
    last: str = "",
) -> Figure:
    """Draw the step time over the bucket size: runs measured, a line predicted, the predicted optimum marked.

    Args:
        measured: bucket size in bytes → the seconds of all steps.
        predicted: seconds of a step for a bucket size.
        best: the bucket size with the shortest predicted step.
        computing: seconds of a step without communication.
        last: said under the title.
    """
    sizes = sorted(measured)
    picture, (ax,) = style.new_picture(title, last, heights=[2.9], left=0.75, right=0.25, below=0.55, above=0.3)
    fine = np.unique(np.geomspace(sizes[0], sizes[-1], 300).astype(int))
    line = np.array([predicted(int(size)) for size in fine])
    scale, unit = time_unit(max(line.max(), *(np.median(runs) for runs in measured.values())))
    work, sent = style.COLOURS["computing"], style.COLOURS["communication"]
    ax.set_xscale("log")
    ax.axhspan(0, scale * computing, color=work, alpha=0.3, linewidth=0)
    ax.plot(fine, scale * line, color=sent, linewidth=2.2, zorder=2)
    middle = np.array([np.median(measured[size]) for size in sizes])
    ends = np.array([[min(measured[size]), max(measured[size])] for size in sizes])
    whiskers = scale * np.abs(ends.T - middle)
    ax.errorbar(sizes, scale * middle, whiskers, fmt="o", color=style.INK, markersize=5, capsize=2.5, zorder=3)
    ax.plot(best, scale * predicted(best), "o", color=sent, markersize=15, markerfacecolor="none", markeredgewidth=2)
    highest = max(line.max(), middle.max())
    top = scale * max(1.15 * highest, 1.05 * min(ends.max(), 2 * highest))  # a step far above all is cut
    ax.set_ylim(0, top)
    ax.set_xlim(sizes[0] / 1.3, sizes[-1] * 1.3)
    ax.xaxis.set_major_locator(FixedLocator(sizes))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda size, _: bytes_text(size)))
    ax.set_xlabel("bucket size", fontsize=style.TEXT)
    ax.set_ylabel(f"time of a step, in {unit}", fontsize=style.TEXT)
    words = {"ha": "center", "va": "top", "fontsize": style.SMALL}
    ax.text(np.sqrt(sizes[0] * sizes[1]), scale * computing * 0.94, "computing", **words)
    marks = {
        "measured (all runs)": Line2D([], [], color=style.INK, marker="o", markersize=5),
        "predicted": Line2D([], [], color=sent, linewidth=2.2),
        "predicted optimum": Line2D(
            [], [], linestyle="", marker="o", color=sent, markersize=11, markerfacecolor="none"
        ),
    }
    style.draw_legend(ax, marks)
    told = "; ".join(f"{bytes_text(s)}: {seconds_text(m)}" for s, m in zip(sizes, middle, strict=True))
    picture.alt_text = f"Step time over bucket size. {title}. Predicted optimum {bytes_text(best)}. {told}."
    return picture


def compression(found: Mapping[str, "Compressed"], title: str) -> Figure:
    """Draw bytes, time and accuracy of each way of compressing gradients, in columns that share their rows.

    Args:
        found: way → what `train_compressed` gave back on one rank.
    """
    columns = [
        ("sent by a node, a step", bytes_text, {how: one.bytes_per_step for how, one in found.items()}),
        ("time of a step", seconds_text, {how: one.step for how, one in found.items()}),
        ("test images recognised", percent, {how: one.accuracy for how, one in found.items()}),
    ]
    return side_by_side(columns, title)


Shown = tuple[str, Callable[[float], str], Mapping[str, float | None]]
"""One column of `side_by_side`: what it shows, a value in words, and the values; None where there is none."""


def side_by_side(columns: Sequence[Shown], title: str, subtitle: str = "") -> Figure:
    """Draw horizontal bars in several columns that share their rows: bytes, time and accuracy of each way.

    Args:
        columns: all with the same names, in the order of the rows.
    """
    names = list(columns[0][2])
    left = 0.3 + max(style.text_width(name, style.TEXT) for name in names) / style.DOTS
    look = {"left": 0.1, "right": 0.62, "below": 0.5, "above": 0.26, "side_by_side": True}
    picture, axes = style.new_picture(title, subtitle, heights=[0.4 * len(names)] * len(columns), **look)
    width, room = style.WIDTH, (style.WIDTH - left) / len(columns)
    paints = (style.SEND, style.COLOURS["forward"], style.COLOURS["step"])
    for place, (ax, (what, say, values), paint) in enumerate(zip(axes, columns, paints, strict=False)):
        box = ax.get_position()
        ax.set_position(((left + place * room) / width, box.y0, (room - 0.62) / width, box.height))
        _column(ax, what, say, values, paint)
    axes[0].set_yticks(range(len(names)), names, fontsize=style.TEXT)
    rows = [f"{what}: {_told(say, values)}" for what, say, values in columns]
    picture.alt_text = f"Bars side by side. {title}. {subtitle} {'. '.join(rows)}."
    return picture


def _told(say: Callable[[float], str], values: Mapping[str, float | None]) -> str:
    return ", ".join(f"{name} {'not counted' if value is None else say(value)}" for name, value in values.items())


def _column(ax: Axes, what: str, say: Callable[[float], str], values: Mapping[str, float | None], paint: str) -> None:
    """One column: a bar for each row, its value in words at its end."""
    for row, value in enumerate(values.values()):
        ax.barh(row, value or 0.0, height=0.62, color=paint)
        text = "not counted" if value is None else say(value)
        ax.annotate(text, (value or 0.0, row), xytext=(4, 0), textcoords="offset points", va="center", fontsize=8)
    ax.set_ylim(len(values) - 0.5, -0.5)
    ax.set_xlim(0, max(value or 0.0 for value in values.values()) or 1.0)
    ax.set_yticks([])
    ax.tick_params(axis="y", length=0)
    ax.xaxis.set_major_locator(MaxNLocator(3, steps=[1, 2, 5, 10]))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: say(value) if value else "0"))
    ax.tick_params(axis="x", labelsize=style.SMALL)
    ax.spines["left"].set_visible(False)
    ax.set_title(what, fontsize=style.TEXT, loc="left", pad=5)
