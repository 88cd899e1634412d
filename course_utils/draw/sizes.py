"""Times over sizes: how long each of several algorithms takes for vectors of many sizes, on logarithmic axes."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from course_utils.draw import style
from course_utils.draw.curves import label_axes, spread
from course_utils.errors import CourseError
from course_utils.words import bytes_text, number_text, seconds_text


def times_by_size(
    sizes: Sequence[float],
    seconds: Mapping[str, Sequence[float]],
    title: str | None = None,
    bound: Sequence[float] | None = None,
) -> Figure:
    """Draw a line for each algorithm, named at its right end.

    Args:
        sizes: bytes of the vector, rising.
        seconds: for each algorithm its time at each size.
        title: said first; the finding (who is fastest for small vectors, and for large ones) then stands under it.
        bound: the least time that is possible at each size; a dashed line.
    """
    n = np.asarray(sizes, float)
    data = {name: np.asarray(values, float) for name, values in seconds.items()}
    if not data or len(n) < 2 or any(len(values) != len(n) for values in data.values()):
        raise CourseError("times_by_size: two sizes at least, and as many times for each algorithm.")
    found = sizes_finding(n, data)
    right = 0.35 + max(style.text_width(name, style.TEXT, True) for name in data) / style.DOTS
    heading = (title, found) if title else (found, "")
    picture, (ax,) = style.new_picture(*heading, heights=[3.2], left=0.85, right=right, below=0.55)
    ax.set_xscale("log")
    ax.set_yscale("log")
    for index, (name, values) in enumerate(data.items()):
        ax.plot(n, values, "o-", color=style.CURVES[index], markersize=4, linewidth=1.8, zorder=3, label=name)
    if bound is not None:
        ax.plot(n, bound, color=style.FAINT, linewidth=1.2, linestyle=(0, (4, 3)), zorder=1)
    lowest = min([values.min() for values in data.values()])
    ax.set_ylim(lowest / 1.6, 1.6 * max(values.max() for values in data.values()))
    ax.set_xlim(n[0] / 1.2, n[-1] * 1.1)
    label_axes(ax, None)
    ax.set_xlabel("size of the vector", fontsize=style.TEXT)
    ax.set_ylabel("time of one all-reduce", fontsize=style.TEXT)
    name_ends(ax, data)
    told = [
        f"{name}: " + ", ".join(f"{bytes_text(s)} in {seconds_text(t)}" for s, t in zip(n, v, strict=True))
        for name, v in data.items()
    ]
    picture.alt_text = f"Time of one all-reduce over the size of the vector. {found}. {'; '.join(told)}."
    return picture


def sizes_finding(sizes: np.ndarray, data: Mapping[str, np.ndarray]) -> str:
    """Who is fastest for the smallest vector and for the largest, and by how much the last is slower there."""
    first = min(data, key=lambda name: data[name][0])
    last = min(data, key=lambda name: data[name][-1])
    slowest = max(data, key=lambda name: data[name][-1])
    times = number_text(data[slowest][-1] / data[last][-1])
    small, large = bytes_text(sizes[0]), bytes_text(sizes[-1])
    if first == last:
        return f"{first} is fastest at {small} and at {large}; there {slowest} takes {times} times as long"
    return f"At {small} {first} is fastest, at {large} {last}; there {slowest} takes {times} times as long"


def name_ends(ax, data: Mapping[str, np.ndarray]) -> None:
    """Write each line's name beside its right end, moved apart where the ends are close."""
    low, high = np.log(ax.get_ylim())
    pixels = ax.get_position().height * ax.figure.get_figheight() * style.DOTS
    line = 1.5 * style.TEXT * style.DOTS / 72 * (high - low) / pixels
    ends = sorted((float(np.log(values[-1])), index, name) for index, (name, values) in enumerate(data.items()))
    for place, (_, index, name) in zip(spread([end[0] for end in ends], line, low, high), ends, strict=True):
        ax.text(
            1.015,
            (place - low) / (high - low),
            name,
            transform=ax.transAxes,
            va="center",
            fontsize=style.TEXT,
            fontweight="bold",
            color=style.CURVES[index],
        )
