"""Examples as points: two numbers each, a colour and a mark for each class, and the line where a model is undecided."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from course_utils.draw import style
from course_utils.errors import CourseError
from course_utils.words import percent

MARKS = "o^"


def two_classes(
    x: np.ndarray,
    y: np.ndarray,
    names: Sequence[str],
    axes: Sequence[str] = ("number 0", "number 1"),
    weights: np.ndarray | None = None,
    title: str | None = None,
) -> Figure:
    """Draw every example as a point.

    Args:
        x: the examples, shape (n, 2). y: the class of each, 0 or 1.
        names: of the two classes. axes: what the two numbers are.
        weights: of a logistic regression: the line where its probability is one half is drawn, shape (2,).
        title: said first; the finding (how many of each, or how many are told apart) then stands under it.
    """
    x, y = np.asarray(x, dtype=float), np.asarray(y)
    if x.ndim != 2 or x.shape[1] != 2 or y.shape != x.shape[:1]:
        raise CourseError(
            f"two_classes: needs points of two numbers and a class for each, not {x.shape} and {y.shape}."
        )
    found = f"{int((y == 0).sum())} points are {names[0]}, {int((y == 1).sum())} are {names[1]}"
    if weights is not None:
        found = f"The line tells {percent(np.mean((x @ weights > 0) == (y == 1)))} of the points apart"
    heading = (title, found) if title else (found, "")
    words = [*names, *([] if weights is None else ["undecided"])]
    right = 0.65 + max(style.text_width(word, style.TEXT) for word in words) / style.DOTS
    picture, (ax,) = style.new_picture(*heading, heights=[3.0], left=0.75, right=right)
    for index, name in enumerate(names):
        colour = style.CURVES[index]
        ax.plot(*x[y == index].T, MARKS[index], color=colour, markersize=4, alpha=0.7, label=name)
    low, high = x.min(axis=0), x.max(axis=0)
    if weights is not None and weights[1]:
        across = np.array([low[0], high[0]])
        ax.plot(across, -weights[0] / weights[1] * across, color=style.INK, linewidth=1.2, label="undecided")
    margin = 0.05 * (high - low)
    ax.set(xlim=(low[0] - margin[0], high[0] + margin[0]), ylim=(low[1] - margin[1], high[1] + margin[1]))
    ax.set_xlabel(axes[0], fontsize=style.TEXT)
    ax.set_ylabel(axes[1], fontsize=style.TEXT)
    ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=style.TEXT, handlelength=1.2)
    centres = [", ".join(f"{value:.2g}" for value in x[y == index].mean(axis=0)) for index in (0, 1)]
    picture.alt_text = f"{found}. The middle of {names[0]} is at ({centres[0]}), that of {names[1]} at ({centres[1]})."
    return picture
