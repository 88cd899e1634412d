"""What each rank keeps and sends: bars of bytes cut into parts, what was counted beside what a formula says."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator

from course_utils.draw import style
from course_utils.errors import CourseError
from course_utils.words import bytes_text

PARTS = {
    "parameters": style.COLOURS["forward"],
    "gradients": style.COLOURS["backward"],
    "optimizer state": style.COLOURS["optimizer"],
    "state": style.COLOURS["optimizer"],
    "activations": style.OTHERS[0],
    "sent": style.COLOURS["communication"],
}
"""The colour of what takes memory, and of what travels."""
FORMULA = "by the formula"
_AXES = {"data": style.COLOURS["communication"], "pipeline": style.OTHERS[1], "tensor": style.SEND}
_ROW = 0.4  # inches


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
    """Draw horizontal bars cut into parts, the panels side by side; a black line marks what a formula says."""
    if not panels or any(list(panel.bars) != list(panels[0].bars) for panel in panels) or not panels[0].bars:
        raise CourseError("shares: every panel needs the same bars, one at least.")
    names = list(panels[0].bars)
    parts = list(dict.fromkeys(part for panel in panels for bar in panel.bars.values() for part in bar))
    colours = _colours(parts)
    marks: dict = {part: Patch(facecolor=colours[part]) for part in parts} if len(parts) > 1 else {}
    if any(panel.formula for panel in panels):
        marks[FORMULA] = Line2D([], [], color=style.INK, linewidth=2, marker="|", markersize=9, linestyle="none")
    left = 0.3 + max(style.text_width(name, style.TEXT) for name in names) / style.DOTS
    above = 0.3 + (style.legend_height(list(marks), left) if marks else 0.0)
    height = _ROW * len(names)
    look = {"left": left, "right": 0.2, "below": 0.5, "above": above}
    picture, (first,) = style.new_picture(title, subtitle, heights=[height], **look)
    axes = _side_by_side(picture, first, panels)
    for index, (ax, panel) in enumerate(zip(axes, panels, strict=True)):
        _draw(ax, panel, colours, names if index == 0 else None)
    style.draw_legend(axes[0], marks, offset=0.32)
    picture.alt_text = " ".join(["Bars.", f"{title}.", subtitle, *(_panel_text(panel) for panel in panels)])
    return picture


def _colours(parts: Sequence[str]) -> dict[str, str]:
    """The fixed colour where a part has a meaning, else one that no other part here has."""
    fixed = PARTS | _AXES
    own = iter([colour for colour in style.CURVES if colour not in {fixed.get(part) for part in parts}])
    return {part: fixed.get(part) or next(own) for part in parts}


def _side_by_side(picture: Figure, first: Axes, panels: Sequence[SharesPanel]) -> list[Axes]:
    """Divide the place of the first axes among all panels, with room for the amount at each longest bar's end."""
    box, width = first.get_position(), style.WIDTH
    rooms = [0.12 + max(style.text_width(text, style.TEXT) for text in _texts(p)) / style.DOTS for p in panels]
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


def _texts(panel: SharesPanel) -> list[str]:
    return [panel.say(sum(parts.values())) for parts in panel.bars.values()]


def _draw(ax: Axes, panel: SharesPanel, colours: Mapping[str, str], names: Sequence[str] | None) -> None:
    for row, (name, parts) in enumerate(panel.bars.items()):
        start = 0.0
        for part, amount in parts.items():
            ax.barh(row, amount, left=start, height=0.66, color=colours[part], edgecolor="white", linewidth=0.6)
            start += amount
        at = max(start, panel.formula.get(name, 0.0))
        look = {"xytext": (5, 0), "textcoords": "offset points", "va": "center_baseline", "fontsize": style.TEXT}
        ax.annotate(panel.say(start), (at, row), annotation_clip=False, **look)
        if name in panel.formula:
            ax.plot([panel.formula[name]] * 2, [row - 0.43, row + 0.43], color=style.INK, linewidth=2, clip_on=False)
    ax.set_xlim(0, panel.longest)
    ax.set_ylim(len(panel.bars) - 0.5, -0.5)
    ax.set_yticks(range(len(panel.bars)), names or [""] * len(panel.bars), parse_math=False)
    ax.tick_params(axis="y", length=0, labelsize=style.TEXT)
    ax.tick_params(axis="x", labelsize=style.SMALL, color=style.FAINT)
    ax.spines["left"].set_visible(False)
    ax.xaxis.set_major_locator(MaxNLocator(3, steps=[1, 2, 5, 10]))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda amount, _: panel.say(amount) if amount else "0"))
    ax.set_title(panel.name, fontsize=style.TEXT, fontweight="bold", loc="left", pad=5)


def _panel_text(panel: SharesPanel) -> str:
    """All amounts in words."""
    bars = []
    for name, parts in panel.bars.items():
        inside = ", ".join(f"{part} {panel.say(amount)}" for part, amount in parts.items())
        said = f" ({FORMULA} {panel.say(panel.formula[name])})" if name in panel.formula else ""
        bars.append(f"{name}: {inside}{said}")
    return f"{panel.name}: {'; '.join(bars)}."
