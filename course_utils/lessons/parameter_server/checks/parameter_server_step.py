"""The check of `parameter_server_step`: the step against the workers' mean, for one message each to and from rank 0."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from course_utils.checks.cases import fewer
from course_utils.checks.exercise import Case, Cost, Exercise, Mistake, Outcome
from course_utils.checks.recognisers import Recogniser, arguments_are, hangs, raised, same, uses_collectives
from course_utils.lessons.parameter_server.checks import LESSON
from course_utils.lessons.parameter_server.checks.common import HEADERS, LEAST, changed, right, several_returned
from course_utils.words import count, ranks

Vectors = Sequence[np.ndarray]


def _cases(rng: np.random.Generator, world_size: int) -> Iterator[Case]:
    world_size = max(world_size, LEAST)

    def case(size: int, length: int, dtype: str = "float64") -> Case:
        rate = float(rng.choice([0.25, 0.5, 0.75]))
        weights = rng.integers(-40, 40, length).astype(dtype)
        own = [weights - 7 * rank for rank in range(size)]  # those of the workers are out of date
        gradients = [_of_one_worker(rng, length, size, rank).astype(dtype) for rank in range(size)]
        new = weights - (rate * np.mean(gradients[1:], axis=0) if size > 1 else 0)
        label = f"{ranks(size)}, {count(length, f'{dtype} number')}, rate {rate}"
        arguments = [(mine.astype(dtype), gradient, rate) for mine, gradient in zip(own, gradients, strict=True)]
        kept = [{0: new.astype(dtype), 1: gradient.copy()} for gradient in gradients]
        cost = Cost(messages=2 * (size - 1), collectives=0)
        return Case(label, arguments, expected_arguments=kept, cost=cost, judge=_once_each_way)

    yield case(world_size, 6)
    yield case(world_size, int(rng.integers(20, 200)))
    yield case(world_size, 501, "float32")
    for size in fewer(world_size):
        yield case(size, int(rng.integers(2, 100)), str(rng.choice(["float32", "float64"])))
    for length in (1, 0):
        yield case(world_size, length)
    yield case(world_size, 100_003, "float32")


def _of_one_worker(rng: np.random.Generator, length: int, size: int, rank: int) -> np.ndarray:
    """Whole numbers whose mean over the workers is one too; the server's own would be seen in any mean."""
    return rng.integers(1, 20, length) * max(1, size - 1) * (rank + 1) + (999 if rank == 0 else 0)


def _once_each_way(outcome: Outcome) -> str | None:
    """What no result shows: vectors sent more often than needed, and sends that were never waited for."""
    size = outcome.case.arguments[0][0].nbytes
    for rank, sent in enumerate(outcome.run.bytes_per_rank):
        needed = size * (outcome.world_size - 1 if rank == 0 else 1)
        if sent > needed + outcome.world_size * HEADERS:
            return f"the weights are right, but rank {rank} sent {sent:,} bytes; {needed:,} are enough"
        if not outcome.attempt.replies[rank].clean:
            return f"the weights are right, but rank {rank} never waited for one of its messages"
    return None


def _steps(formula: Callable[[np.ndarray, Vectors, float], np.ndarray]) -> Recogniser:
    """A recogniser of server weights that come from another formula of (weights, gradients of all ranks, rate)."""

    def recognises(case: Case, outcome: Outcome) -> bool:
        weights, _, rate = case.arguments[0]
        gradients = [gradient.astype("float64") for _, gradient, _ in case.arguments]
        wrong = formula(weights.astype("float64"), gradients, rate).astype(weights.dtype)
        return several_returned(outcome) and same(outcome.arguments[0][0], wrong, 1e-4)

    return recognises


def _alone(case: Case, outcome: Outcome) -> bool:
    return outcome.world_size == 1


def _silent(case: Case, outcome: Outcome) -> bool:
    return several_returned(outcome) and outcome.run.messages == 0 and outcome.run.collectives == 0


def _open_requests(case: Case, outcome: Outcome) -> bool:
    return right(case, outcome) and not all(reply.clean for reply in outcome.attempt.replies)


def _no_room(case: Case, outcome: Outcome) -> bool:
    """Whether the numbers of one side do not fit the place on the other."""
    words = ("room for", "bytes", "truncat", "not contiguous", "cannot cast", "casting")
    return any(raised(outcome, word) for word in words)


def _dear(case: Case, outcome: Outcome) -> bool:
    return right(case, outcome) and ("bytes" in outcome.wrong or outcome.run.messages > case.cost.messages)


