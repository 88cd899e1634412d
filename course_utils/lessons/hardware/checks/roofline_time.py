"""The check of `roofline_time`: layers on either side of the ridge, alone and one after the other."""

from collections.abc import Iterator, Sequence

import numpy as np

from course_utils.checks.cases import AFTER_ANOTHER_CALL, after_another_call
from course_utils.checks.exercise import Case, Exercise

Layers = Sequence[Sequence[float]]


def one_by_one(layers: Layers, peak: float, bandwidth: float) -> float:
    """The seconds of the layers, added up."""
    total = 0.0
    for flops, nbytes in layers:
        compute, memory = flops / peak, nbytes / bandwidth
        total += compute if compute > memory else memory
    return total


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(label: str, layers: Layers, peak: float, bandwidth: float, key: str = "") -> Case:
        expected = one_by_one(layers, peak, bandwidth)
        return Case(label, [(layers, peak, bandwidth)], [expected], with_comm=False, tolerance=1e-12, key=key)

    def machine() -> tuple[float, float]:
        return float(rng.uniform(50, 500)) * 1e9, float(rng.uniform(10, 60)) * 1e9

    def layer(intensity: float) -> tuple[int, int]:
        nbytes = int(rng.integers(1_000_000, 50_000_000))
        return int(intensity * nbytes), nbytes

    yield case("two layers, one of each kind", [layer(200), layer(0.2)], *machine(), "two-layers")
    yield case("a layer with much arithmetic", [layer(200)], *machine())
    yield case("a layer with little arithmetic", [layer(0.2)], *machine())
    yield case("five layers", [layer(float(value)) for value in rng.permutation([0.1, 1, 40, 150, 400])], *machine())
    yield case("a layer that computes nothing", [(0, 8_000_000)], *machine(), "nothing")
    yield case("a layer that moves nothing", [(10**9, 0), layer(0.5)], *machine(), "nothing")
    yield case("a layer that does nothing at all", [layer(0.5), (0, 0), layer(100)], *machine(), "nothing")
    yield case("no layers", [], *machine(), "no-layers")
    yield case("a machine whose memory is faster than its arithmetic", [layer(1), layer(0.1)], 1e9, 4e9)
    yield case("whole numbers for the machine, a tuple of lists", ([*layer(300)], [*layer(0.3)]), 10**11, 10**10)
    (flops, nbytes), other = layer(0.5), layer(100)
    blocks = [(flops, nbytes), other, (flops, nbytes), (flops, nbytes), other]
    yield case("the same block over and over", blocks, *machine(), "equal-layers")
    layers = [(flops, nbytes), (flops, 2 * nbytes), (2 * flops, nbytes)]
    yield case("as many FLOPs, other bytes", layers, *machine(), "equal-flops")
    fractions = [(float(gflop), float(gb)) for gflop, gb in zip(rng.uniform(0, 9, 5), rng.uniform(0, 0.9, 5))]
    yield case("counted in GFLOP and GB", fractions, 100.0, 10.0, "fractions")
    same = [layer(200), layer(0.2)]
    second = case("the same layers on a second machine", same, *machine(), AFTER_ANOTHER_CALL)
    yield after_another_call(second, [(same, *machine())])
    yield case("200 layers", [layer(float(value)) for value in rng.uniform(0, 40, 200)], *machine())


EXERCISE = Exercise(
    library="roofline",
    number=2,
    minutes=5,
    difficulty=1,
    turn="for each layer the longer of two times",
    title="the least time of a network's layers",
    cases=_cases,
    hints=(
        "A machine computes while it moves bytes. So which of the two does a layer have to wait for? And can the next "
        "layer begin to move its bytes before this one is done?",
        "For each layer, take max(flops / peak, bytes / bandwidth). Then add up these times.",
    ),
    praise=lambda outcome: "right on both sides of the ridge, for one layer and for many",
)
