"""Words on the marks of a timeline, where there is room for them."""

from collections import defaultdict
from collections.abc import Iterator

from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke

from course_utils.draw import style
from course_utils.draw.message_timeline.layout import HALF, Rows, TimelineMark
from course_utils.draw.message_timeline.rows import BAR
from course_utils.draw.message_timeline.timeline_text import call_text, is_message
from course_utils.draw.style import paler
from course_utils.words import bytes_text

_GAP = 4  # pixels on either side of a text
_FEW = 12  # messages; with more, the words are the shortest
_ARROWS_AVOIDED = 40  # with more arrows than these, no place is free of them


def wordings(mark: TimelineMark) -> list[str]:
    """What may stand on an operation, longest first."""
    event = mark.event
    if not is_message(event):
        return [f"{event.name}: never ended", event.name] if mark.stuck else [event.name]
    arrow = f"{'→' if event.kind == 'send' else '←'} {'any' if event.peer is None else event.peer}"
    if mark.stuck:
        return [f"{call_text(event)}: never ended", f"{event.name} {arrow}", arrow]
    return [f"{event.name} {arrow} · {bytes_text(event.bytes)}", f"{event.name} {arrow}", arrow]


def rooms(mark: TimelineMark, right_edge: float) -> Iterator[tuple[float, float, object, str]]:
    """Where a text may stand, best place first: from, to (seconds), the colour behind it, the colour of the text."""
    start, end = max(mark.start, 0.0), min(mark.end, right_edge)
    middle = min(max(mark.waits_until, start), end) if mark.waits else start
    if mark.stuck:
        yield start, end, "white", style.INK
    elif mark.in_background:
        yield start, end, paler(mark.colour), style.INK
    else:
        dark = mark.colour in (style.SEND, style.TOGETHER)
        yield middle, end, mark.colour, "white" if dark else style.INK
        yield start, middle, "white", style.INK


def write_labels(ax: Axes, rows: Rows, scale: float, pixels: float) -> None:
    """Name operations and phases: on the mark where the words fit, or beside it in an empty stretch of the row.

    Args:
        scale: from seconds to the unit of the axis.
        pixels: the width of a second on the picture.
    """
    crowded = len(rows.messages) > _FEW
    written: dict[int, list[tuple[float, float]]] = defaultdict(list)
    for mark in rows.marks:
        lane = mark.bottom - mark.top
        size = style.SMALL if lane > HALF else style.SMALL - 1.5
        if lane < 0.5 * HALF:
            continue
        words = wordings(mark)
        words = words[-1:] if size < style.SMALL and crowded else words[-2:] if size < style.SMALL else words
        found = on_the_mark(mark, words, size, rows, pixels)
        if found is None and not rows.phases and size == style.SMALL:
            found = beside_the_mark(mark, rows, pixels, written[mark.event.rank])
            if found:
                half = (style.text_width(found[0]) / 2 + _GAP) / pixels
                written[mark.event.rank].append((found[1] - half, found[1] + half))
        if found:
            text, middle, behind, ink = found
            boxed = mark.stuck or (behind == "white" and mark.waits)
            write(ax, middle * scale, (mark.top + mark.bottom) / 2, text, size, ink, behind, boxed)
    for mark in rows.phases:
        start, end = max(mark.start, 0.0), min(mark.end, rows.span)
        if style.text_width(mark.event.name) <= (end - start) * pixels - _GAP:
            y = mark.row + (BAR[0] + 0.12 if rows.marks else sum(BAR) / 2)
            write(ax, (start + end) / 2 * scale, y, mark.event.name, style.SMALL, style.INK, None, False)


def on_the_mark(
    mark: TimelineMark, words: list[str], size: float, rows: Rows, pixels: float
) -> tuple[str, float, object, str] | None:
    """The longest wording that fits where no arrow runs, its middle in seconds, and the colours behind it and of it.

    Where arrows run everywhere, it is the longest wording that fits at all.
    """
    fallback = None
    for text in words:
        half = (style.text_width(text, size) / 2 + _GAP) / pixels
        for start, end, behind, ink in rooms(mark, rows.span):
            if 2 * half <= end - start:
                middles = ((start + end) / 2, start + half, end - half)
                free = [middle for middle in middles if not crossed(middle - half, middle + half, mark, rows)]
                if free:
                    return text, free[0], behind, ink
                fallback = fallback or (text, middles[0], behind, ink)
    return fallback


def crossed(left: float, right: float, mark: TimelineMark, rows: Rows) -> bool:
    """Does the arrow of a message run through a text in the middle of this operation's box?"""
    if len(rows.messages) > _ARROWS_AVOIDED:
        return False
    top, bottom = mark.top * 0.75 + mark.bottom * 0.25, mark.top * 0.25 + mark.bottom * 0.75
    for send, got in rows.messages:
        down = send.event.rank < got.event.rank
        y0, y1 = (send.bottom, got.top) if down else (send.top, got.bottom)
        if min(y0, y1) < bottom and max(y0, y1) > top:
            times = [send.start + (got.end - send.start) * (y - y0) / (y1 - y0) for y in (top, bottom)]
            if min(times) < right and max(times) > left:
                return True
    return False


def beside_the_mark(
    mark: TimelineMark, rows: Rows, pixels: float, written: list[tuple[float, float]]
) -> tuple[str, float, object, str] | None:
    """The longest wording that fits right or left of the operation, where nothing of its rank is and no arrow runs.

    Args:
        written: from where to where words stand beside other operations of this rank, in seconds.
    """
    others = [other for other in rows.marks if other.event.rank == mark.event.rank and other is not mark]
    taken = [(other.start, other.end) for other in others] + written
    for text in wordings(mark)[-1 if len(rows.messages) > _FEW else 0 :]:
        need = (style.text_width(text) + 2 * _GAP) / pixels
        for start in (mark.end, mark.start - need):
            if not 0 <= start <= 1.01 * rows.span - need or crossed(start, start + need, mark, rows):
                continue
            if all(right <= start or left >= start + need for left, right in taken):
                return text, start + need / 2, "white", style.INK
    return None


def write(ax: Axes, x: float, y: float, text: str, size: float, ink: str, behind: object | None, boxed: bool) -> None:
    """Centre a text on a point; `behind` is the colour of its edge, or of a box where the ground is hatched."""
    properties = {"ha": "center", "va": "center", "fontsize": size, "color": ink, "zorder": 6, "parse_math": False}
    if boxed:
        properties["bbox"] = {"facecolor": behind, "edgecolor": "none", "pad": 1.2}
    elif behind is not None:
        properties["path_effects"] = [withStroke(linewidth=2.5, foreground=behind)]
    ax.text(x, y, text, clip_on=True, **properties)
