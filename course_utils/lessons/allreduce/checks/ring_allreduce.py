"""The check of `ring_allreduce`: 2 (P − 1) rounds and 2 (P − 1)/P of the vector sent by each rank, any P and length."""

from course_utils.checks.exercise import Cost, Exercise, Outcome
from course_utils.checks.finding import Finding, own
from course_utils.lessons.allreduce.checks.common import allreduce_cases, promises_kept, wrong_sums
from course_utils.lessons.allreduce.checks.symptoms import spoken_of
from course_utils.trace.events import Event
from course_utils.words import count, ranks

NO_RING = "the result is right, but rank {rank} sends to rank {peer}; its right neighbour is rank {right}"


def ring_cost(size: int, length: int) -> Cost:
    """P − 1 blocks to the right in each half; the longest block has ⌈n / P⌉ numbers."""
    return Cost(rounds=2 * (size - 1), bytes_per_rank=2 * (size - 1) * -(-length // size))


def _to_the_right(outcome: Outcome) -> Finding | None:
    for event in _elsewhere(outcome):
        right = (event.rank + 1) % outcome.world_size
        return own("not-to-the-right", NO_RING, rank=event.rank, peer=event.peer, right=right)
    return promises_kept(outcome)


def _elsewhere(outcome: Outcome) -> list[Event]:
    """Messages that do not go to the right neighbour."""
    size = outcome.world_size
    return [event for event in outcome.run.events if event.kind == "send" and event.peer != (event.rank + 1) % size]


def share_sent(outcome: Outcome) -> str:
    """What the busiest rank sent, against the vector: "1.50 of the vector's 0.19 MB"."""
    nbytes = outcome.arguments[0][0].nbytes
    return f"{max(outcome.run.bytes_per_rank) / nbytes:.2f} of the vector's {nbytes / 1e6:.2f} MB"


def _praise(outcome: Outcome) -> str:
    size = outcome.world_size
    return (
        f"{ranks(size)} agree after {count(outcome.run.rounds, 'round')}; each sent {share_sent(outcome)}, "
        "the least possible"
    )


EXERCISE = Exercise(
    library="ring",
    number=1,
    minutes=30,
    difficulty=3,
    turn="send one block to the right in every round",
    title="one block to the right neighbour in every round",
    cases=lambda rng, world_size: allreduce_cases(rng, world_size, ring_cost, _to_the_right),
    wrong_blocks=wrong_sums,
    hints=(
        "Take 3 ranks, and write down which block each of them sends in rounds 1, 2, 3 and 4. What a rank sends in one "
        "round is what it received in the round before. Which number does the block have that rank 0 sends first, and "
        "how does that number change from round to round?",
        "Let `blocks = blocks_of(vector, P)`. In step s = 0, 1, …, 2P − 3 send blocks[(rank − s − 1) % P] to the "
        "right, while block number (rank − s − 2) % P arrives from the left. In the first P − 1 steps, receive it into "
        "an array of its own and add it to that block. After that, receive it into the block itself. `Sendrecv` sends "
        "and receives at the same time.",
    ),
    symptoms={
        **spoken_of(__file__),
        "a message goes to another than the right neighbour": lambda case, outcome: bool(_elsewhere(outcome)),
        "there are too few rounds": lambda case, outcome: outcome.run.rounds < case.cost.rounds,
    },
    praise=_praise,
    also_hidden=(
        "course_utils.lessons.allreduce.ring:ring_reduce_scatter",
        "course_utils.lessons.allreduce.ring:ring_all_gather",
        "course_utils.lessons.allreduce.suspicious_ring:suspicious_ring",  # right if a segment is a block
    ),
)
