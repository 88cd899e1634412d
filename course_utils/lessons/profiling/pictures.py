"""What torch.profiler saw: what ranks did when, clocks, the critical path, what changed, the memory of a step."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.patheffects import Normal, Stroke
from matplotlib.ticker import MaxNLocator

from course_utils.draw import lines, style
from course_utils.draw.style import boxes
from course_utils.errors import CourseError
from course_utils.lessons.profiling.critical_path import TRANSFER, Piece
from course_utils.lessons.profiling.intervals import length
from course_utils.lessons.profiling.lanes import Lanes
from course_utils.lessons.profiling.rank_clocks import Ping
from course_utils.lessons.profiling.shown_ranks import MOST_SHOWN, shown_of
from course_utils.lessons.profiling.step_memory import StepMemory
from course_utils.lessons.profiling.trace_difference import Change
from course_utils.words import as_sentences, bytes_text, join, percent, seconds_text, time_unit

Times = Sequence[tuple[float, float]]
"""From when to when, in seconds; sorted and without overlaps."""
HIDDEN = style.COLOURS["communication"]
EXPOSED = style.SEND
_WAIT, _IDLE = style.COLOURS["wait"], "#ECECEC"
_COPIES = style.OTHERS[0]
_COMPUTING, _MESSAGES, _GAP = 0.30, 0.2, 0.14  # inches: the lanes of a rank, and the room to the next rank
_SHORTEST = 1e-7  # seconds: a trace of a single event without a duration still needs an axis
_SMALLEST = 0.5  # pixels: phases shorter than this are not drawn


def profile(lanes: Sequence[Lanes], title: str, subtitle: str = "", names: Sequence[str] = ()) -> Figure:
    """Draw two lanes for each rank on one axis of time: its computing, and below it its communication.

    Communication has a dark colour where it is exposed: the rank does not compute meanwhile, it waits (grey). Copies
    into a GPU's memory and out of it stand in the upper lane. Idle (pale grey) is time for which nothing is recorded.
    What is shorter than a pixel gets its share of the pixel's colour, so the lanes show how long things took together.
    Of many ranks it shows those that are exposed for the longest and the shortest time, and says so.

    Args:
        lanes: of each rank, as `profiling.lanes.lanes_of` reads them in a trace.
        title: the finding.
        names: what each pair of lanes is called; "rank 0" and so on without.
    """
    if not lanes:
        raise CourseError("pictures.profile: at least one rank's lanes are needed.")
    names = list(names) or [f"rank {rank_lanes.rank}" for rank_lanes in lanes]
    if len(lanes) > MOST_SHOWN:
        few = f"{MOST_SHOWN} of {len(lanes)} ranks, with the least and the most exposed communication"
        subtitle = f"{subtitle}; {few}" if subtitle else few
        shown = shown_of(list(zip(lanes, names, strict=True)), lambda pair: pair[0].exposed_seconds)
        lanes, names = [own for own, _ in shown], [name for _, name in shown]
    begin, end = min(rank_lanes.begin for rank_lanes in lanes), max(rank_lanes.end for rank_lanes in lanes)
    end = max(end, begin + _SHORTEST)
    scale, unit = time_unit(end - begin)
    each = _COMPUTING + _MESSAGES + _GAP
    parts = {
        "computing": Patch(facecolor=style.COLOURS["computing"]),
        **({"copies": Patch(facecolor=_COPIES)} if any(rank_lanes.copies for rank_lanes in lanes) else {}),
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
    ax.set_xlim(0, (end - begin) * scale)
    pixels = round(2 * ax.get_position().width * style.WIDTH * style.DOTS)  # two of a sharp screen to one as shown
    for row, rank_lanes in enumerate(lanes):
        _draw(ax, rank_lanes, row * each, begin, scale, pixels)
    _label(ax, names, each, left)
    ax.set_ylim(height - _GAP / 2, -_GAP / 2)
    ax.set_xlabel(f"time, in {unit}", fontsize=style.TEXT, color="#555555")
    style.draw_legend(ax, parts)
    sentences = as_sentences(title, subtitle)
    rows = " ".join(_row_text(name, rank_lanes, begin) for name, rank_lanes in zip(names, lanes, strict=True))
    picture.alt_text = f"What each rank did. {sentences} {rows}"
    return picture


def round_trips(trips: Sequence[Ping], title: str, subtitle: str = "") -> Figure:
    """Draw round trips side by side: rank 0 asks rank 1 for the time, and rank 1 reads its clock somewhere in between.

    Args:
        trips: for each one when rank 0 asked, what rank 1's clock read, and when rank 0 had the answer; in seconds,
            each on its own clock.
        title: the finding.
    """
    heights = [1.15] * len(trips)
    room = {"left": 0.75, "right": 0.3, "above": 0.25}
    picture, panels = style.new_picture(title, subtitle, heights=heights, side_by_side=True, **room)
    longest = max(back - sent for sent, _, back in trips)
    texts = []
    for ax, (sent, there, back) in zip(panels, trips, strict=True):
        begin, end, read = (1000 * moment for moment in (sent, back, there))
        middle, least, most = (begin + end) / 2, read - end, read - begin
        boxes(ax, [(begin, end, 0.85, 1.15)], facecolor=_WAIT, edgecolor="none")
        for y in (0, 1):
            ax.axhline(y, color=style.INK, linewidth=0.8, zorder=1)
        for start, target in (((begin, 0), (middle, 1)), ((middle, 1), (end, 0))):
            arrow = {"arrowstyle": "-|>", "color": style.SEND, "linewidth": 1.6, "shrinkA": 0, "shrinkB": 0}
            ax.annotate("", target, start, arrowprops=arrow)
        small = {"fontsize": style.SMALL, "va": "center", "textcoords": "offset points"}
        ax.annotate(f"asks at {begin:g}", (begin, 0), (-3, 9), ha="right", **small)
        ax.annotate(f"answer at {end:g}", (end, 0), (3, 9), ha="left", **small)
        ax.annotate(f"reads {read:g} somewhere in the grey bar", (middle, 1), (0, -14), ha="center", **small)
        ax.set_xlim(middle - 1000 * longest, middle + 1000 * longest)
        ax.set_ylim(1.6, -0.5)
        ax.set_yticks([0, 1], ["rank 0", "rank 1"], fontsize=style.SMALL)
        ax.tick_params(axis="y", length=0)
        ax.spines["left"].set_visible(False)
        ax.set_xlabel("rank 0's clock, in ms", fontsize=style.TEXT, color="#555555")
        finding = f"ahead by {least:g} to {most:g} ms: {(least + most) / 2:g} ± {(most - least) / 2:g}"
        ax.set_title(finding, fontsize=style.TEXT)
        trip = f"Rank 0 asks at {begin:g} ms and has the answer at {end:g} ms"
        texts.append(f"{trip}; rank 1 reads {read:g} ms, so it is {finding}.")
    picture.alt_text = f"Round trips. {as_sentences(title, subtitle)} {' '.join(texts)}"
    return picture


def memory(held: StepMemory, title: str, subtitle: str = "") -> Figure:
    """Draw the bytes that are allocated over the time of a step, in the colours of its phases, with their peak.

    Args:
        held: as `profiling.step_memory.read_memory` reads it in a trace.
        title: the finding.
    """
    scale, unit = time_unit(held.seconds)
    smallest = _SMALLEST * held.seconds / (style.WIDTH * style.DOTS)
    phases = {name: each for name, each in held.phases.items() if length(each) > smallest}
    phases = {"optimizer" if name == "step" else name: each for name, each in phases.items()}
    names = list(phases)
    colours = {name: style.paler(colour, 0.3) for name, colour in style.colours_of(names).items()}
    parts = {name: Patch(facecolor=colour) for name, colour in colours.items()}
    top = 1.15 * max(1, held.peak)
    ticks = [tick for tick in MaxNLocator(5).tick_values(0, top) if tick <= top]
    left = 0.3 + max(style.text_width(bytes_text(tick), style.TEXT) for tick in ticks) / style.DOTS
    above = style.legend_height(names, left)
    picture, (ax,) = style.new_picture(title, subtitle, heights=[1.8], left=left, above=above)
    x, y = _between(held, 0, held.seconds)
    ax.fill_between(scale * x, y, step="post", color=_IDLE, linewidth=0)
    for name, each in phases.items():
        for begin, end in each:
            inside, below = _between(held, begin, end)
            ax.fill_between(scale * inside, below, step="post", color=colours[name], linewidth=0)
    ax.step(scale * x, y, where="post", color=style.INK, linewidth=1)
    ax.plot(scale * held.peak_time, held.peak, "o", color=style.INK, markersize=5)
    side = "right" if held.peak_time > held.seconds / 2 else "left"
    at = (scale * held.peak_time, held.peak)
    ax.annotate(bytes_text(held.peak), at, (0, 4), textcoords="offset points", ha=side, fontweight="bold")
    ax.set_xlim(0, held.seconds * scale)
    ax.set_ylim(0, top)
    lines.in_words(ax.yaxis, ticks, bytes_text)
    lines.label(ax, f"time, in {unit}", "", grid="y")
    style.draw_legend(ax, parts)
    picture.alt_text = f"Memory over a step. {as_sentences(title, subtitle)} {_memory_text(held, phases)}"
    return picture


def _between(held: StepMemory, begin: float, end: float) -> tuple[np.ndarray, np.ndarray]:
    """The times from `begin` to `end` at which the memory changes, both ends included, and the bytes from then on."""
    times = [begin, *(time for time in held.times if begin < time < end), end]
    return np.array(times), np.array([held.at(time) for time in times])


def _memory_text(held: StepMemory, phases: Mapping[str, Times]) -> str:
    """In words: how much is allocated when the step begins, and at the end of each phase."""
    texts = [f"{bytes_text(held.allocated[0])} when the step begins"]
    for name, each in phases.items():
        texts += [f"{bytes_text(held.at(end))} at the end of {name}" for _, end in each]
    return f"Allocated: {join(texts)}."


def critical(lanes: Sequence[Lanes], path: Sequence[Piece], title: str, subtitle: str = "") -> Figure:
    """Draw the lanes of all ranks, and over them the critical path as a bold line from rank to rank.

    Args:
        lanes: of all ranks on the path.
        path: in the order of time, as `critical_path` finds it; transfers are drawn in the lane of messages.
        title: the finding.
    """
    lanes = _on_path(lanes, path)
    picture = profile(lanes, title, subtitle)
    (ax,) = picture.axes
    begin, end = min(rank_lanes.begin for rank_lanes in lanes), max(rank_lanes.end for rank_lanes in lanes)
    scale, _ = time_unit(end - begin)
    rows = {rank_lanes.rank: row for row, rank_lanes in enumerate(lanes)}
    x: list[float] = []
    y: list[float] = []
    for piece in path:
        if piece.rank not in rows:  # one of many ranks, of which only some are drawn
            x, y = [*x, np.nan], [*y, np.nan]
            continue
        top = rows[piece.rank] * (_COMPUTING + _MESSAGES + _GAP)
        middle = top + (_COMPUTING + _MESSAGES / 2 if piece.kind == TRANSFER else _COMPUTING / 2)
        x += [(piece.begin - begin) * scale, (piece.end - begin) * scale]
        y += [middle, middle]
    white = [Stroke(linewidth=5, foreground="white"), Normal()]
    ax.plot(x, y, color="#111111", linewidth=2.6, solid_joinstyle="round", zorder=5, path_effects=white)
    text = ", ".join(
        f"{piece.kind} of rank {piece.rank} {seconds_text(piece.end - piece.begin)}" for piece in path[:12]
    )
    more = f", and {len(path) - 12} pieces more" if len(path) > 12 else ""
    picture.alt_text += f" The critical path: {text}{more}."
    return picture


def _on_path(lanes: Sequence[Lanes], path: Sequence[Piece]) -> list[Lanes]:
    """The lanes of all ranks; of many ranks, those that are on the path for longest."""
    longest = sorted(lanes, key=lambda own: -sum(each.end - each.begin for each in path if each.rank == own.rank))
    return sorted(longest[:MOST_SHOWN], key=lambda own: own.rank)


def changed(changes: Sequence[Change], title: str, subtitle: str = "") -> Figure:
    """Draw what changed between two runs: a bar for each name, to the left where time was gained.

    Args:
        changes: the largest first, as `trace_difference.changes` gives them.
        title: the finding.
    """
    if not changes:
        raise CourseError("pictures.changed: at least one change is needed.")
    names = [style.shorten(change.name, 210, style.SMALL) for change in changes]
    left = 0.3 + max(style.text_width(name, style.SMALL) for name in names) / style.DOTS
    picture, (ax,) = style.new_picture(title, subtitle, heights=[0.34 * len(names)], left=left, right=0.25)
    longest = max(abs(change.seconds) for change in changes) or 1e-6
    scale, unit = time_unit(longest)
    for row, change in enumerate(changes):
        colour = style.COLOURS["forward"] if change.seconds <= 0 else EXPOSED
        ax.barh(row, change.seconds * scale, height=0.62, color=colour)
        side, where = ("right", -3) if change.seconds <= 0 else ("left", 3)
        words = ("\N{MINUS SIGN}" if change.seconds < 0 else "+") + seconds_text(abs(change.seconds))
        ax.annotate(words, (change.seconds * scale, row), (where, 0), textcoords="offset points", ha=side, va="center")
    ax.axvline(0, color="#555555", linewidth=0.8)
    room = 0.25 * longest * scale
    ax.set_xlim(min(0.0, *(change.seconds for change in changes)) * scale - room, room + _largest(changes) * scale)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_yticks(range(len(names)), names, fontsize=style.SMALL)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.set_xlabel(f"change, in {unit}; to the left is time gained", fontsize=style.TEXT, color="#555555")
    text = "; ".join(
        f"{change.name}, {seconds_text(change.before)} before, {seconds_text(change.after)} after" for change in changes
    )
    picture.alt_text = f"What changed. {as_sentences(title, subtitle)} {text}."
    return picture


def _largest(changes: Sequence[Change]) -> float:
    return max(0.0, *(change.seconds for change in changes))


def _draw(ax: Axes, lanes: Lanes, top: float, begin: float, scale: float, pixels: int) -> None:
    """A rank's two lanes, from `top` inches down; each pixel has its colours by their shares of its time."""
    middle, bottom = top + _COMPUTING, top + _COMPUTING + _MESSAGES

    left, right = ax.get_xlim()
    edges = begin + np.linspace(left, right, pixels + 1) / scale
    in_steps, computing, copies, exposed, communication = (
        _shares(times, edges)
        for times in (
            [(lanes.begin, lanes.end)],
            lanes.computing,
            lanes.copies,
            lanes.exposed,
            lanes.communication,
        )
    )
    waiting = np.maximum(0, exposed - copies)
    idle = np.maximum(0, in_steps - computing - copies - waiting)
    upper = {style.COLOURS["forward"]: computing, _COPIES: copies, _WAIT: waiting, _IDLE: idle}
    lower = {EXPOSED: exposed, HIDDEN: np.maximum(0, communication - exposed)}
    for high, low, shares in (top, middle, upper), (middle, bottom, lower):
        total = sum(shares.values())
        drawn = np.flatnonzero(total > 0)
        mixed = sum(np.outer(share, to_rgb(colour)) for colour, share in shares.items())[drawn] / total[drawn, None]
        opaque = np.minimum(1, total[drawn, None])
        corners = [((edges[k] - begin) * scale, (edges[k + 1] - begin) * scale, high, low) for k in drawn]
        # Snapped or smoothed boxes would change how much of a pixel each colour gets.
        colours = np.hstack([mixed, opaque])
        boxes(ax, corners, facecolors=colours, edgecolor="none", snap=False, antialiased=False, zorder=2)


