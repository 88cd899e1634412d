"""Prefill and decode on different ranks: whose waiting costs more, that of the running answers or that of the cache?

A rank that decodes writes one token of each running answer in every step. If it also has to read a new prompt, all of
them wait until it is done. If a second rank reads the prompt, no running answer waits for that, but the prompt's KV
cache has to travel to the rank that decodes, and its own answer waits until it has arrived.

Source: Zhong et al. 2024, "DistServe: Disaggregating Prefill and Decoding for Goodput-optimized Large Language Model
Serving"; Patel et al. 2024, "Splitwise: Efficient Generative LLM Inference Using Phase Splitting".
"""

from collections.abc import Sequence
from typing import NamedTuple

from course_utils.errors import CourseError


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
