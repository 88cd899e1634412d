"""Which request has which slot of a batch, and when: counted in steps of decoding, so that no clock decides anything.

In every step the model writes one token for each request in the batch. A batch has a fixed number of slots. With static
batching a new batch begins when all requests of the last one are done. With continuous batching, whoever is done leaves
its slot at once, and the next request in the queue takes it in the next step.

Source: Yu et al. 2022, "Orca: A Distributed Serving System for Transformer-Based Generative Models", §3.1
(iteration-level scheduling).
"""

from collections.abc import Sequence
from typing import NamedTuple

from course_utils.errors import CourseError


class TextRequest(NamedTuple):
    """What a reader asks of the server.

    Attributes:
        arrives: the first step in which it may take part.
        tokens: how many tokens its answer has, one at least: so many steps it takes.
    """

    arrives: int
    tokens: int


def continuous_batch(requests: Sequence[tuple[int, int]], slots: int) -> list[tuple[int, int, int]]:
    """Return when each request is in the batch, and in which slot, with continuous batching.

    At the beginning of each step, the requests that wait take the free slots: the first in the
    queue takes the free slot with the lowest number. A request has its slot until its last token
    is written. In the next step the slot is free.

    Args:
        requests: (arrives, tokens) of each, in the order of the queue, so `arrives` never falls.
            A request may begin in the step in which it arrives, and stays for `tokens` steps.
        slots: how many requests the batch can hold.

    Returns:
        (slot, begins, ends) of each request, in the same order: the steps begins … ends - 1 are
        those in which it has the slot.

    Raises:
        CourseError: there is no slot, an answer has no token, or `arrives` falls.

    Source: Yu et al. 2022, "Orca", §3.1 (iteration-level scheduling).
    """
    check_requests(requests, slots)
    free = [0] * slots  # the step from which on each slot is free
    stays = []
    for arrives, tokens in requests:
        # No request overtakes another, so a slot is never free before an earlier request could have had it.
        begins = max(arrives, min(free))
        slot = next(slot for slot, step in enumerate(free) if step <= begins)
        free[slot] = begins + tokens
        stays.append((slot, begins, begins + tokens))
    return stays


def static_batch(requests: Sequence[tuple[int, int]], slots: int) -> list[tuple[int, int, int]]:
    """Return the same as `continuous_batch`, but a batch begins only when the one before it is done.

    A batch takes those that wait at its beginning, as many as there are slots, and lasts as long as its longest answer.
    """
    check_requests(requests, slots)
    stays: list[tuple[int, int, int]] = []
    step, waiting = 0, list(requests)
    while waiting:
        step = max(step, waiting[0][0])
        batch = [request for request in waiting[:slots] if request[0] <= step]
        stays += [(slot, step, step + tokens) for slot, (_, tokens) in enumerate(batch)]
        step += max(tokens for _, tokens in batch)
        waiting = waiting[len(batch) :]
    return stays


def check_requests(requests: Sequence[tuple[int, int]], slots: int) -> None:
    """Reject what cannot be put into a batch.

    Raises:
        CourseError: there is no slot, an answer has no token, or `arrives` falls.
    """
    if slots < 1:
        raise CourseError(f"A batch of {slots} slots holds no request. Give it at least one.")
    if any(tokens < 1 for _, tokens in requests):
        raise CourseError("Each answer needs at least one token.")
    if any(later[0] < earlier[0] for earlier, later in zip(requests, requests[1:], strict=False)):
        raise CourseError("The requests must be in the order in which they arrive.")


def waiting_steps(requests: Sequence[tuple[int, int]], stays: Sequence[tuple[int, int, int]]) -> list[int]:
    """Return for how many steps each request waits before it gets a slot."""
    return [begins - arrives for (arrives, _), (_, begins, _) in zip(requests, stays, strict=True)]
