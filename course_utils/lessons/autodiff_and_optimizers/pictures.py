"""Drawings of lesson 2: the graph of a computation, when gradients become ready, and what optimizers keep."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Patch

from course_utils.draw import style
from course_utils.draw.bars import SharesPanel, shares
from course_utils.lessons.autodiff_and_optimizers.autodiff import topological_order
from course_utils.words import bytes_text, percent, seconds_text, time_unit

KINDS = {"input": "#D9D9D9", "parameter": style.COLOURS["weight gradient"], "operation": "#9CC9E8"}
"""The colour of what is given, of what is learned, and of what is computed (a paler `forward`)."""
WORDS = {"input": "given", "parameter": "learned", "operation": "computed"}
COLUMN, ROW = 1.05, 0.92  # inches from one box to the next; a picture with many columns grows wider
BOX, APART = (0.84, 0.56), 0.12  # inches; a twin arrow runs so far from the middle


@dataclass(frozen=True)
class Box:
    """One node of the graph as it is drawn.

    Attributes:
        label: what it is, "W1" or "@".
        note: smaller, below the label: a shape, a value.
        kind: one of `KINDS`.
    """

    label: str
    note: str = ""
    kind: str = "operation"


def graph(last: Any, title: str, *, given: Collection[str] = (), visited: Sequence[Any] = ()) -> Figure:
    """Draw the graph of all nodes that `last` was computed from.

    Args:
        last: a `Node`, or any object with `parents`, `name`, `value` and `gradient`.
        given: names of the inputs that are data; all other inputs are learned.
        visited: the nodes in the order of a backward walk. With it, the arrows point backwards, every box has its
            number in this order and shows its gradient if it has one. If all values are single numbers, the arrows
            show the parts that are passed along them in this order.
    """
    nodes = topological_order(last)
    boxes, edges = boxes_of(nodes, given, gradients=bool(visited))
    order = [nodes.index(node) for node in visited]
    numbers = visited and all(np.size(node.value) == 1 for node in nodes)
    parts = [value_text(part) for part in parts_passed(nodes, visited)] if numbers else []
    return computation_graph(boxes, edges, title, order=order, backward=bool(visited), parts=parts)


def parts_passed(nodes: Sequence[Any], visited: Sequence[Any]) -> list[Any]:
    """Return the part that each edge of `boxes_of(nodes)` carries if the graph is walked in this order."""
    gradients: dict[Any, Any] = {visited[0]: np.float64(1)}
    passed: dict[Any, Sequence[Any]] = {}
    for node in visited:
        passed[node] = node.rule(gradients.get(node, np.float64(0))) if node.rule else ()
        for parent, part in zip(node.parents, passed[node], strict=True):
            gradients[parent] = gradients.get(parent, 0) + part
    return [part for node in nodes for part in passed[node]]


def computation_graph(
    boxes: Sequence[Box],
    edges: Sequence[tuple[int, int]],
    title: str,
    *,
    order: Sequence[int] = (),
    backward: bool = False,
    parts: Sequence[str] = (),
) -> Figure:
    """Draw a graph without cycles from left to right, inputs before what is computed from them.

    Args:
        boxes: the nodes.
        edges: (from, to), as indices into `boxes`; twice where a node is used twice.
        order: some or all indices in the order in which they are visited, shown as numbers on the boxes.
        backward: draw the arrows the other way, in the colour of the backward pass.
        parts: a few letters for each edge, to be written at its arrow.
    """
    places = lay_out(boxes, edges)
    columns = 1 + max(x for x, _ in places)
    top, bottom = min(y for _, y in places), max(y for _, y in places)
    rows = bottom - top + 1
    jump = 0.4 if any(places[b][0] - places[a][0] > 1 for a, b in edges) else 0.0  # room for arrows above
    wide = max(style.WIDTH, COLUMN * columns + 0.3)
    used = [kind for kind in KINDS if any(box.kind == kind for box in boxes)]
    layout = {"left": 0.1, "right": 0.1, "below": 0.1, "above": 0.3, "width": wide}
    picture, (ax,) = style.new_picture(title, heights=[ROW * rows + jump], **layout)
    ax.axis("off")
    spare = (wide - 0.2) / COLUMN - columns
    ax.set_xlim(-0.5 - spare / 2, columns - 0.5 + spare / 2)
    ax.set_ylim(bottom + 0.5, top - 0.5 - jump / ROW)
    handles = {WORDS[kind]: Patch(facecolor=KINDS[kind], edgecolor=style.INK, linewidth=0.6) for kind in used}
    style.draw_legend(ax, handles)
    draw_arrows(ax, places, edges, backward, parts)
    for index, box in enumerate(boxes):
        draw_box(ax, box, places[index], list(order).index(index) + 1 if index in order else None)
    picture.alt_text = graph_text(boxes, edges, title, order, parts)
    return picture


def boxes_of(
    nodes: Sequence[Any], given: Collection[str] = (), gradients: bool = False
) -> tuple[list[Box], list[tuple[int, int]]]:
    """Return a box for each node, and an edge for each time that a node was used by another.

    Args:
        nodes: each with `parents`, all of which are in `nodes`, `name`, `value` and perhaps `gradient`.
        given: names of inputs that are data; all others are learned. Plain numbers are given as well.
        gradients: show each node's gradient (or its shape) under its value.
    """
    index_of = {id(node): index for index, node in enumerate(nodes)}
    boxes = []
    for node in nodes:
        kind = "operation" if node.parents else "input" if node.name in (*given, "number") else "parameter"
        notes = [value_text(node.value)]
        if gradients and node.gradient is not None:
            notes.append(f"gradient {value_text(node.gradient)}")
        boxes.append(Box(node.name.replace(" ", "\n"), "\n".join(notes), kind))
    edges = [(index_of[id(parent)], index) for index, node in enumerate(nodes) for parent in node.parents]
    return boxes, edges


def value_text(value: Any) -> str:
    """Return a single number with few digits, or the shape of an array: "64 × 10"."""
    array = np.asarray(value)
    if array.size == 1:
        return f"{array.item():.4g}"
    return " × ".join(str(side) for side in array.shape)


def lay_out(boxes: Sequence[Box], edges: Sequence[tuple[int, int]]) -> list[tuple[int, float]]:
    """Return (column, row) of each box: operations right of all their parents, inputs just left of their first use."""
    parents = {i: [a for a, b in edges if b == i] for i in range(len(boxes))}
    children = {i: [b for a, b in edges if a == i] for i in range(len(boxes))}
    column = [0] * len(boxes)
    for _ in boxes:  # the longest way from an input, found in at most as many sweeps as there are boxes
        column = [1 + max((column[p] for p in parents[i]), default=-1) for i in range(len(boxes))]
    for i in range(len(boxes)):
        if not parents[i] and children[i]:
            column[i] = min(column[child] for child in children[i]) - 1
    row = [0.0] * len(boxes)
    for x in range(max(column), -1, -1):
        here = [i for i in range(len(boxes)) if column[i] == x]
        wish = {i: sum(row[c] for c in children[i]) / len(children[i]) if children[i] else 0.0 for i in here}
        here.sort(key=lambda i: (not parents[i], wish[i], boxes[i].kind != "input", i))
        computed = sum(bool(parents[i]) for i in here)
        used_by = {child for i in here for child in children[i]}
        straight = computed == 1 or (computed == 0 and len(used_by) == 1)  # then the first goes on in its line
        start = wish[here[0]] if straight else sum(wish.values()) / len(here) - (len(here) - 1) / 2
        for offset, i in enumerate(here):
            row[i] = start + offset
    return list(zip(column, row, strict=True))


def draw_arrows(
    ax: Axes,
    places: Sequence[tuple[int, float]],
    edges: Sequence[tuple[int, int]],
    backward: bool,
    parts: Sequence[str] = (),
) -> None:
    """Draw an arrow for each edge: two between the same boxes run above each other, one over a box is bent."""
    colour = style.COLOURS["backward"] if backward else style.COLOURS["forward"]
    drawn: Counter = Counter()
    for number, (a, b) in enumerate(edges):
        (x0, y0), (x1, y1) = places[a], places[b]
        drawn[a, b] += 1
        twice = list(edges).count((a, b)) > 1
        shift = (APART if drawn[a, b] % 2 else -APART) / ROW if twice else 0.0
        half, bend = BOX[0] / COLUMN / 2, 0.0
        start, end = (x0 + half, y0 - shift), (x1 - half, y1 - shift)
        if x1 - x0 > 1:
            rise = BOX[1] / ROW / 2
            start, end, bend = (x0 + 0.1, y0 - rise), (x1 - 0.1, y1 - rise), -0.3
        if parts:
            top = y0 - BOX[1] / ROW / 2 - 0.15 * (x1 - x0)  # of the bent arrow
            below = drawn[a, b] == 2
            middle = (x0 + x1) / 2, top if bend else start[1]
            offset = (0, -2) if below else (0, 2)
            properties = {"ha": "center", "va": "top" if below else "bottom", "color": style.INK}
            ax.annotate(
                parts[number], middle, offset, textcoords="offset points", fontsize=style.SMALL, zorder=4, **properties
            )
        if backward:
            start, end, bend = end, start, -bend
        properties = {"arrowstyle": "-|>", "mutation_scale": 11, "color": colour, "linewidth": 1.6, "zorder": 1}
        ax.add_patch(
            FancyArrowPatch(start, end, connectionstyle=f"arc3,rad={bend}", shrinkA=0, shrinkB=0, **properties)
        )


def draw_box(ax: Axes, box: Box, centre: tuple[int, float], number: int | None) -> None:
    """Draw one box with its label and note, and at its corner its number in the order of visits."""
    x, y = centre
    wide, high = BOX[0] / COLUMN, BOX[1] / ROW
    properties = {"boxstyle": "round,pad=0,rounding_size=0.08", "facecolor": KINDS[box.kind], "edgecolor": style.INK}
    ax.add_patch(FancyBboxPatch((x - wide / 2, y - high / 2), wide, high, linewidth=0.8, zorder=2, **properties))
    text = {"ha": "center", "va": "center", "color": style.INK, "zorder": 3, "parse_math": False}
    labels, notes = box.label.split("\n"), box.note.split("\n") if box.note else []
    step = 0.155 / ROW
    first = y - step * (len(labels) + len(notes) - 1) / 2
    for index, line in enumerate([*labels, *notes]):
        size, weight = (style.TEXT, "bold") if index < len(labels) else (style.SMALL - 0.5, "normal")
        ax.text(x, first + step * index, line, fontsize=size, fontweight=weight, **text)
    if number is not None:
        badge = {"boxstyle": "circle,pad=0.18", "facecolor": "white", "edgecolor": style.COLOURS["backward"]}
        at = (x + wide / 2 - 0.1 / COLUMN, y - high / 2)  # left of the arrows and their parts
        ax.text(*at, str(number), fontsize=style.SMALL - 0.5, fontweight="bold", bbox=badge, **(text | {"zorder": 4}))


def graph_text(
    boxes: Sequence[Box], edges: Sequence[tuple[int, int]], title: str, order: Sequence[int], passed: Sequence[str] = ()
) -> str:
    """Return the graph in words: each box, the boxes that it was computed from, and the parts passed back to them."""
    parts = []
    for index, box in enumerate(boxes):
        sources = [boxes[a].label for a, b in edges if b == index]
        note = f" ({box.note})".replace("\n", ", ") if box.note else ""
        parts.append(f"{box.label}{note} from {' and '.join(sources)}" if sources else f"{box.label}{note}")
    visited = f" Visited in this order: {', '.join(boxes[i].label for i in order)}." if order else ""
    sent = [f"{boxes[b].label} to {boxes[a].label} {part}" for (a, b), part in zip(edges, passed, strict=False)]
    visited += f" Parts passed back: {', '.join(sent)}." if sent else ""
    return f"{title}. A graph: {'; '.join(parts)}.{visited}"


def gradient_readiness(
    layers: Sequence[tuple[str, int, float]], end: float, title: str, passes: Sequence[float] = ()
) -> Figure:
    """Draw a backward pass: a row for each layer, a bar during its work, then a line while its gradient could be sent.

    Below, on the same axis of time, is the share of all gradient bytes that is ready.

    Args:
        layers: (name, bytes of its gradients, seconds at which they were ready), in order of readiness.
        end: length of the backward pass in seconds.
        title: of the picture; the finding is written below it.
        passes: how long each pass took, if times are medians of several. The label of the axis then gives their range.
    """
    scale, unit = time_unit(end)
    found = ready_finding(layers, end)
    measured = ""
    if len(passes) > 1:
        spread = f"{seconds_text(min(passes))} to {seconds_text(max(passes))}"
        measured = f" (medians of {len(passes)} passes of {spread})"
    work, ready = style.COLOURS["backward"], style.COLOURS["communication"]
    layout = {"between": 0.2, "left": 0.8, "right": 0.95, "above": 0.3}
    picture, (ax, under) = style.new_picture(title, found, heights=[0.25 * len(layers) + 0.1, 1.15], **layout)
    total, begin = sum(size for _, size, _ in layers), 0.0
    for row, (_, size, seconds) in enumerate(layers):
        bar = {"height": 0.62, "edgecolor": style.INK, "linewidth": 0.5, "color": work}
        ax.barh(row, (seconds - begin) * scale, left=begin * scale, **bar)
        ax.barh(row, max(end - seconds, 0.0) * scale, left=seconds * scale, color=ready, height=0.18)
        share = percent(size / total) if size >= 0.0005 * total else f"< {percent(0.001)}"
        text = f"{bytes_text(size)}, {share}"
        ax.text(1.01, row, text, transform=ax.get_yaxis_transform(), va="center", fontsize=style.SMALL)
        begin = seconds
    ax.set_yticks(range(len(layers)), [name for name, *_ in layers], fontsize=style.SMALL)
    ax.set(ylim=(len(layers) - 0.4, -0.6), xlim=(0, end * scale))
    ax.tick_params(labelbottom=False, length=0)
    words = {"backward pass of the layer": work, "its gradient is ready to be sent": ready}
    style.draw_legend(ax, {word: Patch(facecolor=colour) for word, colour in words.items()})
    draw_share(under, layers, end, scale)
    under.set_xlabel(f"{unit} since the backward pass began{measured}", fontsize=style.TEXT)
    moments = "; ".join(f"{name} after {seconds_text(seconds)}" for name, _, seconds in layers)
    picture.alt_text = f"{title}. {found}. Gradients ready: {moments}."
    return picture


def draw_share(ax: Axes, layers: Sequence[tuple[str, int, float]], end: float, scale: float) -> None:
    """Draw the share of gradient bytes that is ready as a staircase over time, and mark half of the time."""
    total = sum(size for _, size, _ in layers)
    times, shares = [0.0], [0.0]
    for _, size, seconds in layers:
        times.append(seconds * scale)
        shares.append(shares[-1] + 100 * size / total)
    times.append(end * scale)
    shares.append(shares[-1])
    ax.step(times, shares, where="post", color=style.COLOURS["communication"], linewidth=2)
    ax.fill_between(times, shares, step="post", color=style.COLOURS["communication"], alpha=0.2)
    ax.axvline(end * scale / 2, color=style.INK, linewidth=1, linestyle=(0, (4, 3)))
    half = share_at(layers, end / 2)
    right = {"ha": "left", "va": "top" if half > 0.5 else "bottom", "fontsize": style.SMALL}
    ax.text(end * scale * 0.51, 94 * half, f"{percent(half)} halfway", **right)
    ax.set(xlim=(0, end * scale), ylim=(0, 105), yticks=(0, 50, 100))
    ax.set_ylabel("% of bytes\nready", fontsize=style.SMALL)
    ax.grid(axis="y", color=style.GRID, linewidth=0.7)


def share_at(layers: Sequence[tuple[str, int, float]], seconds: float) -> float:
    """Return the share of all gradient bytes that is ready `seconds` after the backward pass began."""
    total = sum(size for _, size, _ in layers)
    return sum(size for _, size, ready in layers if ready <= seconds) / total if total else 0.0


def ready_finding(layers: Sequence[tuple[str, int, float]], end: float) -> str:
    """Return what a backward pass shows: how much of the gradient is ready when half of the time is over."""
    half = share_at(layers, end / 2)
    first, last = layers[0][0], layers[-1][0]
    return f"{first} is ready first, {last} last; halfway, {percent(half)} of the bytes are ready"


def bytes_per_parameter(kept: Mapping[str, Mapping[str, float]], title: str) -> Figure:
    """Draw a bar for each optimizer, with the bytes that training with it keeps for one parameter.

    Args:
        kept: name of the optimizer → {"parameters": 4, "gradients": 4, "optimizer state": 8}.
    """
    panel = SharesPanel("bytes per parameter", kept, say=lambda amount: f"{amount:.3g} B")
    return shares([panel], title)