def _server_kept(case: Case, outcome: Outcome) -> bool:
    return several_returned(outcome) and same(outcome.arguments[0][0], case.arguments[0][0])


def _workers_are(formula: Callable[[Case, int], np.ndarray]) -> Recogniser:
    """A recogniser of a server that is right and workers that hold something else: a formula of (case, rank)."""

    def recognises(case: Case, outcome: Outcome) -> bool:
        server = case.expected_arguments[0][0]
        wanted = [server, *(formula(case, rank) for rank in range(1, outcome.world_size))]
        return several_returned(outcome) and arguments_are(outcome, 0, wanted)

    return recognises


def _own_step(case: Case, rank: int) -> np.ndarray:
    """What a worker holds that gets the mean and takes the step by itself."""
    moved = case.expected_arguments[0][0] - case.arguments[0][0]
    return case.arguments[rank][0] + moved


def _unequal(case: Case, outcome: Outcome) -> bool:
    workers = [arguments[0] for arguments in outcome.arguments[1:]]
    return several_returned(outcome) and not all(same(one, workers[0]) for one in workers)


PARAMETER_SERVER_STEP = Exercise(
    name="parameter_server_step",
    library="course_utils.lessons.parameter_server.server:parameter_server_step",
    lesson=LESSON,
    place=1,
    minutes=15,
    difficulty=2,
    turn="gradients to the server, one step there, its weights back",
    title="one step of a server and its workers",
    cases=_cases,
    hints=(
        "Server and workers do different things: what does a worker send, and what does it then wait for? What must "
        "the server have before it may answer the first worker?",
        "Worker: `comm.Send(gradient, dest=SERVER)`, then `comm.Recv(parameters, source=SERVER)`. Server: a `Recv` "
        "from each of the ranks 1 … P − 1 into an array of its own, each added to a total; where there are workers, "
        "`parameters -= rate * total / (comm.size - 1)`; then a `Send` of the weights to each.",
    ),
    mistakes=(
        Mistake("Can you do it with messages from one rank to another alone?", uses_collectives),
        Mistake("What does a server do that has no workers?", _alone),
        Mistake("How does the server learn of the workers' gradients?", _silent),
        Mistake("Have the numbers that arrive the dtype of the place that waits for them?", _no_room),
        Mistake("Who waits for whom, and does that message ever come?", hangs),
        Mistake("When is a message of Isend finished?", _open_requests),
        Mistake("Does every vector travel only once?", _dear),
        Mistake("Whose numbers did you change on the way?", changed(1)),
        Mistake("Do the weights change in the array that you were given?", _server_kept),
        Mistake(
            "Did what the server sent arrive in the array that you were given?",
            _workers_are(lambda c, r: c.arguments[r][0]),
        ),
        Mistake(
            "Which weights go back, those before the step or those after it?",
            _workers_are(lambda c, r: c.arguments[0][0]),
        ),
        Mistake("Does a worker get the server's weights, or change its own?", _workers_are(_own_step)),
        Mistake("May the server answer a worker before all gradients have come?", _unequal),
        Mistake(
            "The sum of the gradients, or their mean?", _steps(lambda w, g, rate: w - rate * np.sum(g[1:], axis=0))
        ),
        Mistake(
            "How many gradients is the sum divided by?",
            _steps(lambda w, g, rate: w - rate * np.sum(g[1:], axis=0) / len(g)),
        ),
        Mistake("Has the server a gradient of its own?", _steps(lambda w, g, rate: w - rate * np.mean(g, axis=0))),
        Mistake(
            "Has the server a gradient of its own?",
            _steps(lambda w, g, rate: w - rate * np.sum(g, axis=0) / (len(g) - 1)),
        ),
        Mistake("Does every worker's gradient count?", _steps(lambda w, g, rate: w - rate * g[-1])),
        Mistake("Does every worker's gradient count?", _steps(lambda w, g, rate: w - rate * g[-1] / (len(g) - 1))),
        Mistake("Uphill or downhill?", _steps(lambda w, g, rate: w + rate * np.mean(g[1:], axis=0))),
    ),
    praise=lambda outcome: (
        f"{ranks(outcome.world_size)} hold the new weights after {count(outcome.run.messages, 'message')}; "
        f"the server sent {outcome.run.bytes_per_rank[0]:,} bytes and received as many, a worker "
        f"{outcome.run.bytes_per_rank[-1]:,}"
    ),
)
