"""One timeline: a row per rank, boxes for operations, arrows for messages, bands for collectives, bars for phases."""

from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.patches import Patch
from matplotlib.patheffects import withStroke

from course_utils.draw import style
from course_utils.draw.message_timeline.layout import Rows
from course_utils.draw.style import boxes, paler

BAR = (-0.46, 0.36)  # of a row: where the bar of a phase begins and ends; its name stands above the boxes
_HATCH = "/////"


def phase_colours(rows: Rows) -> dict[str, str]:
    """A colour for each phase of the run, in the order of their first appearance."""
    return style.colours_of([event.name for event in rows.events if event.kind == "phase"])


def kinds_of(rows: Rows) -> dict[str, Patch]:
    """The legend: a swatch and a word for everything that occurs in the picture."""
    phases = {name: Patch(facecolor=paler(colour, 0.35)) for name, colour in phase_colours(rows).items()}
    front = [mark for mark in rows.marks if not mark.stuck and not mark.in_background]
    looks = {
        "send": (Patch(facecolor=style.SEND), any(mark.event.kind == "send" for mark in front)),
        "receive": (Patch(facecolor=style.RECEIVE), any(mark.event.kind == "recv" for mark in front)),
        "collective": (Patch(facecolor=style.TOGETHER), any(mark.event.kind == "collective" for mark in front)),
        "request, until its Wait returns": (
            Patch(facecolor=paler(style.RECEIVE), edgecolor=style.SEND, linewidth=0.8),
            any(mark.in_background and not mark.stuck for mark in rows.marks),
        ),
        "waiting": (
            Patch(facecolor="white", edgecolor=paler(style.RECEIVE, 0.2), hatch=_HATCH, linewidth=0.8),
            any(mark.waits for mark in rows.marks),
        ),
        "never ended": (
            Patch(facecolor="white", edgecolor=style.STUCK, hatch=_HATCH, linewidth=0.8),
            any(mark.stuck for mark in rows.marks),
        ),
    }
    return phases | {word: patch for word, (patch, occurs) in looks.items() if occurs}


def draw_phases(ax: Axes, rows: Rows, scale: float) -> None:
    """Bars behind the operations, the longer ones first, so that a phase within a phase is seen."""
    colours = phase_colours(rows)
    ordered = sorted(rows.phases, key=lambda mark: mark.start - mark.end)
    corners = [(mark.start * scale, mark.end * scale, mark.row + BAR[0], mark.row + BAR[1]) for mark in ordered]
    faces = [paler(colours[mark.event.name], 0.35) for mark in ordered]
    boxes(ax, corners, facecolors=faces, edgecolor="white", linewidth=0.4, zorder=1)


def draw_operations(ax: Axes, rows: Rows, scale: float) -> None:
    """Boxes for what a rank did; hatched where it waited; pale where it went on meanwhile; orange where it hangs."""
    for colour in (style.SEND, style.RECEIVE, style.TOGETHER, style.COLOURS["idle"]):
        own = [mark for mark in rows.marks if mark.colour == colour and not mark.stuck]
        waited = [mark for mark in own if mark.waits]
        hatched = [(m.start * scale, min(m.waits_until, m.end) * scale, m.top, m.bottom) for m in waited]
        boxes(ax, hatched, facecolor="white", edgecolor=paler(colour, 0.35), hatch=_HATCH, linewidth=0.7, zorder=3)
        busy = [mark for mark in own if not mark.in_background]
        solid = [((max(m.start, m.waits_until) if m.waits else m.start) * scale, m) for m in busy]
        full = [(left, mark.end * scale, mark.top, mark.bottom) for left, mark in solid]
        boxes(ax, full, facecolor=colour, edgecolor=colour, linewidth=0.8, zorder=4)
        pale = [(m.start * scale, m.end * scale, m.top, m.bottom) for m in own if m.in_background]
        boxes(ax, pale, facecolor=paler(colour), edgecolor=colour, linewidth=0.8, zorder=3)
    stuck = [(m.start * scale, m.end * scale, m.top, m.bottom) for m in rows.marks if m.stuck]
    boxes(ax, stuck, facecolor="white", edgecolor=style.STUCK, hatch=_HATCH, linewidth=1.0, zorder=3)


def draw_collectives(ax: Axes, rows: Rows, scale: float) -> None:
    """A pale band from the first to the last rank of each collective, as wide as each rank's part in it."""
    for group in rows.groups:
        members = sorted(group, key=lambda mark: mark.event.rank)
        for upper, lower in pairwise(members):
            outline = [(upper.start, upper.bottom), (upper.end, upper.bottom), (lower.end, lower.top)]
            outline = [(time * scale, row) for time, row in [*outline, (lower.start, lower.top)]]
            properties = {"facecolor": paler(style.TOGETHER, 0.6), "edgecolor": "none", "alpha": 0.5, "zorder": 2}
            ax.add_collection(PolyCollection([outline], **properties), autolim=False)


def draw_arrows(ax: Axes, rows: Rows, scale: float) -> None:
    """An arrow for each message, from where its send began to where its receive ended."""
    if not rows.messages:
        return
    down = np.array([send.event.rank < got.event.rank for send, got in rows.messages])
    tail = np.array([(send.start, send.top, send.bottom) for send, _ in rows.messages])
    head = np.array([(got.end, got.top, got.bottom) for _, got in rows.messages])
    x, y = tail[:, 0] * scale, np.where(down, tail[:, 2], tail[:, 1])
    to_x, to_y = head[:, 0] * scale, np.where(down, head[:, 1], head[:, 2])
    crowded = len(rows.messages) > 40
    effects = [] if crowded else [withStroke(linewidth=1.6, foreground="white", alpha=0.75)]
    size = {
        "width": 0.009 if crowded else 0.014,
        "headwidth": 6,
        "headlength": 7,
        "headaxislength": 6.3,
        "minlength": 0,
    }
    properties = {"color": style.INK, "alpha": 0.5 if crowded else 0.9, "zorder": 5, "path_effects": effects}
    units = {"angles": "xy", "scale_units": "xy", "scale": 1, "units": "inches"}
    ax.quiver(x, y, to_x - x, to_y - y, **units, **size, **properties)
