"""The check of `speed_up_4`: the same losses on all ranks, every letter computed once, and nobody who waits long."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from course_utils import draw
from course_utils.checks.exercise import Case, Outcome
from course_utils.checks.finding import Finding, own
from course_utils.checks.symptoms import same
from course_utils.lessons.profiling.checks.common import (
    RIGHT,
    SYMPTOMS,
    WHOLE,
    compared,
    factor_alone,
    factor_text,
    races_well,
    slow_program,
    work_missing,
)
from course_utils.lessons.profiling.checks.races import CLOSE, MOST, SLOW, YOURS, meeting, race
from course_utils.lessons.profiling.slow import TARGETS
from course_utils.words import count, percent, ranks

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from torch import Tensor

TARGET = TARGETS[4]
QUICK = 1e-7
"""Seconds for a letter where no time counts."""


def beside_slow_4(function: Callable, seed: int, texts: int, rounds: int) -> dict:
    """Both on the same texts on all ranks, others in every round."""
    from course_utils.lessons.profiling.slow import unbalanced

    usual = unbalanced.SECONDS_PER_LETTER

    def inputs(number: int) -> tuple:
        unbalanced.SECONDS_PER_LETTER = usual if number else QUICK
        return (drawn_texts(texts, unbalanced.BATCH, seed + number),)

    try:
        return race(unbalanced.slow_4, function, inputs, TARGET, rounds=rounds, meet=meeting())
    finally:
        unbalanced.SECONDS_PER_LETTER = usual


def drawn_texts(number: int, batch: int, seed: int) -> "list[Tensor]":
    """Texts of very different lengths, in every batch from short to long; no two draws are alike."""
    import torch

    random = torch.Generator().manual_seed(seed)
    found: list[Tensor] = []
    while len(found) < number:
        size = min(batch, number - len(found))
        lengths = torch.logspace(0.5, 3, batch)[-size:] * (0.8 + 0.2 * torch.rand(size, generator=random))
        found += [torch.randint(64, (n,), generator=random) for n in sorted(lengths.int().tolist())]
    return found


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(size: int, texts: int, rounds: int = 0) -> Case:
        given = [(int(rng.integers(2**31)), texts, rounds)] * size
        more = {"backend": "gloo", "harness": beside_slow_4, "judge": races_well(TARGET, _lost, _not_once, _counted)}
        return Case(f"{ranks(size)}, {count(texts, 'text')}", given, **more)

    yield case(min(2, available), 32)
    yield case(min(3, available), 37)
    yield case(available, 17)
    yield case(1, 3)
    yield case(max(2, available), 32, MOST)


def _computed(outcome: Outcome) -> float:
    return work_missing(outcome, lambda seen: seen["asked"])


def _not_once(outcome: Outcome) -> Finding | None:
    if not _letters_missing(outcome.case, outcome):
        others = {name for result in outcome.results for name in result["lanes"][YOURS]["called"]} - {"all_reduce"}
        words = f"{RIGHT} your function calls {{got}}, and only the sums need messages"
        return own("other-messages", words, got=min(others)) if others else None
    words = f"{RIGHT} the ranks together computed {{share:.2f}} times as many letters as in slow_4"
    return own("letters-not-once", words, share=_computed(outcome))


def _counted(outcome: Outcome) -> float:
    return factor_alone(outcome, _alone)


def _alone(outcome: Outcome, name: str) -> float:
    """The seconds for the letters, if in every all-reduce all wait for the rank that has the most."""
    lanes = [result["lanes"][name] for result in outcome.results]
    if len({len(seen["before"]) for seen in lanes}) > 1:
        return 0.0  # the ranks made different calls
    between = [np.diff([0.0, *seen["before"], seen["asked"]]) for seen in lanes]
    return float(np.max(between, axis=0).sum())


def _shares(outcome: Outcome, name: str) -> list[float]:
    """Which share of all letters each rank has computed."""
    asked = [result["lanes"][name]["asked"] for result in outcome.results]
    return [letters / sum(asked) for letters in asked]


def _lost(outcome: Outcome) -> str:
    shares = _shares(outcome, YOURS)
    most = max(range(len(shares)), key=shares.__getitem__)
    return f"Rank {most} computes {percent(shares[most])} of all letters, more than any other rank"


def _letters_missing(case: Case, outcome: Outcome) -> bool:
    return abs(_computed(outcome) - 1) > WHOLE


def _unlike(case: Case, outcome: Outcome) -> bool:
    first, *others = (result["found"] for result in outcome.results)
    return any(not same(numbers, list(first), CLOSE) for numbers in others)


def _too_large(case: Case, outcome: Outcome) -> bool:
    return all(result["found"][0] > result["wanted"][0] * (1 + CLOSE) for result in outcome.results)


def _drawing(outcome: Outcome) -> "Figure | None":
    """How long each rank computed and waited, in both programs."""
    if compared(outcome) is None:
        return None
    bars = {}
    for name in (SLOW, YOURS):
        for rank, result in enumerate(outcome.results):
            seen = result["lanes"][name]
            computing = sum(end - begin for begin, end in seen["computing"])
            rest = seen["end"] - seen["begin"] - computing
            bars[f"{name}, rank {rank}"] = {"computing": computing, "wait": max(0.0, rest)}
    return draw.stacked_bars(bars, factor_text(outcome))


EXERCISE = slow_program(
    4,
    "unbalanced",
    minutes=10,
    difficulty=2,
    cases=_cases,
    drawing=_drawing,
    hints=(
        "Which rank do the others wait for in every step? What would have to be equal on all ranks, so that they all "
        "finish at about the same time?",
        "On every rank, begin each batch with an empty list for each rank. Go through `sorted(batch, key=len, "
        "reverse=True)` and append each text to the list that has the fewest letters so far. All ranks get the same "
        "lists in this way, and each computes its own.",
    ),
    symptoms={
        **SYMPTOMS,
        "letters are left out, or computed twice": _letters_missing,
        "the ranks hold different losses": _unlike,
        "the first loss is too large on all ranks": _too_large,
    },
)
