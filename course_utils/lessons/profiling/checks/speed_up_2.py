"""The check of `speed_up_2`: the same log on all ranks, and less waiting."""

from collections.abc import Callable, Iterator

import numpy as np

from course_utils.checks.exercise import Case, Outcome
from course_utils.checks.finding import Finding, own
from course_utils.checks.symptoms import same
from course_utils.lessons.profiling.checks.common import (
    RIGHT,
    SYMPTOMS,
    lanes_drawn,
    lanes_of,
    races_well,
    right,
    slow_program,
)
from course_utils.lessons.profiling.checks.races import CLOSE, MOST, SLOW, YOURS, meeting, race
from course_utils.lessons.profiling.slow import TARGETS
from course_utils.words import count, percent, ranks

TARGET = TARGETS[2]
HARDLY_EVER = 10
"""So many times fewer collectives than in slow_2 are few enough, whatever the clock says."""


def beside_slow_2(function: Callable, seed: int, examples: int, steps: int, rounds: int) -> dict:
    """Both on the same inputs on all ranks, others in every round."""
    import torch

    from course_utils.lessons.profiling.slow.host_waits import slow_2

    def inputs(number: int) -> tuple:
        random = torch.Generator().manual_seed(seed + number)
        x, y = torch.rand(examples, 64, generator=random), torch.randint(10, (examples,), generator=random)
        return x, y, steps

    return race(slow_2, function, inputs, TARGET, rounds=rounds, meet=meeting())


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(size: int, examples: int, steps: int, rounds: int = 0) -> Case:
        given = [(int(rng.integers(2**31)), examples, steps, rounds)] * size
        more = {
            "backend": "gloo",
            "harness": beside_slow_2,
            "judge": races_well(TARGET, _lost, _wrong_messages, _counted),
        }
        return Case(f"{ranks(size)}, {count(steps, 'step')}", given, **more)

    yield case(min(2, available), 40, 5)
    yield case(min(3, available), 33, 4)
    yield case(1, 16, 1)
    yield case(2, 64, 16, MOST)


def _counted(outcome: Outcome) -> float:
    """`TARGET` for a program that waits for the other ranks hardly ever; 0.0 if the clock has to decide."""
    slow, own = (len(outcome.results[0]["lanes"][name]["messages"]) for name in (SLOW, YOURS))
    return TARGET if 0 < own * HARDLY_EVER <= slow else 0.0


def _lost(outcome: Outcome) -> str:
    lanes = lanes_of(outcome, YOURS, 0)
    waits = len(outcome.results[0]["lanes"][YOURS]["messages"])
    share = percent(lanes.exposed_seconds / lanes.seconds)
    return f"Rank 0 waits for the other rank {count(waits, 'time')}, for {share} of its time"


def _wrong_messages(outcome: Outcome) -> Finding | None:
    """Find a rank without messages, which trained the networks of others, too, or one with messages between steps."""
    for rank, result in enumerate(outcome.results):
        seen = result["lanes"][YOURS]
        if len(outcome.results) > 1 and not seen["called"]:
            return own("no-message", f"{RIGHT} rank {{rank}} neither sent nor received a message", rank=rank)
        if early := sum(start < seen["stepped"] for start, _ in seen["messages"]):
            words = f"{RIGHT} before its last step, rank {{rank}} took part in {{early}}"
            return own("messages-between-steps", words, rank=rank, early=count(early, "collective call"))
    return None


def _on_some_ranks(case: Case, outcome: Outcome) -> bool:
    return not all(map(right, outcome.results)) and any(map(right, outcome.results))


def _one_factor(case: Case, outcome: Outcome) -> bool:
    pairs = [
        pair for result in outcome.results for pair in zip(result["found"], result["wanted"], strict=True) if any(pair)
    ]
    factors = [found / wanted for found, wanted in pairs]
    return max(factors) - min(factors) < CLOSE * max(factors)


def _other_order(case: Case, outcome: Outcome) -> bool:
    return all(same(sorted(result["found"]), sorted(result["wanted"]), CLOSE) for result in outcome.results)


def _one_length(case: Case, outcome: Outcome) -> bool:
    """Whether the gradients of all steps have the same length."""
    lengths = [result["found"][2::3] for result in outcome.results]
    return all(len(own) > 1 and same(own[1:], own[:-1], CLOSE) for own in lengths)


EXERCISE = slow_program(
    2,
    "host_waits",
    minutes=5,
    difficulty=1,
    cases=_cases,
    drawing=lanes_drawn("messages"),
    hints=(
        "When are the numbers of the log needed? Does the next training step use them?",
        "Keep the three tensors of each step in a list `numbers`. After the last step, calculate `means = "
        "torch.stack(numbers) / dist.get_world_size()`, call `dist.all_reduce(means)` once, and return "
        "`means.tolist()`.",
    ),
    symptoms={
        **SYMPTOMS,
        "only some ranks hold the log": _on_some_ranks,
        "all numbers are off by one factor": _one_factor,
        "the right numbers stand in another order": _other_order,
        "all gradients have the same length": _one_length,
    },
)
