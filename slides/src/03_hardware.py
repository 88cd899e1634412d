"""The pictures of deck 3: this machine's rates, roof, threads and files, and two graphs drawn by hand."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import course_utils.lessons.hardware  # noqa: F401 - before torch, so that its threads sleep while they wait
from course_utils.lessons.hardware import pictures
from course_utils.lessons.hardware.sentences import (
    brent_sentence,
    epoch_sentence,
    layers_sentence,
    pooling_sentence,
    reading_sentence,
    threads_sentence,
    workers_sentence,
)
from course_utils.measuring import Measured, compare, rate_text

# isort: split
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import course_utils as course
from course_utils.draw import style
from course_utils.lessons.hardware import (
    layer_costs,
    machine_rates,
    packed_samples,
    photos,
    reading_speed,
    step_shares,
    threads,
    work_and_depth,
)
from course_utils.machine import allowed_cores
from course_utils.vgg import vgg11

BATCH, ITERATIONS, ROUNDS, PHOTOS, UNIT = 32, 6, 5, 600, 0.008
DRAFT = {"BATCH": 4, "ITERATIONS": 2, "ROUNDS": 1, "PHOTOS": 60}
WORKERS = (1, 2, 4, 8, 16)
PALE = "#CFE3F1"


@cache
def machine() -> tuple[Measured, Measured]:
    """FLOP and bytes per second."""
    return machine_rates.matmul_rate(), machine_rates.memory_bandwidth()


@cache
def images() -> torch.Tensor:
    """A batch."""
    return torch.randn(BATCH, 3, 32, 32)


@cache
def training() -> step_shares.TimedTraining:
    """A few iterations of VGG-11."""
    return step_shares.time_training(vgg11(seed=0), iterations=ITERATIONS, batch=BATCH)


def two_rates() -> Figure:
    """How long a product of matrices and a sum of arrays take, for as many operations."""
    peak, bandwidth = machine()
    billion = 1e9
    times = {
        "product of matrices": peak.times(1 / billion),
        "sum of long arrays": bandwidth.times(1 / (12 * billion)),
    }
    bars = {"here": {name: measured.rate(1) for name, measured in times.items()}}
    balance = 4 * peak.median / bandwidth.median
    title = f"Time for a billion operations: {balance:.0f} of them while one number of 4 bytes is fetched"
    found = f"{rate_text(peak, 'GFLOP/s')}; {rate_text(bandwidth, 'GB/s')}"
    return course.draw.measured_bars(bars, title, found)


@cache
def timed_layers() -> list[layer_costs.Layer]:
    """VGG-11's layers, each measured by itself."""
    return layer_costs.time_layers(vgg11(seed=0), images(), *(rate.median for rate in machine()))


def roof() -> Figure:
    """VGG-11's layers under the roof."""
    peak, bandwidth = (rate.median for rate in machine())
    return pictures.layer_roofline(timed_layers(), peak, bandwidth, "VGG-11's layers, batch of 32", times=False)


def layer_times() -> Figure:
    """The time of each layer."""
    peak, bandwidth = (rate.median for rate in machine())
    found = layers_sentence(timed_layers(), peak / bandwidth)
    return pictures.layer_times(timed_layers(), "VGG-11's layers, one by one", found)


def pooling() -> Figure:
    """The same pooling on two orders of the same numbers."""
    pool, x = torch.nn.MaxPool2d(2), torch.randn(BATCH, 64, 32, 32)
    other = x.to(memory_format=torch.channels_last)
    names = "side by side", "channel by channel"
    with torch.no_grad(), machine_rates.using_threads():
        pair = compare(lambda: pool(other), lambda: pool(x), names=names)
    return course.draw.measured_bars({"2 × 2 pooling": pair.bars}, pair.title, pooling_sentence(pair))


