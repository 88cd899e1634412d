"""The check of `arithmetic_intensity`: FLOPs and bytes counted one by one, as loops over a small layer would."""

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from course_utils.checks.exercise import Case, Exercise, Mistake, Outcome
from course_utils.checks.recognisers import Recogniser, raised, same
from course_utils.lessons.hardware.checks import LESSON

Counts = tuple[float, float]


def counted(x_shape: Sequence[int], weight_shape: Sequence[int], itemsize: int) -> tuple[int, int, float]:
    """FLOPs, bytes and FLOPs per byte, from the numbers of entries of three arrays."""
    inputs, weights = math.prod(x_shape), math.prod(weight_shape)
    outputs = inputs // x_shape[1] * weight_shape[0]
    terms = weights // weight_shape[0]  # products in each entry of the output
    flops, nbytes = 2 * outputs * terms, itemsize * (inputs + weights + outputs)
    return flops, nbytes, flops / nbytes


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(label: str, x_shape: tuple[int, ...], weight_shape: tuple[int, ...], *itemsize: int) -> Case:
        expected = counted(x_shape, weight_shape, itemsize[0] if itemsize else 4)
        given = (x_shape, weight_shape, *itemsize)
        return Case(f"{label}, {x_shape} by {weight_shape}", [given], [expected], with_comm=False, tolerance=1e-9)

    def some(*bounds: int) -> tuple[int, ...]:
        return tuple(int(rng.integers(low, low + 9)) for low in bounds)

    n, c_in, c_out = some(5, 20, 40)
    yield case("a fully connected layer", (n, c_in), (c_out, c_in))
    n, c_in, c_out, side = some(2, 3, 16, 8)
    yield case("a convolution of 3 × 3", (n, c_in, side, side), (c_out, c_in, 3, 3))
    yield case("a convolution of 1 × 1", (n, c_in, side, side), (c_out, c_in, 1, 1))
    n, c_in, c_out, height = some(2, 4, 5, 6)
    yield case("an image that is no square", (n, c_in, height, 2 * height + 1), (c_out, c_in, 3, 3))
    yield case("a window that is no square", (n, c_in, height, height), (c_out, c_in, 1, 5))
    yield case("float16", (n, c_in, height, height), (c_out, c_in, 3, 3), 2)
    yield case("float64", (n, c_in), (c_out, c_in), 8)
    yield case("one number", (1, 1), (1, 1))
    yield case("lists for shapes", [n, c_in, 4, 4], [c_out, c_in, 3, 3])


def _parts(case: Case) -> tuple[int, int, int, int, int, int]:
    """n, c_in, c_out, pixels, taps, itemsize."""
    x_shape, weight_shape, *itemsize = case.arguments[0]
    pixels, taps = math.prod(x_shape[2:]), math.prod(weight_shape[2:])
    return x_shape[0], x_shape[1], weight_shape[0], pixels, taps, itemsize[0] if itemsize else 4


def _formula(formula: Callable[..., Counts], which: int | None = None) -> Recogniser:
    """A recogniser of counts by a formula of n, c_in, c_out, pixels, taps and itemsize; of both, or of one of them."""

    def recognises(case: Case, outcome: Outcome) -> bool:
        wanted, got = formula(*_parts(case)), outcome.results[0]
        chosen = (0, 1) if which is None else (which,)
        different = any(not same(case.expected[0][index], wanted[index], 1e-9) for index in chosen)
        return different and all(same(got[index], wanted[index], 1e-9) for index in chosen)

    return recognises


def _right_counts(case: Case, outcome: Outcome) -> bool:
    return all(same(outcome.results[0][index], case.expected[0][index], 1e-9) for index in (0, 1))


def _rounded(case: Case, outcome: Outcome) -> bool:
    return _right_counts(case, outcome) and abs(outcome.results[0][2] - case.expected[0][2]) < 1


def _unpadded(case: Case, outcome: Outcome) -> bool:
    """As many FLOPs as if the window never reached beyond the image."""
    x_shape, weight_shape, *_ = case.arguments[0]
    places = [side - window + 1 for side, window in zip(x_shape[2:], weight_shape[2:], strict=True)]
    return same(outcome.results[0][0], 2 * x_shape[0] * math.prod(weight_shape) * math.prod(places), 1e-9)


