"""The check of `allreduce_time`: every algorithm's messages one after the other, on networks made up for each check."""

import math
from collections.abc import Callable, Iterator

import numpy as np

from course_utils.checks.compare import kind_of
from course_utils.checks.exercise import Case, Exercise, Mistake, Outcome
from course_utils.checks.recognisers import raised
from course_utils.lessons.allreduce.async_ring import SEGMENT_BYTES
from course_utils.lessons.allreduce.checks import LESSON
from course_utils.lessons.allreduce.cost_model import Network
from course_utils.words import ranks

TOLERANCE = 1e-9
PLAIN = ("gather-broadcast", "tree", "recursive doubling", "halving-doubling", "ring")
FOLDING = ("recursive doubling", "halving-doubling")


def _cases(rng: np.random.Generator, world_size: int) -> Iterator[Case]:
    def number(low: float, high: float) -> float:
        return float(np.exp(rng.uniform(np.log(low), np.log(high))))

    def network(gamma: float = 0.0, switch: float | None = None) -> Network:
        alpha, beta = number(2e-6, 1e-3), number(1e-10, 1e-7)
        lines = ((0, alpha, beta), (switch, 5 * alpha, beta / 2)) if switch else ()
        return Network(alpha, beta, gamma, lines)

    def case(algorithm: str, size: int, nbytes: float, net: Network, more: str = "") -> Case:
        label = f"{algorithm}, {ranks(size)}, {nbytes:,} bytes{more}"
        expected = seconds(algorithm, size, nbytes, net)
        return Case(label, [(algorithm, size, nbytes, net)], [expected], with_comm=False, tolerance=TOLERANCE)

    for size in (8, int(rng.choice([5, 6, 7])), int(rng.choice([80, 100, 1000]))):
        for algorithm in PLAIN:
            yield case(algorithm, size, int(number(1e3, 1e8)), network())
    for algorithm in PLAIN:
        adding = network(number(1e-11, 1e-9))
        yield case(algorithm, int(rng.choice([4, 6, 16])), int(number(1e3, 1e8)), adding, ", with a gamma")
    for algorithm in PLAIN:
        nbytes = int(number(1e4, 1e7))
        yield case(algorithm, int(rng.choice([8, 12])), nbytes, network(1e-10, nbytes / 3), ", a line with a bend")
    for algorithm in (*PLAIN, "asynchronous ring"):
        yield case(algorithm, 1, 1000, network(1e-10))
    for nbytes in (0, int(number(1e3, 1e5)), int(number(5e7, 5e8))):
        yield case("asynchronous ring", int(rng.choice([4, 5])), nbytes, network(1e-10))
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
    messages = math.fsum(network.message_seconds(one) for one in message_sizes(algorithm, size, nbytes))
    return messages + network.gamma * combined(algorithm, size, nbytes)


Formula = Callable[[str, int, float, Network], float]


def _gives(formula: Formula, *algorithms: str) -> Callable[[Case, Outcome], bool]:
    """A recogniser of results that a wrong formula gives, with or without what is added."""

    def recognises(case: Case, outcome: Outcome) -> bool:
        algorithm, size, nbytes, network = case.arguments[0]
        if algorithms and algorithm not in algorithms:
            return False
        adding = network.gamma * combined(algorithm, size, nbytes)
        wrong, got = formula(*case.arguments[0]), float(outcome.results[0])
        return any(math.isclose(got, wrong + one, rel_tol=1e-6) for one in (0.0, adding))

    return recognises


def _messages(algorithm: str, size: int, nbytes: float, network: Network) -> float:
    return sum(map(network.message_seconds, message_sizes(algorithm, size, nbytes)))


def _latency_once(algorithm: str, size: int, nbytes: float, network: Network) -> float:
    return network.message_seconds(sum(message_sizes(algorithm, size, nbytes)))


def _there_only(algorithm: str, size: int, nbytes: float, network: Network) -> float:
    return _messages(algorithm, size, nbytes, network) / 2


def _real_logarithm(algorithm: str, size: int, nbytes: float, network: Network) -> float:
    ways = 2 if algorithm == "tree" else 1
    return ways * math.log2(size) * network.message_seconds(nbytes)


def _rounded_down(algorithm: str, size: int, nbytes: float, network: Network) -> float:
    return 2 * int(math.log2(size)) * network.message_seconds(nbytes)


def _not_folded(algorithm: str, size: int, nbytes: float, network: Network) -> float:
    active = 2 ** int(math.log2(size))
    return _messages(algorithm, active, nbytes, network)


