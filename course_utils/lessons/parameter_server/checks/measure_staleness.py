"""The check of `measure_staleness`: logs of servers whose workers wait, take turns, hurry, or fall behind."""

from collections.abc import Callable, Iterator

import numpy as np

from course_utils.checks.exercise import Case, Exercise, Mistake, Outcome
from course_utils.checks.recognisers import Recogniser, nothing_returned, raised, same
from course_utils.lessons.parameter_server.checks import LESSON

Log = list[tuple[str, int]]
FETCH, PUSH = "fetch", "push"


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(label: str, log: Log) -> Case:
        kept = [{0: list(log)}]
        return Case(label, [(log,)], [staleness_of(log)], kept, with_comm=False)

    yield case("two workers", [(FETCH, 1), (FETCH, 2), (PUSH, 2), (FETCH, 2), (PUSH, 2), (PUSH, 1)])
    yield case("a single worker", [(what, 1) for _ in range(4) for what in (FETCH, PUSH)])
    turns = [(what, worker) for _ in range(3) for worker in (1, 2, 3) for what in (FETCH, PUSH)]
    yield case("three workers that take turns", turns)
    yield case("three workers of equal speed, nobody waits", at_speeds([1.0, 1.01, 1.02], 12))
    yield case("a straggler, rank 3", at_speeds([1.0, 1.03, 4.5], 12))
    yield case("two pushes for one fetch", [(FETCH, 1), (FETCH, 2), (PUSH, 1), (PUSH, 1), (PUSH, 2), (PUSH, 2)])
    yield case("a worker that fetches twice", [(FETCH, 2), (FETCH, 1), (PUSH, 1), (FETCH, 2), (PUSH, 2), (FETCH, 1)])
    yield case("nothing has happened", [])
    workers = [int(worker) for worker in rng.choice(np.arange(1, 90), 5, replace=False)]
    yield case("five workers of any number, any order", at_random(rng, workers, 300))


def at_speeds(seconds: list[float], pushes: int) -> Log:
    """The log of an asynchronous server whose worker k takes `seconds[k - 1]` for a gradient, and fetches at once."""
    log = [(FETCH, worker) for worker in range(1, len(seconds) + 1)]
    arrives = list(seconds)
    for _ in range(pushes):
        first = int(np.argmin(arrives))
        log += [(PUSH, first + 1), (FETCH, first + 1)]
        arrives[first] += seconds[first]
    return log


def at_random(rng: np.random.Generator, workers: list[int], entries: int) -> Log:
    """A log in which each worker fetches before it pushes, and otherwise anything happens."""
    log = [(FETCH, worker) for worker in workers]
    for _ in range(entries):
        log.append((str(rng.choice([FETCH, PUSH])), int(rng.choice(workers))))
    return log


def staleness_of(log: Log, since: str = FETCH, counted: Callable[[str, int, int], bool] | None = None) -> list[int]:
    """What must come out; or, for mistakes, the number of other entries since another event.

    Args:
        since: the kind of the worker's own last entry from which is counted.
        counted: (what, worker, the worker that pushes) → whether an entry in between counts; None: every push does.
    """
    counted = counted or (lambda what, worker, own: what == PUSH)
    found = []
    for place, (what, own) in enumerate(log):
        if what == PUSH:
            befores = [at for at in range(place) if log[at] == (since, own)]
            between = log[befores[-1] + 1 if befores else 0 : place]
            found.append(sum(counted(kind, worker, own) for kind, worker in between))
    return found


def _gives(wrong: Callable[[Log], object]) -> Recogniser:
    """A recogniser of what a wrong way of counting returns for this log."""

    def recognises(case: Case, outcome: Outcome) -> bool:
        return same(outcome.results[0], wrong(case.arguments[0][0]))

    return recognises


def _off_by_one(log: Log) -> list[int]:
    return [number + 1 for number in staleness_of(log)]


def _first_fetch(log: Log) -> list[int]:
    firsts = {worker: log.index((FETCH, worker)) for what, worker in log if what == FETCH}
    pushes = [place for place, (what, _) in enumerate(log) if what == PUSH]
    return [sum(firsts[log[place][1]] < other < place for other in pushes) for place in pushes]


def _anybody_s_fetch(log: Log) -> list[int]:
    """Counted from the last fetch, whoever it was that fetched."""
    return staleness_of([(what, 0) for what, _ in log])


def _an_entry_too_many(case: Case, outcome: Outcome) -> bool:
    return type(outcome.results[0]) is list and len(outcome.results[0]) == len(case.arguments[0][0])


def _no_list(case: Case, outcome: Outcome) -> bool:
    returned = outcome.attempt.replies[0].kind == "returned"
    return returned and type(outcome.results[0]) not in (list, tuple)


def _log_changed(case: Case, outcome: Outcome) -> bool:
    return not same(outcome.arguments[0][0], case.arguments[0][0])


def _pushes_again(case: Case, outcome: Outcome) -> bool:
    return "two pushes" in case.label or raised(outcome, "KeyError")


MEASURE_STALENESS = Exercise(
    name="measure_staleness",
    library="course_utils.lessons.parameter_server.server:measure_staleness",
    lesson=LESSON,
    place=2,
    minutes=10,
    difficulty=2,
    turn="count the updates, and remember the count at every fetch",
    title="how old is a gradient when it is used?",
    cases=_cases,
    picture=False,
    hints=(
        "Give the weights a version: 0 at first, one more after each update. Which version had the worker's weights, "
        "and which has the server now, just before it uses the gradient?",
        "Walk once through the log with a number `version` and a dict `fetched`. At a fetch: `fetched[worker] = "
        "version`. At a push: append `version - fetched[worker]`, then `version += 1`.",
    ),
    mistakes=(
        Mistake("Does whoever wrote the log still have it after you have read it?", _log_changed),
        Mistake("Do you return the list?", nothing_returned),
        Mistake("Do you return a list with one number for each push?", _no_list),
        Mistake("Which entries of the log are updates?", _an_entry_too_many),
        Mistake("Does a fetch change the weights?", _gives(lambda log: staleness_of(log, counted=lambda *entry: True))),
        Mistake("Is the update itself among those that lie before it?", _gives(_off_by_one)),
        Mistake("Which of its fetches gave the worker these weights?", _gives(_first_fetch)),
        Mistake(
            "Does an update of the same worker change the weights, too?",
            _gives(lambda log: staleness_of(log, counted=lambda what, worker, own: what == PUSH and worker != own)),
        ),
        Mistake("Has a worker that pushes again fetched again?", _pushes_again),
        Mistake("Does a fetch of one worker make the gradients of all others fresh?", _gives(_anybody_s_fetch)),
        Mistake(
            "Is the staleness counted from the last fetch, or from the last push?",
            _gives(lambda log: staleness_of(log, PUSH)),
        ),
        Mistake(
            "Whose updates make a gradient old: only those of its own worker?",
            _gives(lambda log: staleness_of(log, counted=lambda what, worker, own: what == PUSH and worker == own)),
        ),
    ),
    praise=lambda outcome: (
        "0 for a worker alone and for workers that take turns; W − 1 for W workers of equal speed; more for a straggler"
    ),
)
