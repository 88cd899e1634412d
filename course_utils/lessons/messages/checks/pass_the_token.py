"""The check of `pass_the_token`: running sums by the formula, P messages of one number each, and no collective."""

from collections.abc import Iterator

import numpy as np

from course_utils.checks.cases import fewer
from course_utils.checks.exercise import Case, Cost, Exercise, Outcome
from course_utils.checks.finding import Finding, own
from course_utils.lessons.messages.checks.common import LEAST, called_again, turned_round
from course_utils.words import count, ranks


def _cases(rng: np.random.Generator, world_size: int) -> Iterator[Case]:
    world_size = max(world_size, LEAST)
    whole = [int(number) for number in rng.choice(np.arange(1, 1000), world_size, replace=False)]
    yield _case(ranks(world_size), whole)
    pairs = [float(sign * number) for number in rng.integers(1, 1000, world_size // 2) for sign in (1, -1)]
    for numbers in pairs[:2], pairs:
        zeros = [0.0] * (world_size - len(numbers))
        yield _case(f"{ranks(world_size)}, numbers that add up to 0", numbers + zeros, "zero-sum")
    again = _case(ranks(world_size), [float(number) for number in rng.permutation(whole)])
    yield called_again(again, [turned_round(token) for token in again.expected])
    for size in [*fewer(world_size), world_size]:
        label, key = ("1 rank, alone", "alone") if size == 1 else (f"{ranks(size)}, numbers with many digits", "")
        yield _case(label, [float(number) for number in 100 * rng.standard_normal(size)], key)


def _case(label: str, numbers: list, key: str = "") -> Case:
    size = len(numbers)
    before = [float(sum(numbers[:rank])) for rank in range(size)]
    sent = size if size > 1 else 0
    cost = Cost(rounds=sent, messages=sent, collectives=0)
    given = [(number,) for number in numbers]
    return Case(label, given, [float(sum(numbers)), *before[1:]], cost=cost, judge=_one_number, key=key)


def _one_number(outcome: Outcome) -> Finding | None:
    """What is wrong where every rank's message is longer than the one before."""
    sent = [event.bytes for reply in outcome.attempt.replies for event in reply.events if event.kind == "send"]
    if len(sent) > 2 and all(size > previous for previous, size in zip(sent, sent[1:])):
        words = "the sums are right, but the token grew from {first} bytes to {last}"
        return own("growing-token", words, first=sent[0], last=sent[-1])
    return None


def _nearly_right(case: Case, outcome: Outcome) -> bool:
    """Whether the sums are wrong, but by no more than one for each rank: digits behind the point were lost."""
    errors = [abs(got - right) for got, right in zip(outcome.results, case.expected, strict=True)]
    return 0 < max(errors) < outcome.world_size


EXERCISE = Exercise(
    library="point_to_point",
    number=1,
    minutes=10,
    difficulty=1,
    turn="rank 0 sends first, and the others wait for the token",
    title="a running sum that travels once around all ranks",
    cases=_cases,
    hints=(
        "Rank 0 has the token at first, and the others have to wait for it. Which rank sends before it receives?",
        "Let right = (rank + 1) % size and left = (rank − 1) % size. Rank 0 calls `comm.send(number, dest=right)` and "
        "then returns what `comm.recv(source=left)` gives. Every other rank receives the token from the left, sends "
        "token + number to the right, and returns the token. A single rank returns its number.",
    ),
    symptoms={"the numbers are nearly right": _nearly_right},
    praise=lambda outcome: (
        f"the token was back after {count(outcome.run.messages, 'message')}, and every rank returned its sum"
    ),
)
