"""Traffic over time: for each node what leaves and what comes in, under its link's rate, and its rank's CPU use."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from course_utils.draw import style
from course_utils.errors import CourseError
from course_utils.words import bytes_text, number_text, percent, time_unit

_OUT, _IN, _CPU = style.SEND, style.RECEIVE, style.OTHERS[5]
_BINS = 90  # steps of time drawn across the picture
_CPU_STEP = 0.08  # seconds; CPU time is counted in ticks of 0.01
_GAP, _CPU_WIDTH, _LEGEND = 0.55, 1.35, 0.1  # inches


def traffic(
    seconds: Sequence[float],
    sent: Sequence[Sequence[int]],
    received: Sequence[Sequence[int]],
    cpu: Sequence[Sequence[float]],
    rates: Sequence[float],
    title: str | None = None,
) -> Figure:
    """Draw a row for each node: bytes out upwards, bytes in downwards, over time; the CPU use of its rank beside it.

    Args:
        seconds: when the counters were read, from 0 on.
        sent, received: for each node the bytes counted so far, at each of these times.
        cpu: for each node the CPU seconds of its rank so far.
        rates: bits per second of each node's link; dashed lines show them.
        title: said first; the finding (how busy the links are) then stands under it.
    """
    clock = np.asarray(seconds, float)
    if len(clock) < 2 or not len(sent) == len(received) == len(cpu) == len(rates):
        raise CourseError("traffic: two samples are needed at least, and as many nodes everywhere.")
    begin, end = active(clock, sent, received)
    found = traffic_finding([s[-1] - s[0] for s in sent], [r[-1] - r[0] for r in received], rates, end - begin)
    scale, unit = time_unit(end - begin)
    words = {"out of the node, Mbit/s": Patch(facecolor=_OUT), "into it": Patch(facecolor=_IN)}
    height = 0.78 if len(rates) <= 4 else 0.5
    margins = {"left": 1.05, "right": 0.2 + _GAP + _CPU_WIDTH, "below": 0.5, "between": 0.14, "above": 0.26}
    picture, rows = style.new_picture(title, found, heights=[height] * len(rates), **margins)
    style.draw_legend(rows[0], words, _LEGEND)
    edges = np.linspace(begin, end, min(_BINS, max(2, int((end - begin) / 0.012))) + 1)
    for node, ax in enumerate(rows):
        top = 1.15 * rates[node] / 1e6  # a slow link that is full looks as full as a fast one
        last = node == len(rates) - 1
        for counts, sign, colour in ((sent[node], 1, _OUT), (received[node], -1, _IN)):
            speed = sign * per_second(clock, counts, edges) * 8 / 1e6
            ax.stairs(np.clip(speed, -top, top), (edges - begin) * scale, fill=True, color=colour)
            ax.axhline(sign * rates[node] / 1e6, color=style.FAINT, linewidth=0.8, linestyle=(0, (4, 3)))
        ax.axhline(0, color=style.INK, linewidth=0.7)
        label_row(ax, f"node {node}", rates[node] / 1e6, top)
        beside = cpu_axes(ax)
        if node == 0:
            style.draw_legend(beside, {"CPU of its rank": Patch(facecolor=_CPU)}, _LEGEND)
        draw_cpu(beside, clock, cpu[node], begin, end, scale)
        for each in (ax, beside):
            each.set_xlim(0, (end - begin) * scale)
            each.xaxis.set_major_locator(MaxNLocator(6 if each is ax else 3, steps=[1, 2, 5, 10]))
            each.tick_params(axis="x", labelbottom=last, length=3 if last else 0)
        if last:
            ax.set_xlabel(f"time, in {unit}", fontsize=style.TEXT, color="#555555")
    picture.alt_text = alt_text(found, clock, sent, received, cpu)
    return picture


def active(clock: np.ndarray, sent: Sequence[Sequence[int]], received: Sequence[Sequence[int]]) -> tuple[float, float]:
    """From shortly before the first bytes moved to shortly after the last; all of the time where none did."""
    total = np.sum([*sent, *received], axis=0, dtype=float)
    moved = total - total[0]
    if moved[-1] <= 0:
        return float(clock[0]), float(clock[-1])
    first = clock[max(0, np.searchsorted(moved, 0.002 * moved[-1]) - 1)]
    last = clock[min(len(clock) - 1, np.searchsorted(moved, 0.998 * moved[-1]))]
    margin = 0.02 * (last - first)
    return float(max(clock[0], first - margin)), float(min(clock[-1], last + margin))


def per_second(clock: np.ndarray, counts: Sequence[float], edges: np.ndarray) -> np.ndarray:
    """How fast a counter rises between neighbouring edges."""
    return np.diff(np.interp(edges, clock, np.asarray(counts, float))) / np.diff(edges)


def traffic_finding(sent: Sequence[int], received: Sequence[int], rates: Sequence[float], seconds: float) -> str:
    """How busy the links are: which one the others wait for, or that all share the work."""
    pairs = zip(sent, received, rates, strict=True)
    busy = [min(1.0, 8 * max(out, into) / (rate * seconds)) for out, into, rate in pairs]
    if max(busy, default=0.0) < 0.01:
        return "Hardly anything passed the links"
    load = [8 * (out + into) / rate for out, into, rate in zip(sent, received, rates, strict=True)]
    most = int(np.argmax(load))
    usual = float(np.median([other for node, other in enumerate(load) if node != most] or load))
    if load[most] > 1.5 * usual:
        times = number_text(load[most] / usual) if usual else "many"
        measure = "" if len(set(rates)) == 1 else " for its rate"
        return f"The others wait for node {most}: its link has {times} times as much to carry{measure}"
    return f"All links share the work: each is used to {percent(min(busy))} or more"


def label_row(ax: Axes, name: str, rate: float, top: float) -> None:
    """Name the node, and put its link's rate on the axis, out and in."""
    ax.set_ylim(-top, top)
    ax.set_yticks([-rate, 0, rate], [f"{rate:g}", "0", f"{rate:g}"], fontsize=style.SMALL)
    ax.text(-0.72, 0, name, transform=_left_of(ax), fontsize=style.TEXT, va="center", ha="center", color=style.INK)


