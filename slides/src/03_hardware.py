"""The pictures of deck 3 that its page does not have: two rates as bars, and the two halves of the layers' picture."""

from types import SimpleNamespace

from matplotlib.figure import Figure

import course_utils as course
from course_utils.lessons.hardware import pictures, sentences
from course_utils.measuring import Measured, is_busy, unless_busy

DRAFT = {"PAGE": {"batch": 2, "count": 125}}


def two_rates(page: SimpleNamespace) -> Figure:
    """Draw how long a billion operations take, in a product of matrices and in a sum of arrays."""
    peak, bandwidth = page.peak, page.bandwidth
    billion = 1e9
    times = {"product of matrices": billion / peak, "sum of long arrays": 12 * billion / bandwidth}
    bars = {"here": {name: Measured((seconds,)) for name, seconds in times.items()}}
    operations = 4 * peak / bandwidth
    title = f"While one number moves, the processor could do {operations:.0f} operations"
    found = f"{peak / 1e9:.0f} GFLOP/s and {bandwidth / 1e9:.1f} GB/s, each in the fastest of many runs"
    return course.draw.measured_bars(bars, title, found, x="time for a billion operations")


def roof(page: SimpleNamespace) -> Figure:
    """Draw the page's layers under the roof, without their times."""
    title = sentences.layers_title(page.timed, page.ridge)
    return pictures.layer_roofline(page.timed, page.peak, page.bandwidth, title, times=False)


def layer_times(page: SimpleNamespace) -> Figure:
    """Draw the times of the page's layers alone."""
    small = [layer for layer in page.timed if layer.kind in ("norm", "relu", "pool")]
    flops = sum(layer.flops for layer in small) / sum(layer.flops for layer in page.timed)
    share = sum(layer.measured.median for layer in small) / sum(layer.measured.median for layer in page.timed)
    title = f"Batch norm, ReLU and pooling: {flops:.1%} of the arithmetic, {share:.0%} of the time"
    busy = is_busy(layer.measured.values for layer in page.timed)
    return pictures.layer_times(page.timed, unless_busy(busy, title))


FIGURES = {"03_two_rates": two_rates, "03_roof": roof, "03_layer_times": layer_times}
