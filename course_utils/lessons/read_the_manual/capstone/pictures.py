"""Budget against use, as bars: accuracy, bytes and image passes of a training run, next to naive data parallelism."""

from collections.abc import Callable

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from course_utils.draw import style
from course_utils.lessons.read_the_manual.capstone.result import (
    ACCURACY,
    COUNTED,
    PASSES,
    CapstoneResult,
    megabytes_text,
)
from course_utils.lessons.read_the_manual.capstone.task import BUDGET, NAIVE_PASSES
from course_utils.words import percent

YOURS, NAIVE = "this training run", "naive data parallelism, counted in a few steps"


def budget_bars(result: CapstoneResult) -> Figure:
    """Draw three panels, one below the other; a line marks what is asked for."""
    missed = result.misses()
    title = f"Missed: {', '.join(missed)}" if missed else "Within all budgets, and accurate enough"
    left = 0.3 + style.text_width("bytes out of a node", style.TEXT) / style.DOTS
    marks = {
        YOURS: Patch(facecolor=style.CURVES[0]),
        NAIVE: Patch(facecolor=style.COLOURS["idle"]),
        "asked for": Line2D([], [], color=style.STUCK, linewidth=2),
    }
    above = style.legend_height(list(marks), left, 0.9)
    picture, axes = style.new_picture(
        title,
        COUNTED[result.links],
        heights=[0.3, 0.5, 0.5],
        between=0.3,
        left=left,
        right=0.9,
        below=0.25,
        above=above,
    )
    accuracy = (result.accuracy, None, BUDGET.accuracy, lambda share: percent(share, 1))
    sent = (max(result.sent), result.naive_sent, BUDGET.bytes, megabytes_text)
    passes = (max(result.passes), NAIVE_PASSES, BUDGET.passes, "{:,}".format)
    panels = {ACCURACY: accuracy, "bytes out of a node": sent, PASSES: passes}
    texts = [_panel(ax, name, *amounts) for ax, (name, amounts) in zip(axes, panels.items(), strict=True)]
    style.draw_legend(axes[0], marks)
    picture.alt_text = " ".join([f"Bars. {title}.", *texts, COUNTED[result.links]])
    return picture


def _panel(ax: Axes, name: str, own: float, naive: float | None, asked: float, say: Callable[[float], str]) -> str:
    """Draw one panel; returns its words."""
    bars = [(own, style.CURVES[0])] + ([(naive, style.COLOURS["idle"])] if naive is not None else [])
    longest = 1.0 if naive is None else 1.02 * max(own, naive, asked)
    ax.set_xlim(0, longest)
    ax.set_ylim(len(bars) - 0.5, -0.5)
    ax.axvline(asked, color=style.STUCK, linewidth=2)
    pixels = ax.get_position().width * style.WIDTH * style.DOTS / longest
    for row, (value, colour) in enumerate(bars):
        ax.barh(row, value, height=0.8, color=colour)
        room = (asked - value) * pixels
        crossed = -4 < room < style.text_width(say(value), style.TEXT) + 8  # then the words stand behind the line
        beside = {"xytext": (5, 0), "textcoords": "offset points", "va": "center", "fontsize": style.TEXT}
        ax.annotate(say(value), (max(value, asked) if crossed else value, row), **beside)
    ax.set_yticks([(len(bars) - 1) / 2], [name])
    ax.set_xticks([])
    ax.tick_params(axis="y", length=0)
    ax.spines[["left", "bottom"]].set_visible(False)
    beside_naive = f", naive data parallelism {say(naive)}" if naive is not None else ""
    return f"{name}: {say(own)}, asked for {say(asked)}{beside_naive}."
