"""The pictures of deck 1 that its pages do not have: a line between two digits, and steps on parabolas."""

from types import SimpleNamespace

import numpy as np
from matplotlib.figure import Figure

from course_utils.draw import style
from course_utils.lessons.sgd import gradient_descent, pictures

PAGE = {"columns": 4}  # a slide is wider than a notebook


def two_numbers(page: SimpleNamespace) -> Figure:
    """Draw the page's images as points, and the line on which the trained model is undecided."""
    return pictures.two_classes(page.x, page.y, ["a 2", "a 5"], page.inks, page.best)


def parabola() -> Figure:
    """Draw the steps of three rates on a parabola: one lands on the lowest point, one gets closer, one moves away."""
    curvature = 0.5
    picture, axes = style.new_picture(
        "On a parabola of curvature λ, steps fail above the rate η = 2/λ",
        heights=[2.2] * 3,
        left=0.25,
        right=0.1,
        below=0.45,
        above=0.25,
        side_by_side=True,
    )
    line = np.linspace(-1.75, 1.75, 100)
    for ax, share, effect in zip(axes, (1.0, 1.8, 2.12), ("lands on it", "gets closer", "moves away"), strict=True):
        d = gradient_descent.descend(lambda d: curvature * d, np.ones(1), share / curvature, 4)[:, 0]
        ax.plot(line, curvature / 2 * line**2, color=style.FAINT, linewidth=1.2)
        ax.plot(d, curvature / 2 * d**2, marker="o", color=style.CURVES[0], markersize=4, linewidth=1.1)
        ax.plot(d[0], curvature / 2 * d[0] ** 2, "o", color="white", markeredgecolor=style.CURVES[0], markersize=8)
        ax.set_title(f"η = {share:g}/λ: {effect}", fontsize=style.TEXT, fontweight="bold", loc="left")
        ax.set_xlim(line[0], line[-1])
        ax.set_yticks([])
        ax.set_xlabel("distance from the lowest point", fontsize=style.TEXT)
    picture.alt_text = (
        "Steps on a parabola with three rates. The first goes straight to the lowest point. The others jump from side "
        "to side, one getting closer, the other moving away."
    )
    return picture


FIGURES = {
    "01_two_numbers": two_numbers,
    "01_parabola": parabola,
}
