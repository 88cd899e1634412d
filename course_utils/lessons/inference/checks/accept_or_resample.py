"""The check of `accept_or_resample`: of many drafted tokens, the returned ones have the large model's distribution."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from course_utils.checks.exercise import Case, Exercise, Outcome
from course_utils.checks.finding import Finding, own

DRAWS = 4000
DEVIATIONS = 5.5
"""So many standard deviations may a share be from its probability: chance alone does that once in 26 million times."""
SHARES, ACCEPTED, HONEST, AGAIN = "shares", "accepted", "honest", "again"
"""What is counted: each token's share, the share of accepted ones, whether these are the drafted ones, and whether the
same seed gives the same tokens."""


def many(function: Callable, draft: np.ndarray, target: np.ndarray, seed: int) -> Any:
    """Call the learner's function for many drafted tokens, and then for a few of them again; return what is counted."""

    def returned(number: int) -> tuple[list[int], list[Any]]:
        drafted = np.random.default_rng(seed).choice(len(draft), DRAWS, p=draft)[:number].tolist()
        generator = np.random.default_rng(seed + 1)
        return drafted, [function(token, draft, target, generator) for token in drafted]

    drafted, found = returned(DRAWS)
    if type(found[0]) not in (tuple, list) or len(found[0]) != 2:
        return found[0]
    tokens = [token for token, _ in found]
    if not all(isinstance(token, (int, np.integer)) and 0 <= token < len(draft) for token in tokens):
        return next(
            pair for pair in found if not isinstance(pair[0], (int, np.integer)) or not 0 <= pair[0] < len(draft)
        )
    accepted = [bool(flag) for _, flag in found]
    return {
        SHARES: np.bincount(tokens, minlength=len(draft)) / DRAWS,
        ACCEPTED: float(np.mean(accepted)),
        HONEST: all(token == guess for token, guess, kept in zip(tokens, drafted, accepted, strict=True) if kept),
        AGAIN: [token for token, _ in returned(200)[1]] == tokens[:200],
    }


def is_off(share: float, probability: float) -> bool:
    """Whether a share of all draws is further from its probability than chance explains."""
    return abs(share - probability) > DEVIATIONS * math.sqrt(probability * (1 - probability) / DRAWS) + 1e-9


def _wrong(outcome: Outcome) -> Finding | None:
    draft, target, _ = outcome.case.arguments[0]
    found = outcome.results[0]
    if not found[HONEST]:
        return own("not-the-drafted", "{who} returned True with a token that is not the drafted one")
    for token, (share, wanted) in enumerate(zip(found[SHARES], target, strict=True)):
        if is_off(share, wanted):
            words = "{who} returned token {token} in {got:.1%} of {draws:,} calls, and its probability in `target` is "
            values = {"token": token, "draws": DRAWS, "got": float(share), "expected": float(wanted)}
            return own("share", words + "{expected:.1%}", **values)
    wanted = float(np.minimum(draft, target).sum())
    if is_off(found[ACCEPTED], wanted):
        words = (
            "the tokens are right, but {who} accepted {got:.1%} of the drafted ones, and {expected:.1%} are possible"
        )
        return own("accepted", words, got=found[ACCEPTED], expected=wanted)
    if not found[AGAIN]:
        return own("not-repeatable", "the shares are right, but a generator of the same seed gave different tokens")
    return None


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(about: str, draft: Sequence[float], target: Sequence[float], key: str = "") -> Case:
        q, p = (np.array(shares, float) / np.sum(shares) for shares in (draft, target))
        expected = {SHARES: ..., ACCEPTED: ..., HONEST: ..., AGAIN: ...}
        given = (q, p, int(rng.integers(2**31)))
        more = {"with_comm": False, "harness": many, "key": key, "judge": _wrong}
        return Case(about, [given], [expected], **more)

    yield case("two tokens", [0.8, 0.2], [0.6, 0.4])
    yield case("two equal distributions", [0.3, 0.7], [0.3, 0.7], "equal")
    yield case("three tokens", [0.5, 0.3, 0.2], [0.2, 0.5, 0.3])
    yield case("a token that the target never takes", [0.5, 0.5, 0.0], [0.9, 0.0, 0.1], "never")
    yield case("a token that the draft never proposes", [0.4, 0.6, 0.0], [0.2, 0.3, 0.5], "unproposed")
    yield case("nothing in common", [1.0, 0.0, 0.0], [0.0, 0.25, 0.75], "disjoint")
    yield case("a draft that is sure", [0.0, 1.0, 0.0, 0.0], [0.3, 0.5, 0.1, 0.1])
    yield case("a target that is sure", [0.25, 0.25, 0.25, 0.25], [0.0, 0.0, 1.0, 0.0], "sure")
    yield case("five tokens", rng.dirichlet(np.ones(5)), rng.dirichlet(np.ones(5)))
    yield case("eight tokens", rng.dirichlet(np.ones(8)), rng.dirichlet(np.full(8, 0.5)))


def _praise(outcome: Outcome) -> str:
    accepted = outcome.results[0][ACCEPTED]
    return (
        f"{DRAWS:,} drafted tokens became the large model's distribution in each case, and in the last one "
        f"{accepted:.0%} of them were accepted, as many as possible"
    )


EXERCISE = Exercise(
    library="speculation",
    number=4,
    minutes=15,
    difficulty=2,
    turn="accept with which probability, and what if not?",
    title="accept a guess, or replace it",
    cases=_cases,
    hints=(
        "How often should the large model's text contain this token, and how often does the draft propose it? What "
        "is still missing from the text if you accept at most that many?",
        "If `generator.random() < target[drafted] / draft[drafted]`, return the drafted token and True. Otherwise draw "
        "a token with the probabilities `np.maximum(target - draft, 0)`, divided by their sum. Return it and False.",
    ),
    praise=_praise,
)
