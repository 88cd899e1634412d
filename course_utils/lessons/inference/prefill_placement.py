"""Prefill and decode on different ranks: whose waiting costs more, that of the running answers or that of the cache?

A rank that decodes writes one token of each running answer in every step. If it also has to read a new prompt, all of
them wait until it is done. If a second rank reads the prompt, no running answer waits for that, but the prompt's KV
cache has to travel to the rank that decodes, and its own answer waits until it has arrived.

Source: Zhong et al. 2024, "DistServe: Disaggregating Prefill and Decoding for Goodput-optimized Large Language Model
Serving"; Patel et al. 2024, "Splitwise: Efficient Generative LLM Inference Using Phase Splitting".
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from course_utils.errors import CourseError
from course_utils.lessons.messages.played_computation import compute_for

if TYPE_CHECKING:  # a notebook's kernel imports this module and must not load MPI: the ranks do
    from mpi4py import MPI

PREFILL, DECODE = 0, 1
"""The rank that reads prompts, and the one that writes answers."""


class Prefill(NamedTuple):
    """What reading and moving a prompt costs.

    Attributes:
        token_seconds: of reading one token of a prompt.
        cache_bytes: of one token in the KV cache.
        alpha: seconds of a message.
        beta: seconds per byte of a message.
    """

    token_seconds: float
    cache_bytes: int
    alpha: float
    beta: float

    def seconds(self, tokens: int) -> float:
        """Seconds to read a prompt of so many tokens."""
        return self.token_seconds * tokens

    def moving_seconds(self, tokens: int) -> float:
        """Seconds until the KV cache of so many tokens is on the other rank."""
        return self.alpha + self.beta * self.cache_bytes * tokens


def break_even(costs: Prefill, tokens: int) -> float:
    """Return how many running answers it takes until moving the cache costs less waiting than reading the prompt here.

    Args:
        tokens: of the prompt, one at least.
    """
    return costs.moving_seconds(tokens) / costs.seconds(tokens)


def place_prefill(
    prompts: Sequence[int],
    running: int,
    token_seconds: float,
    cache_bytes: int,
    alpha: float,
    beta: float,
) -> list[bool]:
    """Return for each prompt whether it is read on the second rank, the one that does not decode.

    All prompts are there at the beginning, and are placed in order. Each goes where it causes less
    waiting, summed over all answers:

    - here, it waits for the prompts before it that are read here, and while it is read, every
      running answer waits, too;
    - on the second rank, it waits for the prompts before it that are read there, and then until
      its cache has come.

    Reading a prompt takes equally long in both places, so it plays no part for the prompt itself.
    If both cause the same waiting, it stays here. Decoding and moving need no time of the second
    rank, and the number of running answers does not change.

    Args:
        prompts: the tokens of each.
        running: answers that are being written at the beginning, 0 or more.
        token_seconds: of reading one token of a prompt.
        cache_bytes: of one token in the KV cache.
        alpha, beta: a message of n bytes takes alpha + beta · n seconds.

    Raises:
        CourseError: a prompt has no token, or `running` is below 0.

    Source: Zhong et al. 2024, "DistServe", §2.3 (the interference) and §3 (its cost).
    """
    if running < 0 or any(tokens < 1 for tokens in prompts):
        raise CourseError("Each prompt needs at least one token, and no fewer than 0 answers can be running.")
    apart, queue_here, queue_there = [], 0.0, 0.0  # seconds of prompts that wait to be read
    for tokens in prompts:
        seconds = token_seconds * tokens
        here = queue_here + running * seconds
        there = queue_there + alpha + beta * cache_bytes * tokens
        apart.append(there < here)
        if there < here:
            queue_there += seconds
        else:
            queue_here += seconds
    return apart


class Waited(NamedTuple):
    """What a run of `played_serving` has counted on the rank that decodes.

    Attributes:
        running: seconds for which each running answer waited for a prompt to be read.
        first_token: seconds from the prompt's arrival until its own first token could be written.
    """

    running: float
    first_token: float


def played_serving(
    comm: "MPI.Intracomm", apart: bool, tokens: int, costs: Prefill, step_seconds: float
) -> Waited | None:
    """Play a decoding rank on which a prompt arrives after its second step; the computations take time and do nothing.

    Args:
        comm: of two ranks. If `apart`, rank 0 reads the prompt and sends the cache to rank 1, which decodes and tests
            after each step whether it has arrived. Otherwise rank 1 does both.
        tokens: of the prompt.
        step_seconds: of a step of decoding.

    Returns:
        What rank 1 has counted; None on rank 0.
    """
    from mpi4py import MPI

    nbytes = costs.cache_bytes * tokens
    if comm.rank == PREFILL:
        compute_for(comm, 2 * step_seconds)  # the prompt arrives
        if apart:
            compute_for(comm, costs.seconds(tokens))
            comm.Send(np.zeros(nbytes, np.uint8), dest=DECODE)
        return None
    cache = np.empty(nbytes, np.uint8)
    compute_for(comm, 2 * step_seconds)
    arrived = MPI.Wtime()
    if not apart:
        compute_for(comm, costs.seconds(tokens))
        return Waited(MPI.Wtime() - arrived, MPI.Wtime() - arrived)
    request = comm.Irecv(cache, source=PREFILL)
    while not request.Test():  # goes on decoding: the running answers wait for nothing
        compute_for(comm, step_seconds)
    return Waited(0.0, MPI.Wtime() - arrived)
