"""The check of `local_sgd_round`: steps without a message, then the mean of the weights in one all-reduce."""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from course_utils.checks.cases import fewer
from course_utils.checks.exercise import NO_RESULT, Case, Cost, Exercise, Mistake, Outcome
from course_utils.checks.recognisers import Recogniser, hangs, raised, same
from course_utils.lessons.parameter_server.checks import LESSON
from course_utils.lessons.parameter_server.checks.common import HEADERS, LEAST, names
from course_utils.words import count, ranks

if TYPE_CHECKING:
    from mpi4py import MPI

Batches = list[np.ndarray]


def bowl(weights: np.ndarray, batch: np.ndarray) -> np.ndarray:
    """The gradient of ½‖w − batch‖²: another one wherever the weights are."""
    return weights - batch


def slope(weights: np.ndarray, batch: np.ndarray) -> np.ndarray:
    """The gradient of w · batch: the batch itself, which is not to be changed."""
    return batch


def after_a_round(
    function: Callable,
    comm: "MPI.Intracomm",
    parameters: np.ndarray,
    batches: Batches,
    rate: float,
    gradient: Callable[[np.ndarray, np.ndarray], np.ndarray],
    seconds: float,
) -> dict[str, object]:
    """Call the learner's function; return the weights and batches, and how many gradients and calls it has needed.

    "talks" are the messages and collectives that this rank had made when it asked for its last gradient.
    """
    from course_utils.trace.recorder import phase, recorder

    talks: list[int] = []

    def asked(weights: np.ndarray, batch: np.ndarray) -> np.ndarray:
        talks.append(sum(event.kind in ("send", "recv", "collective") for event in recorder.events))
        with phase("step"):
            time.sleep(seconds)
            return gradient(weights, batch)

    function(comm, parameters, asked, iter(batches), rate)
    counted = {"gradients": len(talks), "talks": max(talks, default=0)}
    return {"the weights": parameters, "the batches": batches, **counted}


def _cases(rng: np.random.Generator, world_size: int) -> Iterator[Case]:
    world_size = max(world_size, LEAST)

    def case(
        numbers: Sequence[int],
        length: int,
        dtype: str = "float64",
        gradient: Callable = bowl,
        seconds: float = 0.0,
        more: str = "",
    ) -> Case:
        """`numbers`: how many batches each rank has."""
        rate = float(rng.choice([0.25, 0.5]))
        weights = rng.integers(-9, 9, length).astype(dtype)
        batches = [[rng.integers(-50, 50, length).astype(dtype) for _ in range(number)] for number in numbers]
        mean = np.mean([walked(weights, own, rate, gradient) for own in batches], axis=0).astype(dtype)
        *others, most = sorted(set(numbers))
        many = " or ".join([*map(str, others), count(most, "batch")])
        label = f"{ranks(len(numbers))} with {many} each, {count(length, f'{dtype} number')}, rate {rate}{more}"
        arguments = [(weights.copy(), own, rate, gradient, seconds) for own in batches]
        expected = [_seen(mean, own) for own in batches]
        cost = Cost(messages=0, collectives=1)
        return Case(label, arguments, expected, cost=cost, judge=_weights_once, harness=after_a_round)

    yield case([1] * world_size, 4)
    yield case([3] * world_size, 6)
    yield case([2] * world_size, 50, gradient=slope, more=", each batch its own gradient")
    yield case(_numbers([2, 0, 1, 4], world_size), 20, "float32")
    for size in fewer(world_size):
        yield case([int(number) for number in rng.integers(1, 6, size)], int(rng.integers(2, 99)))
    yield case([0] * world_size, 5)
    for length in (1, 0):
        yield case([2] * world_size, length)
    yield case([4] * world_size, 50_001, "float32", seconds=0.002)


def _numbers(numbers: Sequence[int], world_size: int) -> list[int]:
    """How many batches each rank has: these numbers, again and again."""
    return [numbers[rank % len(numbers)] for rank in range(world_size)]


def walked(weights: np.ndarray, batches: Batches, rate: float, gradient: Callable) -> np.ndarray:
    """The weights after a step for each batch."""
    weights = weights.astype("float64")
    for batch in batches:
        weights = weights - rate * gradient(weights, batch)
    return weights


def _seen(weights: np.ndarray, batches: Batches) -> dict[str, object]:
    """What must come of a round."""
    own = [batch.copy() for batch in batches]
    return {"the weights": weights, "the batches": own, "gradients": ..., "talks": ...}


def _weights_once(outcome: Outcome) -> str | None:
    """What no result shows: gradients asked for in vain, more numbers shared than needed, gathered instead of added."""
    size = outcome.case.arguments[0][0].nbytes
    for rank, sent in enumerate(outcome.run.bytes_per_rank):
        asked, batches = outcome.results[rank]["gradients"], len(outcome.case.arguments[rank][1])
        if asked != batches:
            return f"the weights are right, but rank {rank} asked for {count(asked, 'gradient')}, expected {batches}"
        if sent > size + HEADERS:
            return f"the weights are right, but rank {rank} put in {sent:,} bytes; its weights have {size:,}"
    if _gathers(outcome.case, outcome):
        return "the weights are right, but every rank was sent those of all others"
    return None


def _gathers(case: Case, outcome: Outcome) -> bool:
    return bool(names(outcome) & {"allgather", "iallgather", "allgatherv", "alltoall"})


def _weights(outcome: Outcome) -> list:
    return [NO_RESULT if result is NO_RESULT else result["the weights"] for result in outcome.results]


