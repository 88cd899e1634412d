"""Pipelines: what each rank computes when, on which micro-batch; a plan above the run that it became."""

from collections.abc import Mapping
from itertools import takewhile

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from course_utils.draw import style
from course_utils.draw.style import boxes, paler
from course_utils.errors import CourseError
from course_utils.lessons.pipeline.timing import Timing
from course_utils.words import as_sentences, join, percent, time_unit

_KINDS = {
    "F": ("forward", style.COLOURS["forward"]),
    "B": ("backward", style.COLOURS["backward"]),
    "I": ("backward, input's gradient", style.COLOURS["backward"]),
    "W": ("backward, weights' gradient", style.COLOURS["weight gradient"]),
}
_IDLE = "#ECECEC"
_ROW = 0.30  # inches
_MOST = 0.9  # share of the boxes of a kind that have room for their number


def pipelines(
    timings: Mapping[str, Timing],
    title: str,
    subtitle: str = "",
    in_seconds: bool = False,
) -> Figure:
    """Draw pipelines one under the other: a row for each rank, a box with its micro-batch for each computation.

    The first stage on a rank has strong colours, its further ones (interleaved schedules) paler ones. Grey is idle.

    Args:
        timings: by name, as simulated or as run, on one scale.
        in_seconds: whether times are seconds; otherwise they are units of the plan.
    """
    if not timings or not all(timing.entries for timing in timings.values()):
        raise CourseError("pipelines: at least one schedule, with at least one computation.")
    used = {entry.action.kind for timing in timings.values() for entry in timing.entries}
    kinds = {word: Patch(facecolor=colour) for kind, (word, colour) in _KINDS.items() if kind in used}
    if {"B", "I"} <= used:  # of one colour
        del kinds[_KINDS["I"][0]]
    kinds["idle"] = Patch(facecolor=_IDLE)
    heights = [_ROW * timing.ranks for timing in timings.values()]
    above = style.legend_height(list(kinds)) + 0.24
    picture, axes = style.new_picture(title, subtitle, heights=heights, above=above, between=0.6)
    longest = max(timing.seconds for timing in timings.values())
    for ax, (name, timing) in zip(axes, timings.items(), strict=True):
        _draw(ax, name, timing, longest, in_seconds)
        if ax is not axes[-1]:
            ax.set_xlabel("")
    style.draw_legend(axes[0], kinds, offset=0.3)
    text = "; ".join(f"{name}: {_schedule_text(timing)}" for name, timing in timings.items())
    picture.alt_text = as_sentences("Pipelines, a row for each rank, a box for each computation", title, subtitle, text)
    return picture


def _schedule_text(timing: Timing) -> str:
    """How idle the ranks are, and what tells one schedule from another: stages, and forward passes at the start."""
    kinds = [[entry.action.kind for entry in timing.entries if entry.rank == rank] for rank in range(timing.ranks)]
    forward = [str(len(list(takewhile("F".__eq__, each)))) for each in kinds]
    stages = len({entry.action.stage for entry in timing.entries}) // timing.ranks
    several = f", {stages} stages on each rank, the first one darkest" if stages > 1 else ""
    return f"idle {percent(timing.idle_share)}{several}, at the start {join(forward)} forward passes"


def plan_and_run(name: str, plan: Timing, run: Timing, title: str, subtitle: str = "") -> Figure:
    """Draw a schedule as it was planned and, below, as it was run, on one axis of seconds; see `pipelines`."""
    both = {f"{name} as planned": plan, f"{name} as run": run}
    return pipelines(both, title, subtitle, in_seconds=True)


def _draw(ax: Axes, name: str, timing: Timing, span: float, in_seconds: bool) -> None:
    """One pipeline on its axes."""
    scale, unit = time_unit(span) if in_seconds else (1.0, "units of the plan")
    began = min(entry.start for entry in timing.entries)
    lowest = {
        rank: min(entry.action.stage for entry in timing.entries if entry.rank == rank) for rank in _ranks(timing)
    }
    end = timing.seconds * scale
    boxes(ax, [(0, end, rank - 0.5, rank + 0.5) for rank in range(timing.ranks)], facecolor=_IDLE, edgecolor="none")
    for kind, (_, colour) in _KINDS.items():
        for first in (True, False):
            mine = [
                entry
                for entry in timing.entries
                if entry.action.kind == kind and (entry.action.stage == lowest[entry.rank]) == first
            ]
            corners = [
                ((entry.start - began) * scale, (entry.end - began) * scale, entry.rank - 0.5, entry.rank + 0.5)
                for entry in mine
            ]
            bar_style = {"facecolor": colour if first else paler(colour, 0.55), "edgecolor": "white", "linewidth": 0.8}
            boxes(ax, corners, zorder=2, **bar_style)
    _number(ax, timing, began, scale, span, lowest)
    ax.set_xlim(0, span * scale)
    ax.set_ylim(timing.ranks - 0.5, -0.5)
    ax.set_yticks(range(timing.ranks), [f"rank {rank}" for rank in range(timing.ranks)])
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel(f"time, in {unit}", fontsize=style.SMALL, labelpad=1)
    heading = f"{name}: {percent(timing.idle_share)} idle"
    ax.set_title(heading, fontsize=style.TEXT, fontweight="bold", loc="left", pad=4)


def _number(ax: Axes, timing: Timing, began: float, scale: float, span: float, lowest: Mapping[int, int]) -> None:
    """Write its micro-batch on every box of a kind, or on none: where most are too narrow, they stay empty."""
    room = ax.get_position().width * ax.figure.get_size_inches()[0] * style.DOTS / span  # pixels to the second
    for kind in _KINDS:
        mine = [entry for entry in timing.entries if entry.action.kind == kind]
        fits = [
            (entry.end - entry.start) * room > style.text_width(str(entry.action.micro_batch)) + 3 for entry in mine
        ]
        if sum(fits) < _MOST * len(fits):
            continue
        for entry in (entry for entry, fit in zip(mine, fits, strict=True) if fit):
            dark = kind == "F" and entry.action.stage == lowest[entry.rank]
            middle = ((entry.start + entry.end) / 2 - began) * scale
            at = {"ha": "center", "va": "center_baseline", "fontsize": style.SMALL, "zorder": 3}
            ax.text(middle, entry.rank, str(entry.action.micro_batch), color="white" if dark else style.INK, **at)


def _ranks(timing: Timing) -> set[int]:
    return {entry.rank for entry in timing.entries}
