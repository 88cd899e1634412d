"""Pictures of lesson 7: a step on one rank, times over bucket sizes, compressed gradients, sums of 8-bit numbers."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from course_utils.draw import style
from course_utils.draw.bars import SharesPanel, shares
from course_utils.draw.block_frames import Block, BlockFrames, BlockPiece, Frame
from course_utils.draw.block_panels import blocks
from course_utils.draw.lines import BROKEN, in_words, label, measured_points
from course_utils.trace.events import Event
from course_utils.words import bytes_text, count, join, percent, seconds_text, time_unit

if TYPE_CHECKING:
    from torch import Tensor

    from course_utils.lessons.overlap.compressed_training import Compressed


def bucket_sweep(
    measured: Mapping[int, Sequence[float]],
    predicted: Callable[[int], float],
    best: int,
    computing: float,
    title: str,
) -> Figure:
    """Draw the step time over the bucket size: measured runs, a calculated line, and the calculated optimum.

    Args:
        measured: bucket size in bytes → the seconds of all steps.
        predicted: the calculated seconds of a step for a bucket size.
        best: the bucket size with the shortest calculated step.
        computing: seconds of a step without communication.
    """
    sizes, runs = sorted(measured), [measured[size] for size in sorted(measured)]
    picture, (ax,) = style.new_picture(title, heights=[2.9], left=0.75, right=0.25, below=0.55, above=0.3)
    fine = np.unique(np.geomspace(sizes[0], sizes[-1], 300).astype(int))
    line = np.array([predicted(int(size)) for size in fine])
    scale, unit = time_unit(max(line.max(), *(np.median(runs) for runs in measured.values())))
    work, sent = style.COLOURS["computing"], style.COLOURS["communication"]
    ax.set_xscale("log")
    ax.axhspan(0, scale * computing, color=work, alpha=0.3, linewidth=0)
    ax.plot(fine, scale * line, color=sent, linewidth=2.2, zorder=2)
    middle = measured_points(ax, sizes, runs, style.INK, scale)
    ax.plot(best, scale * predicted(best), "o", color=sent, markersize=15, markerfacecolor="none", markeredgewidth=2)
    highest = max(scale * line.max(), middle.max())
    slowest = scale * max(max(own) for own in runs)
    top = max(1.15 * highest, 1.05 * min(slowest, 2 * highest))  # a step far above all others is cut off
    ax.set_ylim(0, top)
    ax.set_xlim(sizes[0] / 1.3, sizes[-1] * 1.3)
    in_words(ax.xaxis, sizes, bytes_text)
    label(ax, "bucket size", f"time of a step, in {unit}")
    words = {"ha": "center", "va": "top", "fontsize": style.SMALL}
    ax.text(np.sqrt(sizes[0] * sizes[1]), scale * computing * 0.94, "computing", **words)
    marks = {
        "measured (all runs)": Line2D([], [], color=style.INK, marker="o", markersize=5),
        "calculated": Line2D([], [], color=sent, linewidth=2.2),
        "calculated optimum": Line2D(
            [], [], linestyle="", marker="o", color=sent, markersize=11, markerfacecolor="none"
        ),
    }
    style.draw_legend(ax, marks)
    text = "; ".join(f"{bytes_text(size)}: {seconds_text(np.median(measured[size]))}" for size in sizes)
    picture.alt_text = f"Step time over bucket size. {title}. Calculated optimum {bytes_text(best)}. {text}."
    return picture


def compression_methods(found: Mapping[str, "Compressed"], title: str) -> Figure:
    """Draw bytes, time and accuracy of each way of compressing gradients, in panels that share their rows.

    Args:
        found: way → what `train_compressed` gave back on one rank.
    """
    sent = {how: {"sent": training.bytes_per_step or 0.0} for how, training in found.items()}
    time = {how: {"step": training.step} for how, training in found.items()}
    accuracy = {how: {"accuracy": training.accuracy} for how, training in found.items()}
    panels = [
        SharesPanel("sent by a node, a step", sent, say=lambda size: bytes_text(size) if size else "not counted"),
        SharesPanel("time of a step", time, say=seconds_text),
        SharesPanel("test images recognised", accuracy, say=percent),
    ]
    return shares(panels, title)


def float8_blocks(
    vectors: Sequence["Tensor"],
    arrived: Sequence["Tensor"],
    sums: Sequence["Tensor"],
    gathered: Sequence["Tensor"],
) -> Figure:
    """Draw an all-reduce that adds in one place: parts that move, and then sums that move.

    The numbers of rank r in part p of its vector are 2^(r + P p), for P ranks, so that each number tells where it is
    from, and the bits of a sum tell whose numbers are in it.

    Args:
        vectors: of each rank, before anything is sent.
        arrived: of each rank, (P, length of a part): what it has of each rank after the all-to-all.
        sums: of each rank, the sum of these.
        gathered: of each rank, the whole sum after the all-gather.
    """
    size = len(vectors)
    before = [[_moved(part, size) for part in vector.chunk(size)] for vector in vectors]
    after = [[_moved(part, size) for part in parts] for parts in arrived]
    own = [
        [_added(part, size, index) if index == rank else () for index in range(size)] for rank, part in enumerate(sums)
    ]
    everywhere = [[_added(part, size, index) for index, part in enumerate(vector.chunk(size))] for vector in gathered]
    moving = BlockFrames((_frame("in the beginning", before), _frame("after the all-to-all", after)))
    summing = BlockFrames((_frame("after adding", own), _frame("after the all-gather", everywhere)))
    right = all(block and block[0].is_known and block[0].is_complete for row in everywhere for block in row)
    title = "Each rank receives one part of every vector, adds it up, and shares the sum"
    under = (
        "The number on a square tells which part of the vector it is, and the colour whose numbers they are. In a sum,"
        " each rank whose numbers are in it has a stripe, and a tick marks a complete sum."
    )
    wrong = "Not every rank ends up with every part of the sum"
    names = ["numbers of 8 bits", "sums"]
    return blocks(moving, summing, titles=names, title=title if right else wrong, subtitle=under)


def _frame(name: str, rows: Sequence[Sequence[Block]]) -> Frame:
    return Frame(name, tuple(map(tuple, rows)))


def _moved(part: "Tensor", size: int) -> Block:
    """Whose numbers these are, and of which part, read from their exponent."""
    exponent = round(math.log2(float(part[0])))
    counts = tuple(int(rank == exponent % size) for rank in range(size))
    return (BlockPiece(1.0, counts, label=str(exponent // size)),)


def _added(part: "Tensor", size: int, index: int) -> Block:
    """Whose numbers have been added up, read from the bits; `index` is the part's."""
    value = round(float(part[0]) / 2 ** (size * index))
    if not 0 <= value < 2**size:
        return (BlockPiece(1.0, (0,) * size, is_known=False),)
    return (BlockPiece(1.0, tuple(value >> rank & 1 for rank in range(size))),)


