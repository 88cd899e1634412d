"""The check of `parameter_server_step`: a step against the workers' mean, with one message each to and from rank 0."""

from collections.abc import Iterator

import numpy as np

from course_utils.checks.cases import after_another_call, fewer
from course_utils.checks.exercise import Case, Cost, Exercise, Outcome
from course_utils.checks.finding import Finding, Kind, own
from course_utils.lessons.parameter_server.checks.common import LEAST, after_a_different_call
from course_utils.lessons.parameter_server.server import SERVER
from course_utils.words import count, ranks


def _cases(rng: np.random.Generator, world_size: int) -> Iterator[Case]:
    world_size = max(world_size, LEAST)

    def case(size: int, length: int, dtype: str = "float64", of_the_server: float = 99) -> Case:
        """`of_the_server`: how much larger its own gradient is, so that an answer which uses it shows."""
        rate = round(float(rng.uniform(0.2, 0.8)), 3)
        weights, *others = 3 * rng.standard_normal((size, length))  # those of the workers are out of date
        gradients = rng.standard_normal((size, length))
        gradients[SERVER] += of_the_server
        weights, gradients = weights.astype(dtype), gradients.astype(dtype)
        mean = np.mean(gradients[1:], axis=0, dtype="float64") if size > 1 else 0.0
        new = (weights - rate * mean).astype(dtype)
        label = f"{ranks(size)}, {count(length, f'{dtype} number')}, rate {rate}"
        label += ", NaN in the server's own gradient" * bool(np.isnan(of_the_server))
        arguments = [
            (mine.astype(dtype), gradient.copy(), rate)
            for mine, gradient in zip([weights, *others], gradients, strict=True)
        ]
        cost = Cost(messages=2 * (size - 1), collectives=0)
        expected, key = [{0: new}] * size, "one-rank" if size == 1 else ""
        return Case(label, arguments, expected_arguments=expected, cost=cost, judge=_by_the_server, key=key)

    yield case(world_size, 6)
    yield case(world_size, int(rng.integers(20, 200)))
    yield case(world_size, 501, "float32")
    for size in fewer(world_size):
        yield case(size, int(rng.integers(2, 100)), str(rng.choice(["float32", "float64"])))
    yield case(world_size, 33, "float16")
    yield case(world_size, 9, of_the_server=np.nan)
    for length in (1, 0):
        yield case(world_size, length)
    yield after_another_call(case(world_size, 12))
    yield after_a_different_call(case(world_size, 21, "float32"), case(world_size, 8))
    yield case(world_size, 100_003, "float32")


def _by_the_server(outcome: Outcome) -> Finding | None:
    """Find what no result shows: who sent to whom, in which form, and how often."""
    size = outcome.case.arguments[0][0].nbytes
    for rank, reply in enumerate(outcome.attempt.replies):
        needed = size * (outcome.world_size - 1 if rank == SERVER else 1)
        sent = [event for event in reply.events or () if event.kind == "send"]
        others = {event.peer for event in sent} - {SERVER}
        if rank != SERVER and others:
            words = "the weights are right, but rank {rank} sent a message to rank {other}"
            return own("from-worker-to-worker", words, rank=rank, other=min(others))
        if any(event.name.islower() for event in sent):
            return own("pickled", "the weights are right, but rank {rank} sent its numbers as a pickle", rank=rank)
        if outcome.run.bytes_per_rank[rank] > needed:
            return Finding(Kind.BYTES, rank, got=outcome.run.bytes_per_rank[rank], expected=needed)
    return None


EXERCISE = Exercise(
    library="server",
    number=1,
    minutes=15,
    difficulty=2,
    turn="send gradients to the server, take one step there, send the weights back",
    title="one step of a server and its workers",
    cases=_cases,
    hints=(
        "The server and the workers do different things. What does a worker send, and what does it wait for after "
        "that? What does the server need before it can answer the first worker?",
        "A worker calls `comm.Send(gradient, dest=SERVER)` and then `comm.Recv(parameters, source=SERVER)`. The server "
        "receives from each of the ranks 1 to P − 1 into a separate array and adds it to a total. If there are any "
        "workers, it computes `parameters -= rate * total / (comm.size - 1)` and then sends the weights to each of "
        "them.",
    ),
    praise=lambda outcome: (
        f"{ranks(outcome.world_size)} hold the new weights after {count(outcome.run.messages, 'message')}; the server "
        f"sent {outcome.run.bytes_per_rank[0]:,} bytes and received as many, and a worker sent "
        f"{outcome.run.bytes_per_rank[-1]:,}"
    ),
)