def _left_of(ax: Axes):
    """Inches from the left edge across, the axis's numbers upwards."""
    from matplotlib.transforms import ScaledTranslation, blended_transform_factory

    inches = blended_transform_factory(ax.figure.dpi_scale_trans, ax.transData)
    edge = ScaledTranslation(ax.get_position().x0 * ax.figure.get_figwidth(), 0, ax.figure.dpi_scale_trans)
    return inches + edge


def cpu_axes(ax: Axes) -> Axes:
    """Narrow axes to the right of a node's."""
    box, width = ax.get_position(), ax.figure.get_figwidth()
    beside = ax.figure.add_axes((box.x1 + _GAP / width, box.y0, _CPU_WIDTH / width, box.height))
    beside.spines[["top", "right"]].set_visible(False)
    beside.spines[["left", "bottom"]].set_color(style.FAINT)
    beside.tick_params(labelsize=style.SMALL, color=style.FAINT)
    return beside


def draw_cpu(ax: Axes, clock: np.ndarray, used: Sequence[float], begin: float, end: float, scale: float) -> None:
    """The share of a core that a rank uses, over time."""
    edges = np.linspace(begin, end, max(1, min(_BINS, int((end - begin) / _CPU_STEP))) + 1)
    share = np.clip(100 * per_second(clock, used, edges), 0, 200)
    ax.stairs(share, (edges - begin) * scale, fill=True, color=_CPU)
    ax.set_ylim(0, max(105.0, 1.05 * share.max()))
    ax.set_yticks([0, 100], ["0", "100%"])


def alt_text(found: str, clock: np.ndarray, sent: Sequence, received: Sequence, cpu: Sequence) -> str:
    """The picture in words."""
    span = max(clock[-1] - clock[0], 1e-9)
    sentences = [
        f"node {node} sent {bytes_text(out[-1] - out[0])} and received {bytes_text(into[-1] - into[0])}, "
        f"its rank used {percent((used[-1] - used[0]) / span)} of a core"
        for node, (out, into, used) in enumerate(zip(sent, received, cpu, strict=True))
    ]
    return f"Traffic of each node over time, and CPU use. {found}. {'; '.join(sentences)}."