def _shares(times: Times, edges: np.ndarray) -> np.ndarray:
    """The share of each piece of time between two neighbouring edges that `times` cover."""
    if not times:
        return np.zeros(len(edges) - 1)
    moments = np.array(times).ravel()
    covered = np.cumsum(np.diff(moments, prepend=moments[0]) * (np.arange(len(moments)) % 2))
    return np.diff(np.interp(edges, moments, covered)) / np.diff(edges)


def _label(ax: Axes, names: Sequence[str], each: float, left: float) -> None:
    """The names of ranks and lanes, left of the axes."""
    ticks, words = [], []
    for index, name in enumerate(names):
        top = index * each
        ticks += [top + _COMPUTING / 2, top + _COMPUTING + _MESSAGES / 2]
        words += ["computing", "messages"]
        at = {"xytext": (-left * 72 + 10, 0), "textcoords": "offset points", "va": "center_baseline"}
        where = (0, top + (_COMPUTING + _MESSAGES) / 2)
        bold = {"fontsize": style.SMALL, "fontweight": "bold", "annotation_clip": False}
        ax.annotate(name, where, xycoords=("axes fraction", "data"), **at, **bold)
    ax.set_yticks(ticks, words, fontsize=style.SMALL)
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)


def _row_text(name: str, lanes: Lanes, start: float) -> str:
    """A rank in words: its place on the axis that begins at `start`, and what it did for how long."""
    scale, unit = time_unit(lanes.end - start)
    span = " to ".join(f"{round(scale * (moment - start), 2):.3g}" for moment in (lanes.begin, lanes.end))
    shares = {
        "computes": length(lanes.computing),
        "copies": length(lanes.copies),
        "waits for messages": length(lanes.exposed),
    }
    done = [f"{word} {percent(long / (lanes.seconds or 1.0))}" for word, long in shares.items() if long]
    text = join([*done, f"is idle {percent(lanes.idle_share)}"])
    hidden = f"; {percent(lanes.overlap_share)} of its communication is hidden" if lanes.communication else ""
    return f"{name[:1].upper()}{name[1:]}, {span} {unit}: {text} of the time{hidden}."
