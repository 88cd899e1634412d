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


def test_a_predicted_function_is_a_curve_between_the_first_number_and_the_last() -> None:
    figure = draw.over_numbers(
        [1, 2, 3], {"line": [1.0, 4.0, 9.0]}, "Title", across="x", up="y", predicted={"line": lambda x: x * x}
    )
    curve = max(figure.axes[0].lines, key=lambda line: len(line.get_xdata()))
    x, y = curve.get_data()
    assert len(x) > 100 and (x[0], x[-1]) == (1, 3) and max(abs(y - x * x)) < 1e-12