def _leave(formula: Callable[[np.ndarray, list[Batches], float, Callable], Sequence[np.ndarray]]) -> Recogniser:
    """A recogniser of what a mistake leaves on each rank: a formula of (weights, all batches, rate, gradient)."""

    def recognises(case: Case, outcome: Outcome) -> bool:
        weights, _, rate, gradient, _ = case.arguments[0]
        wrong = formula(weights.astype("float64"), [each[1] for each in case.arguments], rate, gradient)
        pairs = zip(_weights(outcome), wrong, strict=True)
        return outcome.world_size > 1 and all(same(got, one.astype(weights.dtype), 1e-4) for got, one in pairs)

    return recognises


def _ends(weights: np.ndarray, batches: list[Batches], rate: float, gradient: Callable) -> list[np.ndarray]:
    """Where each rank has walked to."""
    return [walked(weights, own, rate, gradient) for own in batches]


def _summed(*given: object) -> list[np.ndarray]:
    ends = _ends(*given)
    return [np.sum(ends, axis=0)] * len(ends)


def _by_batches(weights: np.ndarray, batches: list[Batches], rate: float, gradient: Callable) -> list[np.ndarray]:
    numbers = [len(own) for own in batches]
    ends = _ends(weights, batches, rate, gradient)
    return [np.average(ends, axis=0, weights=numbers) if sum(numbers) else weights] * len(ends)


def _all_from_the_start(
    weights: np.ndarray, batches: list[Batches], rate: float, gradient: Callable
) -> list[np.ndarray]:
    ends = [weights - rate * sum(gradient(weights, batch) for batch in own) for own in batches]
    return [np.mean(ends, axis=0)] * len(ends)


def _first_only(weights: np.ndarray, batches: list[Batches], rate: float, gradient: Callable) -> list[np.ndarray]:
    ends = [walked(weights, own[:1], rate, gradient) for own in batches]
    return [np.mean(ends, axis=0)] * len(ends)


def _uphill(weights: np.ndarray, batches: list[Batches], rate: float, gradient: Callable) -> list[np.ndarray]:
    ends = _ends(weights, batches, -rate, gradient)
    return [np.mean(ends, axis=0)] * len(ends)


def _in_between(case: Case, outcome: Outcome) -> bool:
    return any(result is not NO_RESULT and result["talks"] > 0 for result in outcome.results)


def _batches_changed(case: Case, outcome: Outcome) -> bool:
    given = [arguments[1] for arguments in case.arguments]
    results = zip(outcome.results, given, strict=True)
    return any(result is not NO_RESULT and not same(result["the batches"], own) for result, own in results)


def _no_batches_here(case: Case, outcome: Outcome) -> bool:
    return hangs(case, outcome) and min(len(arguments[1]) for arguments in case.arguments) == 0


def _no_batches(case: Case, outcome: Outcome) -> bool:
    return raised(outcome) and min(len(arguments[1]) for arguments in case.arguments) == 0


def _rank_0_alone(case: Case, outcome: Outcome) -> bool:
    got, wanted = _weights(outcome), case.expected[0]["the weights"]
    return outcome.world_size > 1 and same(got[0], wanted) and not same(got[1], wanted)


def _mean_lost(case: Case, outcome: Outcome) -> bool:
    return outcome.run is not None and outcome.run.collectives > 0 and _leave(_ends)(case, outcome)


def _other_calls(case: Case, outcome: Outcome) -> bool:
    return outcome.run is not None and (outcome.run.messages > 0 or outcome.run.collectives > 1)


LOCAL_SGD_ROUND = Exercise(
    name="local_sgd_round",
    library="course_utils.lessons.parameter_server.local_sgd:local_sgd_round",
    lesson=LESSON,
    place=4,
    minutes=10,
    difficulty=2,
    turn="steps of your own, then the mean of everybody's weights",
    title="train alone for a while, then average",
    cases=_cases,
    hints=(
        "What does a local step need from the other ranks? And after the last one, what do all ranks put together: "
        "their gradients, or what they have arrived at?",
        "For each batch: `parameters -= rate * gradient(parameters, batch)`. Then `comm.Allreduce(parameters, total)` "
        "into an array of its own, and `parameters[:] = total / comm.size`, also on a rank without batches.",
    ),
    mistakes=(
        Mistake(
            "How often can one walk through `batches`, and does it have a length?",
            lambda case, outcome: raised(outcome, "has no len") or raised(outcome, "not subscriptable"),
        ),
        Mistake("Does a rank without batches take part?", _no_batches_here),
        Mistake("What does a rank do that has no batches?", _no_batches),
        Mistake("Does every rank make the same calls?", hangs),
        Mistake("What does a local step need from the other ranks?", _in_between),
        Mistake("Whose numbers did you change on the way?", _batches_changed),
        Mistake("Must every rank see the weights of every other?", _gathers),
        Mistake("Do all ranks have the mean in the end?", _rank_0_alone),
        Mistake("Could one call add the weights of all ranks and hand the sum to all?", _other_calls),
        Mistake(
            "Do the weights change in the array that you were given?",
            _leave(lambda w, batches, rate, g: [w] * len(batches)),
        ),
        Mistake("Did the mean arrive in the array that you were given?", _mean_lost),
        Mistake("What do the other ranks know of this rank's weights?", _leave(_ends)),
        Mistake("Was the sum divided by the number of ranks?", _leave(_summed)),
        Mistake("Does a rank with more batches count for more here?", _leave(_by_batches)),
        Mistake("Where do the weights stand when the second gradient is asked for?", _leave(_all_from_the_start)),
        Mistake("Does every batch make a step?", _leave(_first_only)),
        Mistake("Uphill or downhill?", _leave(_uphill)),
    ),
    praise=lambda outcome: (
        f"{ranks(outcome.world_size)} made {outcome.results[0]['gradients']} steps each without a word, then shared "
        f"{outcome.run.bytes_per_rank[0]:,} bytes each in one all-reduce"
    ),
)
