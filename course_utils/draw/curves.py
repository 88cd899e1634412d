"""Curves: the loss over the steps, and the time of a message over its size with the line α + β·n through it."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from course_utils.draw import style
from course_utils.errors import CourseError
from course_utils.words import bytes_text, count, join, seconds_text

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
    right = 0.25 + max((style.text_width(name, style.TEXT, True) for name in data), default=0) / style.DOTS
    heading = (title, found) if title else (found, "")
    picture, (ax,) = style.new_picture(*heading, heights=[2.7], left=0.75, right=min(right, 2.5))
    under, over = stacking(list(data.values()))
    for index, values in enumerate(data.values()):
        finite = np.where(np.isfinite(values), values, np.nan)
        look = {"linewidth": min(1.8 + 1.6 * over[index], 5.0), "linestyle": _DASHES[under[index] % len(_DASHES)]}
        look |= {"color": style.CURVES[index % len(style.CURVES)], "alpha": 0.9, "zorder": 2 + index}
        ax.plot(np.arange(1, len(values) + 1), finite, marker="o" if len(values) == 1 else None, **look)
    longest = max((len(values) for values in data.values()), default=0)
    ax.set_xlim(*((0, 2) if longest < 2 else (1, longest)))
    ax.xaxis.set_major_locator(MaxNLocator(8, integer=True, steps=[1, 2, 5, 10]))
    ax.set_xlabel(x, fontsize=style.TEXT)
    ax.set_ylabel(y, fontsize=style.TEXT)
    ax.grid(axis="y", color=style.GRID, linewidth=0.7)
    if any(np.isfinite(values).any() for values in data.values()):
        name_curves(ax, data)
    else:
        ax.set_yticks([])
        ax.text(0.5, 0.5, "no values", transform=ax.transAxes, ha="center", va="center", fontsize=style.TITLE)
    ends = "; ".join(f"{name} ends at {values[-1]:.4g}" for name, values in data.items() if len(values))
    picture.alt_text = " ".join(f"{text}." for text in (f"Curves of {y} over {x}", found, ends) if text)
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
        apart = np.abs(curves[second][:shared] - curves[first][:shared])
        if shared and (apart[np.isfinite(apart)] <= visible).all():
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
        apart = float(np.ptp(every, axis=0).max())
        steps = count(lengths.pop(), x)
        if apart == 0:
            return f"{join(list(full))} are equal in every digit over {steps}"
        if apart <= 1e-3 * np.ptp(every):
            return f"The curves lie on each other: at most {apart:.1e} apart over {steps}"
    return f"The {y} ends at {join([f'{values[-1]:.3g} ({unbroken(name)})' for name, values in full.items()])}"


def unbroken(name: str) -> str:
    """The name with spaces at which no line breaks."""
    return name.replace(" ", "\N{NO-BREAK SPACE}")


def name_curves(ax: Axes, data: Mapping[str, np.ndarray]) -> None:
    """Write each curve's name at its right end, moved apart where the ends are close."""
    ax.figure.canvas.draw()
    low, high = ax.get_ylim()
    pixel = (high - low) / (ax.get_position().height * ax.figure.get_figheight() * style.DOTS)
    line = 1.5 * style.TEXT * style.DOTS / 72 * pixel
    longest = max(len(values) for values in data.values())
    words = {"va": "center", "fontsize": style.TEXT, "fontweight": "bold", "parse_math": False}
    ends = []
    for index, (name, values) in enumerate(data.items()):
        colour = style.CURVES[index % len(style.CURVES)]
        there = np.flatnonzero(np.isfinite(values))
        if len(there) and there[-1] + 1 > 0.95 * longest:
            ends.append((float(values[there[-1]]), -index, name, colour))
        elif len(there):
            at = (there[-1] + 1, values[there[-1]])
            ax.annotate(name, at, xytext=(7, 7), textcoords="offset points", color=colour, **words)
    ends.sort()
    places = spread([end for end, *_ in ends], line, low, high)
    beside = {"xycoords": ax.get_yaxis_transform(), "xytext": (7, 0), "textcoords": "offset points"}
    for place, (_, _, name, colour) in zip(places, ends, strict=True):
        ax.annotate(name, (1.0, place), color=colour, **beside, **words)


def spread(places: Sequence[float], distance: float, low: float, high: float) -> list[float]:
    """Move places, which ascend, apart to at least `distance`, each as little as it needs, inside low … high."""
    moved: list[float] = []
    for place in places:
        moved.append(max(place, moved[-1] + distance) if moved else max(place, low))
    over = moved[-1] - high if moved else 0
    for index in range(len(moved) - 1, -1, -1):
        limit = high if index == len(moved) - 1 else moved[index + 1] - distance
        moved[index] = min(moved[index], limit) if over > 0 else moved[index]
    return moved


def label_axes(ax: Axes, zero: float | None) -> None:
    """Name both axes, with bytes and seconds in words at the powers of ten."""
    left, right = ax.get_xlim()
    powers = [10.0**p for p in range(math.floor(math.log10(left)), math.ceil(math.log10(right)) + 1)]
    inside = [p for p in powers if left <= p <= right and p >= 1 and (zero is None or p > 2 * zero)]
    ax.xaxis.set_major_locator(FixedLocator(([zero] if zero else []) + inside))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(
        FuncFormatter(lambda size, _: "0 B" if zero and math.isclose(size, zero) else bytes_text(size))
    )
    low, high = ax.get_ylim()
    steps = (1,) if high / low > 1e3 else (1, 3) if high / low > 20 else (1, 2, 3, 5, 7)
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ax.yaxis.set_major_locator(FixedLocator([step * 10.0**p for p in decades for step in steps]))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(FuncFormatter(lambda time, _: seconds_text(time)))
    ax.set_ylim(low, high)
    ax.set_xlim(left, right)
    ax.set_xlabel("size of the message", fontsize=style.TEXT)
    ax.set_ylabel("time, one way", fontsize=style.TEXT)
    ax.grid(color=style.GRID, linewidth=0.7)
