"""The check of `pass_the_token`: running sums by the formula, P messages, and no collective."""

from collections.abc import Callable, Iterator

import numpy as np

from course_utils.checks.cases import fewer
from course_utils.checks.exercise import Case, Cost, Exercise, Mistake, Outcome
from course_utils.checks.recognisers import hangs, nothing_returned, raised, results_are, uses_collectives, waits_in
from course_utils.lessons.messages.checks import LESSON
from course_utils.lessons.messages.checks.common import LEAST
from course_utils.words import count, ranks


def _cases(rng: np.random.Generator, world_size: int) -> Iterator[Case]:
    world_size = max(world_size, LEAST)
    for size in [world_size, *fewer(world_size), world_size]:
        numbers = [int(number) for number in rng.choice(np.arange(1, 1000), size, replace=False)]
        yield _case(ranks(size), numbers)
    halves = [float(number) / 2 for number in rng.choice(np.arange(-999, 999, 2), world_size, replace=False)]
    yield _case(f"{ranks(world_size)}, numbers with halves and signs", halves)


def _case(label: str, numbers: list) -> Case:
    size = len(numbers)
    before = [sum(numbers[:rank]) for rank in range(size)]
    sent = size if size > 1 else 0
    cost = Cost(rounds=sent, messages=sent, collectives=0)
    return Case(label, [(number,) for number in numbers], [sum(numbers), *before[1:]], cost=cost)


def _arrives(formula: Callable[[list, int], float]) -> Callable[[Case, Outcome], bool]:
    """A recogniser of results that follow a formula of (all numbers, rank); with two ranks many look alike."""

    def recognises(case: Case, outcome: Outcome) -> bool:
        numbers = [number for (number,) in case.arguments]
        return results_are(outcome, [formula(numbers, rank) for rank in range(len(numbers))])

    return recognises


def _alone(case: Case, outcome: Outcome) -> bool:
    return outcome.world_size == 1


def _not_home(case: Case, outcome: Outcome) -> bool:
    numbers = [number for (number,) in case.arguments]
    return results_are(outcome, [outcome.results[0], *(sum(numbers[:rank]) for rank in range(1, len(numbers)))])


def _all_receive(case: Case, outcome: Outcome) -> bool:
    return (
        hangs(case, outcome)
        and waits_in(outcome, "recv")
        and all(reply.kind == "interrupted" for reply in outcome.attempt.replies)
    )


PASS_THE_TOKEN = Exercise(
    name="pass_the_token",
    library="course_utils.lessons.messages.point_to_point:pass_the_token",
    lesson=LESSON,
    place=1,
    minutes=10,
    difficulty=1,
    turn="rank 0 sends first, the others wait for the token",
    title="a running sum, once round the ring",
    cases=_cases,
    hints=(
        "Rank 0 holds the token at the start; the others have to wait for it. So which rank sends before it receives?",
        "Rank 0: `comm.send(number, dest=right)`, then return what `comm.recv(source=left)` gives. The others: "
        "receive from the left, send token + number to the right, return the token. `right` is (rank + 1) % size.",
    ),
    mistakes=(
        Mistake("Who comes after the last rank?", lambda case, outcome: raised(outcome, "there is no rank")),
        Mistake("Can you do it with send and recv alone?", uses_collectives),
        Mistake("What is there to send when a rank is alone?", _alone),
        Mistake("Who holds the token at the start?", _all_receive),
        Mistake("Who sends the message that is waited for, and to whom?", hangs),
        Mistake("Is there a `return` on every way through the function?", nothing_returned),
        Mistake("Did rank 0 add its number twice?", _arrives(lambda n, rank: sum(n[:rank]) if rank else sum(n) + n[0])),
        Mistake(
            "Did you return the token as it arrived, or after adding your number?",
            _arrives(lambda n, rank: sum(n[: rank + 1]) if rank else sum(n)),
        ),
        Mistake("Is what you pass on the token plus your number?", _arrives(lambda n, rank: n[rank - 1])),
        Mistake("Did every rank add its own number before it passed the token on?", _arrives(lambda n, rank: n[0])),
        Mistake(
            "In which direction does the token travel?",
            _arrives(lambda n, rank: n[0] + sum(n[rank + 1 :]) if rank else sum(n)),
        ),
        Mistake(
            "Does every rank talk to its two neighbours only?",
            lambda case, outcome: outcome.run.messages > outcome.world_size,
        ),
        Mistake("Did the token come back to rank 0?", _not_home),
    ),
    praise=lambda outcome: (
        f"the token came home after {count(outcome.run.messages, 'message')}, and every rank saw its sum"
    ),
)
