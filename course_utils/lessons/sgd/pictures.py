"""Drawings of lesson 1: paths on the map of a loss, the noise of a gradient, distances, and examples as points."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from course_utils.draw import style
from course_utils.draw.curves import as_numbers
from course_utils.draw.lines import PREDICTED, in_words, label, name_ends, room_for_names, round_numbers
from course_utils.errors import CourseError
from course_utils.words import join, percent

GRID = 90  # points of the map on each side
LEVELS = 14
MAP = "#9DB4C0"
MARKERS = "osD^v*"


def trajectories(
    loss: Callable[[np.ndarray], float],
    paths: Mapping[str, np.ndarray],
    best: np.ndarray | None = None,
    title: str | None = None,
    *,
    together: bool = False,
    columns: int = 2,
) -> Figure:
    """Draw paths of two weights on the map of the loss: one panel for each path, or all on one map.

    Lines of the map join points of equal loss, as a hiker's map joins points of equal height.

    Args:
        loss: of a point, shape (2,).
        paths: by name, the points one after the other, shape (steps + 1, 2).
        best: the point with the lowest loss, marked with a star.
        title: of the picture; the finding (how far above the lowest loss each path ends) then becomes the subtitle.
        together: all paths on one map.
        columns: how many maps are drawn side by side.
    """
    data = {name: _points(name, path) for name, path in paths.items()}
    if not data:
        raise CourseError('trajectories: give at least one path, {"batch of 8": path}.')
    found = paths_finding(loss, data, best)
    columns = 1 if together else min(columns, len(data))
    groups = [data] if together else [{name: path} for name, path in data.items()]
    rows = -(-len(groups) // columns)
    heading = (title, found) if title else (found, "")
    high = {1: 3.3, 2: 2.7}.get(columns, 6.6 / columns)
    room = {"heights": [high] * rows, "between": 0.55, "left": 0.6, "above": 0.0 if columns == 1 else 0.2}
    picture, areas = style.new_picture(*heading, **room)
    axes = [part for area in areas for part in _parts(area, columns)]
    box = axes[0].get_position()
    window = _window([*data.values()], best, box.width * style.WIDTH / high)
    heights = _map(loss, *window)
    colours = dict(zip(data, style.CURVES * len(data), strict=False))
    for index, (ax, group) in enumerate(zip(axes, groups, strict=False)):
        _draw_map(ax, window, heights)
        for name, path in group.items():
            _draw_path(ax, path, colours[name], name if together else None)
        if best is not None:
            ax.plot(*best, marker="*", markersize=13, color=style.INK, markeredgecolor="white", zorder=6)
        if together and len(data) > 1:
            ax.legend(loc="upper right", fontsize=style.TEXT, framealpha=0.9, edgecolor="none")
        elif len(data) > 1:
            ax.set_title(*group, fontsize=style.TEXT, fontweight="bold", loc="left", color=colours[next(iter(group))])
        if index // columns == rows - 1:
            ax.set_xlabel("weight 0", fontsize=style.TEXT)
        if index % columns == 0:
            ax.set_ylabel("weight 1", fontsize=style.TEXT)
    for ax in axes[len(groups) :]:
        ax.remove()
    ends = "; ".join(
        f"{name} goes from {_coordinates(path[0])} to {_coordinates(path[-1])}" for name, path in data.items()
    )
    picture.alt_text = f"Paths of two weights on a map of the loss. {found}. {ends}."
    return picture


def paths_finding(loss: Callable, data: Mapping[str, np.ndarray], best: np.ndarray | None) -> str:
    """Return the title that tells how far above the lowest loss each path ends."""
    least = 0.0 if best is None else float(loss(best))
    ends = {name: float(loss(path[-1])) - least for name, path in data.items()}
    what = "loss at the end" if best is None else "loss at the end, above the lowest possible"
    ends_text = join([f"{end:.2g} ({name.replace(' ', chr(0xA0))})" for name, end in ends.items()])
    return f"{what.capitalize()}: {ends_text}"


def _points(name: str, path: np.ndarray) -> np.ndarray:
    points = np.asarray(path, dtype=float)
    if points.ndim != 2 or points.shape[1] != 2 or not len(points):
        raise CourseError(f"trajectories: {name!r} needs points of two weights, shape (steps, 2), not {points.shape}.")
    return points[np.isfinite(points).all(axis=1)]


def _parts(area: Axes, columns: int) -> list[Axes]:
    """Divide an axes' area into columns; the first is the area itself, made narrower."""
    box, gap = area.get_position(), 0.03 if columns > 1 else 0.0
    width = (box.width - gap * (columns - 1)) / columns
    parts = [area, *(area.figure.add_axes((0, 0, 1, 1)) for _ in range(columns - 1))]
    for column, part in enumerate(parts):
        part.set_position((box.x0 + column * (width + gap), box.y0, width, box.height))
        part.spines[["top", "right"]].set_visible(False)
        part.spines[["left", "bottom"]].set_color(style.FAINT)
        part.tick_params(labelsize=style.SMALL, color=style.FAINT, labelleft=column == 0)
    return parts


