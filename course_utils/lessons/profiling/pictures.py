"""What torch.profiler saw on every rank: when it computed, when it communicated, and when it only waited."""

from collections.abc import Sequence
from typing import Protocol

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from course_utils.draw import style
from course_utils.draw.boxes import Corners, boxes
from course_utils.errors import CourseError
from course_utils.lessons.profiling.intervals import length
from course_utils.words import as_sentences, join, percent, time_unit

Times = Sequence[tuple[float, float]]
"""From when to when, in seconds; sorted and without overlaps."""
HIDDEN = style.COLOURS["communication"]
EXPOSED = style.SEND
_WAIT, _IDLE = style.COLOURS["wait"], "#ECECEC"
_COPIES = style.OTHERS[0]
_COMPUTING, _MESSAGES, _GAP = 0.30, 0.2, 0.14  # inches: the lanes of a rank, and the room to the next rank
_SMALLEST = 0.5  # pixels: gaps below this are not drawn


class Profiled(Protocol):
    """One rank's lanes; all times in seconds."""

    rank: int
    begin: float
    end: float
    computing: Times
    exposed: Times
    communication: Times
    copies: Times
    overlap_share: float
    idle_share: float


def profile(lanes: Sequence[Profiled], title: str, subtitle: str = "", names: Sequence[str] = ()) -> Figure:
    """Draw two lanes for each rank on one axis of time: its computing, and below it its communication.

    Communication has a dark colour where it is exposed: the rank does not compute meanwhile, it waits (grey). Copies
    into a GPU's memory and out of it stand in the upper lane. Idle (pale grey) is time in which it does nothing.

    Args:
        lanes: of each rank, as `profiling.lanes.lanes_of` reads them in a trace.
        title: the finding.
        names: what each pair of lanes is called; "rank 0" and so on without.
    """
    names = list(names) or [f"rank {one.rank}" for one in lanes]
    if not lanes:
        raise CourseError("pictures.profile: at least one rank's lanes are needed.")
    begin, end = min(one.begin for one in lanes), max(one.end for one in lanes)
    scale, unit = time_unit(end - begin)
    each = _COMPUTING + _MESSAGES + _GAP
    parts = {
        "computing": Patch(facecolor=style.COLOURS["computing"]),
        **({"copies": Patch(facecolor=_COPIES)} if any(one.copies for one in lanes) else {}),
        "waiting for messages": Patch(facecolor=_WAIT),
        "idle": Patch(facecolor=_IDLE),
        "communication, hidden": Patch(facecolor=HIDDEN),
        "communication, exposed": Patch(facecolor=EXPOSED),
    }
    left = 0.3 + max(style.text_width("computing"), style.text_width("messages")) / style.DOTS + 0.15
    left += max(style.text_width(name, style.SMALL) for name in names) / style.DOTS
    above = style.legend_height(list(parts), left)
    height = each * len(lanes)
    picture, (ax,) = style.new_picture(title, subtitle, heights=[height], left=left, above=above)
    pixels = ax.get_position().width * style.WIDTH * style.DOTS / (end - begin)
    for place, one in enumerate(lanes):
        _draw(ax, one, place * each, begin, scale, _SMALLEST / pixels)
    _label(ax, names, each, left)
    ax.set_xlim(0, (end - begin) * scale)
    ax.set_ylim(height - _GAP / 2, -_GAP / 2)
    ax.set_xlabel(f"time, in {unit}", fontsize=style.TEXT, color="#555555")
    style.draw_legend(ax, parts)
    said = as_sentences(title, subtitle)
    rows = " ".join(_row_text(name, one, begin) for name, one in zip(names, lanes, strict=True))
    picture.alt_text = f"What each rank did. {said} {rows}"
    return picture


def without_gaps(times: Times, smallest: float) -> list[tuple[float, float]]:
    """The same times, sorted, where what is less than `smallest` apart is one."""
    joined: list[tuple[float, float]] = []
    for begin, end in times:
        if joined and begin - joined[-1][1] < smallest:
            joined[-1] = joined[-1][0], end
        else:
            joined.append((begin, end))
    return joined


def _draw(ax: Axes, lanes: Profiled, top: float, begin: float, scale: float, smallest: float) -> None:
    """A rank's two lanes, from `top` inches down."""
    middle, bottom = top + _COMPUTING, top + _COMPUTING + _MESSAGES

    def place(times: Times, high: float, low: float) -> list[Corners]:
        return [((a - begin) * scale, (b - begin) * scale, high, low) for a, b in without_gaps(times, smallest)]

    boxes(ax, place([(lanes.begin, lanes.end)], top, middle), facecolor=_IDLE, edgecolor="none")
    boxes(ax, place(lanes.exposed, top, middle), facecolor=_WAIT, edgecolor="none")
    boxes(ax, place(lanes.copies, top, middle), facecolor=_COPIES, edgecolor="none")
    boxes(ax, place(lanes.computing, top, middle), facecolor=style.COLOURS["forward"], edgecolor="none", zorder=2)
    boxes(ax, place(lanes.communication, middle, bottom), facecolor=HIDDEN, edgecolor="none", zorder=2)
    boxes(ax, place(lanes.exposed, middle, bottom), facecolor=EXPOSED, edgecolor="none", zorder=3)


def _label(ax: Axes, names: Sequence[str], each: float, left: float) -> None:
    """The names of ranks and lanes, left of the axes."""
    ticks, words = [], []
    for place, name in enumerate(names):
        top = place * each
        ticks += [top + _COMPUTING / 2, top + _COMPUTING + _MESSAGES / 2]
        words += ["computing", "messages"]
        at = {"xytext": (-left * 72 + 10, 0), "textcoords": "offset points", "va": "center_baseline"}
        where = (0, top + (_COMPUTING + _MESSAGES) / 2)
        bold = {"fontsize": style.SMALL, "fontweight": "bold", "annotation_clip": False}
        ax.annotate(name, where, xycoords=("axes fraction", "data"), **at, **bold)
    ax.set_yticks(ticks, words, fontsize=style.SMALL)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)


def _row_text(name: str, lanes: Profiled, start: float) -> str:
    """A rank in words: its place on the axis that begins at `start`, and what it did for how long."""
    scale, unit = time_unit(lanes.end - start)
    place = " to ".join(f"{round(scale * (moment - start), 2):.3g}" for moment in (lanes.begin, lanes.end))
    shares = {
        "computes": length(lanes.computing),
        "copies": length(lanes.copies),
        "waits for messages": length(lanes.exposed),
    }
    done = [f"{word} {percent(long / (lanes.end - lanes.begin))}" for word, long in shares.items() if long]
    told = join([*done, f"is idle {percent(lanes.idle_share)}"])
    hidden = f"; {percent(lanes.overlap_share)} of its communication is hidden" if lanes.communication else ""
    return f"{name[:1].upper()}{name[1:]}, {place} {unit}: {told} of the time{hidden}."