def three_shares() -> Figure:
    """Forward, backward and step in every iteration."""
    ratio = training().ratio()
    title = f"Backward takes {ratio.median:.1f} times as long as forward ({ratio.low:.1f} to {ratio.high:.1f})"
    return course.draw.stacked_bars(training().bars, title)


def epoch() -> Figure:
    """An epoch here, extrapolated, beside the published ones."""
    here = {"CPU": training().epoch()}
    if torch.cuda.is_available():
        here["GPU"] = step_shares.time_training(vgg11(seed=0), batch=256, device="cuda").epoch()
    bars = step_shares.epoch_bars(here, allowed_cores())
    found = epoch_sentence(here, allowed_cores())
    return course.draw.measured_bars(bars, "50,000 images (here: extrapolated)", found, published=[step_shares.REPORT])


def by_threads() -> Figure:
    """Time over the number of threads."""
    half = vgg11(width=0.5, seed=0)
    times = threads.time_threads(lambda: half(images()).sum().backward(), rounds=ROUNDS)
    found = f"{threads_sentence(times, allowed_cores())} {threads.PUBLISHED}"
    return pictures.time_by_threads(times, allowed_cores(), "Forward and backward of half a VGG-11", found)


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


def bounds() -> Figure:
    """A tree of additions by p workers, between Brent's bounds."""
    tree = work_and_depth.tree_sum(32)
    measured = {p: Measured(tuple(work_and_depth.run_graph(tree, p, UNIT) / UNIT for _ in range(3))) for p in WORKERS}
    limits = {p: work_and_depth.brent_bounds(tree, p) for p in WORKERS}
    found = brent_sentence(limits, {p: one.median for p, one in measured.items()})
    printed = {"min(W/p, D)": [min(31 / p, 5) for p in WORKERS]}
    title = "31 additions as a tree of depth 5, each emulated by 8 ms of sleep"
    return pictures.between_bounds(measured, limits, printed, title, found)


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
    picture.alt_text = "A packed file: the number 3; the offsets 40, 43, 48 and 50; then cat, goose, ox."
    return picture


@cache
def files() -> tuple[dict, dict, dict]:
    """Photos read cold and warm, and decoded by workers."""
    with photos.working_folder() as folder:
        pictures = photos.jpeg_digits(PHOTOS)
        paths, packed = photos.write_photos(pictures, Path(folder)), Path(folder) / "packed"
        packed_samples.pack_samples(pictures, packed)
        read, where = photos.readers(paths, packed), {"one file each": paths, "packed": [packed]}
        cold, warm = (
            {way: reading_speed.time_reading(read[way], PHOTOS, where[way], cold=empty) for way in read}
            for empty in (True, False)
        )
        sets = {"one file each": photos.PhotoFiles(paths), "packed": photos.PackedPhotos(packed, PHOTOS)}
        took = {way: {n: reading_speed.time_workers(sets[way], n) for n in (0, 1, 2)} for way in sets}
    return cold, warm, took


def cold_and_warm() -> Figure:
    """Photos, one file each and packed."""
    cold, warm, _ = files()
    found = reading_sentence(cold, warm)
    return course.draw.measured_bars(reading_speed.groups(cold, warm), f"{PHOTOS} photos in a random order", found)


def by_workers() -> Figure:
    """Read and decode with 0, 1 and 2 workers."""
    _, _, took = files()
    bars = {way: {f"workers: {n}": measured for n, measured in times.items()} for way, times in took.items()}
    found = workers_sentence(took, allowed_cores())
    return course.draw.measured_bars(bars, f"Read and decode {PHOTOS} photos", found)


FIGURES = {
    "03_two_rates": two_rates,
    "03_roof": roof,
    "03_layer_times": layer_times,
    "03_pooling": pooling,
    "03_shares": three_shares,
    "03_epoch": epoch,
    "03_threads": by_threads,
    "03_chain_and_tree": chain_and_tree,
    "03_bounds": bounds,
    "03_packed_file": packed_file,
    "03_cold_and_warm": cold_and_warm,
    "03_workers": by_workers,
}
