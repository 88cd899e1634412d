"""Charts of horizontal bars, laid out once: cut into parts, with whiskers, in panels; published values are hatched.

`stacked_bars`, `shares`, `measured_bars` and `above_bound` are whole charts. Where a lesson's picture needs more, it is
put together from the parts at the end.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator

from course_utils.draw import style
from course_utils.errors import CourseError
from course_utils.measuring import Measured
from course_utils.words import as_sentences, bytes_text, join, percent, seconds_text, time_unit

_ORDER = ("computing", "forward", "backward", "weight gradient", "communication", "step", "optimizer", "wait", "idle")


def stacked_bars(
    bars: Mapping[str, Mapping[str, float]], title: str | None = None, subtitle: str | None = None
) -> Figure:
    """Draw one bar for each entry, cut into parts of time.

    Args:
        bars: seconds of each part, by the bar's name ("serial", "4 ranks") and the part's ("forward", …).
        title: said first; the finding (the share of communication, or of the largest part) then stands under it.
        subtitle: takes the place of that finding.
    """
    parts = parts_in_order(bars)
    totals = {name: sum(seconds.values()) for name, seconds in bars.items()}
    found = bars_finding(bars, totals)
    longest = max(totals.values(), default=0.0) or 1e-3
    left, right = room_for_names(bars), room_for_ends([seconds_text(longest)])
    heading = (title, found if subtitle is None else subtitle) if title else (found, "")
    above = style.legend_height(parts, left, right)
    height = 0.42 * max(len(bars), 1)
    picture, (ax,) = style.new_picture(*heading, heights=[height], left=left, right=right, above=above)
    time_axis(ax, longest)
    looks = {part: {"color": colour} for part, colour in style.colours_of(parts).items()}
    for row, (name, seconds) in enumerate(bars.items()):
        end = draw_parts(ax, row, {part: seconds.get(part, 0.0) for part in parts}, looks, seconds_text)
        write_end(ax, row, end, seconds_text(totals[name]), bold=True)
    name_rows(ax, bars)
    style.draw_legend(ax, {part: Patch(facecolor=properties["color"]) for part, properties in looks.items()})
    texts = []
    for name, total in totals.items():
        lengths = ", ".join(f"{part} {seconds_text(length)}" for part, length in bars[name].items())
        texts.append(f"{name}: {lengths}, together {seconds_text(total)}.")
    alternative = as_sentences(*heading)
    picture.alt_text = " ".join([f"Stacked bars of time. {alternative}", *texts])
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
    shares_of_messages = {name: seconds.get("communication", 0.0) / totals[name] for name, seconds in filled.items()}
    if any(shares_of_messages.values()):
        if len(shares_of_messages) > 4:
            low, high = min(shares_of_messages.values()), max(shares_of_messages.values())
            return f"Communication takes {percent(low)} to {percent(high)} of the time"
        share_texts = [f"{percent(share)} ({name})" for name, share in shares_of_messages.items() if share]
        return f"Communication takes {join(share_texts)}"
    if any("communication" in seconds for seconds in filled.values()):
        return "Communication takes no time of its own"
    longest = max(filled, key=totals.__getitem__)
    part = max(filled[longest], key=filled[longest].__getitem__)
    return f"{part[:1].upper()}{part[1:]} takes {percent(filled[longest][part] / totals[longest])} of {longest}"


PARTS = {
    "parameters": style.COLOURS["forward"],
    "gradients": style.COLOURS["backward"],
    "optimizer state": style.COLOURS["optimizer"],
    "state": style.COLOURS["optimizer"],
    "activations": style.OTHERS[0],
    "sent": style.COLOURS["communication"],
    "data": style.COLOURS["communication"],
    "pipeline": style.OTHERS[1],
    "tensor": style.SEND,
}
"""The colour of what takes memory, of what travels, and along which axis of a mesh."""
FORMULA = "by the formula"


@dataclass(frozen=True)
class SharesPanel:
    """One axes of the picture.

    Attributes:
        name: what it shows, "kept by each rank".
        bars: the bar's name ("stage 1") → its parts' amounts; the same names in every panel.
        formula: the bar's name → the sum that a formula gives.
        say: an amount in words.
    """

    name: str
    bars: Mapping[str, Mapping[str, float]]
    formula: Mapping[str, float] = field(default_factory=dict)
    say: Callable[[float], str] = bytes_text

    @property
    def longest(self) -> float:
        """The largest sum, counted or by the formula."""
        return max([*(sum(parts.values()) for parts in self.bars.values()), *self.formula.values()]) or 1.0


def shares(panels: Sequence[SharesPanel], title: str, subtitle: str = "") -> Figure:
    """Draw bars cut into parts, the panels side by side; a black line marks what a formula says."""
    if not panels or any(list(panel.bars) != list(panels[0].bars) for panel in panels) or not panels[0].bars:
        raise CourseError("shares: every panel needs the same bars, one at least.")
    names = list(panels[0].bars)
    parts = list(dict.fromkeys(part for panel in panels for bar in panel.bars.values() for part in bar))
    own = iter([colour for colour in style.CURVES if colour not in {PARTS.get(part) for part in parts}])
    colours = {part: PARTS.get(part) or next(own) for part in parts}
    cut = any(len(bar) > 1 for panel in panels for bar in panel.bars.values())
    marks: dict = {part: Patch(facecolor=colours[part]) for part in parts} if cut else {}
    if any(panel.formula for panel in panels):
        marks[FORMULA] = Line2D([], [], color=style.INK, linewidth=2, marker="|", markersize=9, linestyle="none")
    left = room_for_names(names)
    above = 0.3 + (style.legend_height(list(marks), left) if marks else 0.0)
    margins = {"left": left, "right": 0.2, "below": 0.5, "above": above}
    picture, (first,) = style.new_picture(title, subtitle, heights=[0.4 * len(names)], **margins)
    axes = _side_by_side(picture, first, panels)
    for index, (ax, panel) in enumerate(zip(axes, panels, strict=True)):
        _draw_panel(ax, panel, colours, inside=len(panels) == 1)
        name_rows(ax, names if index == 0 else [""] * len(names))
    style.draw_legend(axes[0], marks, offset=0.32)
    picture.alt_text = " ".join(["Bars.", f"{title}.", subtitle, *(_panel_text(panel) for panel in panels)])
    return picture


def _side_by_side(picture: Figure, first: Axes, panels: Sequence[SharesPanel]) -> list[Axes]:
    """Divide the place of the first axes among all panels, with room for the amount at each longest bar's end."""
    box, width = first.get_position(), style.WIDTH
    rooms = [room_for_ends([panel.say(sum(parts.values())) for parts in panel.bars.values()], 0.12) for panel in panels]
    each = (box.width * width - sum(rooms) - 0.15 * (len(panels) - 1)) / len(panels)
    axes, x = [first], box.x0 * width
    for index, room in enumerate(rooms):
        if index:
            axes.append(picture.add_axes((0, 0, 1, 1)))
            axes[-1].spines[["top", "right"]].set_visible(False)
            axes[-1].spines["bottom"].set_color(style.FAINT)
        axes[-1].set_position((x / width, box.y0, each / width, box.height))
        x += each + room + 0.15
    return axes


