"""The check of `capstone`: trained on four ranks, and judged by counters and by images that no rank has seen."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from course_utils.checks.exercise import Case, Exercise, Outcome, Recogniser
from course_utils.checks.panel import in_notebook
from course_utils.lessons.read_the_manual.capstone import result
from course_utils.lessons.read_the_manual.capstone.kept_results import keep
from course_utils.lessons.read_the_manual.capstone.on_ranks import trained
from course_utils.lessons.read_the_manual.capstone.result import COUNTED, used
from course_utils.lessons.read_the_manual.capstone.task import BUDGET, LINKS, NAIVE_STEPS, deal, network

if TYPE_CHECKING:
    from course_utils.lessons.read_the_manual.capstone.result import Result


LONG = 3.5
"""This many times as long as the first weights is too long; the sum of four ranks' is four times."""


def measured(function: Callable, *given: Any) -> dict[str, Any]:
    """What runs on each rank; torch is imported there alone."""
    return trained(function, *given)


class Judge:
    """Weighs what came back. The held-out images stay here, in the notebook's process.

    Attributes:
        result: what the last training reached and used; None where its weights could not be judged.
        weights: rank 0's.
    """

    def __init__(self, held_out: tuple[np.ndarray, np.ndarray]) -> None:
        self._held_out = held_out
        self.result: Result | None = None
        self.weights: dict[str, np.ndarray] = {}

    def accuracy_without_running_means(self) -> float:
        """Of rank 0's weights, where batch norm takes the means of the images themselves."""
        return result.recognised(self.weights, *self._held_out, running_means=False)

    def __call__(self, outcome: Outcome) -> str | None:
        if unfit := result.unfit(outcome.results) or result.not_by_links(outcome.results):
            return unfit
        self.result = result.result_of(outcome.results, self._held_out)
        self.weights = outcome.results[0]["weights"]
        if in_notebook():
            keep(self.result)
        return result.missed(self.result)


def _cases(rng: np.random.Generator, world_size: int) -> Iterator[Case]:
    dealt = deal(rng)
    given = [(int(rng.integers(2**31)), *shard) for shard in dealt.shards]
    yield Case("", given, backend="gloo", harness=measured, judge=Judge(dealt.held_out))


def _drawing(outcome: Outcome) -> Any:
    """Budget against use."""
    from course_utils.lessons.read_the_manual.capstone.pictures import budget_bars

    return budget_bars(outcome.case.judge.result)


def _praise(outcome: Outcome) -> str:
    result = outcome.case.judge.result
    return f"{used(result)}. {COUNTED[result.links]}"


def _missed(name: str) -> Recogniser:
    return lambda case, outcome: case.judge.result is not None and name in case.judge.result.misses()


def _slow(case: Case, outcome: Outcome) -> bool:
    return "not finished" in outcome.wrong or _missed("seconds")(case, outcome)


def _sent_little(case: Case, outcome: Outcome) -> bool:
    """Not accurate, and no rank sent more than a copy of the weights or two."""
    result = case.judge.result
    little = 3 * result.naive_sent / NAIVE_STEPS
    return "accuracy" in result.misses() and max(result.sent) < little


def _means_lag(case: Case, outcome: Outcome) -> bool:
    missed = "accuracy" in case.judge.result.misses()
    return missed and case.judge.accuracy_without_running_means() >= BUDGET.accuracy


def _too_long(case: Case, outcome: Outcome) -> bool:
    """Whether a layer's weights are longer than any training makes them."""
    first = {name: values.numpy() for name, values in network(0).state_dict().items() if name.endswith(".weight")}
    norm, weights = np.linalg.norm, case.judge.weights
    kept = all(norm(weights[name]) < LONG * norm(values) for name, values in first.items())
    return "accuracy" in case.judge.result.misses() and not kept


EXERCISE = Exercise(
    library="capstone.averaged_weights",
    place=2,
    minutes=40,
    difficulty=3,
    turn="train on all nodes, send little, and return the same model everywhere",
    title="VGG-11 on four slow links, within budgets",
    cases=_cases,
    needs_torch=True,
    drawing=_drawing,
    hints=(
        "One gradient has 584 KB, and an all-reduce among four nodes sends one and a half times as much. How many "
        "steps does that leave within the budget of bytes? Which lessons had ways to send more seldom, and which to "
        "send fewer bytes each time?",
        "Lesson 8: `broadcast_parameters(model)`; then, some eight times, go through all images in batches of 16 with "
        "`torch.optim.SGD(model.parameters(), 0.05)` and, at the end of each time, replace every floating-point tensor "
        "of `model.state_dict()` by its mean over the ranks, with `dist.all_reduce`. Lesson 7 instead: "
        '`DistributedDataParallel` with `compress(module, "PowerSGD")`, from '
        "`course_utils.lessons.overlap.compression`, and a learning rate that falls.",
    ),
    symptoms={
        "too many bytes are sent": _missed("bytes"),
        "it takes too many seconds": _slow,
        "it is not accurate": _missed("accuracy"),
        "it is not accurate and little was sent": _sent_little,
        "it is accurate without the running means": _means_lag,
        "weights are many times too long": _too_long,
    },
    praise=_praise,
    limit=90.0,
    link=LINKS,
)