_WORDS = {"communication": "waiting for messages"}
_PAINTS = style.COLOURS | {"communication": style.COLOURS["wait"]}
_PROCESSOR, _MESSAGES = 0.3, 0.85  # inches


def behind_the_step(steps: Mapping[str, Sequence[Event]], title: str) -> Figure:
    """Draw rank 0's steps as two lanes each: the processor's phases, and a line for each all-reduce.

    Args:
        steps: name → the events of one step.
        title: what is shown; it is drawn under the finding, which is how long the processor waits in each step.
    """
    own = {name: on_rank(events, 0) for name, events in steps.items()}
    span = max(event.end for events in own.values() for event in events)
    scale, unit = time_unit(span)
    heights = [_PROCESSOR + _MESSAGES] * len(own)
    margins = {"left": 0.95, "right": 0.2, "above": 0.6 if len(own) > 1 else 0.35, "between": 0.62}
    found = waiting_text(own)
    picture, axes = style.new_picture(found, title, heights=heights, **margins)
    for ax, (name, events) in zip(axes, own.items(), strict=True):
        _draw(ax, events, scale, span)
        ax.set_xlim(0, 1.01 * span * scale)
        if len(own) > 1:
            ax.set_title(name, fontsize=style.TEXT, fontweight="bold", loc="left", pad=4)
    axes[-1].set_xlabel(f"time, in {unit}", fontsize=style.TEXT, color="#555555")
    parts = {
        _WORDS.get(part, part): Patch(facecolor=_PAINTS[part]) for part in ("forward", "backward", "communication")
    }
    parts["optimizer"] = Patch(facecolor=_PAINTS["step"])
    parts["an all-reduce under way"] = Patch(facecolor=style.TOGETHER)
    style.draw_legend(axes[0], parts, offset=0.3 if len(own) > 1 else 0.06)
    texts = [f"{name}: {description(events)}" for name, events in own.items()]
    picture.alt_text = f"One training step on rank 0. {title}. {found}. {' '.join(texts)}"
    return picture


