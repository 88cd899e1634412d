"""Timelines of messages: who sent what to whom and when, and who waited. Ranks are rows, time runs to the right."""

import math
from collections.abc import Collection, Sequence
from typing import Protocol

from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from course_utils.draw import style
from course_utils.draw.message_timeline import rows as parts
from course_utils.draw.message_timeline.labels import write_labels
from course_utils.draw.message_timeline.layout import Rows, lay_out
from course_utils.draw.message_timeline.timeline_text import description, extent, finding
from course_utils.errors import CourseError
from course_utils.trace.events import Event, count_rounds
from course_utils.words import as_sentences, count, join, seconds_text, time_unit

_LEFT, _RIGHT = 0.7, 0.25  # inches beside the axes


class HasEvents(Protocol):
    """Whatever left events behind: a Run."""

    @property
    def events(self) -> Sequence[Event]: ...


def timeline(
    run_or_events: HasEvents | Sequence[Event], title: str | None = None, *, ranks: Collection[int] | None = None
) -> style.Picture:
    """Draw the messages, collectives and phases of one run.

    Args:
        run_or_events: a Run, or its events (seconds, on one clock for all ranks).
        title: said first; the finding ("3 messages in 2 rounds, 1.2 ms") then stands under it.
        ranks: those that took part: they have a row each, and so have those that the events name. Without it, all
            ranks of the run, or up to the highest that the events name.
    """
    events, all_ranks = read(run_or_events)
    rows = all_ranks if ranks is None else sorted({*ranks, *named_in(events)})
    (layout,), note = lay_out([events], [rows])
    heading = (title, ". ".join(filter(None, [finding(events), note]))) if title else (finding(events), note)
    kinds = parts.kinds_of(layout)
    height = row_height(layout) * max(len(rows), 1)
    above = style.legend_height(list(kinds), _LEFT, _RIGHT)
    picture, (ax,) = style.new_picture(*heading, heights=[height], left=_LEFT, right=_RIGHT, above=above)
    draw(ax, layout, last=True)
    style.draw_legend(ax, kinds)
    picture.alt_text = " ".join(filter(None, [as_sentences(title or ""), description(events, rows)]))
    return picture


def timelines(
    *runs: HasEvents | Sequence[Event],
    titles: Sequence[str] | None = None,
    side_by_side: bool = False,
    title: str | None = None,
) -> style.Picture:
    """Draw several runs, one under the other, on one axis of time; each begins with its own first event.

    Args:
        runs: Runs or lists of events.
        titles: a name for each run.
        side_by_side: put them beside each other in a wide picture, for a slide; the axis is the same in all.
        title: what they show; without it, how they compare (rounds, durations).
    """
    names = list(titles or [chr(ord("A") + index) for index in range(len(runs))])
    if not runs or len(names) != len(runs):
        raise CourseError(
            f"timelines: {count(len(runs), 'run')} and {count(len(names), 'title')}. "
            'Give runs, and as many titles: course.draw.timelines(plain, doubling, titles=["plain", "doubling"]).'
        )
    read_runs = [read(run) for run in runs]
    layout, note = lay_out([events for events, _ in read_runs], [ranks for _, ranks in read_runs])
    kinds: dict[str, Patch] = {}
    for each in layout:
        kinds |= parts.kinds_of(each)
    heights = [row_height(each) * max(len(each.ranks), 1) for each in layout]
    above = style.legend_height(list(kinds), _LEFT, _RIGHT) + 0.24
    margins = {"left": _LEFT, "right": _RIGHT, "above": above, "between": 0.66, "side_by_side": side_by_side}
    width = style.SLIDE_WIDTH if side_by_side else style.WIDTH
    picture, axes = style.new_picture(title or comparison(layout), note, heights=heights, width=width, **margins)
    for ax, each, name in zip(axes, layout, names, strict=True):
        draw(ax, each, last=side_by_side or ax is axes[-1])
        head(ax, name, finding(each.events))
    style.draw_legend(axes[0], kinds, offset=0.3)
    texts = [f"{name}: {description(each.events, each.ranks)}" for name, each in zip(names, layout, strict=True)]
    picture.alt_text = " ".join(filter(None, [as_sentences(title or ""), *texts]))
    return picture


