"""Curves of training: the loss over the steps, a curve for each way."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from course_utils.draw import lines, style
from course_utils.errors import CourseError
from course_utils.words import as_sentences, count, join

_DASHES = ("-", (0, (4, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)))


def loss_curves(
    curves: Mapping[str, Sequence[float]], title: str | None = None, *, x: str = "step", y: str = "loss"
) -> Figure:
    """Draw one curve for each way of training, named at its right end.

    Curves that lie on each other stay visible: the lower one is thicker, the upper one dashed.

    Args:
        curves: the values after each step, by name.
        title: said first; the finding (how far the curves are apart, or where they lead) then stands under it.
        x, y: what the axes show.
    """
    data = {name: as_numbers(name, values) for name, values in curves.items()}
    found = losses_finding(data, x, y)
    picture, (ax,) = style.new_picture(title, found, heights=[2.7], left=0.75, right=lines.room_for_names(list(data)))
    under, over = stacking(list(data.values()))
    for index, values in enumerate(data.values()):
        finite = np.where(np.isfinite(values), values, np.nan)
        properties = {"linewidth": min(1.8 + 1.6 * over[index], 5.0), "linestyle": _DASHES[under[index] % len(_DASHES)]}
        properties |= {"color": style.CURVES[index % len(style.CURVES)], "alpha": 0.9, "zorder": 2 + index}
        ax.plot(np.arange(1, len(values) + 1), finite, marker="o" if len(values) == 1 else None, **properties)
    longest = max((len(values) for values in data.values()), default=0)
    ax.set_xlim(*((0, 2) if longest < 2 else (1, longest)))
    ax.xaxis.set_major_locator(MaxNLocator(8, integer=True, steps=[1, 2, 5, 10]))
    lines.label(ax, x, y, grid="y")
    if any(np.isfinite(values).any() for values in data.values()):
        name_curves(ax, data)
    else:
        ax.set_yticks([])
        ax.text(0.5, 0.5, "no values", transform=ax.transAxes, ha="center", va="center", fontsize=style.TITLE)
    shown = {name: values[np.isfinite(values)] for name, values in data.items()}
    ranges = "; ".join(f"{name}: {values[0]:.4g} to {values[-1]:.4g}" for name, values in shown.items() if len(values))
    picture.alt_text = as_sentences(f"Curves of {y} over {x}", title or "", found, ranges)
    return picture


def as_numbers(name: str, values: Sequence[float]) -> np.ndarray:
    """One curve as float64, or a plain line about what is wrong with it."""
    try:
        numbers = np.asarray([float(value) for value in values])
    except (TypeError, ValueError):
        raise CourseError(f"loss_curves: {name!r} needs a list of numbers, one for each step.") from None
    return numbers


def stacking(curves: Sequence[np.ndarray]) -> tuple[list[int], list[int]]:
    """For each curve, how many earlier ones lie under it, and how many later ones lie on it, as far as one can see."""
    finite = np.concatenate([values[np.isfinite(values)] for values in curves] or [np.zeros(0)])
    visible = 0.005 * np.ptp(finite) if len(finite) else 0.0
    under, over = [0] * len(curves), [0] * len(curves)
    for second, first in ((j, i) for j in range(len(curves)) for i in range(j)):
        shared = min(len(curves[first]), len(curves[second]))
        distance = np.abs(curves[second][:shared] - curves[first][:shared])
        if shared and (distance[np.isfinite(distance)] <= visible).all():
            under[second] += 1
            over[first] += 1
    return under, over


def losses_finding(data: Mapping[str, np.ndarray], x: str, y: str) -> str:
    """What the curves say: where they left off, how far apart they are, or where each leads."""
    lost = [
        f"{name} from {x} {np.argmin(np.isfinite(v)) + 1} on" for name, v in data.items() if not np.isfinite(v).all()
    ]
    if lost:
        return f"No finite {y}: {join(lost)}"
    full = {name: values for name, values in data.items() if len(values)}
    lengths = {len(values) for values in full.values()}
    if not full:
        return f"No values of {y}"
    if len(full) > 1 and len(lengths) == 1:
        every = np.array(list(full.values()))
        distance = float(np.ptp(every, axis=0).max())
        steps = count(lengths.pop(), x)
        if distance == 0:
            return f"{join(list(full))} are equal in every digit over {steps}"
        if distance <= 1e-3 * np.ptp(every):
            return f"The curves coincide: at most {distance:.1e} apart over {steps}"
    return f"The {y} ends at {join([f'{values[-1]:.3g} ({unbroken(name)})' for name, values in full.items()])}"


def unbroken(name: str) -> str:
    """The name with spaces at which no line breaks."""
    return name.replace(" ", "\N{NO-BREAK SPACE}")


def name_curves(ax: Axes, data: Mapping[str, np.ndarray]) -> None:
    """Write each curve's name at its right end: beside the axes, or where it ends before the others."""
    longest = max(len(values) for values in data.values())
    colours = {name: style.CURVES[index % len(style.CURVES)] for index, name in enumerate(data)}
    ends = {}
    for name, values in data.items():
        there = np.flatnonzero(np.isfinite(values))
        if len(there) and there[-1] + 1 > 0.95 * longest:
            ends[name] = float(values[there[-1]])
        elif len(there):
            words = {"fontsize": style.TEXT, "fontweight": "bold", "parse_math": False, "color": colours[name]}
            at = (there[-1] + 1, values[there[-1]])
            ax.annotate(name, at, xytext=(7, 7), textcoords="offset points", va="center", **words)
    lines.name_ends(ax, ends, colours)
