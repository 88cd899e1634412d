"""The check of `zero_memory`: the paper's sums, with its bytes and with others, and what makes no sense."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from course_utils.checks.cases import must_refuse, refusals
from course_utils.checks.exercise import Case, Exercise, Mistake, Outcome
from course_utils.checks.recognisers import Recogniser, nothing_returned, same
from course_utils.lessons.hybrid_and_sharded.checks import LESSON
from course_utils.words import ranks

PAPER = (2, 2, 12)
"""Bytes of a parameter, its gradient and its state, in the paper's mixed precision."""


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
    yield case(7.5e9, 1, 3)
    yield from refusals("zero_memory", [(1000, 4, 4), (1000, 4, -1), (1000, 0, 2), (1000, -2, 0)])


Formula = Callable[[float, int, int, Sequence[float]], float]
"""(parameters, ranks, stage, bytes of parameter, gradient and state) → bytes."""


def _is(formula: Formula) -> Recogniser:
    """A recogniser of what another formula gives."""

    def recognises(case: Case, outcome: Outcome) -> bool:
        parameters, size, stage, *bytes_of = case.arguments[0]
        wrong = formula(parameters, size, stage, bytes_of or PAPER)
        return case.harness is None and same(outcome.results[0], float(wrong), 1e-12)

    return recognises


def _divided(order: Sequence[int]) -> Formula:
    """The stages divide the three in another order; places in (parameter, gradient, state)."""

    def formula(parameters: float, size: int, stage: int, bytes_of: Sequence[float]) -> float:
        return parameters * sum(one / (size if k in order[:stage] else 1) for k, one in enumerate(bytes_of))

    return formula


def _only_the_last(parameters: float, size: int, stage: int, bytes_of: Sequence[float]) -> float:
    """Each stage divides one of the three, and gives back what the stage before has divided."""
    return parameters * sum(one / (size if k == 3 - stage else 1) for k, one in enumerate(bytes_of))


def _a_stage_off(parameters: float, size: int, stage: int, bytes_of: Sequence[float]) -> float:
    return by_hand(parameters, size, min(stage + 1, 3), *bytes_of)


def _fixed_bytes(case: Case, outcome: Outcome) -> bool:
    return len(case.arguments[0]) > 3 and same(outcome.results[0], float(by_hand(*case.arguments[0][:3])), 1e-12)


def _rounded(case: Case, outcome: Outcome) -> bool:
    got, wanted = float(outcome.results[0]), case.expected[0]
    return got == int(got) and 0 < wanted - got <= 3 * max(case.arguments[0][0], 1)


ZERO_MEMORY = Exercise(
    name="zero_memory",
    library="course_utils.lessons.hybrid_and_sharded.zero_formulas:zero_memory",
    lesson=LESSON,
    place=4,
    minutes=5,
    difficulty=1,
    turn="what stays whole, and what is divided, in this stage",
    title="bytes on each rank in the stages of ZeRO",
    cases=_cases,
    picture=False,
    hints=(
        "Three things lie on each rank for every parameter. Which of them does stage 1 divide among the ranks, which "
        "one more does stage 2, and what is left for stage 3?",
        "In the order in which the stages divide them the three are `[state_bytes, gradient_bytes, parameter_bytes]`: "
        "the first `stage` of them are divided by `ranks`, the others are whole. Multiply the sum by `parameters`.",
    ),
    mistakes=(
        Mistake("What does the docstring promise for a stage or a number of ranks that does not exist?", must_refuse),
        Mistake("Where is the `return`?", nothing_returned),
        Mistake("Which bytes were you given for a parameter, its gradient and its state?", _fixed_bytes),
        Mistake("Is anything divided in stage 0?", _is(_a_stage_off)),
        Mistake("On each rank, or on all of them together?", _is(lambda n, p, s, b: p * by_hand(n, p, s, *b))),
        Mistake("For one parameter, or for all of them?", _is(lambda n, p, s, b: by_hand(1, p, s, *b))),
        Mistake("Bytes, or gigabytes?", _is(lambda n, p, s, b: by_hand(n, p, s, *b) / 1e9)),
        Mistake("Is what stage 1 divides still divided in stage 2?", _is(_only_the_last)),
        Mistake("What stays whole on every rank before stage 3?", _is(lambda n, p, s, b: n * sum(b) / p)),
        Mistake("Which of the three does the first stage divide?", _is(_divided((0, 1, 2)))),
        Mistake("Which of the three does the first stage divide?", _is(_divided((1, 2, 0)))),
        Mistake("Which of the three does the first stage divide?", _is(_divided((1, 0, 2)))),
        Mistake("Which of the three does the second stage divide?", _is(_divided((2, 0, 1)))),
        Mistake("Which three things lie on a rank?", _is(lambda n, p, s, b: by_hand(n, p, s, b[0], 0, b[2]))),
        Mistake("Which three things lie on a rank?", _is(lambda n, p, s, b: by_hand(n, p, s, b[0], b[1], 0))),
        Mistake("Does the number of ranks divide all bytes without a rest?", _rounded),
    ),
    praise=lambda outcome: "all four stages, with the paper's bytes and with others; what makes no sense is refused",
)
