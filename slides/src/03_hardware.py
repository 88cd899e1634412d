"""The pictures of deck 3 that its page does not have: two rates as bars, and the two halves of the layers' picture."""

from types import SimpleNamespace

from matplotlib.figure import Figure

import course_utils as course
from course_utils.lessons.hardware import pictures, sentences
from course_utils.measuring import is_busy, rate_text, unless_busy
from course_utils.words import percent

DRAFT = {"PAGE": {"batch": 2, "count": 125}}


def two_rates(page: SimpleNamespace) -> Figure:
    """Draw how long a billion operations take, in a product of matrices and in a sum of arrays."""
    peak, bandwidth = page.peak, page.bandwidth
    billion = 1e9
    times = {
        "product of matrices": peak.times(1 / billion),
        "sum of long arrays": bandwidth.times(1 / (12 * billion)),
    }
    bars = {"here": {name: measured.rate(1) for name, measured in times.items()}}
    operations = 4 * peak.median / bandwidth.median
    title = f"While one number moves, the processor could do {operations:.0f} operations"
    found = f"{rate_text(peak, 'GFLOP/s')}; {rate_text(bandwidth, 'GB/s')}"
    return course.draw.measured_bars(bars, title, found, x="time for a billion operations")


def roof(page: SimpleNamespace) -> Figure:
    """Draw the page's layers under the roof, without their times."""
    title = sentences.layers_title(page.timed, page.ridge)
    return pictures.layer_roofline(page.timed, page.peak.median, page.bandwidth.median, title, times=False)


def layer_times(page: SimpleNamespace) -> Figure:
    """Draw the times of the page's layers alone."""
    small = sum(layer.flops for layer in page.timed if layer.kind in ("norm", "relu", "pool"))
    share = percent(small / sum(layer.flops for layer in page.timed))
    title = f"Batch norm, ReLU and pooling: {share} of the arithmetic, {percent(page.share)} of the time"
    busy = is_busy(layer.measured.values for layer in page.timed)
    return pictures.layer_times(page.timed, unless_busy(busy, title))


FIGURES = {"03_two_rates": two_rates, "03_roof": roof, "03_layer_times": layer_times}
