"""The check of `recursive_doubling_allreduce`: log₂ P rounds of whole vectors, and two more for surplus ranks."""

from course_utils.checks.exercise import Cost, Exercise, Outcome
from course_utils.checks.finding import Finding, own
from course_utils.lessons.allreduce.checks.common import allreduce_cases, promises_kept, wrong_sums
from course_utils.lessons.allreduce.checks.symptoms import spoken_of
from course_utils.words import count, ranks

STRANGERS = "the result is right here, but rank {rank} swapped with rank {other}; it would be wrong with 8 ranks"
NOT_IN_PAIRS = (
    "the result is right, but rank {rank} sent to rank {other} and received nothing from it; a pair of ranks swaps sums"
)


def doubling_cost(size: int, length: int) -> Cost:
    """A whole vector in each round, and one more from each rank that sends the result to a surplus rank."""
    rounds = size.bit_length() - 1
    folded = size - 2**rounds
    return Cost(
        rounds=rounds + 2 * (folded > 0),
        messages=rounds * 2**rounds + 2 * folded,
        bytes_per_rank=(rounds + (folded > 0)) * length,
    )


def _partners(outcome: Outcome) -> Finding | None:
    size = outcome.world_size
    for reply in outcome.attempt.replies if size & (size - 1) == 0 else ():
        to, come_from = ({event.peer for event in reply.events if event.kind == kind} for kind in ("send", "recv"))
        for other in sorted(to & come_from):
            if (reply.rank ^ other).bit_count() != 1:
                return own("not-a-partner", STRANGERS, rank=reply.rank, other=other)
        if to - come_from:
            return own("not-in-pairs", NOT_IN_PAIRS, rank=reply.rank, other=min(to - come_from))
    return promises_kept(outcome)


def _praise(outcome: Outcome) -> str:
    size, rounds = outcome.world_size, outcome.run.rounds
    sent = max(outcome.run.bytes_per_rank) / outcome.arguments[0][0].nbytes
    return f"{ranks(size)} agree to the last bit after {count(rounds, 'round')}; each sent its vector {sent:g} times"


EXERCISE = Exercise(
    library="recursive_doubling",
    number=3,
    minutes=15,
    difficulty=2,
    turn="swap sums with partners 1, 2, 4, … away",
    title="partners 1, 2, 4, … apart swap whole vectors",
    cases=lambda rng, world_size: allreduce_cases(rng, world_size, doubling_cost, _partners),
    wrong_blocks=wrong_sums,
    hints=(
        "Which ranks take part in the rounds if there are 3 ranks, and up to which distance do the rounds of the "
        "lesson go then? Which two calls do all ranks make, and when?",
        "All ranks call `active = fold_in(comm, vector)` first and `fold_out(comm, vector, active)` last. In between, "
        "only ranks below `active` run the loop of the lesson, with distance = 1, 2, 4, … as long as it is less than "
        "`active`. In each round they call `comm.Sendrecv(vector, dest=partner, recvbuf=incoming, source=partner)` "
        "with partner = rank ^ distance, and add what has arrived.",
    ),
    symptoms=spoken_of(__file__),
    praise=_praise,
)