def _draw_panel(ax: Axes, panel: SharesPanel, colours: Mapping[str, str], inside: bool) -> None:
    looks = {part: {"color": colour} for part, colour in colours.items()}
    ax.set_xlim(0, panel.longest)
    for row, (name, parts) in enumerate(panel.bars.items()):
        end = draw_parts(ax, row, parts, looks, panel.say if inside and len(parts) > 1 else None)
        write_end(ax, row, max(end, panel.formula.get(name, 0.0)), panel.say(end))
        if name in panel.formula:
            ax.plot([panel.formula[name]] * 2, [row - 0.43, row + 0.43], color=style.INK, linewidth=2, clip_on=False)
    amounts_in_words(ax, panel.say, most=5 if inside else 3)
    ax.tick_params(axis="x", labelsize=style.SMALL, color=style.FAINT)
    ax.set_title(panel.name, fontsize=style.TEXT, fontweight="bold", loc="left", pad=5)


def _panel_text(panel: SharesPanel) -> str:
    """All amounts in words."""
    bars = []
    for name, parts in panel.bars.items():
        inside = ", ".join(f"{part} {panel.say(amount)}" for part, amount in parts.items())
        if len(parts) == 1:
            inside = panel.say(*parts.values())
        formula_text = f" ({FORMULA} {panel.say(panel.formula[name])})" if name in panel.formula else ""
        bars.append(f"{name}: {inside}{formula_text}")
    return f"{panel.name}: {'; '.join(bars)}."


PUBLISHED = "published, not measured here"


