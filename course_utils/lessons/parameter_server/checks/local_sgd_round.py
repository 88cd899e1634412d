"""The check of `local_sgd_round`: steps without a message, then the mean of the weights in one all-reduce."""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from course_utils.checks.cases import after_another_call, fewer
from course_utils.checks.exercise import NO_RESULT, Case, Cost, Exercise, Outcome
from course_utils.lessons.parameter_server.checks.common import LEAST, after_a_different_call, weights_once
from course_utils.words import count, ranks

if TYPE_CHECKING:
    from mpi4py import MPI

ASKED = "gradients that it asked for"


def wavy(weights: np.ndarray, batch: np.ndarray) -> np.ndarray:
    """A gradient that depends on the weights, and not linearly."""
    return weights + np.sin(2 * weights) - batch


def of_a_pair(weights: np.ndarray, batch: dict) -> np.ndarray:
    """The same of a batch that is not an array."""
    return wavy(weights, batch["inputs"] * batch["target"])


def slope(weights: np.ndarray, batch: np.ndarray) -> np.ndarray:
    """The gradient of w · batch: the batch itself, which is not to be changed."""
    return batch


def after_a_round(
    function: Callable,
    comm: "MPI.Intracomm",
    parameters: np.ndarray,
    batches: list,
    rate: float,
    gradient: Callable[[np.ndarray, Any], np.ndarray],
    seconds: float,
) -> dict[str, int]:
    """Call the learner's function; return how many gradients and calls it has needed.

    "talks" are the messages and collectives that this rank had made when it asked for its last gradient.
    """
    from course_utils.trace.recorder import phase, recorder

    talks: list[int] = []
    own = getattr(comm, "me", recorder)  # a virtual rank keeps its events itself

    def asked(weights: np.ndarray, batch: Any) -> np.ndarray:
        talks.append(sum(event.kind in ("send", "recv", "collective") for event in own.events if event))
        with phase("step"):
            time.sleep(seconds)
            return gradient(weights, batch)

    function(comm, parameters, asked, iter(batches), rate)
    return {ASKED: len(talks), "talks": max(talks, default=0)}


def _cases(rng: np.random.Generator, world_size: int) -> Iterator[Case]:
    world_size = max(world_size, LEAST)

    def case(
        numbers: Sequence[int],
        length: int,
        dtype: str = "float64",
        gradient: Callable = wavy,
        seconds: float = 0.0,
        more: str = "",
    ) -> Case:
        """`numbers`: how many batches each rank has."""
        rate = round(float(rng.uniform(0.1, 0.4)), 3)

        def drawn() -> np.ndarray:
            return rng.standard_normal(length).astype(dtype)

        def batch() -> np.ndarray | dict:
            return {"inputs": drawn(), "target": int(rng.integers(1, 4))} if gradient is of_a_pair else drawn()

        weights = drawn()
        batches = [[batch() for _ in range(number)] for number in numbers]
        mean = np.mean([walked(weights, own, rate, gradient) for own in batches], axis=0).astype(dtype)
        *others, most = sorted(set(numbers))
        many = " or ".join([*map(str, others), count(most, "batch")])
        label = f"{ranks(len(numbers))} with {many} each, {count(length, f'{dtype} number')}, rate {rate}{more}"
        arguments = [(weights.copy(), own, rate, gradient, seconds) for own in batches]
        expected = [{ASKED: number, "talks": ...} for number in numbers]
        cost = Cost(messages=0, collectives=1 if len(numbers) > 1 else None)
        wanted = {"expected": expected, "expected_arguments": [{0: mean}] * len(numbers)}
        key = "no-batches" if 0 in numbers else ""
        return Case(label, arguments, **wanted, cost=cost, judge=weights_once, harness=after_a_round, key=key)

    def of(numbers: Sequence[int]) -> list[int]:
        """How many batches each rank has: these numbers, again and again."""
        return [numbers[rank % len(numbers)] for rank in range(world_size)]

    yield case(of([1]), 4)
    yield case(of([3]), 6)
    yield case(of([2]), 50, gradient=slope, more=", each batch its own gradient")
    yield case(of([2, 1, 5, 1]), 9, "float32", gradient=of_a_pair, more=", each batch a dict")
    yield case(of([2, 0, 1, 4]), 20)
    for size in fewer(world_size):
        yield case([int(number) for number in rng.integers(1, 6, size)], int(rng.integers(2, 99)))
    yield case(of([2]), 30, "float16")
    yield case(of([0]), 5)
    for length in (1, 0):
        yield case(of([2]), length)
    yield after_another_call(case(of([2, 1]), 8))
    yield after_a_different_call(case(of([1, 2]), 11), case(of([2, 1]), 6))
    yield case(of([4]), 50_001, "float32", seconds=0.002)


def walked(weights: np.ndarray, batches: list, rate: float, gradient: Callable) -> np.ndarray:
    """The weights after a step for each batch."""
    weights = weights.astype("float64")
    for batch in batches:
        weights = weights - rate * gradient(weights, batch)
    return weights


def _talks_in_between(case: Case, outcome: Outcome) -> bool:
    return any(result is not NO_RESULT and result["talks"] > 0 for result in outcome.results)


EXERCISE = Exercise(
    library="local_sgd",
    number=4,
    minutes=10,
    difficulty=2,
    turn="take your own steps, then average the weights of all ranks",
    title="train alone for a while, then average",
    cases=_cases,
    hints=(
        "Does a local step need anything from the other ranks? After the last step, do the ranks average their "
        "gradients, or the weights that they have reached?",
        "For each batch, compute `parameters -= rate * gradient(parameters, batch)`. Then call "
        "`comm.Allreduce(parameters, total)` with a second array `total`, and set `parameters[:] = total / comm.size`. "
        "A rank without batches has to take part in this, too.",
    ),
    symptoms={"a rank talks before its last gradient": _talks_in_between},
    praise=lambda outcome: (
        f"{ranks(outcome.world_size)} took their steps without a message, rank 0 took {outcome.results[0][ASKED]}, "
        f"and then contributed {outcome.run.bytes_per_rank[0]:,} bytes each to one all-reduce"
    ),
)
