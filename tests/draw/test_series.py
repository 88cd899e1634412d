"""Where the numbers stand on the axis of `over_numbers`."""

import pytest

from course_utils import draw


@pytest.mark.parametrize(
    ("numbers", "scale"),
    [
        ([1, 4, 16, 64], "log"),
        ([1, 2, 4, 8, 16], "log"),
        ([1, 2, 4, 7], "linear"),  # no single factor
        ([1, 2, 4, 8], "linear"),  # a short way
        ([0, 1, 2, 4, 6, 10, 14], "linear"),  # 0 has no logarithm
        ([0, 16], "linear"),
    ],
)
def test_only_numbers_that_grow_by_one_factor_stand_at_equal_distances(numbers, scale) -> None:
    figure = draw.over_numbers(numbers, {"line": [1.0] * len(numbers)}, "Title", across="x", up="y")
    assert figure.axes[0].get_xscale() == scale


def test_nothing_has_no_unit() -> None:
    figure = draw.over_numbers([1, 2], {"line": [0.0, 1.0]}, "Title", across="x", up="y", unit="{:g} µs".format)
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert "0" in labels and "0 µs" not in labels and "1 µs" in labels
