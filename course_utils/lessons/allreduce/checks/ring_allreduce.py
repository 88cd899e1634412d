"""The check of `ring_allreduce`: 2 (P − 1) rounds and 2 (P − 1)/P of the vector sent by each rank, any P and length."""

from course_utils.checks.exercise import Cost, Exercise, Outcome
from course_utils.checks.finding import Finding, own
from course_utils.lessons.allreduce.checks.common import allreduce_cases, promises_kept
from course_utils.lessons.allreduce.checks.symptoms import spoken_of
from course_utils.trace.events import Event
from course_utils.words import count, ranks

NO_RING = "the result is right, but rank {rank} sends to rank {peer}; the one to its right is rank {right}"


def ring_cost(size: int, length: int) -> Cost:
    """P − 1 blocks to the right in each half; the longest block has ⌈n / P⌉ numbers."""
    return Cost(rounds=2 * (size - 1), bytes_per_rank=2 * (size - 1) * -(-length // size))


def _to_the_right(outcome: Outcome) -> Finding | None:
    for event in _elsewhere(outcome):
        right = (event.rank + 1) % outcome.world_size
        return own("not-to-the-right", NO_RING, rank=event.rank, peer=event.peer, right=right)
    return promises_kept(outcome)


def _elsewhere(outcome: Outcome) -> list[Event]:
    """Messages to another than the right neighbour."""
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
    number=4,
    minutes=30,
    difficulty=3,
    turn="pass blocks to the right: add, then hand out",
    title="one block to the right neighbour in every step",
    cases=lambda rng, world_size: allreduce_cases(rng, world_size, ring_cost, _to_the_right),
    wrong_blocks=lambda frames, _: frames.incomplete(),
    hints=(
        "Write down for 3 ranks which block each of them sends in step 0, 1, 2 and 3. What a rank sends in one step is "
        "what arrived in the step before. So which block arrives in step 0, and what is finished after P − 1 steps?",
        "`blocks = blocks_of(vector, P)`. In step s = 0 … 2P − 3 send blocks[(rank − s) % P] to the right, and receive "
        "the place of blocks[(rank − s − 1) % P] from the left: in the first P − 1 steps into a buffer, to be combined "
        "with that block, afterwards into the block itself. Sendrecv does both at once.",
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
    ),
)
