"""The check of `speed_up_3`: the same losses, and the last one with the averaged weights, from fewer operations."""

from collections.abc import Callable, Iterator

import numpy as np

from course_utils.checks.exercise import Case, Outcome
from course_utils.checks.symptoms import same
from course_utils.lessons.profiling.checks.common import (
    SYMPTOMS,
    bars_of,
    longest_part,
    one_step_early,
    races_well,
    slow_program,
)
from course_utils.lessons.profiling.checks.races import CLOSE, MOST, processor_seconds, race
from course_utils.lessons.profiling.slow import TARGETS
from course_utils.words import count

TARGET = TARGETS[3]
UPDATE = "optimizer"
PLACES = {
    "forward": [("module.py", "_wrapped_call_impl"), ("functional.py", "cross_entropy")],
    "backward": [("__init__.py", "grad"), ("__init__.py", "backward")],
}


def beside_slow_3(function: Callable, seed: int, examples: int, steps: int, rounds: int) -> dict:
    """Both on the same batch, another one in every round."""
    import torch

    from course_utils.lessons.profiling.slow.small_kernels import slow_3

    def inputs(number: int) -> tuple:
        random = torch.Generator().manual_seed(seed + number)
        x, y = torch.rand(examples, 64, generator=random), torch.randint(10, (examples,), generator=random)
        x[:, ::7] = 0  # pixels at the edge of a picture: their weights have no gradient
        return x, y, steps

    own_time = {"clock": processor_seconds, "places": PLACES}
    return race(slow_3, function, inputs, TARGET, rounds=rounds, **own_time)


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(examples: int, steps: int, rounds: int = 0) -> Case:
        given = [(int(rng.integers(2**31)), examples, steps, rounds)]
        label = f"{count(examples, 'example')}, {count(steps, 'step')}"
        return Case(label, given, with_comm=False, harness=beside_slow_3, judge=races_well(TARGET, _lost))

    yield case(32, 3)
    yield case(1, 1)
    yield case(1, 12)
    yield case(32, 5, MOST)


def _lost(outcome: Outcome) -> str:
    return longest_part(outcome, UPDATE)


def _never_moves(case: Case, outcome: Outcome) -> bool:
    losses = outcome.results[0]["found"][:-1]
    return len(losses) > 1 and len(set(losses)) == 1


def _last_alone(case: Case, outcome: Outcome) -> bool:
    """Whether all losses but the last are right, after more steps than one."""
    found, wanted = outcome.results[0]["found"], outcome.results[0]["wanted"]
    return len(found) > 2 and same(found[:-1], wanted[:-1], CLOSE) and not same(found, wanted, CLOSE)


EXERCISE = slow_program(
    3,
    "small_kernels",
    minutes=10,
    difficulty=3,
    cases=_cases,
    drawing=bars_of(UPDATE),
    hints=(
        "The network has 82 tensors of weights. How many operations does Adam need for each of them in a step, and how "
        "many numbers does an operation change? Could an operation work on all the tensors at once?",
        "With `flat = nn.utils.parameters_to_vector(weights).detach()` and `nn.utils.vector_to_parameters(flat, "
        "weights)`, every tensor becomes a piece of the vector `flat`. Join the gradients into one vector with "
        "`torch.cat([gradient.flatten() for gradient in gradients])`, and apply Adam once, to `flat`. Torch's "
        "functions for lists of tensors, whose names begin with `torch._foreach_`, are fast enough as well.",
    ),
    symptoms={
        **SYMPTOMS,
        "all losses but the last are the same": _never_moves,
        "the last loss alone is wrong": _last_alone,
        "each loss is that of the next step": one_step_early(-1),
    },
)
