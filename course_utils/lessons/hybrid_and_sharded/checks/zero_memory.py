"""The check of `zero_memory`: the paper's sums, with its bytes and with others, and what makes no sense."""

from collections.abc import Iterator

import numpy as np

from course_utils.checks.cases import in_a_row, rejections
from course_utils.checks.exercise import Case, Exercise
from course_utils.words import ranks


def by_hand(
    parameters: float, size: int, stage: int, of_parameter: float = 2, of_gradient: float = 2, of_state: float = 12
) -> float:
    """Stage by stage, as the paper's figure 1 writes it."""
    of_each = {
        0: of_parameter + of_gradient + of_state,
        1: of_parameter + of_gradient + of_state / size,
        2: of_parameter + (of_gradient + of_state) / size,
        3: (of_parameter + of_gradient + of_state) / size,
    }
    return parameters * of_each[stage]


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(parameters: float, size: int, stage: int, *bytes_of: float) -> Case:
        given = (parameters, size, stage, *bytes_of)
        label = f"{parameters:,} parameters, {ranks(size)}, stage {stage}"
        label += f", {' + '.join(map(str, bytes_of))} bytes" if bytes_of else ""
        return Case(label, [given], [float(by_hand(*given))], with_comm=False, tolerance=1e-12)

    yield case(1000, 4, 0)
    for stage in (1, 2, 3):
        yield case(1000, 4, stage)
    for stage in rng.permutation(4):
        yield case(int(rng.integers(10**6, 10**11)), int(rng.integers(3, 99)), int(stage))
    for stage in rng.permutation(4):
        bytes_of = [2 ** int(power) for power in rng.permutation(5)[:3]]  # no one is the sum of the others
        yield case(int(rng.integers(10**3, 10**6)), int(rng.choice([7, 11, 13])), int(stage), *bytes_of)
    yield in_a_row(case(5000, 4, 2), case(3000, 8, 2))
    yield case(7.5e9, 1, 3)
    yield case(0, 3, 2)
    yield case(float(rng.integers(10**6, 10**9)), int(rng.integers(3, 99)), 2, 0.5, 0.25, 5.125)
    yield from rejections("zero_memory", [(1000, 4, 4), (1000, 4, -1), (1000, 0, 2), (1000, -2, 0), (1000, 1, 4)])


EXERCISE = Exercise(
    library="zero_formulas",
    number=4,
    minutes=5,
    difficulty=1,
    turn="add up what stays whole in this stage, and what is divided by the ranks",
    title="the bytes that each rank keeps in the stages of ZeRO",
    cases=_cases,
    hints=(
        "A rank keeps three things for every parameter. Which of them does stage 1 divide among the ranks, which does "
        "stage 2 divide in addition, and what is left for stage 3?",
        "Put the three into a list in the order in which the stages divide them, `[state_bytes, gradient_bytes, "
        "parameter_bytes]`. The first `stage` of them are divided by `ranks`, and the others stay whole. Multiply the "
        "sum by `parameters`.",
    ),
    praise=lambda outcome: (
        "right for all four stages, with the paper's bytes and with different ones; impossible numbers are rejected"
    ),
)
