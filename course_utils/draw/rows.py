"""One timeline: a row per rank, boxes for operations, arrows for messages, bands for collectives, bars for phases."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgb
from matplotlib.patches import Patch
from matplotlib.patheffects import withStroke

from course_utils.draw import style
from course_utils.draw.findings import call_text, collective_groups, is_message
from course_utils.trace.events import Event, pair_messages

_HALF = 0.23  # of a row: half the height of the boxes
_BAR = (-0.46, 0.36)  # of a row: where the bar of a phase begins and ends; its name stands above the boxes
_LANES = 4  # operations drawn one under the other when they overlap in time


@dataclass
class Mark:
    """An operation as it is drawn. Times in seconds on the picture's axis; top and bottom in rows."""

    event: Event
    start: float
    end: float
    waits_until: float = -math.inf
    top: float = 0.0
    bottom: float = 0.0

    @property
    def stuck(self) -> bool:
        """It never ended."""
        return not math.isfinite(self.event.end)

    @property
    def in_background(self) -> bool:
        """A nonblocking operation: the rank goes on meanwhile."""
        name = self.event.name
        return name[:1] in "Ii" and name[1:2] != "" and not name.startswith("in")

    @property
    def colour(self) -> str:
        """The colour of its kind."""
        return {"send": style.SEND, "recv": style.RECEIVE, "collective": style.TOGETHER}.get(
            self.event.kind, style.COLOURS["idle"]
        )


@dataclass
class Rows:
    """A run laid out on an axis of `span` seconds that begins with its first event."""

    events: Sequence[Event]
    world_size: int
    origin: float
    span: float
    marks: list[Mark] = field(default_factory=list)
    groups: list[list[Mark]] = field(default_factory=list)
    messages: list[tuple[Mark, Mark]] = field(default_factory=list)

    def __post_init__(self) -> None:
        marks = {}
        for event in self.events:
            if event.kind != "phase":
                end = event.end if math.isfinite(event.end) else self.origin + self.span
                marks[id(event)] = Mark(event, event.start - self.origin, end - self.origin)
        self.marks = sorted(marks.values(), key=lambda mark: mark.start)
        for rank in range(self.world_size):
            stack_lanes([mark for mark in self.marks if mark.event.rank == rank])
        pairs = [pair for pair in pair_messages(self.events) if math.isfinite(pair[1].end)]
        self.messages = [(marks[id(send)], marks[id(got)]) for send, got in pairs]
        for send, got in self.messages:
            got.waits_until = min(send.start, got.end)
            if send.end > got.start:
                send.waits_until = got.start
        self.groups = [[marks[id(event)] for event in group] for group in collective_groups(self.events)]
        for group in self.groups:
            last = max(mark.start for mark in group)
            for mark in group:
                mark.waits_until = last if mark.end >= last else -math.inf


def stack_lanes(marks: Sequence[Mark]) -> None:
    """Give each operation of one rank its place in the row: the whole height, or a lane where several overlap."""
    cluster: list[Mark] = []
    lanes: list[float] = []  # when each lane is free again
    places: list[int] = []

    def settle() -> None:
        height = 2 * _HALF / max(len(lanes), 1)
        for mark, lane in zip(cluster, places, strict=True):
            mark.top = mark.event.rank - _HALF + lane * height
            mark.bottom = mark.top + height * (1 if len(lanes) == 1 else 0.86)

    for mark in marks:
        if lanes and mark.start >= max(lanes):
            settle()
            cluster, lanes, places = [], [], []
        free = [index for index, until in enumerate(lanes) if until <= mark.start]
        if not free and len(lanes) < _LANES:
            lanes.append(mark.end)
            free = [len(lanes) - 1]
        lane = free[0] if free else min(range(len(lanes)), key=lanes.__getitem__)
        lanes[lane] = max(lanes[lane], mark.end)
        cluster.append(mark)
        places.append(lane)
    settle()


