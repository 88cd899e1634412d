"""The check of `capstone`: trained on four ranks, and judged by counters and by images that no rank has seen."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from course_utils.checks.exercise import Case, Exercise, Mistake, Outcome
from course_utils.checks.panel import in_notebook
from course_utils.checks.recognisers import Recogniser, hangs, says
from course_utils.lessons.read_the_manual.capstone import result
from course_utils.lessons.read_the_manual.capstone.kept_results import keep
from course_utils.lessons.read_the_manual.capstone.on_ranks import trained
from course_utils.lessons.read_the_manual.capstone.result import COUNTED, used
from course_utils.lessons.read_the_manual.capstone.task import LINKS, NAIVE_STEPS, deal
from course_utils.lessons.read_the_manual.checks import LESSON

if TYPE_CHECKING:
    from course_utils.lessons.read_the_manual.capstone.result import Result


def measured(function: Callable, *given: Any) -> dict[str, Any]:
    """What runs on each rank; torch is imported there alone."""
    return trained(function, *given)


class Judge:
    """Weighs what came back. The held-out images stay here, in the notebook's process.

    Attributes:
        result: what the last training reached and used; None where its weights could not be judged.
    """

    def __init__(self, held_out: tuple[np.ndarray, np.ndarray]) -> None:
        self._held_out = held_out
        self.result: Result | None = None

    def __call__(self, outcome: Outcome) -> str | None:
        if unfit := result.unfit(outcome.results):
            return unfit
        self.result = result.result_of(outcome.results, self._held_out)
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


def _sent_little(case: Case, outcome: Outcome) -> bool:
    """Not accurate, and no rank sent more than a copy of the weights or two."""
    result = case.judge.result
    little = 3 * result.naive_sent / NAIVE_STEPS
    return "accuracy" in result.misses() and max(result.sent) < little


CAPSTONE = Exercise(
    name="capstone",
    library="course_utils.lessons.read_the_manual.capstone.averaged_weights:capstone",
    lesson=LESSON,
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
    mistakes=(
        Mistake("Which part takes the time: computing, or the links?", says("not finished")),
        Mistake("Do all ranks make the same calls?", hangs),
        Mistake("What does the function return, on every rank?", says("expected the trained VGG-11")),
        Mistake("Whose images does it never see, or is another network trained?", says("no image went through")),
        Mistake("After the last step, who makes the weights of all ranks equal?", says("do not agree")),
        Mistake("How often do the nodes talk, and do they say more than they need to?", _missed("bytes")),
        Mistake(
            "Do all ranks begin with the same weights, and are they averaged before they are far apart?", _sent_little
        ),
        Mistake("Which part takes the time: computing, or the links?", _missed("seconds")),
        Mistake("Are there enough steps, and is the learning rate right at the end?", _missed("accuracy")),
    ),
    praise=_praise,
    limit=90.0,
    link=LINKS,
)
