"""The check of `ring_allreduce`: 2 (P − 1) rounds and 2 (P − 1)/P of the vector sent by each rank, any P and length."""

from course_utils.checks.exercise import Case, Cost, Exercise, Mistake, Outcome
from course_utils.lessons.allreduce.checks import LESSON, mistakes
from course_utils.lessons.allreduce.checks.common import allreduce_cases, times_added
from course_utils.words import count, ranks


def ring_cost(size: int, length: int) -> Cost:
    """P − 1 blocks to the right in each half; the longest block has ⌈n / P⌉ numbers."""
    return Cost(rounds=2 * (size - 1), bytes_per_rank=2 * (size - 1) * -(-length // size))


def _a_step_short(case: Case, outcome: Outcome) -> bool:
    """Sums of neighbours only, one of them missing somewhere, after fewer rounds than it takes."""
    return outcome.run.rounds < case.cost.rounds and bool((times_added(outcome) == 0).any())


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


RING_ALLREDUCE = Exercise(
    name="ring_allreduce",
    library="course_utils.lessons.allreduce.ring:ring_allreduce",
    lesson=LESSON,
    place=4,
    minutes=30,
    difficulty=3,
    turn="pass blocks to the right: add, then hand out",
    title="one block to the right neighbour in every step",
    cases=lambda rng, world_size: allreduce_cases(rng, world_size, ring_cost),
    hints=(
        "Write down for 3 ranks which block each of them sends in step 0, 1, 2 and 3. What a rank sends in one step is "
        "what arrived in the step before. So which block arrives in step 0, and what is finished after P − 1 steps?",
        "`blocks = blocks_of(vector, P)`. In step s = 0 … 2P − 3 send blocks[(rank − s) % P] to the right, and receive "
        "the place of blocks[(rank − s − 1) % P] from the left: in the first P − 1 steps into a buffer, to be combined "
        "with that block, afterwards into the block itself. Sendrecv does both at once.",
    ),
    mistakes=(
        mistakes.NO_SUCH_RANK,
        mistakes.ANYBODYS_MESSAGE,
        mistakes.CHANGED_WHILE_SENT,
        mistakes.USED_TOO_EARLY,
        mistakes.OPEN_REQUEST,
        mistakes.BARRIER,
        mistakes.COLLECTIVE,
        mistakes.ALL_SEND,
        mistakes.NOBODY_SENDS,
        mistakes.OPERATION,
        mistakes.DTYPE,
        mistakes.PICKLED,
        mistakes.TOO_MANY_BYTES,
        mistakes.TOO_MANY_ROUNDS,
        mistakes.IN_PLACE,
        mistakes.MEAN,
        mistakes.TWICE,
        mistakes.BLOCKS_APART,
        Mistake("How many steps until a block has seen every rank?", _a_step_short),
        mistakes.MISSING,
        mistakes.ELSEWHERE,
        mistakes.NOT_DIVISIBLE,
    ),
    praise=_praise,
    also_hidden=(
        "course_utils.lessons.allreduce.ring:ring_reduce_scatter",
        "course_utils.lessons.allreduce.ring:ring_all_gather",
    ),
)
