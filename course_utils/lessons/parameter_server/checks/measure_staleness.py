"""The check of `measure_staleness`: logs of servers whose workers take turns, run equally fast, or fall behind."""

from collections.abc import Iterator

import numpy as np

from course_utils.checks.cases import AFTER_ANOTHER_CALL, after_another_call
from course_utils.checks.exercise import Case, Exercise

Log = list[tuple[str, int]]
FETCH, PUSH = "fetch", "push"
WHAT = {"f": FETCH, "p": PUSH}
FIRST = "f1 f2 f3 p2 f2 p2 f2 p3 p1 f1 f3 p2 f2 p2 p1"


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(label: str, log: Log, key: str = "") -> Case:
        return Case(label, [(log,)], [staleness_of(log)], with_comm=False, key=key)

    yield case("three workers, the second is quick", [(WHAT[sign], int(worker)) for sign, worker in FIRST.split()])
    yield case("a single worker", [(what, 1) for _ in range(4) for what in (FETCH, PUSH)])
    turns = [(what, worker) for _ in range(3) for worker in (1, 2, 3) for what in (FETCH, PUSH)]
    yield case("three workers that take turns", turns)
    yield case("three workers of equal speed, none waits", at_speeds([1.0, 1.01, 1.02], 12))
    yield case("a straggler, rank 3", at_speeds([1.0, 1.03, 4.5], 12))
    twice = [(FETCH, 1), (FETCH, 2), (PUSH, 1), (PUSH, 1), (PUSH, 2), (PUSH, 2)]
    yield case("two pushes for one fetch", twice, key="two-pushes")
    yield case("a worker that fetches twice", [(FETCH, 2), (FETCH, 1), (PUSH, 1), (FETCH, 2), (PUSH, 2), (FETCH, 1)])
    yield case("only fetches", [(FETCH, 2), (FETCH, 1), (FETCH, 2)])
    yield case("nothing has happened", [], key="empty-log")
    for entries in (8, 15, 300):
        workers = [0, *(int(worker) for worker in rng.choice(np.arange(1, 90), 4, replace=False))]
        yield case("five workers of any number, any order", at_random(rng, workers, entries))
    behind = [(FETCH, 0), *[(FETCH, 1), (PUSH, 1)] * 1200, (PUSH, 0)]
    yield case("worker 0 is 1,200 updates behind", behind, key="far-behind")
    before, log = (at_random(rng, [1, 2, 3], entries) for entries in (20, 12))
    yield after_another_call(case("three workers, after another log", log, key=AFTER_ANOTHER_CALL), [(before,)])


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
    log: Log = []
    for _ in range(entries):
        worker = int(rng.choice(workers))
        what = str(rng.choice([FETCH, PUSH]))
        log.append((what if (FETCH, worker) in log else FETCH, worker))
    return log


def staleness_of(log: Log) -> list[int]:
    """What must come out: the pushes since each push's own last fetch, counted anew every time."""
    found = []
    for position, (what, worker) in enumerate(log):
        if what == PUSH:
            fetched = max(at for at in range(position) if log[at] == (FETCH, worker))
            found.append(sum(kind == PUSH for kind, _ in log[fetched:position]))
    return found


EXERCISE = Exercise(
    library="server",
    number=2,
    minutes=10,
    difficulty=2,
    turn="count the updates, and remember the count at every fetch",
    title="how old is a gradient when it is used?",
    cases=_cases,
    hints=(
        "Give the weights a version number, which starts at 0 and grows by one with each update. Which version did the "
        "worker fetch, and which version does the server have just before it uses the gradient?",
        "Go through the log once, with a number `version` and a dict `fetched`. At a fetch, set `fetched[worker] = "
        "version`. At a push, append `version - fetched[worker]` to the list and then add 1 to `version`.",
    ),
    praise=lambda outcome: (
        "the staleness is 0 for a single worker and for workers that take turns, W − 1 for W workers of equal speed, "
        "and larger for a straggler"
    ),
)
