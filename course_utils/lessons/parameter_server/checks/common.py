"""What the checks of lesson 8 share: what the messages of a run tell that no result shows."""

from course_utils.checks.exercise import Outcome

LEAST = 4  # with fewer ranks the mistakes do not show: cases for this many are made, and left out where they do not fit
HEADERS = 1024  # bytes that a pickle may add to its numbers


def called(outcome: Outcome, *names: str) -> bool:
    """Whether a call was made whose name, in small letters, has one of these in it."""
    made = {event.name.lower() for reply in outcome.attempt.replies for event in reply.events or ()}
    return any(name in one for one in made for name in names)


def gathers(outcome: Outcome) -> bool:
    """Whether the numbers of single ranks came to others, and not their sum alone."""
    return called(outcome, "gather", "alltoall")


def needless_bytes(outcome: Outcome, enough: int) -> str | None:
    """Which rank has put in more bytes than are enough; a pickle may be a little longer than its numbers."""
    for rank, reply in enumerate(outcome.attempt.replies):
        put_in, pickled = outcome.run.bytes_per_rank[rank], any(event.name.islower() for event in reply.events or ())
        if put_in > enough + HEADERS * pickled:
            return f"rank {rank} put in {put_in:,} bytes; {enough:,} are enough"
    return None
