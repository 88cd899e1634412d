"""The check of `halving_doubling_allreduce`: 2 log₂ P rounds and 2 (P − 1)/P of the vector sent by each rank."""

from course_utils.checks.exercise import Case, Cost, Exercise, Outcome
from course_utils.checks.finding import Finding, own
from course_utils.lessons.allreduce.checks.common import allreduce_cases, promises_kept, wrong_sums
from course_utils.lessons.allreduce.checks.ring_allreduce import share_sent
from course_utils.lessons.allreduce.checks.symptoms import spoken_of
from course_utils.words import count, ranks

TOO_LONG = "the result is right, but rank {rank} sent {nbytes:,} bytes; half of what it still had is {most:,}"


def halving_cost(size: int, length: int) -> Cost:
    """P − 1 of P blocks out in each half, as in the ring; a whole vector more for the rank that was folded in."""
    levels = size.bit_length() - 1
    active = 2**levels
    folded = size > active
    numbers = 2 * (active - 1) * -(-length // active) + folded * length
    return Cost(rounds=2 * levels + 2 * folded, bytes_per_rank=numbers)


def _halves(outcome: Outcome) -> Finding | None:
    """Two messages of half the vector from each rank, one on each way, two of a quarter, and so on."""
    size, vector = outcome.world_size, outcome.arguments[0][0]
    levels = size.bit_length() - 1
    block = -(-len(vector) // size) * vector.itemsize
    for reply in outcome.attempt.replies if size == 2**levels else ():
        sent = sorted((event.bytes for event in reply.events if event.kind == "send"), reverse=True)
        for index, nbytes in enumerate(sent[: 2 * levels]):
            most = block << levels - 1 - index // 2
            if nbytes > most:
                return own("more-than-half", TOO_LONG, rank=reply.rank, nbytes=nbytes, most=most)
    return promises_kept(outcome)


def _to_no_partner(case: Case, outcome: Outcome) -> bool:
    return any(event.kind == "send" and (event.rank ^ event.peer).bit_count() > 1 for event in outcome.run.events)


def _praise(outcome: Outcome) -> str:
    size = outcome.world_size
    return (
        f"{ranks(size)} agree after {count(outcome.run.rounds, 'round')}, where a ring takes {2 * (size - 1)}; "
        f"each sent {share_sent(outcome)}, as little as the ring"
    )


EXERCISE = Exercise(
    library="halving_doubling",
    number=4,
    minutes=35,
    difficulty=3,
    turn="send away half of your blocks in each round, then collect them",
    title="sharing out the adding by halves takes few rounds and few bytes",
    cases=lambda rng, world_size: allreduce_cases(rng, world_size, halving_cost, _halves),
    wrong_blocks=wrong_sums,
    hints=(
        "Take 8 ranks. Who is the partner of rank 5 in rounds 1, 2 and 3, and which blocks does rank 5 keep in each of "
        "them? Can you calculate the first of these blocks from the rank and the distance?",
        "Let distance be active/2, …, 2, 1 and partner = rank ^ distance. A rank keeps the `distance` blocks that "
        "begin with number rank // distance · distance, and its partner keeps those that begin with partner // "
        "distance · distance. Send the partner's blocks, receive into an array of its own, and add it to your blocks. "
        "For the second phase, let distance be 1, 2, …, active/2. Send your blocks and receive into the partner's.",
    ),
    symptoms={**spoken_of(__file__), "a rank sends to one that is not a partner": _to_no_partner},
    praise=_praise,
)
