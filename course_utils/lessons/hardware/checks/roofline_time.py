"""The check of `roofline_time`: layers on either side of the ridge, alone and one after the other."""

from collections.abc import Callable, Iterator

import numpy as np

from course_utils.checks.exercise import Case, Exercise, Mistake, Outcome
from course_utils.checks.recognisers import Recogniser, raised, same
from course_utils.lessons.hardware.checks import LESSON

Layers = list[tuple[float, float]]


def one_by_one(layers: Layers, peak: float, bandwidth: float) -> float:
    """The seconds of the layers, added up."""
    total = 0.0
    for flops, nbytes in layers:
        compute, memory = flops / peak, nbytes / bandwidth
        total += compute if compute > memory else memory
    return total


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(label: str, layers: list, peak: float, bandwidth: float) -> Case:
        expected = one_by_one(layers, peak, bandwidth)
        return Case(label, [(layers, peak, bandwidth)], [expected], with_comm=False, tolerance=1e-9)

    def machine() -> tuple[float, float]:
        return float(rng.uniform(50, 500)) * 1e9, float(rng.uniform(10, 60)) * 1e9

    def layer(intensity: float) -> tuple[int, int]:
        nbytes = int(rng.integers(1_000_000, 50_000_000))
        return int(intensity * nbytes), nbytes

    yield case("two layers, one of each kind", [layer(200), layer(0.2)], *machine())
    yield case("a layer with much arithmetic", [layer(200)], *machine())
    yield case("a layer with little arithmetic", [layer(0.2)], *machine())
    yield case("five layers", [layer(float(value)) for value in rng.permutation([0.1, 1, 40, 150, 400])], *machine())
    yield case("a layer that only moves bytes", [(0, 8_000_000)], *machine())
    yield case("a layer that moves nothing", [(10**9, 0), layer(0.5)], *machine())
    yield case("no layers", [], *machine())
    yield case("a machine whose memory is faster than its arithmetic", [layer(1), layer(0.1)], 1e9, 4e9)
    yield case("lists for pairs", [list(layer(300)), list(layer(0.3))], *machine())


def _formula(formula: Callable[[Layers, float, float], float]) -> Recogniser:
    def recognises(case: Case, outcome: Outcome) -> bool:
        wanted = formula(*case.arguments[0])
        return not same(case.expected[0], wanted, 1e-6) and same(outcome.results[0], wanted, 1e-6)

    return recognises


def _of_each(rule: Callable[[float, float], float]) -> Recogniser:
    """A recogniser of another rule for compute and memory seconds of each layer."""
    return _formula(lambda layers, peak, width: sum(rule(flops / peak, size / width) for flops, size in layers))


def _of_totals(layers: Layers, peak: float, bandwidth: float) -> float:
    return max(sum(flops for flops, _ in layers) / peak, sum(size for _, size in layers) / bandwidth)


def _by_roof(layers: Layers, peak: float, bandwidth: float) -> float:
    return sum(min(peak, bandwidth * flops / size) for flops, size in layers)


def _no_arithmetic(case: Case, outcome: Outcome) -> bool:
    return raised(outcome, "ZeroDivisionError")


def _no_layers(case: Case, outcome: Outcome) -> bool:
    return not case.arguments[0][0]


def _several(case: Case, outcome: Outcome) -> bool:
    return outcome.run is not None and hasattr(outcome.results[0], "__len__")


OWN = "Does each layer wait for the longer of its own two times?"

ROOFLINE_TIME = Exercise(
    name="roofline_time",
    library="course_utils.lessons.hardware.roofline:roofline_time",
    lesson=LESSON,
    place=2,
    minutes=5,
    difficulty=1,
    turn="for each layer the longer of two times",
    title="the least time of a network's layers",
    cases=_cases,
    picture=False,
    hints=(
        "A machine computes while it moves bytes. Which of the two does a layer wait for? And can the arithmetic of "
        "one layer hide the bytes of the next?",
        "For each layer max(flops / peak, bytes / bandwidth); then the sum over the layers.",
    ),
    mistakes=(
        Mistake("What if a layer computes nothing, or moves nothing? By what do you divide?", _no_arithmetic),
        Mistake("How long do no layers take?", _no_layers),
        Mistake("Is it one number that you return, for all layers together?", _several),
        Mistake("Does the machine wait with its arithmetic until all bytes are there?", _of_each(lambda c, m: c + m)),
        Mistake("Which of the two does a layer wait for: the first that is done, or the last?", _of_each(min)),
        Mistake(OWN, _formula(_of_totals)),
        Mistake(
            "How long do two layers take, one after the other?",
            _formula(lambda layers, p, b: max(max(f / p, s / b) for f, s in layers)),
        ),
        Mistake(OWN, _of_each(lambda c, m: c)),
        Mistake(OWN, _of_each(lambda c, m: m)),
        Mistake("Is that a time, or a rate?", _formula(_by_roof)),
        Mistake(
            "FLOP times FLOP per second: is that a time?",
            _formula(lambda layers, p, b: sum(max(f * p, s * b) for f, s in layers)),
        ),
        Mistake("Bits or bytes?", _formula(lambda layers, p, b: sum(max(f / p, 8 * s / b) for f, s in layers))),
        Mistake(
            "Which of the two is FLOP per second?",
            _formula(lambda layers, p, b: sum(max(f / b, s / p) for f, s in layers)),
        ),
    ),
    praise=lambda outcome: "right on both sides of the ridge, for one layer and for many",
)