def kinds_of(rows: Rows) -> dict[str, Patch]:
    """The legend: a swatch and a word for everything that occurs in the picture."""
    waiting = {"facecolor": "white", "hatch": "/////", "linewidth": 0.8}
    plain = [mark for mark in rows.marks if not mark.stuck]
    there = {
        "send": any(mark.event.kind == "send" and not mark.in_background for mark in plain),
        "receive": any(mark.event.kind == "recv" and not mark.in_background for mark in plain),
        "all ranks together": any(mark.event.kind == "collective" for mark in rows.marks),
        "under way, the rank goes on": any(mark.in_background for mark in plain),
        "waiting": any(mark.waits_until > mark.start and not mark.in_background for mark in plain),
        "never ended": any(mark.stuck for mark in rows.marks),
    }
    looks = {
        "send": Patch(facecolor=style.SEND),
        "receive": Patch(facecolor=style.RECEIVE),
        "all ranks together": Patch(facecolor=style.TOGETHER),
        "under way, the rank goes on": Patch(facecolor=paler(style.RECEIVE), edgecolor=style.SEND, linewidth=0.8),
        "waiting": Patch(edgecolor=style.RECEIVE, **waiting),
        "never ended": Patch(edgecolor=style.STUCK, **waiting),
    }
    phases = style.colours_of([event.name for event in rows.events if event.kind == "phase"])
    shown = {name: Patch(facecolor=paler(colour, 0.35)) for name, colour in phases.items()}
    return shown | {word: looks[word] for word, seen in there.items() if seen}


def paler(colour: str, share: float = 0.7) -> tuple[float, float, float]:
    """The colour mixed with `share` of white."""
    return tuple(1 - (1 - part) * (1 - share) for part in to_rgb(colour))


def boxes(ax: Axes, corners: Sequence[tuple[float, float, float, float]], **look) -> None:
    """Draw rectangles (left, right, top, bottom), all of one look, as one artist."""
    if corners:
        polygons = [[(x0, y0), (x1, y0), (x1, y1), (x0, y1)] for x0, x1, y0, y1 in corners]
        ax.add_collection(PolyCollection(polygons, **look), autolim=False)


def draw_phases(ax: Axes, rows: Rows, scale: float) -> None:
    """Bars behind the operations, the longer ones first, so that a phase within a phase is seen."""
    phases = [event for event in rows.events if event.kind == "phase"]
    colours = style.colours_of([event.name for event in phases])
    corners, faces = [], []
    for event in sorted(phases, key=lambda event: event.start - event.end):
        end = event.end if math.isfinite(event.end) else rows.origin + rows.span
        left, right = ((time - rows.origin) * scale for time in (event.start, end))
        corners.append((left, right, event.rank + _BAR[0], event.rank + _BAR[1]))
        faces.append(paler(colours[event.name], 0.35))
    boxes(ax, corners, facecolors=faces, edgecolor="white", linewidth=0.4 if len(phases) < 200 else 0, zorder=1)


def draw_operations(ax: Axes, rows: Rows, scale: float) -> None:
    """Boxes for what a rank did; hatched where it waited; pale where it went on meanwhile; orange where it hangs."""

    def corners(marks: Sequence[Mark], waiting: bool) -> list[tuple[float, float, float, float]]:
        spans = [
            (mark.start, min(mark.waits_until, mark.end)) if waiting else (max(mark.start, mark.waits_until), mark.end)
            for mark in marks
        ]
        return [
            (left * scale, right * scale, mark.top, mark.bottom)
            for mark, (left, right) in zip(marks, spans, strict=True)
        ]

    for colour in (style.SEND, style.RECEIVE, style.TOGETHER, style.COLOURS["idle"]):
        own = [mark for mark in rows.marks if mark.colour == colour and not mark.stuck]
        solid = [mark for mark in own if not mark.in_background]
        waited = [mark for mark in solid if mark.waits_until > mark.start]
        boxes(ax, corners(waited, True), facecolor="white", edgecolor=colour, hatch="/////", linewidth=0.7, zorder=3)
        boxes(ax, corners(solid, False), facecolor=colour, edgecolor=colour, linewidth=0.8, zorder=4)
        pale = [(m.start * scale, m.end * scale, m.top, m.bottom) for m in own if m.in_background]
        boxes(ax, pale, facecolor=paler(colour), edgecolor=colour, linewidth=0.8, zorder=3)
    stuck = [(mark.start * scale, mark.end * scale, mark.top, mark.bottom) for mark in rows.marks if mark.stuck]
    boxes(ax, stuck, facecolor="white", edgecolor=style.STUCK, hatch="/////", linewidth=1.0, zorder=3)


