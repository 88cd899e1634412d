"""The check of `allreduce_time`: every algorithm's messages one after the other, on networks made up for each check."""

import math
from collections.abc import Iterator

import numpy as np

from course_utils.checks.cases import REJECTED, after_another_call
from course_utils.checks.exercise import Case, Exercise, Outcome
from course_utils.checks.symptoms import error_of
from course_utils.lessons.allreduce.async_ring import SEGMENT_BYTES
from course_utils.lessons.allreduce.cost_model import Network
from course_utils.words import ranks

TOLERANCE = 1e-9
PLAIN = ("gather-broadcast", "tree", "recursive doubling", "halving-doubling", "ring")


def _cases(rng: np.random.Generator, world_size: int) -> Iterator[Case]:
    def number(low: float, high: float) -> float:
        return float(np.exp(rng.uniform(np.log(low), np.log(high))))

    def network(gamma: float = 0.0, switch: float | None = None) -> Network:
        alpha, beta = number(2e-6, 1e-3), number(1e-10, 1e-7)
        lines = ((0, alpha, beta), (switch, 5 * alpha, beta / 2)) if switch else ()
        return Network(alpha, beta, gamma, lines)

    def case(algorithm: str, size: int, nbytes: float, net: Network, more: str = "", key: str = "") -> Case:
        label = f"{algorithm}, {ranks(size)}, {nbytes:,} bytes{more}"
        expected = seconds(algorithm, size, nbytes, net)
        return Case(label, [(algorithm, size, nbytes, net)], [expected], with_comm=False, tolerance=TOLERANCE, key=key)

    for size in (8, int(rng.choice([5, 6, 7])), int(rng.integers(65, 1024))):
        for algorithm in PLAIN:
            yield case(algorithm, size, int(number(1e3, 1e8)), network())
    for algorithm in PLAIN:
        adding = network(number(1e-11, 1e-9))
        yield case(algorithm, int(rng.integers(3, 20)), int(number(1e3, 1e8)), adding, ", with a gamma")
    for algorithm in PLAIN:
        nbytes = int(number(1e4, 1e7))
        bent = network(1e-10, nbytes / 3)
        yield case(algorithm, int(rng.integers(3, 100)), nbytes, bent, ", a line with a bend", key="bend")
    for algorithm in (*PLAIN, "asynchronous ring"):
        yield case(algorithm, 1, 1000, network(1e-10), key="one-rank")
    yield case("ring", 5, number(1e3, 1e5), network())
    again = case("tree", 9, 1000, network(), ", called again", key="called-again")
    yield after_another_call(again, [("tree", 9, 1000, Network(1.0, 1.0))])
    for nbytes in (0, int(number(1e3, 1e5)), int(number(5e7, 5e8))):
        key = "asynchronous" if nbytes else "no-bytes"
        yield case("asynchronous ring", int(rng.choice([4, 5])), nbytes, network(1e-10), key=key)
    nbytes = number(1e7, 1e8)
    yield case("asynchronous ring", 3, nbytes, network(1e-10, nbytes / 100), ", a line with a bend", key="asynchronous")
    unknown = ("quantum", int(rng.integers(2, 9)), int(number(1e3, 1e6)), network())
    label = "a name that no algorithm has"
    yield Case(label, [unknown], ["CourseError"], with_comm=False, harness=error_of, key=REJECTED)
    yield case("halving-doubling", 2, 1e6, network(1e-10))


def message_sizes(algorithm: str, size: int, nbytes: float) -> list[float]:
    """Bytes of the messages that follow each other: the longest chain from the first round to the last."""
    levels = int(math.log2(size) + 1e-9)
    folding = [nbytes] * (2 if 2**levels < size else 0)
    steps, block = 2 * (size - 1), nbytes / size
    if algorithm == "gather-broadcast":
        return [nbytes] * steps
    if algorithm == "tree":
        return [nbytes] * 2 * math.ceil(math.log2(size) - 1e-9)
    if algorithm == "recursive doubling":
        return folding + [nbytes] * levels
    if algorithm == "halving-doubling":
        return folding + [nbytes / 2 ** (level + 1) for level in range(levels)] * 2
    return [block / _segments(algorithm, size, nbytes)] * steps * _segments(algorithm, size, nbytes)


def combined(algorithm: str, size: int, nbytes: float) -> float:
    """Bytes that are added one after the other."""
    levels = int(math.log2(size) + 1e-9)
    surplus = 2**levels < size
    if algorithm == "asynchronous ring" and _segments(algorithm, size, nbytes) > 1:
        return nbytes / size / _segments(algorithm, size, nbytes)
    vectors = {
        "gather-broadcast": size - 1,
        "tree": math.ceil(math.log2(size) - 1e-9),
        "recursive doubling": levels + surplus,
        "halving-doubling": 1 - 1 / 2**levels + surplus,
    }
    return nbytes * vectors.get(algorithm, 1 - 1 / size)


def _segments(algorithm: str, size: int, nbytes: float) -> int:
    return max(1, math.ceil(math.ceil(nbytes / size) / SEGMENT_BYTES)) if algorithm == "asynchronous ring" else 1


def seconds(algorithm: str, size: int, nbytes: float, network: Network) -> float:
    """What must come out."""
    messages = math.fsum(
        network.message_seconds(message_bytes) for message_bytes in message_sizes(algorithm, size, nbytes)
    )
    return messages + network.gamma * combined(algorithm, size, nbytes)


def _beyond_the_messages(outcome: Outcome) -> float:
    """Of the time that came out, the share that is not the messages'."""
    algorithm, size, nbytes, network = outcome.case.arguments[0]
    messages = math.fsum(map(network.message_seconds, message_sizes(algorithm, size, nbytes)))
    return float(outcome.results[0]) / messages - 1 if network.gamma else math.nan


EXERCISE = Exercise(
    library="cost_model",
    number=6,
    minutes=25,
    difficulty=2,
    turn="add up the chain of messages, and additions",
    title="how long will it take? The formula of each algorithm",
    cases=_cases,
    hints=(
        "Write down for 8 ranks, round by round, how many bytes one rank sends. Which algorithms send the same in "
        "every round? What does halving-doubling send first, and what next? What is different with 6 ranks?",
        "Make a table of lists: the bytes of each message that follows another. Tree: the vector, 2 · ⌈log₂ P⌉ times; "
        "(P − 1).bit_length() is that logarithm. Ring: nbytes / P, 2 (P − 1) times. Halving-doubling: nbytes / 2, / 4, "
        "…, and once more. Surplus ranks cost two vectors more. Then the sum of `network.message_seconds` over the "
        "list and `network.combine_seconds(combined_bytes(…))`.",
    ),
    symptoms={
        "nothing is added": lambda case, outcome: abs(_beyond_the_messages(outcome)) < 1e-6,
        "other numbers are added": lambda case, outcome: _beyond_the_messages(outcome) > 1e-6,
    },
    praise=lambda outcome: "right for six algorithms, from 1 rank to 1000, on lines and on lines with a bend",
    also_hidden=("course_utils.lessons.allreduce.shared_links:allreduce_time",),
)
