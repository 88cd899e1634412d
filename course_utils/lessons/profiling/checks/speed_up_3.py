"""The check of `speed_up_3`: the same losses, and the last one with the averaged weights, from fewer operations."""

import time
from collections.abc import Callable, Iterator

import numpy as np

from course_utils.checks.exercise import Case, Exercise, Mistake, Outcome
from course_utils.checks.recognisers import same
from course_utils.lessons.profiling.checks import LESSON
from course_utils.lessons.profiling.checks.common import (
    bars_of,
    from_the_start,
    longest_part,
    no_numbers,
    nothing_found,
    praised,
    races_well,
    too_few,
    too_slow,
)
from course_utils.lessons.profiling.checks.races import CLOSE, MOST, race
from course_utils.words import count

TARGET = 1.2
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
        return x, y, steps

    own_time = {"clock": time.process_time, "meet": float, "places": PLACES}
    return race(slow_3, function, inputs, TARGET, rounds=rounds, **own_time)


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(examples: int, steps: int, rounds: int = 0) -> Case:
        given = [(int(rng.integers(2**31)), examples, steps, rounds)]
        label = f"{count(examples, 'example')}, {count(steps, 'step')}"
        return Case(label, given, with_comm=False, harness=beside_slow_3, judge=races_well(TARGET, _lost))

    yield case(32, 3)
    yield case(1, 1)
    yield case(32, 5, MOST)


def _lost(outcome: Outcome) -> str:
    return longest_part(outcome, UPDATE)


def _last_wrong(case: Case, outcome: Outcome) -> bool:
    result = outcome.results[0]
    return same(result["found"][:-1], list(result["wanted"][:-1]), CLOSE)


def _not_learning(case: Case, outcome: Outcome) -> bool:
    """All losses are the first one."""
    found = outcome.results[0]["found"]
    return len(found) > 2 and len(set(found[:-1])) == 1


SPEED_UP_3 = Exercise(
    name="speed_up_3",
    library="course_utils.lessons.profiling.slow.small_kernels:speed_up_3",
    begins_with="course_utils.lessons.profiling.slow.small_kernels:slow_3",
    lesson=LESSON,
    place=5,
    minutes=10,
    difficulty=3,
    turn="take this line out, and make what is below it faster",
    title="slow program 3",
    cases=_cases,
    needs_torch=True,
    drawing=bars_of(UPDATE),
    praise=praised(TARGET),
    hints=(
        "The network has 82 parameters. How many operations does one step of Adam take for one of them, and how many "
        "numbers does each of these operations change? Which operations could work on all parameters at once?",
        "`flat = nn.utils.parameters_to_vector(weights).detach()` and `nn.utils.vector_to_parameters(flat, weights)` "
        "make every weight a piece of `flat`. Put the gradients into one vector with `torch.cat([one.flatten() for one "
        "in gradients])`, and write Adam once, for `flat`. (`torch._foreach_…` functions for lists of tensors do too.)",
    ),
    mistakes=(
        Mistake("What does the function return?", nothing_found),
        Mistake("Are the losses plain numbers, in a list?", no_numbers),
        Mistake("Is there a loss before each step, and one at the end?", too_few),
        Mistake("How many operations does it take to change all weights?", too_slow),
        Mistake("Does the network see the new weights?", _not_learning),
        Mistake("Of which weights is the last loss, and when does their average move?", _last_wrong),
        Mistake("Are the first weights the same?", from_the_start),
        Mistake("Which part of Adam's formula is not as it was?", lambda case, outcome: True),
    ),
)