def draw_collectives(ax: Axes, rows: Rows, scale: float) -> None:
    """A pale band from the first to the last rank of each collective, as wide as each rank's part in it."""
    for group in rows.groups:
        members = sorted(group, key=lambda mark: mark.event.rank)
        for upper, lower in pairwise(members):
            between = [(upper.start, upper.bottom), (upper.end, upper.bottom), (lower.end, lower.top)]
            outline = [(time * scale, row) for time, row in [*between, (lower.start, lower.top)]]
            look = {"facecolor": paler(style.TOGETHER, 0.6), "edgecolor": "none", "alpha": 0.5, "zorder": 2}
            ax.add_collection(PolyCollection([outline], **look), autolim=False)


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
    ax.quiver(
        *(x, y, to_x - x, to_y - y),
        **{"angles": "xy", "scale_units": "xy", "scale": 1, "units": "dots"},
        **{"width": 0.9 if crowded else 1.4, "headwidth": 6, "headlength": 7, "headaxislength": 6.3, "minlength": 0},
        **{"color": style.INK, "alpha": 0.45 if crowded else 0.85, "zorder": 5},
    )


def wordings(mark: Mark) -> list[str]:
    """What may stand on an operation, longest first."""
    event = mark.event
    if not is_message(event):
        return [f"{event.name} never ended", event.name] if mark.stuck else [event.name]
    arrow = f"{'→' if event.kind == 'send' else '←'} {'any' if event.peer is None else event.peer}"
    if mark.stuck:
        return [f"{call_text(event)}: never ended", f"{event.name} {arrow}", arrow]
    return [f"{event.name} {arrow} · {style.bytes_text(event.bytes)}", f"{event.name} {arrow}", arrow]


def write_labels(ax: Axes, rows: Rows, scale: float, pixels: float) -> None:
    """Name operations and phases where there is room for the words: on the mark, or beside it in an empty stretch.

    Args:
        pixels: width of one unit of the axis on the picture.
    """
    taken = [(mark.event.rank, mark.start * scale * pixels, mark.end * scale * pixels, mark.top) for mark in rows.marks]
    right_end = rows.span * scale * pixels
    for mark in rows.marks:
        left, right = mark.start * scale * pixels, mark.end * scale * pixels
        dark = mark.colour == style.SEND or mark.colour == style.TOGETHER
        hatched = mark.stuck or min(mark.waits_until, mark.end) - mark.start > 0.5 * (mark.end - mark.start)
        behind = "white" if hatched else paler(mark.colour) if mark.in_background else mark.colour
        ink = "white" if dark and not hatched and not mark.in_background else style.INK
        size = style.SMALL if mark.bottom - mark.top > _HALF else style.SMALL - 1.5
        edge = withStroke(linewidth=2.5, foreground=behind)
        y = (mark.top + mark.bottom) / 2
        words = next((text for text in wordings(mark) if style.text_width(text, size) <= right - left - 6), "")
        at = (left + right) / 2 / pixels
        if not words and size == style.SMALL:
            words = wordings(mark)[-1]
            need = style.text_width(words, size) + 8
            starts = [start for rank, start, _, _ in taken if rank == mark.event.rank and start > left]
            if right + need > min([*starts, right_end + 8]) or any(
                rank == mark.event.rank and start <= left < end and start < left for rank, start, end, _ in taken
            ):
                continue
            at, ink, edge = (right + need / 2) / pixels, style.INK, withStroke(linewidth=2.5, foreground="white")
        if words:
            write(ax, at, y, words, size, ink, edge)
    for event in rows.events:
        if event.kind == "phase" and math.isfinite(event.end):
            left, right = ((time - rows.origin) * scale for time in (event.start, event.end))
            if style.text_width(event.name) <= (right - left) * pixels - 4:
                y = event.rank + (_BAR[0] + 0.12 if rows.marks else sum(_BAR) / 2)
                write(ax, (left + right) / 2, y, event.name, style.SMALL, style.INK, None)


def write(ax: Axes, x: float, y: float, text: str, size: float, ink: str, edge: withStroke | None) -> None:
    """Centre a text on a point, with an edge in the colour behind it."""
    effects = [edge] if edge else []
    look = {"ha": "center", "va": "center", "fontsize": size, "color": ink, "zorder": 6}
    ax.text(x, y, text, path_effects=effects, parse_math=False, **look)