def measured_bars(
    groups: Mapping[str, Mapping[str, Measured]],
    title: str,
    subtitle: str = "",
    published: Collection[str] = (),
    x: str = "time",
    source: str = PUBLISHED,
    say: Callable[[float], str] | None = None,
) -> Figure:
    """Draw bars of seconds in groups of one colour each: the median, and a whisker from lowest to highest.

    Args:
        groups: group → the bar's name → seconds.
        published: groups that were not measured here; hatched and grey.
        x: what the axis shows.
        source: where the numbers of `published` are from, for the legend.
        say: an amount in words, if the bars show something else than seconds.
    """
    bars = [(group, name, values) for group, inside in groups.items() for name, values in inside.items()]
    longest = max(values.median for _, _, values in bars)
    longest = min(1.6 * longest, max(values.high for _, _, values in bars))  # one disturbed run must not dwarf the rest
    names = [name for _, name, _ in bars]
    left = room_for_names(names)
    labels = {group: f"{group} ({source})" if group in published else group for group in groups}
    right = room_for_ends([say(longest)]) if say else 0.75
    above = style.legend_height(list(labels.values()), left, right)
    picture, (ax,) = style.new_picture(title, subtitle, heights=[0.36 * len(bars)], left=left, right=right, above=above)
    colours = dict(zip([group for group in groups if group not in published], style.CURVES, strict=False))
    looks = {group: look_of(colours.get(group)) for group in groups}
    what = x if say else "time"
    if say:
        ax.set_xlim(0, longest)
        amounts_in_words(ax, say)
        ax.set_xlabel(x, fontsize=style.TEXT, color="#555555")
    else:
        time_axis(ax, longest, x)
    say = say or seconds_text
    for row, (group, _, values) in enumerate(bars):
        draw_parts(ax, row, {group: values.median}, looks)
        if values.high > values.low:
            reach = np.array([[values.median - values.low], [values.high - values.median]])
            ax.errorbar(values.median, row, xerr=reach, color=style.INK, elinewidth=1, capsize=2.5)
        write_end(ax, row, min(values.high, longest), say(values.median))
    name_rows(ax, names)
    style.draw_legend(ax, {labels[group]: Patch(**looks[group]) for group in groups})
    values_text = "; ".join(f"{labels[group]}, {name}: {_range_text(values, say)}" for group, name, values in bars)
    picture.alt_text = f"Bars of {what}. {title}. {subtitle} {values_text}."
    return picture


def _range_text(values: Measured, say: Callable[[float], str]) -> str:
    """The median, and from where to where the runs lie, if there are several."""
    ends = f" ({say(values.low)} to {say(values.high)})" if len(values.values) > 1 else ""
    return say(values.median) + ends


def above_bound(cases: Mapping[str, tuple[float, Mapping[str, float]]], title: str, subtitle: str = "") -> Figure:
    """Draw how far above a lower bound times are: a group of bars for each case, whose left edge is the bound.

    Args:
        cases: by name, the bound's seconds and those of what is compared with it; the same names in all cases.
    """
    names = list(dict.fromkeys(name for _, ways in cases.values() for name in ways))
    if not names or any(not bound > 0 for bound, _ in cases.values()):
        raise CourseError("above_bound: one case at least, each with a bound above 0 and something to compare with it.")
    above = {case: {name: 1 - bound / s for name, s in ways.items()} for case, (bound, ways) in cases.items()}
    texts = {
        (case, name): f"{_gap_text(share)}: {seconds_text(cases[case][1][name])}"
        for case, ways in above.items()
        for name, share in ways.items()
    }
    legend = {name: Patch(facecolor=style.CURVES[index]) for index, name in enumerate(names)}
    left, right = room_for_names(list(cases)), room_for_ends(list(texts.values()))
    high = style.legend_height(list(legend), left, right)
    heights = [0.26 * len(names) * len(cases)]
    picture, (ax,) = style.new_picture(title, subtitle, heights=heights, left=left, right=right, above=high)
    ax.set_xlim(0, max(share for ways in above.values() for share in ways.values()) or 0.01)
    tall = 0.8 / len(names)
    for row, (case, ways) in enumerate(above.items()):
        for bar, (name, share) in enumerate(ways.items()):
            at = row + (bar - (len(names) - 1) / 2) * tall
            ax.barh(at, share, height=0.9 * tall, color=legend[name].get_facecolor())
            write_end(ax, at, share, texts[case, name], size=style.SMALL)
    name_rows(ax, cases)
    ax.axvline(0, color=style.INK, linewidth=1.8)
    ax.xaxis.set_major_locator(MaxNLocator(5))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda share, _: percent(share) if share else "the bound"))
    ax.set_xlabel("share of its time that is above the bound", fontsize=style.TEXT, color="#555555")
    style.draw_legend(ax, legend)
    values_text = "; ".join(f"{case}, {name}: {text}" for (case, name), text in texts.items())
    picture.alt_text = f"How far times are above a bound, as shares of them. {title}. {subtitle} {values_text}."
    return picture