def head(ax: Axes, name: str, found: str) -> None:
    """Write a run's name and finding above its axes."""
    wide, high = (side * style.DOTS for side in inches(ax))
    start = 15 - _LEFT * style.DOTS
    named = style.text_width(name, style.TEXT, bold=True) + 12
    properties = {"transform": ax.transAxes, "fontsize": style.TEXT, "parse_math": False}
    ax.text(start / wide, 1 + 6 / high, name, fontweight="bold", **properties)
    rest = style.shorten(found, wide - start - named, style.TEXT)
    ax.text((start + named) / wide, 1 + 6 / high, rest, **properties)


def inches(ax: Axes) -> tuple[float, float]:
    """Width and height of the axes' area."""
    wide, high = ax.figure.get_size_inches()
    return ax.get_position().width * wide, ax.get_position().height * high


def read(run_or_events: HasEvents | Sequence[Event]) -> tuple[list[Event], Sequence[int]]:
    """The events, and the ranks: all of the run, or up to the highest that the events name."""
    events = getattr(run_or_events, "events", run_or_events)
    if isinstance(events, (str, bytes)) or not hasattr(events, "__iter__"):
        raise CourseError(f"timeline: a Run or a list of events is needed, not {type(run_or_events).__name__}.")
    events = list(events)
    return events, range(max(getattr(run_or_events, "world_size", 0) or 0, max(named_in(events), default=-1) + 1))


def named_in(events: Sequence[Event]) -> set[int]:
    """The ranks of the events, and those to which they send or from which they receive."""
    return {event.rank for event in events} | {event.peer for event in events if event.peer is not None}


def row_height(layout: Rows) -> float:
    """Inches for one rank: less where there are many, more where phases need room for their names."""
    most = 0.74 if layout.phases and layout.marks else 0.6
    return max(0.22, min(most, 4.4 / max(len(layout.ranks), 1)))


def comparison(layout: Sequence[Rows]) -> str:
    """The title of several runs: their rounds, then their durations."""
    rounds = [count_rounds(each.events) for each in layout]
    seconds = [seconds_text(end - start) for start, end in (extent(each.events) for each in layout)]
    if any(not math.isfinite(event.end) for each in layout for event in each.events):
        seconds = []
    differences = [against([count(number, "round") for number in rounds])] if any(rounds) else []
    differences += [against(seconds)] if seconds else ["one of them without end"]
    return ", ".join(differences)


def against(values: Sequence[object]) -> str:
    """`3 rounds against 2 rounds`, or `3 rounds, 2 rounds and 4 rounds`."""
    words = [str(value) for value in values]
    return " against ".join(words) if len(words) == 2 else join(words)


def draw(ax: Axes, layout: Rows, last: bool) -> None:
    """Fill one axes with a run. `last`: it carries the name of the axis of time."""
    scale, unit = time_unit(layout.span)
    width = layout.span * scale
    pixels = inches(ax)[0] * style.DOTS / (1.02 * width)
    ax.set_xlim(-0.01 * width, 1.01 * width)
    rows = len(layout.ranks)
    ax.set_ylim(max(rows, 1) - 0.5, -0.5)
    every = max(1, math.ceil(rows / 24))
    ax.set_yticks(range(0, rows, every), [f"rank {rank}" for rank in layout.ranks[::every]])
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    locator = MaxNLocator(7, steps=[1, 2, 5, 10])
    known = layout.known * scale
    ax.set_xticks([tick for tick in locator.tick_values(0, width) if 0 <= tick <= min(1.01 * width, known)])
    for row in range(rows):
        ax.axhline(row, color="#E4E4E4", linewidth=0.8, zorder=0)
    if last and layout.events:
        words = f"time since the first operation, in {unit}" if known else "time; none of these calls ended"
        ax.set_xlabel(words, fontsize=style.TEXT, color="#555555")
    if not layout.events:
        ax.set_xticks([])
        middle = (max(rows, 1) - 1) / 2
        words = {"ha": "center", "va": "center", "fontsize": style.TITLE, "color": "#555555", "backgroundcolor": "w"}
        ax.text(0.5 * width, middle, "no messages, no phases", **words)
        return
    parts.draw_phases(ax, layout, scale)
    parts.draw_collectives(ax, layout, scale)
    parts.draw_operations(ax, layout, scale)
    parts.draw_arrows(ax, layout, scale)
    write_labels(ax, layout, scale, pixels * scale)
