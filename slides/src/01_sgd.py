"""The pictures of deck 1 that its page does not have: a line between digits, parabolas, bounds, four parts."""

from functools import partial
from types import SimpleNamespace

import numpy as np
from matplotlib.figure import Figure

import course_utils as course
from course_utils.draw import style
from course_utils.lessons.sgd import digits_network, gradient_descent, pictures
from course_utils.words import percent

PAGE = {"columns": 4}  # a slide is wider than a notebook


def two_numbers(page: SimpleNamespace) -> Figure:
    """The page's images as points, and the line at which the trained model is undecided."""
    return pictures.two_classes(page.x, page.y, ["a 2", "a 5"], page.inks, page.best)


def parabola() -> Figure:
    """Steps in a parabola: one lands in the minimum, one swings and comes nearer, one swings and goes away."""
    curvature = 0.5
    picture, axes = style.new_picture(
        "In a parabola of curvature λ, steps come back up to η = 2/λ",
        heights=[2.2] * 3,
        left=0.25,
        right=0.1,
        below=0.45,
        above=0.25,
        side_by_side=True,
    )
    line = np.linspace(-1.75, 1.75, 100)
    for ax, share, said in zip(axes, (1.0, 1.8, 2.12), ("lands", "swings, nearer", "swings, farther"), strict=True):
        d = gradient_descent.descend(lambda d: curvature * d, np.ones(1), share / curvature, 4)[:, 0]
        ax.plot(line, curvature / 2 * line**2, color=style.FAINT, linewidth=1.2)
        ax.plot(d, curvature / 2 * d**2, marker="o", color=style.CURVES[0], markersize=4, linewidth=1.1)
        ax.plot(d[0], curvature / 2 * d[0] ** 2, "o", color="white", markeredgecolor=style.CURVES[0], markersize=8)
        ax.set_title(f"η = {share:g}/λ: {said}", fontsize=style.TEXT, fontweight="bold", loc="left")
        ax.set_xlim(line[0], line[-1])
        ax.set_yticks([])
        ax.set_xlabel("distance from the minimum", fontsize=style.TEXT)
    picture.alt_text = (
        "Steps in a parabola with three rates: into the minimum, to and fro and nearer, to and fro and away."
    )
    return picture


def bounds(page: SimpleNamespace) -> Figure:
    """The largest stable rate for several β: the line of theory, and what bisection finds."""
    hessian, betas = page.hessian(page.best), (0.0, 0.2, 0.4, 0.6, 0.8)
    bound = [gradient_descent.largest_stable_lr(hessian, beta) for beta in betas]
    found = [gradient_descent.bisect(partial(page.comes_nearer, momentum=beta), 1.0, 100.0) for beta in betas]
    off = float(np.abs(np.divide(found, bound) - 1).max())
    title = f"Largest stable rate: measured within {percent(max(off, 0.001))} of 2(1 + β)/λ"
    name, across = "largest stable rate", "β, the share of the velocity that is kept"
    return course.draw.over_numbers(
        betas, {name: found}, title, across=across, up="learning rate", predicted={name: bound}, unit="{:.3g}".format
    )


def parts() -> Figure:
    """The gradient of a batch of 64, of its four parts, and the mean of these."""
    train_x, train_y, *_ = course.data.digits_arrays()
    weights = digits_network.new_network(np.random.default_rng(0))

    def slopes(indices: np.ndarray) -> np.ndarray:
        return digits_network.loss_and_gradients(weights, train_x[indices], train_y[indices])[1][3]

    whole, four = slopes(np.arange(64)), [slopes(part) for part in np.split(np.arange(64), 4)]
    apart = np.abs(np.mean(four, axis=0) - whole).max()
    found = f"to {apart:.0e}" if apart else "in every digit"
    title = f"The mean of four parts' gradients is that of the batch, {found}"
    parts_by_name = {f"part {number}, 16 images": values for number, values in enumerate(four)}
    return pictures.parts_and_whole(
        parts_by_name, whole, title, "entry of the gradient (the output's biases)", "all 64 images"
    )


FIGURES = {
    "01_two_numbers": two_numbers,
    "01_parabola": parabola,
    "01_bounds": bounds,
    "01_parts": parts,
}
