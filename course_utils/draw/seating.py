"""Where the processes of a launch sit: a box for each node, a square for each rank, and where rank 0 waits."""

from collections.abc import Collection, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, Rectangle

from course_utils.draw import style
from course_utils.errors import CourseError
from course_utils.words import count, ranks

_MOST = 128  # ranks whose numbers can be read
_OWN, _FIRST, _MARKED = "#7DB9DE", "#0072B2", "#E69F00"
_ROW = 0.62  # inches of a node with one row of squares


def seats(
    nodes: Sequence[str], title: str = "", marked: Collection[int] = (), seat: str = "GPU", width: float = style.WIDTH
) -> Figure:
    """Draw the nodes of a launch with the ranks on them; above a square stands its rank's place on the node.

    Args:
        nodes: for each rank the name of its node.
        title: said first; the finding (how ranks are numbered) then stands under it.
        marked: ranks that stand out.
        seat: what a square is: "GPU" or "core".
    """
    if not 1 <= len(nodes) <= _MOST:
        raise CourseError(f"draw.seats: between 1 and {_MOST} ranks can be drawn, not {len(nodes)}.")
    by_node: dict[str, list[int]] = {}
    for rank, node in enumerate(nodes):
        by_node.setdefault(node, []).append(rank)
    most = max(map(len, by_node.values()))
    across = min(len(by_node), max(1, 20 // most))
    down = -(-len(by_node) // across)
    found = seats_finding(by_node)
    heading = (title, found) if title else (found, "")
    look = {"left": 0.15, "right": 0.1, "above": 0.02, "below": 0.32, "width": width}
    picture, (ax,) = style.new_picture(*heading, heights=[(_ROW + 0.3) * down], **look)
    ax.axis("off")
    ax.set_xlim(0, across * (most + 0.8))
    ax.set_ylim(down * 1.5, 0)
    for index, (name, own) in enumerate(by_node.items()):
        _node(ax, (index % across) * (most + 0.8), 1.5 * (index // across), most, name, own, marked)
    words = {"fontsize": style.SMALL, "color": "#555555", "parse_math": False}
    text = f"A square: one {seat} with one process; its rank inside, its local rank above. Dark: rank 0, where all meet"
    ax.annotate(text, (0, 0), xycoords="axes fraction", xytext=(2, -14), textcoords="offset points", **words)
    told = "; ".join(f"{name}: ranks {', '.join(map(str, own))}" for name, own in by_node.items())
    picture.alt_text = f"Nodes as boxes with ranks in them. {title} {found}. {told}."
    return picture


def seats_finding(by_node: dict[str, list[int]]) -> str:
    """How many ranks on how many nodes, and how the rank follows from the place."""
    sizes = {len(own) for own in by_node.values()}
    total = sum(map(len, by_node.values()))
    where = f"{ranks(total)} on {count(len(by_node), 'node')}"
    in_order = [rank for own in by_node.values() for rank in own] == list(range(total))
    if len(sizes) == 1 and len(by_node) > 1 and in_order:
        return f"{where}: rank = node × {sizes.pop()} + local rank"
    return where


def _node(ax: Axes, x: float, y: float, most: int, name: str, own: Sequence[int], marked: Collection[int]) -> None:
    """A box with the node's name, and its ranks."""
    frame = {"boxstyle": "round,pad=0,rounding_size=0.12", "facecolor": "#F3F3F3", "edgecolor": style.FAINT}
    ax.add_patch(FancyBboxPatch((x + 0.1, y + 0.06), most + 0.5, 1.34, linewidth=0.8, **frame))
    write = {"ha": "center", "va": "center_baseline", "parse_math": False}
    ax.text(x + 0.22, y + 0.22, name, fontsize=style.SMALL, fontweight="bold", ha="left", va="center_baseline")
    for local, rank in enumerate(own):
        left = x + 0.35 + local
        colour = _MARKED if rank in marked else _FIRST if rank == 0 else _OWN
        ax.add_patch(Rectangle((left + 0.06, y + 0.6), 0.88, 0.7, facecolor=colour, edgecolor="white"))
        ax.text(left + 0.5, y + 0.48, str(local), fontsize=6.5, color="#555555", **write)
        ink = "white" if colour == _FIRST else style.INK
        ax.text(left + 0.5, y + 0.96, str(rank), fontsize=style.TEXT, fontweight="bold", color=ink, **write)