def on_rank(events: Sequence[Event], rank: int) -> list[Event]:
    """Return the phases and collectives of one rank, with times since its first event."""
    own = [event for event in events if event.rank == rank and event.kind in ("phase", "collective")]
    begin = min((event.start for event in own), default=0.0)
    moved = [(event, event.start - begin, event.end - begin) for event in own]
    return [Event(e.rank, e.name, e.kind, e.peer, e.tag, e.bytes, start, end, e.line) for e, start, end in moved]


def waited(events: Sequence[Event]) -> float:
    """Return for how many seconds the processor waits for messages."""
    return sum(event.end - event.start for event in events if event.name == "communication")


def waiting_text(steps: Mapping[str, Sequence[Event]]) -> str:
    """Return how long the processor waits in each step, and out of how long if there is only one step."""
    waits = {name: seconds_text(waited(events)) for name, events in steps.items()}
    if len(steps) > 1:
        return f"Waiting for messages: {join([f'{seconds} ({name})' for name, seconds in waits.items()])}"
    [(name, seconds)] = waits.items()
    whole = max(event.end for event in steps[name])
    return f"The processor waits for messages for {seconds} of {seconds_text(whole)}"


def description(events: Sequence[Event]) -> str:
    """Describe one step in words, for the text alternative."""
    phases = [event for event in events if event.kind == "phase"]
    messages = [event for event in events if event.kind == "collective"]
    spans = ", ".join(
        f"{_WORDS.get(event.name, event.name)} {seconds_text(event.end - event.start)}" for event in phases
    )
    if not messages:
        return f"{spans}; no messages."
    first, last = min(event.start for event in messages), max(event.end for event in messages)
    when = f"between {seconds_text(first)} and {seconds_text(last)}"
    return f"{spans}; {count(len(messages), 'all-reduce')} {when}."


def _draw(ax: Axes, events: Sequence[Event], scale: float, span: float) -> None:
    """Draw the two lanes of one step: the processor's is above 0 and 1 high, and the messages are below 0."""
    depth = _MESSAGES / _PROCESSOR
    pixels = ax.get_position().width * style.WIDTH * style.DOTS / span
    for event in events:
        if event.kind != "phase":
            continue
        width = (event.end - event.start) * scale
        ax.barh(0.5, width, left=event.start * scale, height=0.92, color=_PAINTS.get(event.name, "white"))
        words = {"communication": "waits"}.get(event.name, event.name)
        if style.text_width(words) + 6 < (event.end - event.start) * pixels:
            ink = "white" if event.name == "forward" else style.INK
            text_style = {"ha": "center", "va": "center", "fontsize": style.SMALL, "color": ink}
            ax.text(event.start * scale + width / 2, 0.5, words, **text_style)
    messages = sorted((event for event in events if event.kind == "collective"), key=lambda event: event.start)
    row = (depth - 0.25) / max(len(messages), 5)
    for number, event in enumerate(messages):
        y = -0.25 - (number + 0.5) * row
        bar_style = {"color": style.TOGETHER, "height": 0.8 * row}
        ax.barh(y, (event.end - event.start) * scale, left=event.start * scale, **bar_style)
    for event in events:
        if event.name == "backward":
            ax.axvline(event.end * scale, color=style.INK, linewidth=0.9, linestyle=BROKEN, zorder=0)
    ax.set_ylim(-depth, 1)
    ax.set_yticks([0.5, -depth / 2], ["processor", "messages"])
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
