"""The check of `arithmetic_intensity`: FLOPs and bytes counted one by one, as loops over a small layer would."""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from course_utils.checks.cases import in_a_row
from course_utils.checks.exercise import Case, Exercise, Outcome, Recogniser


def counted(x_shape: Sequence[int], weight_shape: Sequence[int], itemsize: int) -> tuple[int, int, float]:
    """FLOPs, bytes and FLOPs per byte, from the numbers of entries of three arrays."""
    inputs, weights = math.prod(x_shape), math.prod(weight_shape)
    outputs = inputs // x_shape[1] * weight_shape[0]
    terms = weights // weight_shape[0]  # products in each entry of the output
    flops, nbytes = 2 * outputs * terms, itemsize * (inputs + weights + outputs)
    return flops, nbytes, flops / nbytes


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(label: str, x_shape: Sequence[int], weight_shape: Sequence[int], *itemsize: int, key: str = "") -> Case:
        expected = counted(x_shape, weight_shape, itemsize[0] if itemsize else 4)
        given = (x_shape, weight_shape, *itemsize)
        label += f", {x_shape} by {weight_shape}"
        parts = ("the number of FLOPs", "the number of bytes", "the number of FLOPs per byte")
        return Case(label, [given], [expected], with_comm=False, tolerance=1e-12, key=key, parts=parts)

    def some(*bounds: int) -> tuple[int, ...]:
        return tuple(int(rng.integers(low, low + 9)) for low in bounds)

    n, c_in, c_out = some(5, 20, 40)
    yield case("a fully connected layer", (n, c_in), (c_out, c_in), key="linear")
    yield case("a fully connected layer with one input", (n, 1), (c_out, 1), key="linear")
    n, c_in, c_out, side = some(2, 3, 16, 8)
    yield case("a convolution of 3 × 3", (n, c_in, side, side), (c_out, c_in, 3, 3), key="convolution")
    yield case("a convolution of 1 × 1", (n, c_in, side, side), (c_out, c_in, 1, 1), key="convolution")
    n, c_in, c_out, height = some(2, 4, 5, 6)
    yield case("an image that is not a square", (n, c_in, height, 2 * height + 1), (c_out, c_in, 3, 3), key="no-square")
    yield case("a window that is not a square", (n, c_in, height, height), (c_out, c_in, 1, 5), key="no-square")
    shapes = (n, c_in, height + 4, height), (c_out, c_in, 5, 3)
    yield case("neither is a square, numbers of 2 bytes", *shapes, 2, key="itemsize")
    yield case("fully connected, numbers of 8 bytes", (n, c_in), (c_out, c_in), 8, key="itemsize")
    yield case("a window larger than the image", (n, c_in, 2, 1), (c_out, c_in, 3, 5))
    yield case("one number", (1, 1), (1, 1))
    tokens = 8191 - 2 * int(rng.integers(100))  # odd, as the number of words is: 24 bits cannot hold the product
    yield case("the last layer of GPT-3, in 16 bits", (tokens, 12288), (50257, 12288), 2, key="large-numbers")
    yield case("lists for shapes, fully connected", [n, c_in], [c_out, c_in])
    again = case("numbers of 2 bytes", (n, c_in), (c_out, c_in), 2)
    yield in_a_row(case("numbers of 8 bytes", (n, c_in), (c_out, c_in), 8), again)
    yield case("lists for shapes", [n, c_in, 4, 4], [c_out, c_in, 3, 3])


def _wrong_in(part: int, key: str) -> Recogniser:
    def is_wrong(case: Case, outcome: Outcome) -> bool:
        return case.key == key and outcome.finding.where == (part,)

    return is_wrong


EXERCISE = Exercise(
    library="roofline",
    number=1,
    minutes=10,
    difficulty=2,
    turn="count the operations, count the bytes, divide",
    title="how much arithmetic for a byte?",
    cases=_cases,
    hints=(
        "Take a single number of the output. How many products are added up in it? How many such numbers are there? "
        "And how many numbers do the three arrays have that need to be moved?",
        "outputs = n · c_out · H · W; flops = 2 · outputs · (c_in · K_y · K_x); bytes = itemsize · (inputs + weights + "
        "outputs). With `n, c_in, *image = x_shape` and `math.prod(image)`, which is 1 for an empty list, the same "
        "lines do for both kinds of layer.",
    ),
    symptoms={
        "the FLOPs of a linear layer are wrong": _wrong_in(0, "linear"),
        "the bytes of a linear layer are wrong": _wrong_in(1, "linear"),
        "the ratio is wrong": _wrong_in(2, "linear"),
        "the FLOPs of a convolution are wrong": _wrong_in(0, "convolution"),
        "the bytes of a convolution are wrong": _wrong_in(1, "convolution"),
    },
    praise=lambda outcome: "operations and bytes are right for both kinds of layer, any window, any dtype",
)
