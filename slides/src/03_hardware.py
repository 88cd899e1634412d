"""The pictures of deck 3 that its page does not have: two rates as bars, the roof's two halves, and sketches."""

from collections.abc import Sequence
from types import SimpleNamespace

from matplotlib.axes import Axes
from matplotlib.figure import Figure

import course_utils as course
from course_utils.draw import style
from course_utils.lessons.hardware import pictures, sentences
from course_utils.measuring import rate_text
from course_utils.words import percent

PAGE = {"iterations": 6}  # fewer bars are larger on a slide
DRAFT = {"PAGE": {"iterations": 2, "batch": 2, "count": 125}}
PALE = "#CFE3F1"


def two_rates(page: SimpleNamespace) -> Figure:
    """How long a product of matrices and a sum of arrays take, for as many operations."""
    peak, bandwidth = page.peak, page.bandwidth
    billion = 1e9
    times = {
        "product of matrices": peak.times(1 / billion),
        "sum of long arrays": bandwidth.times(1 / (12 * billion)),
    }
    bars = {"here": {name: measured.rate(1) for name, measured in times.items()}}
    title = f"While one number is fetched, {4 * peak.median / bandwidth.median:.0f} operations could be done"
    found = f"{rate_text(peak, 'GFLOP/s')}; {rate_text(bandwidth, 'GB/s')}"
    return course.draw.measured_bars(bars, title, found, x="time for a billion operations")


def roof(page: SimpleNamespace) -> Figure:
    """The page's layers under the roof, without their times."""
    title = sentences.layers_title(page.timed, page.ridge)
    return pictures.layer_roofline(page.timed, page.peak.median, page.bandwidth.median, title, times=False)


def layer_times(page: SimpleNamespace) -> Figure:
    """The times of the page's layers alone."""
    small = sum(layer.flops for layer in page.timed if layer.kind in ("norm", "relu", "pool"))
    share = percent(small / sum(layer.flops for layer in page.timed))
    title = f"Batch norm, ReLU and pooling: {share} of the arithmetic, {percent(page.share)} of the time"
    return pictures.layer_times(page.timed, title)


def chain_and_tree() -> Figure:
    """Seven additions of eight numbers: as a chain and as a tree."""
    picture, axes = style.new_picture(
        "Adding 8 numbers: 7 additions either way", heights=[2.6, 2.6], left=0.2, below=0.1, side_by_side=True
    )
    chain = [(1.1 + 0.75 * step, 6.2 - 0.9 * step) for step in range(7)]
    tree = [(1.4 * place + 1.0, 5.0) for place in range(4)] + [(1.7, 3.2), (4.5, 3.2), (3.1, 1.4)]
    links = [(step, step + 1) for step in range(6)], [(0, 4), (1, 4), (2, 5), (3, 5), (4, 6), (5, 6)]
    for ax, places, pairs, words in zip(axes, (chain, tree), links, ("chain: depth 7", "tree: depth 3"), strict=True):
        draw_graph(ax, places, pairs, words)
    picture.alt_text = "Seven additions in a chain, each after the one before; and as a tree: four, then two, then one."
    return picture


def draw_graph(ax: Axes, places: Sequence[tuple[float, float]], pairs: Sequence[tuple[int, int]], words: str) -> None:
    """Circles for tasks and arrows from each to the one that needs it."""
    ax.set(xlim=(0, 6.6), ylim=(0.4, 7))
    ax.axis("off")
    for begin, end in pairs:
        look = {"arrowstyle": "-|>", "color": style.FAINT, "shrinkA": 9, "shrinkB": 9}
        ax.annotate("", places[end], places[begin], arrowprops=look)
    for x, y in places:
        ax.plot(x, y, marker="o", markersize=17, color=PALE, markeredgecolor=style.CURVES[0])
        ax.text(x, y, "+", ha="center", va="center", fontsize=style.TITLE)
    ax.text(6.5, 6.4, words, ha="right", fontsize=style.TITLE, fontweight="bold")


def packed_file() -> Figure:
    """The bytes of a packed file with three samples."""
    picture, (ax,) = style.new_picture(
        "50 bytes: how many, where each begins, and the samples", heights=[1.5], left=0.2, below=0.1
    )
    ax.set(xlim=(0, 54), ylim=(0, 4.4))
    ax.axis("off")
    parts = [(0, 8, "3", "#E9E9E9")] + [(8 + 8 * i, 8, str(at), PALE) for i, at in enumerate((40, 43, 48, 50))]
    parts += [(40, 3, "cat", "#FBE3B5"), (43, 5, "goose", "#FBE3B5"), (48, 2, "ox", "#FBE3B5")]
    for begin, width, words, colour in parts:
        ax.broken_barh([(begin, width)], (1.4, 1.3), facecolors=colour, edgecolor=style.INK, linewidth=0.8)
        small = style.SMALL if begin >= 40 else style.TITLE
        ax.text(begin + width / 2, 2.05, words, ha="center", va="center", fontsize=small)
    for begin, width, words in (
        (0, 8, "samples"),
        (8, 32, "4 offsets: where each begins; the end"),
        (40, 10, "samples"),
    ):
        words = "how many" if begin == 0 else words
        ax.text(begin + width / 2, 0.6, words, ha="center", va="center", fontsize=style.SMALL, color="#555555")
    for start, end in ((12, 40), (20, 43), (28, 48), (36, 50)):
        bend = {"arrowstyle": "-|>", "color": style.CURVES[0], "connectionstyle": "arc3,rad=-0.25", "linewidth": 0.9}
        ax.annotate("", (end, 2.75), (start, 2.75), arrowprops=bend)
    picture.alt_text = (
        "A packed file: the number 3; the offsets 40, 43, 48 and 50, with arrows to where each sample begins and the "
        "last ends; then cat, goose, ox."
    )
    return picture


FIGURES = {
    "03_two_rates": two_rates,
    "03_roof": roof,
    "03_layer_times": layer_times,
    "03_chain_and_tree": chain_and_tree,
    "03_packed_file": packed_file,
}
