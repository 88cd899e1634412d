"""What training keeps in memory, part by part: computed beforehand, and under it what was counted."""

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator

from course_utils.draw import style
from course_utils.draw.share_bars import PARTS
from course_utils.errors import CourseError
from course_utils.lessons.model_parallel.memory_parts import Memory
from course_utils.words import bytes_text, join, percent

COMPUTED, COUNTED = "computed", "counted"
_NEAR = 0.05  # within which a formula is called right


def memory(computed: Mapping[str, Memory], counted: Mapping[str, Memory], title: str | None = None) -> Figure:
    """Draw two horizontal bars for each entry, cut into parts: computed, hatched, above counted.

    Args:
        computed: for each name ("4 ranks, sequence cut") what `training_memory` says.
        counted: with the same names, what `measured_memory` found.
        title: said first; the finding (how far the two are apart) then stands under it.
    """
    if not computed or list(computed) != list(counted):
        raise CourseError("memory: one entry at least, and the same names in what was computed and what was counted.")
    bars = {name: (one, counted[name]) for name, one in computed.items()}
    found = memory_finding(bars)
    parts = [part for part in PARTS if any(part in both[0].parts() for both in bars.values())]
    longest = max(one.total for both in bars.values() for one in both) or 1.0
    left = 0.3 + max(style.text_width(name, style.TEXT) for name in bars) / style.DOTS
    ends = [_end(*one) for both in bars.values() for one in _named(both)]
    right = 0.3 + max(style.text_width(end, style.TEXT, bold=True) for end in ends) / style.DOTS
    heading = (title, found) if title else (found, "")
    marks = {part: Patch(facecolor=PARTS[part]) for part in parts}
    above = style.legend_height(list(marks), left, 0.0)
    picture, (ax,) = style.new_picture(*heading, heights=[0.62 * len(bars)], left=left, right=right, above=above)
    for row, both in enumerate(bars.values()):
        for (name, one), y in zip(_named(both), (row - 0.2, row + 0.2), strict=True):
            _bar(ax, one, y, name)
    ax.set_xlim(0, longest)
    ax.set_ylim(len(bars) - 0.5, -0.5)
    ax.set_yticks(range(len(bars)), list(bars), parse_math=False)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10]))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda amount, _: bytes_text(amount) if amount else "0"))
    ax.set_xlabel("bytes on the rank", fontsize=style.TEXT, color="#555555")
    style.draw_legend(ax, marks)
    told = [f"{name}: {join([_told(*one) for one in _named(both)])}." for name, both in bars.items()]
    picture.alt_text = " ".join([f"Bars of memory. {found}.", *told])
    return picture


def _named(both: tuple[Memory, Memory]) -> list[tuple[str, Memory]]:
    return list(zip((COMPUTED, COUNTED), both, strict=True))


def _end(name: str, one: Memory) -> str:
    return f"{bytes_text(one.total)} {name}"


def _told(name: str, one: Memory) -> str:
    inside = ", ".join(f"{part} {bytes_text(amount)}" for part, amount in one.parts().items())
    return f"{name} {inside}, together {bytes_text(one.total)}"


def _bar(ax: Axes, one: Memory, y: float, name: str) -> None:
    """One bar with its sum behind it; what is only computed is hatched."""
    start = 0.0
    for part, amount in one.parts().items():
        ax.barh(y, amount, left=start, height=0.36, color=PARTS[part], edgecolor="white", linewidth=0.6)
        if name == COMPUTED:
            ax.barh(y, amount, left=start, height=0.36, color="none", edgecolor="white", hatch="////", linewidth=0)
        start += amount
    place = {"xytext": (5, 0), "textcoords": "offset points", "va": "center_baseline"}
    weight = "bold" if name == COUNTED else "normal"
    ax.annotate(_end(name, one), (start, y), fontsize=style.TEXT, fontweight=weight, **place)


def differences(computed: Memory, counted: Memory) -> dict[str, float]:
    """How much more than counted was computed, as a share, for each part that there is."""
    pairs = zip(counted.parts().items(), computed.parts().values(), strict=True)
    return {part: said / amount - 1 for (part, amount), said in pairs if amount}


def memory_finding(bars: Mapping[str, tuple[Memory, Memory]]) -> str:
    """How far the formula is from what was counted, at most, and where."""
    each = [(abs(gap), gap, part, name) for name, both in bars.items() for part, gap in differences(*both).items()]
    if not each:
        return "Nothing was counted"
    most, gap, part, name = max(each)
    if most < 0.0005:
        return "What was computed is what was counted, in every part"
    where = f"{part} of {name}" if len(bars) > 1 else part
    if most <= _NEAR:
        return f"What was computed is within {percent(most)} of what was counted, in every part"
    more = "more" if gap > 0 else "less"
    return f"{where[:1].upper()}{where[1:]}: {percent(most)} {more} was computed than counted"
