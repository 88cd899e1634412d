"""The pictures of deck 1: the images, walks on the map of a loss, noise, and steps that are too long."""

from functools import cache, partial

import numpy as np
from matplotlib.figure import Figure

import course_utils as course
from course_utils.draw import style
from course_utils.lessons.sgd import digits_network, gradient_descent, logistic, pictures
from course_utils.words import percent


@cache
def task():
    """The images as two numbers each, which are a 5, and the weights of the smallest loss."""
    x, y = logistic.two_digits()
    return x, y, logistic.best_weights(x, y)


def loss(w: np.ndarray) -> float:
    """The loss over all images."""
    return logistic.loss(w, *task()[:2])


def gradient(w: np.ndarray) -> np.ndarray:
    """The gradient over all images."""
    return logistic.gradient(w, *task()[:2])


def walk(batch_size: int, rate: float = 1.0, epochs: int = 5) -> np.ndarray:
    """The path of SGD, as on the lesson's page."""
    x, y, _ = task()
    rng, w = np.random.default_rng(0), np.zeros(2)
    path = [w]
    for _ in range(epochs):
        for batch in gradient_descent.minibatches(len(x), batch_size, rng):
            w = w - rate * logistic.gradient(w, x[batch], y[batch])
            path.append(w)
    return np.array(path)


def two_numbers() -> Figure:
    """All images as points, and the line at which the trained model is undecided."""
    x, y, best = task()
    inks = ("ink in the left half", "ink in its lower part")
    return pictures.two_classes(x, y, ("a 2", "a 5"), inks, best)


def downhill() -> Figure:
    """Gradient descent on the map."""
    path = {"gradient descent": gradient_descent.descend(gradient, np.zeros(2), 4.0, 40)}
    return pictures.trajectories(loss, path, task()[2], "40 steps downhill")


def four_batches() -> Figure:
    """Four batch sizes, each image seen five times."""
    paths = {f"batch of {size}": walk(size) for size in (1, 8, 64, 359)}
    return pictures.trajectories(loss, paths, task()[2], "Each image seen five times", columns=4)


def noise() -> Figure:
    """The noise of a batch's gradient, measured and predicted."""
    x, y, _ = task()
    each, sizes = logistic.gradients(np.zeros(2), x, y), [1, 2, 5, 10, 20, 50, 100, 200, 359]
    rng, measured, predicted = np.random.default_rng(0), {}, {}
    for name, replace in {"any images": True, "no image twice": False}.items():
        measured[name] = [gradient_descent.gradient_noise(each, size, rng, replace=replace) for size in sizes]
        predicted[name] = [gradient_descent.predicted_noise(each, size, replace) for size in sizes]
    return pictures.noise_line(sizes, measured, predicted, "Four times the work, half the noise")


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


def too_long() -> Figure:
    """The distance from the minimum for rates below and above the bound."""
    x, _, best = task()
    bound = gradient_descent.largest_stable_lr(logistic.hessian(best, x))
    apart = {}
    for share in (0.5, 0.95, 1.05, 1.5):
        path = gradient_descent.descend(gradient, best + 0.001, share * bound, 120)
        apart[f"{share} · 2/λ"] = np.linalg.norm(path - best, axis=1)
    return pictures.distances(apart, f"2/λ = {bound:.1f} predicted from the Hessian", y="distance from the star")


def comes_nearer(rate: float, momentum: float) -> bool:
    """Whether 500 steps from beside the minimum end nearer to it."""
    best = task()[2]
    path = gradient_descent.descend(gradient, best + 0.001, rate, 500, momentum)
    return bool(np.linalg.norm(path[-1] - best) < np.linalg.norm(path[0] - best))


def bounds() -> Figure:
    """The largest stable rate for several β: the line of theory, and what bisection finds."""
    x, _, best = task()
    hessian, betas = logistic.hessian(best, x), (0.0, 0.2, 0.4, 0.6, 0.8)
    bound = [gradient_descent.largest_stable_lr(hessian, beta) for beta in betas]
    found = [gradient_descent.bisect(partial(comes_nearer, momentum=beta), 1.0, 100.0) for beta in betas]
    off = float(np.abs(np.divide(found, bound) - 1).max())
    title = f"Largest stable rate: measured within {percent(max(off, 0.001))} of 2(1 + β)/λ"
    picture, (ax,) = style.new_picture(title, heights=[2.9], left=0.75)
    ax.plot(betas, bound, color=style.CURVES[0], linewidth=1.5, label="2 (1 + β) / λ, from the Hessian")
    ax.plot(betas, found, "o", color=style.CURVES[1], markersize=7, label="found by bisection")
    ax.set_ylim(0, 1.15 * max(bound))
    ax.set_xlabel("β, the share of the velocity that is kept", fontsize=style.TEXT)
    ax.set_ylabel("learning rate", fontsize=style.TEXT)
    ax.grid(axis="y", color="#E8E8E8", linewidth=0.7)
    ax.legend(loc="lower right", frameon=False, fontsize=style.TEXT)
    picture.alt_text = f"{title}. From {bound[0]:.1f} without momentum to {bound[-1]:.1f} with β = {betas[-1]}."
    return picture


def ball() -> Figure:
    """Gradient descent and two kinds of momentum from one start, with one rate."""
    paths = {
        f"β = {beta:g}": gradient_descent.descend(gradient, np.zeros(2), 2.0, 30, beta) for beta in (0.0, 0.8, 0.95)
    }
    return pictures.trajectories(loss, paths, task()[2], "30 steps, rate 2", together=True)


def digits() -> Figure:
    """The loss of a small network on the digits."""
    run = digits_network.train_digits(course.data.digits_arrays(), epochs=15)
    return course.draw.loss_curves({"SGD": run.losses}, f"{run.test_accuracy:.1%} of the test digits are read")


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
    picture, (ax,) = style.new_picture(title, heights=[2.8], left=0.75, above=0.3)
    places = np.arange(len(whole))
    ax.hlines(whole, places - 0.38, places + 0.38, color=style.INK, linewidth=2.2, label="all 64 images")
    for number, values in enumerate(four):
        look = {"color": style.CURVES[number], "markersize": 6, "marker": "osD^"[number], "linestyle": "none"}
        ax.plot(places + 0.14 * (number - 1.5), values, label=f"part {number}, 16 images", **look)
    ax.set_xticks(places)
    ax.set_xlabel("entry of the gradient (the output's biases)", fontsize=style.TEXT)
    ax.grid(axis="y", color="#E8E8E8", linewidth=0.7)
    place = {"loc": "lower left", "bbox_to_anchor": (-0.02, 1.0), "ncols": 5, "frameon": False}
    ax.legend(fontsize=style.SMALL, columnspacing=0.9, handletextpad=0.3, handlelength=1.2, borderaxespad=0, **place)
    picture.alt_text = f"{title}. For each of ten entries four dots, and a line at their mean."
    return picture


FIGURES = {
    "01_two_numbers": two_numbers,
    "01_downhill": downhill,
    "01_four_batches": four_batches,
    "01_noise": noise,
    "01_parabola": parabola,
    "01_too_long": too_long,
    "01_ball": ball,
    "01_bounds": bounds,
    "01_digits": digits,
    "01_parts": parts,
}