def _halved_among_all(algorithm: str, size: int, nbytes: float, network: Network) -> float:
    sizes, share = message_sizes(algorithm, size, nbytes), 2 * (size - 1) / size
    folding = sizes[:2] if size & (size - 1) else []
    halving = (len(sizes) - len(folding)) * network.alpha + share * nbytes * network.beta
    return sum(map(network.message_seconds, folding)) + halving


def _whole_vectors(algorithm: str, size: int, nbytes: float, network: Network) -> float:
    return len(message_sizes(algorithm, size, nbytes)) * network.message_seconds(nbytes)


def _as_doubling(algorithm: str, size: int, nbytes: float, network: Network) -> float:
    return _messages("recursive doubling", size, nbytes, network)


def _one_line(algorithm: str, size: int, nbytes: float, network: Network) -> float:
    return _messages(algorithm, size, nbytes, Network(network.alpha, network.beta))


def _not_folded_here(case: Case, outcome: Outcome) -> bool:
    size = case.arguments[0][1]
    return size & (size - 1) != 0 and _gives(_not_folded, *FOLDING)(case, outcome)


def _part_of_a_round(case: Case, outcome: Outcome) -> bool:
    size = case.arguments[0][1]
    return size & (size - 1) != 0 and _gives(_real_logarithm, "recursive doubling")(case, outcome)


def _no_number(case: Case, outcome: Outcome) -> bool:
    returned = all(reply.kind == "returned" for reply in outcome.attempt.replies)
    return returned and kind_of(outcome.results[0]) not in ("float", "int")


def _no_additions(case: Case, outcome: Outcome) -> bool:
    network = case.arguments[0][3]
    return network.gamma > 0 and math.isclose(float(outcome.results[0]), _messages(*case.arguments[0]), rel_tol=1e-6)


def _other_additions(case: Case, outcome: Outcome) -> bool:
    """Whether the messages are right, as they were where adding costs nothing, and the rest is not."""
    network = case.arguments[0][3]
    return network.gamma > 0 and not network.segments and float(outcome.results[0]) > _messages(*case.arguments[0])


def _microseconds(case: Case, outcome: Outcome) -> bool:
    return any(math.isclose(float(outcome.results[0]), case.expected[0] * unit, rel_tol=1e-6) for unit in (1e3, 1e6))


def _alone(case: Case, outcome: Outcome) -> bool:
    return case.arguments[0][1] == 1


def _in_segments(case: Case, outcome: Outcome) -> bool:
    return case.arguments[0][0] == "asynchronous ring"


ALLREDUCE_TIME = Exercise(
    name="allreduce_time",
    library="course_utils.lessons.allreduce.cost_model:allreduce_time",
    lesson=LESSON,
    place=6,
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
    mistakes=(
        Mistake("What does a rank alone send?", _alone),
        Mistake("Does your function know every name in ALGORITHMS?", lambda case, outcome: raised(outcome, "")),
        Mistake("Do you return one number?", _no_number),
        Mistake("In seconds?", _microseconds),
        Mistake("Is that not recursive doubling's time?", _gives(_as_doubling, "halving-doubling")),
        Mistake("How much of the vector travels in one round?", _gives(_whole_vectors, "ring", "halving-doubling")),
        Mistake("In how many messages does a block travel?", _in_segments),
        Mistake("How often is the latency paid?", _gives(_latency_once)),
        Mistake("Among how many ranks is the vector halved?", _gives(_halved_among_all, "halving-doubling")),
        Mistake("What becomes of the ranks beyond the largest power of two?", _not_folded_here),
        Mistake("How does the result come back?", _gives(_there_only)),
        Mistake("log₂ P is no whole number here: which ranks swap, and what do the others cost?", _part_of_a_round),
        Mistake("How many rounds has half a level of the tree?", _gives(_real_logarithm, "tree")),
        Mistake("How many rounds has half a level of the tree?", _gives(_rounded_down, "tree")),
        Mistake("Who adds the numbers, and how long does that take?", _no_additions),
        Mistake("Which of the messages bring something that is added?", _other_additions),
        Mistake("What does `network` say about a message of this size?", _gives(_one_line)),
    ),
    praise=lambda outcome: "right for six algorithms, from 1 rank to 1000, on lines and on lines with a bend",
    picture=False,
    also_hidden=("course_utils.lessons.allreduce.shared_links:allreduce_time",),
)
