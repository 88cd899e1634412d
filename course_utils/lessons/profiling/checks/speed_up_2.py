"""The check of `speed_up_2`: the same log on all ranks, and less waiting."""

from collections.abc import Callable, Iterator

import numpy as np

from course_utils.checks.exercise import Case, Exercise, Mistake, Outcome
from course_utils.checks.recognisers import same
from course_utils.lessons.profiling.checks import LESSON
from course_utils.lessons.profiling.checks.common import (
    found_is,
    lanes_drawn,
    lanes_of,
    no_numbers,
    nothing_found,
    praised,
    races_well,
    right,
    too_few,
    too_slow,
)
from course_utils.lessons.profiling.checks.races import CLOSE, MOST, YOURS, race
from course_utils.words import count, percent, ranks

TARGET = 1.5


def beside_slow_2(function: Callable, seed: int, examples: int, steps: int, rounds: int) -> dict:
    """Both on the same inputs on all ranks, others in every round."""
    import torch

    from course_utils.lessons.profiling.slow.host_waits import slow_2

    def inputs(number: int) -> tuple:
        random = torch.Generator().manual_seed(seed + number)
        x, y = torch.rand(examples, 64, generator=random), torch.randint(10, (examples,), generator=random)
        return x, y, steps

    return race(slow_2, function, inputs, TARGET, rounds=rounds)


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(size: int, examples: int, steps: int, rounds: int = 0) -> Case:
        given = [(int(rng.integers(2**31)), examples, steps, rounds)] * size
        more = {"backend": "gloo", "harness": beside_slow_2, "judge": races_well(TARGET, _lost)}
        return Case(f"{ranks(size)}, {count(steps, 'step')}", given, **more)

    yield case(min(2, available), 40, 5)
    yield case(min(3, available), 33, 4)
    yield case(1, 16, 1)
    yield case(2, 64, 16, MOST)


def _lost(outcome: Outcome) -> str:
    lanes = lanes_of(outcome, YOURS, 0)
    waits = len(outcome.results[0]["lanes"][YOURS]["messages"])
    share = percent(lanes.exposed_seconds / lanes.seconds)
    return f"Rank 0 waits {count(waits, 'time')} for the other, {share} of its time"


def _own_numbers(case: Case, outcome: Outcome) -> bool:
    """Every rank has other numbers, and nobody sent any."""
    return outcome.world_size > 1 and not any(result["lanes"][YOURS]["messages"] for result in outcome.results)


def _one_rank_alone(case: Case, outcome: Outcome) -> bool:
    return not right(outcome) and any(same(one["found"], one["wanted"], CLOSE) for one in outcome.results)


def _other_order(case: Case, outcome: Outcome) -> bool:
    return all(same(sorted(one["found"]), sorted(one["wanted"]), CLOSE) for one in outcome.results)


def _taken_late(case: Case, outcome: Outcome) -> bool:
    """One of the three is the same in every step."""
    found = outcome.results[0]["found"]
    return len(found) > 3 and any(len(set(found[which::3])) == 1 for which in range(3))


SPEED_UP_2 = Exercise(
    name="speed_up_2",
    library="course_utils.lessons.profiling.slow.host_waits:speed_up_2",
    begins_with="course_utils.lessons.profiling.slow.host_waits:slow_2",
    lesson=LESSON,
    place=4,
    minutes=5,
    difficulty=1,
    turn="take this line out, and make what is below it faster",
    title="slow program 2",
    cases=_cases,
    needs_torch=True,
    drawing=lanes_drawn("messages"),
    praise=praised(TARGET),
    hints=(
        "Who needs the numbers of the log, and when? Does the next training step?",
        "Keep the three tensors of each step in a list. After the last step: `means = torch.stack(numbers) / "
        "dist.get_world_size()`, one `dist.all_reduce(means)`, and `means.tolist()`.",
    ),
    mistakes=(
        Mistake("What does the function return?", nothing_found),
        Mistake("Is the log a list of plain numbers?", no_numbers),
        Mistake("How many numbers does every step log?", too_few),
        Mistake("Do all ranks hold the log?", _one_rank_alone),
        Mistake("Whose numbers are these: this rank's, or the means of all?", _own_numbers),
        Mistake(
            "Was the sum divided by the number of ranks?",
            found_is(lambda wanted, rank, size: [size * one for one in wanted]),
        ),
        Mistake("How often does a rank wait for the others?", too_slow),
        Mistake("In which order do the numbers of a step stand?", _other_order),
        Mistake("Is this what the tensor held then, or what it holds now?", _taken_late),
        Mistake("Does each rank train as before?", lambda case, outcome: True),
    ),
)
