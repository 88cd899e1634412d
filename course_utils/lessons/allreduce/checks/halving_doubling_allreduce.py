"""The check of `halving_doubling_allreduce`: 2 log₂ P rounds and 2 (P − 1)/P of the vector sent by each rank."""

from course_utils.checks.exercise import Cost, Exercise, Outcome
from course_utils.lessons.allreduce.checks import LESSON, mistakes
from course_utils.lessons.allreduce.checks.common import allreduce_cases
from course_utils.lessons.allreduce.checks.ring_allreduce import share_sent
from course_utils.words import count, ranks


def halving_cost(size: int, length: int) -> Cost:
    """P − 1 of P blocks out in each half, as in the ring; a whole vector more for the rank that was folded in."""
    levels = size.bit_length() - 1
    active = 2**levels
    folded = size > active
    numbers = 2 * (active - 1) * -(-length // active) + folded * length
    return Cost(rounds=2 * levels + 2 * folded, bytes_per_rank=numbers)


def _praise(outcome: Outcome) -> str:
    size = outcome.world_size
    return (
        f"{ranks(size)} agree after {count(outcome.run.rounds, 'round')}, where a ring takes {2 * (size - 1)}; "
        f"each sent {share_sent(outcome)}, as little as the ring"
    )


HALVING_DOUBLING_ALLREDUCE = Exercise(
    name="halving_doubling_allreduce",
    library="course_utils.lessons.allreduce.halving_doubling:halving_doubling_allreduce",
    lesson=LESSON,
    place=3,
    minutes=35,
    difficulty=3,
    turn="give away half, log P times; then get it back",
    title="halves out, halves back: few rounds and few bytes",
    cases=lambda rng, world_size: allreduce_cases(rng, world_size, halving_cost),
    hints=(
        "With 4 ranks and 4 blocks: 0 and 2 meet first, 0 goes on with blocks 0 and 1. Which blocks does 2 go on with, "
        "and what do they have to send each other? Going back is the same in the other "
        "direction; but first: which block does each rank hold after the second round?",
        "distance = active/2, …, 2, 1 and partner = rank ^ distance. A rank goes on with the blocks first … first + "
        "distance − 1, first = rank // distance · distance: it sends the partner's, receives into a buffer and "
        "combines its own. Then distance = 1, 2, …, active/2: send your blocks, receive into the partner's.",
    ),
    mistakes=(
        mistakes.ANYBODYS_MESSAGE,
        mistakes.CHANGED_WHILE_SENT,
        mistakes.COLLECTIVE,
        mistakes.ALL_SEND,
        mistakes.POWER_OF_TWO,
        mistakes.NOBODY_SENDS,
        mistakes.OPERATION,
        mistakes.DTYPE,
        mistakes.PICKLED,
        mistakes.TOO_MANY_BYTES,
        mistakes.IN_PLACE,
        mistakes.TWICE,
        mistakes.BLOCKS_APART,
        mistakes.MISSING,
        mistakes.ELSEWHERE,
        mistakes.NOT_DIVISIBLE,
    ),
    praise=_praise,
)
