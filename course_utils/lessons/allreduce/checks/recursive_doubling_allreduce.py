"""The check of `recursive_doubling_allreduce`: log₂ P rounds of whole vectors, and two more for surplus ranks."""

from course_utils.checks.exercise import Cost, Exercise, Outcome
from course_utils.checks.finding import Finding, own
from course_utils.lessons.allreduce.checks.common import allreduce_cases, promises_kept
from course_utils.lessons.allreduce.checks.symptoms import spoken_of
from course_utils.words import count, ranks

STRANGERS = "the result is right here, but rank {rank} swapped with rank {other}: with 8 ranks that is not enough"


def doubling_cost(size: int, length: int) -> Cost:
    """A whole vector in each round; one more from those who tell a folded rank the result."""
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
    return promises_kept(outcome)


def _praise(outcome: Outcome) -> str:
    size, rounds = outcome.world_size, outcome.run.rounds
    sent = max(outcome.run.bytes_per_rank) / outcome.arguments[0][0].nbytes
    return f"{ranks(size)} agree to the last bit after {count(rounds, 'round')}; each sent its vector {sent:g} times"


EXERCISE = Exercise(
    library="recursive_doubling",
    number=2,
    minutes=20,
    difficulty=2,
    turn="swap sums with partners ever further away",
    title="partners at distance 1, 2, 4, … swap whole vectors",
    cases=lambda rng, world_size: allreduce_cases(rng, world_size, doubling_cost, _partners),
    wrong_blocks=lambda frames, _: frames.incomplete(),
    hints=(
        "After round 0 the ranks 0 and 1 hold the same sum, and 2 and 3 another. With whom must 0 swap next? Write "
        "both numbers with binary digits: how do they differ? And who is left over when there are 3 ranks?",
        "`active = fold_in(comm, vector, op)`; the ranks below `active`, for distance = 1, 2, 4, … < active: "
        "`comm.Sendrecv(vector, dest=partner, recvbuf=incoming, source=partner)` with partner = rank ^ distance, then "
        "combine. At the end all call `fold_out(comm, vector, active)`.",
    ),
    symptoms=spoken_of(__file__),
    praise=_praise,
)
