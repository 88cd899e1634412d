"""Bars for every node of several runs: CPU use, bytes, seconds; published ones in a panel of their own, hatched."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from course_utils.draw import style
from course_utils.draw.bars import PUBLISHED, draw_parts, look_of, room_for_names, write_end
from course_utils.errors import CourseError

_COLOURS = {"user": style.OTHERS[5], "system": "#4D4D4D", "sent": style.SEND, "time": style.OTHERS[0]}
_HATCHES = {"system": "xxxx"}
_ROW, _GAP = 0.15, 0.55  # inches for a bar; bars between two groups
_NUMBER = 7.0  # points


@dataclass(frozen=True)
class NodePanel:
    """One axes of the picture.

    Attributes:
        name: whose numbers these are: "this machine".
        groups: a group's name → for each node the values of its parts: "user" and "system", "sent", or "time".
        x: what the axis shows.
        say: a value in words.
        published: nobody measured them here.
    """

    name: str
    groups: Mapping[str, Sequence[Mapping[str, float]]]
    x: str
    say: Callable[[float], str]
    published: bool = False

    @property
    def bars(self) -> int:
        """How many there are."""
        return sum(len(nodes) for nodes in self.groups.values())

    @property
    def height(self) -> float:
        """Inches that the bars need."""
        return _ROW * (self.bars + _GAP * len(self.groups))

    @property
    def longest(self) -> float:
        """The largest sum of parts."""
        return max((sum(parts.values()) for nodes in self.groups.values() for parts in nodes), default=0.0)

    @property
    def values_text(self) -> str:
        """All values in words."""
        groups = [
            f"{group}: {', '.join(' + '.join(map(self.say, parts.values())) for parts in nodes)}"
            for group, nodes in self.groups.items()
        ]
        return f"{self.name}, {self.x}, for nodes 0, 1, …: {'; '.join(groups)}."


def node_bars(panels: Sequence[NodePanel], title: str, subtitle: str = "") -> Figure:
    """Draw a bar for every node of every group, with its value at its end; each panel has an axis of its own."""
    if not panels or not all(panel.bars for panel in panels):
        raise CourseError("node_bars: a panel needs a node at least.")
    names = [name for panel in panels for name in panel.groups]
    left = 0.15 + room_for_names(names)
    parts = list(
        dict.fromkeys(p for panel in panels for nodes in panel.groups.values() for node in nodes for p in node)
    )
    legend = {part: Patch(facecolor=_COLOURS[part]) for part in parts} if len(parts) > 1 else {}
    above = 0.25 + (style.legend_height(list(legend), left) if legend else 0.0)
    heights = [panel.height for panel in panels]
    layout = {"left": left, "right": 0.75, "between": 0.85, "above": above}
    picture, axes = style.new_picture(title, subtitle, heights=heights, **layout)
    for ax, panel in zip(axes, panels, strict=True):
        _draw(ax, panel)
    style.draw_legend(axes[0], legend, offset=0.3)
    picture.alt_text = " ".join([f"Bars for every node. {title}. {subtitle}", *(panel.values_text for panel in panels)])
    return picture


def _draw(ax: Axes, panel: NodePanel) -> None:
    """The bars of one panel, from the top downwards."""
    y, middles = 0.0, []
    ax.set_xlim(0, panel.longest or 1.0)
    for nodes in panel.groups.values():
        middles.append(y + (len(nodes) - 1) / 2)
        for node, parts in enumerate(nodes):
            colours = {part: None if panel.published else _COLOURS[part] for part in parts}
            looks = {part: look_of(colour, _HATCHES.get(part, "////")) for part, colour in colours.items()}
            end = draw_parts(ax, y, parts, looks, height=0.8)
            write_end(ax, y, end, panel.say(end), size=_NUMBER)
            if len(nodes) > 1:
                words = {"va": "center_baseline", "fontsize": _NUMBER, "textcoords": "offset points"}
                ax.annotate(str(node), (0, y), xytext=(-4, 0), ha="right", color=style.FAINT, **words)
            y += 1
        y += _GAP
    heading = f"{panel.name} ({PUBLISHED})" if panel.published else panel.name
    ax.set_title(heading, fontsize=style.TEXT, fontweight="bold", loc="left", pad=4)
    ax.set_yticks(middles, list(panel.groups), parse_math=False)
    ax.tick_params(axis="y", length=0, pad=14)
    ax.set_ylim(y - _GAP - 0.4, -0.6)
    ax.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    ax.spines["left"].set_visible(False)
    ax.set_xlabel(panel.x, fontsize=style.TEXT, color="#555555")