def _gap_text(share: float) -> str:
    return percent(share, 2 if share < 0.1 else 0) if share else "0, proved"


# --- the parts of such a chart --------------------------------------------------------------------------------------


def look_of(colour: str | None, hatch: str = "////") -> dict:
    """How a bar looks: filled with its colour, or hatched in grey where nobody measured it here (no colour)."""
    if colour is None:
        return {"facecolor": "white", "edgecolor": "#9A9A9A", "hatch": hatch, "linewidth": 0.8}
    return {"facecolor": colour, "edgecolor": "white", "linewidth": 0.6}


def draw_parts(
    ax: Axes,
    row: float,
    parts: Mapping[str, float],
    looks: Mapping[str, Mapping],
    say: Callable[[float], str] | None = None,
    height: float = 0.68,
) -> float:
    """Draw one bar, its parts from the left one after the other; return where it ends.

    Args:
        parts: amounts by name.
        looks: of each part, for Matplotlib's `barh`; `look_of` makes one.
        say: an amount in words, written inside its part where there is room. The axis' limits must be set before.
    """
    low, high = ax.get_xlim()
    pixels = ax.get_position().width * ax.figure.get_figwidth() * style.DOTS / (high - low)
    start = 0.0
    for part, amount in parts.items():
        properties = {"edgecolor": "white", "linewidth": 0.6} | dict(looks[part])
        ax.barh(row, amount, left=start, height=height, **properties)
        words = say(amount) if say else ""
        if amount > 0 and words and style.text_width(words) + 8 <= amount * pixels:
            ink = style.ink_on(properties.get("color") or properties["facecolor"])
            alignment = {"ha": "center", "va": "center", "fontsize": style.SMALL, "color": ink}
            ax.text(start + amount / 2, row, words, **alignment)
        start += amount
    return start


def write_end(ax: Axes, row: float, end: float, words: str, bold: bool = False, size: float = style.TEXT) -> None:
    """Write words behind a bar's end."""
    alignment = {"xytext": (5, 0), "textcoords": "offset points", "va": "center_baseline", "annotation_clip": False}
    ax.annotate(words, (end, row), fontsize=size, fontweight="bold" if bold else "normal", **alignment)


def name_rows(ax: Axes, names: Collection[str]) -> None:
    """Write each bar's name to its left, the first one on top."""
    ax.set_yticks(range(len(names)), list(names), parse_math=False)
    ax.set_ylim(max(len(names), 1) - 0.5, -0.5)
    ax.tick_params(axis="y", length=0, labelsize=style.TEXT)
    ax.spines["left"].set_visible(False)


def amounts_in_words(ax: Axes, say: Callable[[float], str], most: int = 5) -> None:
    """A few round amounts under the bars, in words."""
    ax.xaxis.set_major_locator(MaxNLocator(most, steps=[1, 2, 5, 10]))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda amount, _: say(amount) if amount else "0"))


def time_axis(ax: Axes, longest: float, what: str = "time") -> None:
    """An axis of seconds up to the longest bar, in one unit that it names."""
    scale, unit = time_unit(longest)
    ax.set_xlim(0, longest)
    ax.xaxis.set_major_locator(_InUnit(scale))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda seconds, _: f"{seconds * scale:.6g}"))
    ax.set_xlabel(f"{what}, in {unit}", fontsize=style.TEXT, color="#555555")


class _InUnit(MaxNLocator):
    """Marks at round numbers of a unit in place of round seconds."""

    def __init__(self, scale: float) -> None:
        super().__init__(7, steps=[1, 2, 5, 10])
        self.scale = scale

    def tick_values(self, low: float, high: float) -> np.ndarray:
        return super().tick_values(low * self.scale, high * self.scale) / self.scale


def room_for_names(names: Collection[str]) -> float:
    """Inches to the left of the bars that `name_rows` needs."""
    return 0.3 + max((style.text_width(name, style.TEXT) for name in names), default=40) / style.DOTS


def room_for_ends(words: Collection[str], margin: float = 0.3) -> float:
    """Inches to the right of the bars that `write_end` needs."""
    return margin + max((style.text_width(each, style.TEXT, True) for each in words), default=0) / style.DOTS
