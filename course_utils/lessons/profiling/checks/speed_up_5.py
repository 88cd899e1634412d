"""The check of `speed_up_5`: the same losses, every gradient over the played link once, and sooner."""

from collections.abc import Callable, Iterator

import numpy as np

from course_utils.checks.exercise import Case, Outcome
from course_utils.checks.finding import Finding, Kind, own
from course_utils.checks.symptoms import same
from course_utils.lessons.profiling import intervals
from course_utils.lessons.profiling.checks.common import (
    RIGHT,
    SYMPTOMS,
    TOO_SLOW,
    WHOLE,
    factor_alone,
    lanes_drawn,
    lanes_of,
    one_step_early,
    races_well,
    slow_program,
    work_missing,
)
from course_utils.lessons.profiling.checks.races import CLOSE, MOST, YOURS, meeting, race
from course_utils.lessons.profiling.slow import TARGETS
from course_utils.words import count, percent, ranks

TARGET = TARGETS[5]
QUICK = 1e-4
"""Seconds for a layer where no time counts."""


def beside_slow_5(function: Callable, seeds: tuple[int, ...], examples: int, steps: int, rounds: int) -> dict:
    """Both on this rank's own inputs, others in every round."""
    import torch
    import torch.distributed as dist

    from course_utils.lessons.profiling.slow import no_overlap

    usual, seed = no_overlap.SECONDS, seeds[dist.get_rank()]

    def inputs(number: int) -> tuple:
        no_overlap.SECONDS = usual if number else QUICK
        random = torch.Generator().manual_seed(seed + number)
        x, y = torch.randn(2, examples, no_overlap.WIDTH, generator=random)
        return x, y, steps

    try:
        return race(no_overlap.slow_5, function, inputs, TARGET, rounds=rounds, meet=meeting())
    finally:
        no_overlap.SECONDS = usual


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(size: int, examples: int, steps: int, rounds: int = 0) -> Case:
        given = [(tuple(int(seed) for seed in rng.integers(2**31, size=size)), examples, steps, rounds)] * size
        more = {
            "backend": "gloo",
            "harness": beside_slow_5,
            "judge": races_well(TARGET, _lost, _past_the_link, _counted),
        }
        return Case(f"{ranks(size)}, {count(steps, 'step')}", given, **more)

    yield case(min(2, available), 4, 3)
    yield case(min(3, available), 2, 2)
    yield case(1, 1, 1)
    yield case(2, 4, 1, MOST)


def _counted(outcome: Outcome) -> float:
    return factor_alone(
        outcome, lambda outcome, name: max(result["lanes"][name]["alone"] for result in outcome.results)
    )


def _on_link(outcome: Outcome) -> float:
    return work_missing(outcome, lambda seen: sum(end - begin for begin, end in seen["link"]))


def _computed(outcome: Outcome) -> float:
    return work_missing(outcome, lambda seen: seen["asked"])


def _past_the_link(outcome: Outcome) -> Finding | None:
    share = _on_link(outcome)
    if abs(share - 1) > WHOLE:
        words = f"{RIGHT} the link was busy {{share:.2f}} times as long as with slow_5, which sends every gradient once"
        return own("less-on-link" if share < 1 else "more-on-link", words, {"share": share})
    for rank, result in enumerate(outcome.results):
        times = result["lanes"][YOURS]["link"]
        if intervals.length(intervals.union(times)) < (1 - WHOLE) * sum(end - begin for begin, end in times):
            words = f"{RIGHT} rank {{rank}} sent several gradients at once, as if it had several links"
            return own("several-links", words, rank=rank)
    if _computed(outcome) < 1 - WHOLE:
        words = f"{RIGHT} the ranks computed {{share:.2f}} times as long as with slow_5"
        return own("less-computed", words, share=_computed(outcome))
    if _not_waited_for(outcome.case, outcome):
        return own("not-waited-for", f"{RIGHT} a rank did not wait for its last gradient on the link")
    return None


def _lost(outcome: Outcome) -> str:
    lanes = lanes_of(outcome, YOURS, 0, "link")
    hidden, waits = percent(lanes.overlap_share), percent(lanes.exposed_seconds / lanes.seconds)
    return f"{hidden} of the link's time is hidden behind computing, and rank 0 waits for {waits} of its own time"


def _not_waited_for(case: Case, outcome: Outcome) -> bool:
    last = [result["lanes"][YOURS] for result in outcome.results]
    return any(max(end for _, end in seen["link"]) > seen["waited"] for seen in last)


def _goes_on_without(case: Case, outcome: Outcome) -> bool:
    """Whether a rank went on without a gradient that it had sent."""
    return outcome.finding.kind == Kind.NEVER_WAITED_FOR or _not_waited_for(case, outcome)


def _less_on_link(case: Case, outcome: Outcome) -> bool:
    return _on_link(outcome) < 1 - WHOLE


def _more_on_link(case: Case, outcome: Outcome) -> bool:
    return _on_link(outcome) > 1 + WHOLE


def _waits_inside(case: Case, outcome: Outcome) -> bool:
    """Too slow, as it computes nothing while messages travel, although the first leaves before all is computed."""
    lanes = lanes_of(outcome, YOURS, 0, "link")
    early = lanes.communication[0][0] < lanes.computing[-1][0]
    return outcome.finding.name == TOO_SLOW and early and lanes.overlap_share < 0.05


def _mean_of_all(case: Case, outcome: Outcome) -> bool:
    """Whether every rank's losses are the means of those that all should hold."""
    means = [
        sum(losses) / len(losses) for losses in zip(*(result["wanted"] for result in outcome.results), strict=True)
    ]
    return all(same(list(result["found"]), means, CLOSE) for result in outcome.results)


EXERCISE = slow_program(
    5,
    "no_overlap",
    minutes=10,
    difficulty=2,
    cases=_cases,
    drawing=lanes_drawn("link"),
    hints=(
        "When is the gradient of the last layer ready, and when does it leave? Which of torch's hooks is called "
        "at that moment?",
        "Before the steps, call `weight.register_post_accumulate_grad_hook(lambda own: "
        "in_flight.append(link.all_reduce(own.grad)))` for every weight, with an empty list `in_flight`. After "
        "`backward()`, wait for everything in the list, empty it, and divide the gradients.",
    ),
    symptoms={
        **SYMPTOMS,
        "less goes over the link": _less_on_link,
        "more goes over the link": _more_on_link,
        "a gradient is not waited for": _goes_on_without,
        "a message waits inside the backward pass": _waits_inside,
        "each loss is that of the next step": one_step_early(),
        "the losses are means of all ranks": _mean_of_all,
    },
)