def _not_three(case: Case, outcome: Outcome) -> bool:
    result = outcome.results[0]
    return outcome.run is not None and (not hasattr(result, "__len__") or len(result) != 3)


def _fully_connected(case: Case, outcome: Outcome) -> bool:
    return len(case.arguments[0][0]) == 2 and raised(outcome)


def _no_square(case: Case, outcome: Outcome) -> bool:
    x_shape, weight_shape, *_ = case.arguments[0]
    return len(set(x_shape[2:])) > 1 or len(set(weight_shape[2:])) > 1


BOTH = "A multiplication and an addition: how many operations are they?"
CHANNELS = "How many channels go in, and how many come out?"
THREE = "Which three arrays are moved: read, read, and written?"
BIAS = "Is a bias counted here?"
LAID = "How often is the window laid on an image?"

ARITHMETIC_INTENSITY = Exercise(
    name="arithmetic_intensity",
    library="course_utils.lessons.hardware.roofline:arithmetic_intensity",
    lesson=LESSON,
    place=1,
    minutes=10,
    difficulty=2,
    turn="count the operations, count the bytes, divide",
    title="how much arithmetic for a byte?",
    cases=_cases,
    picture=False,
    hints=(
        "Take one entry of the output. How many products are added up in it? How many such entries are there? And how "
        "many entries have the three arrays that must be moved?",
        "outputs = n · c_out · H · W; flops = 2 · outputs · (c_in · K_y · K_x); bytes = itemsize · (inputs + weights + "
        "outputs). `n, c_in, *image = x_shape` and `math.prod(image)`, 1 for an empty list, serve both kinds of layer.",
    ),
    mistakes=(
        Mistake("Does it work for a layer without image and window?", _fully_connected),
        Mistake("Do you return three numbers: FLOPs, bytes, and their ratio?", _not_three),
        Mistake("Need height and width be equal?", _no_square),
        Mistake(BOTH, _formula(lambda n, i, o, p, t, s: (n * i * o * p * t, 0), 0)),
        Mistake(BIAS, _formula(lambda n, i, o, p, t, s: (2 * n * i * o * p * t + n * o * p, 0), 0)),
        Mistake(BIAS, _formula(lambda n, i, o, p, t, s: (0, s * (n * i * p + i * o * t + n * o * p + o)), 1)),
        Mistake(
            "How often is the window laid on an image?", _formula(lambda n, i, o, p, t, s: (2 * n * i * o * t, 0), 0)
        ),
        Mistake("How large is the window?", _formula(lambda n, i, o, p, t, s: (2 * n * i * o * p, 0), 0)),
        Mistake("How many images are there?", _formula(lambda n, i, o, p, t, s: (2 * i * o * p * t, 0), 0)),
        Mistake(CHANNELS, _formula(lambda n, i, o, p, t, s: (2 * n * o * p * t, 0), 0)),
        Mistake(CHANNELS, _formula(lambda n, i, o, p, t, s: (2 * n * i * p * t, 0), 0)),
        Mistake(THREE, _formula(lambda n, i, o, p, t, s: (0, s * (n * i * p + i * o * t)), 1)),
        Mistake(THREE, _formula(lambda n, i, o, p, t, s: (0, s * (n * i * p + n * o * p)), 1)),
        Mistake(
            "Are the weights read once, or once for each image?",
            _formula(lambda n, i, o, p, t, s: (0, s * n * (i * p + i * o * t + o * p)), 1),
        ),
        Mistake("Numbers, or bytes?", _formula(lambda n, i, o, p, t, s: (0, n * i * p + i * o * t + n * o * p), 1)),
        Mistake(
            "How many bytes has a number here?",
            _formula(lambda n, i, o, p, t, s: (0, 4 * (n * i * p + i * o * t + n * o * p)), 1),
        ),
        Mistake("Is FLOPs per byte a whole number?", _rounded),
        Mistake("FLOPs per byte, or bytes per FLOP?", _right_counts),
        Mistake("Which height and width has the output, where the image is padded?", _unpadded),
        Mistake(
            "Is the first product added to something too, as the others are?",
            _formula(lambda n, i, o, p, t, s: (n * o * p * (2 * i * t - 1), 0), 0),
        ),
    ),
    praise=lambda outcome: "operations and bytes are right for both kinds of layer, any window, any dtype",
)
