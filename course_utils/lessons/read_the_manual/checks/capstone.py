"""The check of `capstone`: trained on four ranks, and judged by counters and by images that no rank has seen."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from course_utils.checks.exercise import Case, Exercise, Outcome, Recogniser
from course_utils.checks.finding import Finding, Kind
from course_utils.checks.symptoms import raised
from course_utils.lessons.read_the_manual.capstone import faults
from course_utils.lessons.read_the_manual.capstone.kept_results import keep
from course_utils.lessons.read_the_manual.capstone.on_ranks import trained
from course_utils.lessons.read_the_manual.capstone.past_the_links import NoSocketToOthers
from course_utils.lessons.read_the_manual.capstone.result import ACCURACY, BYTES, COUNTED, PASSES, result_of, used
from course_utils.lessons.read_the_manual.capstone.task import BUDGET, LINKS, deal
from course_utils.progress_bar import in_notebook
from course_utils.words import capital

if TYPE_CHECKING:
    from course_utils.lessons.read_the_manual.capstone.result import CapstoneResult


def measured(function: Callable, *given: Any) -> dict[str, Any]:
    """Run on each rank: train and measure; only there is torch imported."""
    return trained(function, *given)


class Judge:
    """Weighs what the ranks returned. The held-out images stay here, in the notebook's process.

    Attributes:
        result: what the last training run reached and used; None if its weights could not be judged.
    """

    def __init__(self, held_out: tuple[np.ndarray, np.ndarray]) -> None:
        self._held_out = held_out
        self.result: CapstoneResult | None = None

    def __call__(self, outcome: Outcome) -> Finding | None:
        self.result = None
        for reason in (faults.past_the_links, faults.unfit, faults.too_little):
            if found := reason(outcome.results):
                return found
        self.result = result_of(outcome.results, self._held_out)
        if in_notebook():
            keep(self.result)
        missed = faults.missed(self.result)
        if missed is None or self.result.nearly or ACCURACY not in self.result.misses():
            return missed
        part = faults.wrong_part(outcome.results, self._held_out)
        words, measured = f"{missed.words}. {capital(part.words)}", {**missed.measured, **part.measured}
        return replace(part, words=words, measured=measured)


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


def _wasteful(case: Case, outcome: Outcome) -> bool:
    return outcome.finding.kind == Kind.NOT_FINISHED or _missed(PASSES)(case, outcome)


def _start_costs(case: Case, outcome: Outcome) -> bool:
    """Too many bytes are sent, and without those that were written before the first image there would be enough."""
    sent = max(result["sent"] - result["start"] for result in outcome.results)
    return _missed(BYTES)(case, outcome) and sent <= BUDGET.bytes


def _began_apart(case: Case, outcome: Outcome) -> bool:
    return _missed(ACCURACY)(case, outcome) and faults.began_apart(outcome.results)


def _past_the_links(case: Case, outcome: Outcome) -> bool:
    return outcome.finding.name == faults.PAST or raised(outcome, NoSocketToOthers.__name__)


EXERCISE = Exercise(
    library="capstone.averaged_weights",
    number=2,
    minutes=60,
    difficulty=3,
    turn="train on all nodes, send little, and return the same model everywhere",
    title="VGG-11 on four slow links, within budgets",
    cases=_cases,
    needs_torch=True,
    budgets=True,
    drawing=_drawing,
    hints=(
        "One copy of the weights takes 584 KB. A broadcast sends two copies out of rank 0, and an all-reduce among "
        "four nodes sends one and a half copies out of each. How many of these does the budget allow? How can all "
        "ranks start from the same weights if none of them sends any? Which lessons showed how to send less often, "
        "and which how to send fewer bytes each time?",
        "At the start, call `torch.manual_seed(0)` and `layer.reset_parameters()` on every rank, and then set a "
        "different seed on each rank for its batches. After that, use local SGD (lesson 8): three epochs in "
        "batches of 16 with a learning rate of 0.05, and three more with 0.01. After each three epochs, average "
        "all parameters as one vector, `nn.utils.parameters_to_vector(…)`, in `.half()`, with one "
        "`dist.all_reduce`. You can also use lesson 7: in each step, take all gradients as one vector, let "
        "`top_k_with_error_feedback` choose 0.2% of it, and exchange indices and values with `dist.all_gather`. At "
        "the end, make one pass over the images without a step, and average the running means.",
    ),
    symptoms={
        "too many bytes are sent": _missed(BYTES),
        "there are too many image passes": _wasteful,
        "it is not accurate and the ranks began with different weights": _began_apart,
        "most bytes are sent before the first image": _start_costs,
        "something goes past the links": _past_the_links,
    },
    praise=_praise,
    limit=240.0,
    search_runs=0,
    link=LINKS,
)
