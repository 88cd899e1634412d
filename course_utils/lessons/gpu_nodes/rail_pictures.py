"""A drawing of two nodes with a network card for each GPU, and of the paths that messages take between their GPUs."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyBboxPatch, Rectangle

from course_utils.draw import style
from course_utils.errors import CourseError
from course_utils.words import as_sentences

GPUS = 8
"""On each node, and as many network cards and rail switches."""

Hop = tuple[str, int | None, int]
"""What a message passes: "GPU", "NIC" or "switch", the node (None for a switch), and its number."""

_ROWS = {("GPU", 0): 1.0, ("NIC", 0): 2.9, ("switch", None): 4.1, ("NIC", 1): 5.3, ("GPU", 1): 7.2}
_NVLINK, _PCIE = {0: 0.0, 1: 8.2}, {0: 1.95, 1: 6.25}
_HIGH, _ROW = 0.62, 0.41  # of a box, in rows; inches of a row
_PATHS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")


def rails(paths: Mapping[str, Sequence[Hop]], title: str = "") -> Figure:
    """Draw two nodes of eight GPUs, the switch of each rail between them, and paths of messages.

    A message goes straight from hop to hop; from a GPU to a GPU of the same node it takes NVLink.

    Args:
        paths: name → the hops of a message, from GPU to GPU.
        title: printed first; the finding (which rail each path takes) follows under it.

    Raises:
        CourseError: a hop does not exist on these nodes, or there are more paths than colours.
    """
    if len(paths) > len(_PATHS):
        raise CourseError(f"pictures.rails: at most {len(_PATHS)} paths can be told apart, not {len(paths)}.")
    for kind, node, number in [hop for path in paths.values() for hop in path]:
        if (kind, node) not in _ROWS or not 0 <= number < GPUS:
            raise CourseError(f"pictures.rails: there is no {kind} {number} on node {node}.")
    marks = {name: Line2D([], [], color=colour, linewidth=3) for name, colour in zip(paths, _PATHS, strict=False)}
    found = rails_finding(paths)
    heading = (title, found) if title else (found, "")
    above = style.legend_height(list(marks), 0.95)
    layout = {"left": 0.95, "right": 0.1, "below": 0.1, "above": above}
    picture, (ax,) = style.new_picture(*heading, heights=[_ROW * 9.4], **layout)
    ax.axis("off")
    ax.set_xlim(-0.1, GPUS + 0.1)
    ax.set_ylim(8.8, -0.6)
    for node in (0, 1):
        _draw_node(ax, node)
    for rail in range(GPUS):
        ax.plot([rail + 0.5] * 2, [_ROWS["NIC", 0], _ROWS["NIC", 1]], color=style.FAINT, linewidth=0.8, zorder=1)
        _box(ax, rail + 0.14, _ROWS["switch", None], 0.72, str(rail), "#E4E4E4")
    _name(ax, _ROWS["switch", None], "rail switch")
    for index, (path, colour) in enumerate(zip(paths.values(), _PATHS, strict=False)):
        aside = 0.16 * (index - (len(paths) - 1) / 2)  # so that paths on one rail stay apart
        points = _points(path, aside)
        ax.plot(*zip(*points, strict=True), color=colour, linewidth=3, solid_joinstyle="round", zorder=4, alpha=0.85)
        for x, y in (points[0], points[-1]):
            ax.plot([x], [y], marker="o", color=colour, markersize=8, zorder=5)
    style.draw_legend(ax, marks)
    listed = [f"{name}: {', '.join(_hop_text(hop) for hop in path)}" for name, path in paths.items()]
    picture.alt_text = (
        f"Two nodes of {GPUS} GPUs and {GPUS} network cards, with a switch for each rail between them. "
        f"{as_sentences(*heading)} {'; '.join(listed)}."
    )
    return picture


def rails_finding(paths: Mapping[str, Sequence[Hop]]) -> str:
    """Say which paths stay on one rail from end to end, and which take NVLink to get there."""
    texts = []
    for name, path in paths.items():
        rail = {number for kind, _, number in path if kind == "switch"}
        if not rail:
            texts.append(f"{name} stays inside the node")
        elif path[0][2] in rail:
            texts.append(f"{name} stays on rail {rail.pop()}")
        else:
            texts.append(f"{name} takes NVLink to rail {rail.pop()} first")
    return "; ".join(texts)


def _hop_text(hop: Hop) -> str:
    kind, node, number = hop
    return f"rail switch {number}" if node is None else f"{kind} {number} of node {node}"


def _points(path: Sequence[Hop], aside: float) -> list[tuple[float, float]]:
    """Corners of a message's line; between two GPUs of a node it goes by the bar of NVLink."""
    points: list[tuple[float, float]] = []
    for index, (kind, node, number) in enumerate(path):
        x, y = number + 0.5 + aside, _ROWS[kind, node]
        before = path[index - 1] if index else None
        if before and before[0] == kind == "GPU" and before[1] == node:
            points += [(points[-1][0], _NVLINK[node]), (x, _NVLINK[node])]
        points.append((x, y))
    return points


def _draw_node(ax: Axes, node: int) -> None:
    """A frame with a bar for NVLink, eight GPUs, four PCIe switches and eight network cards."""
    low, high = sorted((_NVLINK[node], _ROWS["NIC", node]))
    frame = {"boxstyle": "round,pad=0,rounding_size=0.12", "facecolor": "#F6F6F6", "edgecolor": style.FAINT}
    ax.add_patch(FancyBboxPatch((-0.05, low - 0.48), GPUS + 0.1, high - low + 0.96, linewidth=0.8, zorder=0, **frame))
    _box(ax, 0.06, _NVLINK[node], GPUS - 0.12, "", "#DDEBD5")
    _name(ax, _NVLINK[node], "NVLink")
    _name(ax, _PCIE[node], "PCIe switch")
    for pair in range(GPUS // 2):
        _box(ax, 2 * pair + 0.2, _PCIE[node], 1.6, "", "#EDE6D6")
    for number in range(GPUS):
        x = number + 0.5
        ax.plot([x, x], [_NVLINK[node], _ROWS["NIC", node]], color=style.FAINT, linewidth=0.8, zorder=1)
        _box(ax, number + 0.14, _ROWS["GPU", node], 0.72, str(number), "#7DB9DE")
        _box(ax, number + 0.14, _ROWS["NIC", node], 0.72, str(number), "#F5D58B")
    _name(ax, _ROWS["GPU", node], f"node {node}: GPU")
    _name(ax, _ROWS["NIC", node], "NIC")


def _box(ax: Axes, left: float, y: float, wide: float, text: str, colour: str) -> None:
    shape = {"facecolor": colour, "edgecolor": "white", "linewidth": 0.8, "zorder": 2}
    ax.add_patch(Rectangle((left, y - _HIGH / 2), wide, _HIGH, **shape))
    words = {"ha": "center", "va": "center_baseline", "fontsize": style.SMALL, "color": style.INK, "zorder": 6}
    ax.text(left + 0.13, y, text, **words)


def _name(ax: Axes, y: float, text: str) -> None:
    words = {"ha": "right", "va": "center_baseline", "fontsize": style.SMALL, "color": "#555555"}
    ax.text(-0.2, y, text, **words)
