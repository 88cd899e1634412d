"""The check of `mfu`: a step on one device and on many, of texts and of images, and what makes no sense."""

from collections.abc import Iterator

import numpy as np

from course_utils.checks.cases import in_a_row, rejections
from course_utils.checks.exercise import Case, Exercise
from course_utils.words import count

TERA = 10**12


def by_hand(forward: float, examples: float, seconds: float, devices: float, peak: float) -> float:
    """As PaLM's appendix B does it: examples per second against those at the peak."""
    at_most = devices * peak / (3 * forward)
    return examples / seconds / at_most


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(forward: float, examples: float, seconds: float, devices: int, peak: float, what: str) -> Case:
        given = (forward, examples, seconds, devices, peak)
        label = f"{examples:,} {what} in {seconds:g} s, {count(devices, 'device')} of {peak / TERA:g} TFLOP/s"
        return Case(label, [given], [float(by_hand(*given))], with_comm=False, tolerance=1e-12)

    yield case(2 * 10**9, 1000, 1.0, 1, 12 * TERA, "tokens")
    yield case(2 * 10**9, 4000, 1.0, 4, 12 * TERA, "tokens")
    yield case(2 * 10**9, 4000, 2.0, 4, 12 * TERA, "tokens")
    for _ in range(3):
        parameters, devices = int(rng.integers(10, 90)) * 10**8, int(rng.choice([3, 5, 7, 24, 512]))
        tokens, share = int(rng.integers(10**5, 10**6)), float(rng.uniform(0.1, 0.6))
        seconds = round(6 * parameters * tokens / (devices * 312 * TERA * share), 4)
        yield case(2 * parameters, tokens, seconds, devices, 312 * TERA, "tokens")
    yield case(int(rng.integers(100, 400)) * 10**6, 512, 0.043, 3, 0.5 * TERA, "images")
    yield case(7 * 10**6, 31, 0.25, 2, 700_000_000, "images")
    yield case(2 * 10**9, 1000, 1.0, 1, 4 * TERA, "tokens: more than the peak")
    yield case(2 * 10**9, 0, 1.0, 1, 4 * TERA, "tokens")
    yield case(0.75, 3, 0.5, 2, 0.7, "very small examples")
    earlier = case(2 * 10**9, 1000, 1.0, 1, 12 * TERA, "tokens")
    yield in_a_row(earlier, case(3 * 10**9, 700, 2.0, 3, 10 * TERA, "tokens"))
    yield from rejections("mfu", [(1e9, 10, 0, 2, 1e12), (1e9, 10, 1, 0, 1e12), (1e9, 10, 1, 2, 0), (1e9, 9, -1, 1, 1)])
    yield from rejections("mfu", [(1e9, 9, 1, -1, 1), (1e9, 9, 1, 1, -1), (1e9, 9, -1, -1, 1), (1e9, 9, -1, 1, -1)])


EXERCISE = Exercise(
    library="utilization",
    number=7,
    minutes=5,
    difficulty=1,
    turn="divide what the model needs by what the devices could do in this time",
    title="model FLOPs utilization",
    cases=_cases,
    hints=(
        "For a matrix product, the backward pass computes two gradients, that of the inputs and that of the weights. "
        "How many operations is that, compared with the forward pass? And how many could all devices have done in "
        "these seconds?",
        "The forward and the backward pass take `3 * forward` operations for each example. In these seconds, all "
        "devices together could have done `seconds * devices * peak`. Divide the one by the other.",
    ),
    praise=lambda outcome: (
        "right from one device to hundreds, for texts and for images, and above 1 if a number is wrong"
    ),
)
