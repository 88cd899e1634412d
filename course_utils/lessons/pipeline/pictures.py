"""Pipelines: which micro-batch is where, and what each rank computes when; on paper, and below it as it was run."""

import math
from collections.abc import Mapping, Sequence
from itertools import takewhile

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from course_utils.draw import style
from course_utils.draw.style import boxes, paler
from course_utils.errors import CourseError
from course_utils.lessons.pipeline.actions import Action
from course_utils.lessons.pipeline.micro_batch_frames import MicroBatchState, micro_batch_frames
from course_utils.lessons.pipeline.timing import Timing
from course_utils.words import as_sentences, join, percent, time_unit

_KINDS = {
    "F": ("forward", style.COLOURS["forward"]),
    "B": ("backward", style.COLOURS["backward"]),
    "I": ("I, gradient of the input", style.COLOURS["backward"]),
    "W": ("W, gradient of the weights", style.COLOURS["weight gradient"]),
}
_IDLE = "#ECECEC"
_STATES = {
    MicroBatchState.FORWARD: _KINDS["F"][1],
    MicroBatchState.KEPT: paler(_KINDS["F"][1], 0.55),
    MicroBatchState.BACKWARD: _KINDS["B"][1],
    MicroBatchState.DONE: _IDLE,
}
_LEFT, _HEAD, _BETWEEN, _SQUARE = 0.62, 0.24, 0.22, 0.34  # inches
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
        in_seconds: whether times are seconds; otherwise a forward pass takes 1.
    """
    if not timings or not all(timing.entries for timing in timings.values()):
        raise CourseError("pipelines: at least one schedule, with at least one computation.")
    used = {entry.action.kind for timing in timings.values() for entry in timing.entries}
    words = {kind: word for kind, (word, _) in _KINDS.items() if kind in used}
    if {"B", "I"} <= used:  # of one colour
        words["B"] = f"{words['B']}, or {words.pop('I')}"
    kinds = {word: Patch(facecolor=_KINDS[kind][1]) for kind, word in words.items()}
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


def micro_batches(schedule: Sequence[Sequence[Action]], title: str, subtitle: str = "") -> Figure:
    """Draw which micro-batch is where after each step: ranks are rows, and a square is a micro-batch on a rank.

    Args:
        schedule: with a single stage on each rank, and whole backward passes; see `micro_batch_frames`.
    """
    frames = micro_batch_frames(schedule)
    ranks, columns = len(schedule), len(frames[0][0])
    wide, high = columns * _SQUARE + _BETWEEN, ranks * _SQUARE + _HEAD + 0.1
    most = max(1, int((style.WIDTH - _LEFT - 0.1 + _BETWEEN) / wide))
    lines = math.ceil(len(frames) / most)
    a_line = math.ceil(len(frames) / lines)
    legend = {str(state): Patch(facecolor=colour) for state, colour in _STATES.items()}
    above = style.legend_height(list(legend), _LEFT, 0.1)
    picture, (ax,) = style.new_picture(
        title, subtitle, heights=[lines * high], left=_LEFT, right=0.1, below=0.1, above=above
    )
    ax.set(xlim=(0, style.WIDTH - _LEFT - 0.1), ylim=(lines * high, 0))
    ax.axis("off")
    for index, frame in enumerate(frames):
        left, top = index % a_line * wide, index // a_line * high
        middle, small = left + columns * _SQUARE / 2, {"fontsize": style.SMALL, "va": "center"}
        ax.text(middle, top + _HEAD / 2, f"step {index + 1}", ha="center", color="#555555", **small)
        for rank, row in enumerate(frame):
            down = top + _HEAD + rank * _SQUARE
            if left == 0:
                ax.text(-0.08, down + _SQUARE / 2, f"rank {rank}", ha="right", **small)
            for micro_batch, state in enumerate(row):
                _square(ax, left + micro_batch * _SQUARE, down, str(micro_batch), state)
    style.draw_legend(ax, legend)
    steps = [f"step {index + 1}: {_frame_text(frame)}" for index, frame in enumerate(frames)]
    picture.alt_text = as_sentences("What each rank holds of each micro-batch", title, subtitle, *steps)
    return picture


def _square(ax: Axes, x: float, y: float, number: str, state: MicroBatchState) -> None:
    """One micro-batch on one rank; what the rank is working on has a dark frame."""
    margin = 0.07 * _SQUARE
    side = _SQUARE - 2 * margin
    at_work = state in (MicroBatchState.FORWARD, MicroBatchState.BACKWARD)
    edge = {"edgecolor": style.INK, "linewidth": 1.4} if at_work else {"edgecolor": "#B5B5B5", "linewidth": 0.8}
    colour = _STATES.get(state, "none")
    ax.add_patch(Rectangle((x + margin, y + margin), side, side, facecolor=colour, **edge))
    if at_work or state == MicroBatchState.KEPT:
        ink = "white" if state == MicroBatchState.FORWARD else style.INK
        at = {"ha": "center", "va": "center_baseline", "fontsize": style.SMALL, "color": ink}
        ax.text(x + _SQUARE / 2, y + _SQUARE / 2, number, **at)


def _frame_text(frame: Sequence[Sequence[MicroBatchState]]) -> str:
    """What the ranks do and keep in one step, in words."""
    rows = []
    for rank, row in enumerate(frame):
        held = [f"{number} {state}" for number, state in enumerate(row) if state != MicroBatchState.NOT_YET]
        rows.append(f"rank {rank} {join(held) or 'nothing'}")
    return "; ".join(rows)


def plan_and_run(name: str, plan: Timing, run: Timing, title: str, subtitle: str = "") -> Figure:
    """Draw a schedule as it is on paper and, below, as it was run, on one axis of seconds; see `pipelines`."""
    both = {f"{name} on paper": plan, f"{name} as run": run}
    return pipelines(both, title, subtitle, in_seconds=True)


def _draw(ax: Axes, name: str, timing: Timing, span: float, in_seconds: bool) -> None:
    """One pipeline on its axes."""
    scale, unit = time_unit(span) if in_seconds else (1.0, "forward passes")
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