def _window(paths: Sequence[np.ndarray], best: np.ndarray | None, shape: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the corners of a map with room for all paths, `shape` times as wide as high, so that angles are true."""
    points = np.concatenate([*paths, *([] if best is None else [np.reshape(best, (1, 2))])])
    low, high = points.min(axis=0), points.max(axis=0)
    middle, sides = (low + high) / 2, 1.24 * (high - low)
    height = max(sides[1], sides[0] / shape, 1e-9)
    half = np.array([height * shape, height]) / 2
    return middle - half, middle + half


def _map(loss: Callable, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    across, up = (np.linspace(a, b, GRID) for a, b in zip(low, high, strict=True))
    return across, up, np.array([[float(loss(np.array([x, y]))) for x in across] for y in up])


def _draw_map(ax: Axes, window: tuple[np.ndarray, np.ndarray], heights: tuple) -> None:
    across, up, values = heights
    least, most = values.min(), values.max()
    shares = np.linspace(0, 1, LEVELS + 1)[1:-1] ** 2.5  # closer together near the bottom, where all paths lead
    extent = (across[0], across[-1], up[0], up[-1])
    ax.imshow(values, "Blues", alpha=0.35, origin="lower", extent=extent, interpolation="bilinear", aspect="auto")
    ax.contour(across, up, values, levels=least + shares * (most - least), colors=MAP, linewidths=0.7)
    ax.set(xlim=(window[0][0], window[1][0]), ylim=(window[0][1], window[1][1]))


def _draw_path(ax: Axes, path: np.ndarray, colour: str, name: str | None) -> None:
    many = len(path) > 150
    line_style = {"linewidth": 0.7 if many else 1.4, "markersize": 1.2 if many else 3.0, "alpha": 0.85}
    ax.plot(*path.T, marker="o", color=colour, label=name, zorder=3, **line_style)
    ax.plot(*path[0], marker="o", markersize=7, color="white", markeredgecolor=colour, zorder=4)
    ax.plot(*path[-1], marker="o", markersize=7, color=colour, markeredgecolor="white", zorder=5)


def _coordinates(point: np.ndarray) -> str:
    return f"({point[0]:.2g}, {point[1]:.2g})"


def noise_line(
    batch_sizes: Sequence[int],
    measured: Mapping[str, Sequence[float]],
    predicted: Mapping[str, Sequence[float]],
    title: str | None = None,
) -> Figure:
    """Draw the noise of a batch's gradient over the batch size, both logarithmic, with a line for each prediction.

    Args:
        measured: by name, the noise at each batch size, drawn as dots.
        predicted: by the same names, the noise according to the theory, drawn as lines.
        title: of the picture; the finding (how far the dots are from their lines) then becomes the subtitle.
    """
    sizes = np.asarray(batch_sizes, dtype=float)
    dots = {name: as_numbers(name, values) for name, values in measured.items()}
    lines = {name: as_numbers(name, values) for name, values in predicted.items()}
    found = noise_finding(dots, lines)
    heading = (title, found) if title else (found, "")
    picture, (ax,) = style.new_picture(*heading, heights=[3.0], left=0.75, right=0.3)
    for index, (name, values) in enumerate(dots.items()):
        colour, line = style.CURVES[index], lines[name]
        shown = line > 0
        ax.plot(sizes[shown], line[shown], color=colour, linewidth=1.4, zorder=2)
        seen = values > 1e-9 * values.max()
        ax.plot(sizes[seen], values[seen], MARKERS[index], color=colour, markersize=6, label=name, zorder=3)
    ax.set(xscale="log", yscale="log")
    in_words(ax.xaxis, sizes)
    in_words(ax.yaxis, round_numbers(*ax.get_ylim()))
    label(ax, "images in a batch", "noise of the gradient")
    ax.plot([], [], "o-", color=style.INK, markersize=4, linewidth=1.4, label=PREDICTED)
    ax.legend(loc="lower left", fontsize=style.TEXT, frameon=False)
    text = "; ".join(f"{name}: {', '.join(f'{v:.3g}' for v in values)}" for name, values in dots.items())
    picture.alt_text = f"Noise of the gradient over the batch size {[int(size) for size in sizes]}. {found}. {text}."
    return picture


def noise_finding(dots: Mapping[str, np.ndarray], lines: Mapping[str, np.ndarray]) -> str:
    """Return the sentence that tells how far the measured noise is from the prediction at most."""
    far = []
    for name, values in dots.items():
        known = lines[name] > 1e-9 * lines[name].max()
        far.append(float(np.abs(values[known] / lines[name][known] - 1).max()))
    return f"Every dot is within {percent(max(far))} of its line"


def steps_on_parabola(curvature: float, paths: Mapping[str, Sequence[float]], title: str) -> Figure:
    """Draw the steps of gradient descent on the parabola curvature · d² / 2, a panel for each path.

    Args:
        curvature: of the parabola, positive.
        paths: by name, the place d before the first step and after each step.
        title: of the picture, its finding.
    """
    data = {name: as_numbers(name, values) for name, values in paths.items()}
    far = 1.15 * max(float(np.abs(values).max()) for values in data.values())
    places = np.linspace(-far, far, GRID)
    picture, (area,) = style.new_picture(title, "", heights=[2.6], left=0.75, right=0.2)
    for ax, (name, values) in zip(_parts(area, len(data)), data.items(), strict=True):
        ax.plot(places, curvature * places**2 / 2, color=style.FAINT, linewidth=1.6)
        heights = curvature * values**2 / 2
        for step in range(len(values) - 1):
            ends = {"xytext": (values[step], heights[step]), "xy": (values[step + 1], heights[step + 1])}
            ax.annotate("", **ends, arrowprops={"arrowstyle": "->", "color": style.CURVES[0], "linewidth": 1.2})
        ax.plot(values[:1], heights[:1], "o", color=style.CURVES[0], markerfacecolor="white")
        ax.plot(values[1:], heights[1:], ".", color=style.CURVES[0])
        ax.text(0.5, 0.93, name, transform=ax.transAxes, ha="center", fontsize=style.TEXT, color=style.INK)
        ax.set_xlim(-far, far)
        ax.set_ylim(0, curvature * far**2 / 2)
        ax.set_xlabel("d", fontsize=style.SMALL)
    area.set_ylabel("height", fontsize=style.SMALL)
    text = "; ".join(f"{name}: {', '.join(f'{value:.2f}' for value in values)}" for name, values in data.items())
    picture.alt_text = f"Steps across a parabola of curvature {curvature:g}. {title}. {text}."
    return picture


def distances(
    curves: Mapping[str, Sequence[float]], title: str | None = None, *, y: str = "distance", x: str = "step"
) -> Figure:
    """Draw distances over the steps on a logarithmic axis.

    Args:
        curves: by name, the distance before the first step and after each step.
        title: of the picture; the finding (which distances shrink and which grow) then becomes the subtitle.
    """
    data = {name: as_numbers(name, values) for name, values in curves.items()}
    found = distances_finding(data)
    heading = (title, found) if title else (found, "")
    picture, (ax,) = style.new_picture(*heading, heights=[2.9], left=0.75, right=room_for_names(list(data)))
    ax.set_yscale("log")
    ends, colours = {}, {name: style.CURVES[index % len(style.CURVES)] for index, name in enumerate(data)}
    for name, values in data.items():
        shown = np.where(np.isfinite(values) & (values > 0), values, np.nan)
        ax.plot(np.arange(len(values)), shown, color=colours[name], linewidth=1.6)
        there = np.flatnonzero(np.isfinite(shown))
        if len(there):
            ends[name] = float(shown[there[-1]])
    ax.set_xlim(0, max(len(values) for values in data.values()) - 1)
    label(ax, x, y, grid="y")
    name_ends(ax, ends, colours)
    text = "; ".join(f"{name}: {values[0]:.2g} to {values[-1]:.2g}" for name, values in data.items())
    picture.alt_text = f"Curves of {y} over {x}. {found}. {text}."
    return picture


def distances_finding(data: Mapping[str, np.ndarray]) -> str:
    """Return the sentence that tells which distances end shorter than they began, and which longer."""
    shrink = [name for name, values in data.items() if values[-1] < values[0]]
    grow = [name for name in data if name not in shrink]
    verbs = (shrink, "gets closer", "get closer"), (grow, "moves away", "move away")
    parts = [f"{join(names)} {singular if len(names) == 1 else plural}" for names, singular, plural in verbs if names]
    return "; ".join(parts)


def images_with_regions(images: Sequence[np.ndarray], numbers: np.ndarray, names: Sequence[str], title: str) -> Figure:
    """Draw images side by side, the left half of each framed and its lower left quarter shaded.

    Args:
        images: square, the ink of each pixel.
        numbers: the two numbers of each image, shape (images, 2): ink in the left half, ink in the lower left quarter.
        names: what each image shows.
    """
    room = {"left": 0.4, "right": 0.4, "below": 0.62, "above": 0.3}
    picture, axes = style.new_picture(title, heights=[2.1] * len(images), side_by_side=True, **room)
    described = []
    for ax, image, (half, quarter), name in zip(axes, images, numbers, names, strict=True):
        size = len(image)
        ax.imshow(image, cmap="Greys", extent=(0, size, 0, size), interpolation="nearest")
        frame = {"edgecolor": style.CURVES[0], "linewidth": 2.2, "clip_on": False}
        ax.add_patch(Rectangle((0, 0), size / 2, size, facecolor="none", **frame))
        ax.add_patch(Rectangle((0, 0), size / 2, size / 2, facecolor=style.CURVES[4], alpha=0.35, linewidth=0))
        ax.set(xticks=[], yticks=[])
        ax.spines[:].set(visible=True, color=style.FAINT)
        ax.set_title(name, fontsize=style.TEXT, fontweight="bold")
        text = f"left half: {half:+.2f}, lower left: {quarter:+.2f}".replace("-", "−")
        ax.set_xlabel(text, fontsize=style.TEXT)
        described.append(f"{name}, {text}")
    picture.alt_text = f"{title}. {'; '.join(described)}."
    return picture


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
        weights: of a logistic regression, shape (2,); the line on which its probability is one half is drawn.
        title: of the picture; the finding (how many points of each class, or how many are on the correct side of the
            line) then becomes the subtitle.
    """
    x, y = np.asarray(x, dtype=float), np.asarray(y)
    if x.ndim != 2 or x.shape[1] != 2 or y.shape != x.shape[:1]:
        raise CourseError(
            f"two_classes: needs points of two numbers and a class for each, not {x.shape} and {y.shape}."
        )
    found = f"{names[0]}: {int((y == 0).sum())} points; {names[1]}: {int((y == 1).sum())} points"
    if weights is not None:
        found = f"{percent(np.mean((x @ weights > 0) == (y == 1)))} of the points are on the correct side of the line"
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
    picture.alt_text = (
        f"{found}. The points of {names[0]} are centred at ({centres[0]}), those of {names[1]} at ({centres[1]})."
    )
    return picture


def parts_and_whole(
    parts: Mapping[str, Sequence[float]], whole: Sequence[float], title: str, x: str, name: str, y: str = ""
) -> Figure:
    """Draw the values of each part of a batch as dots, four parts at most, and those of the whole batch as lines.

    Args:
        parts: by name, the values of each part.
        whole: as many values.
        x: what the values are.
        name: what the lines are.
        y: the label of the vertical axis.
    """
    picture, (ax,) = style.new_picture(title, heights=[2.7], left=0.75, above=0.3)
    places = np.arange(len(whole))
    ax.hlines(whole, places - 0.38, places + 0.38, color=style.INK, linewidth=2.2, label=name)
    for number, (part, values) in enumerate(parts.items()):
        marker_style = {"color": style.CURVES[number], "markersize": 6, "marker": "osD^"[number], "linestyle": "none"}
        ax.plot(places + 0.14 * (number - 1.5), values, label=part, **marker_style)
    ax.set_xticks(places)
    label(ax, x, y, grid="y")
    legend_position = {"loc": "lower left", "bbox_to_anchor": (-0.02, 1.0), "ncols": 5, "frameon": False}
    ax.legend(
        fontsize=style.SMALL, columnspacing=0.9, handletextpad=0.3, handlelength=1.2, borderaxespad=0, **legend_position
    )
    distance = float(np.ptp(list(parts.values()), axis=0).max())
    picture.alt_text = f"{title}. {len(parts)} dots for each {x}, up to {distance:.2g} apart, and a line: {name}."
    return picture
