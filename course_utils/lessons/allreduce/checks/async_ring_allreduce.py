"""The check of `async_ring_allreduce`: the bytes of the ring, in segments passed on while others are on their way."""

import dataclasses
import math
from bisect import bisect_right
from collections.abc import Iterator

import numpy as np

from course_utils.checks.exercise import Case, Cost, Exercise, Outcome
from course_utils.checks.finding import Finding, own
from course_utils.lessons.allreduce.async_ring import SEGMENT_BYTES
from course_utils.lessons.allreduce.checks.common import (
    LEAST,
    CostOf,
    Judge,
    allreduce_cases,
    case_of,
    numbers,
    powers_of_ten,
    promises_kept,
    wrong_sums,
)
from course_utils.lessons.allreduce.checks.pace import against_a_plain_ring
from course_utils.lessons.allreduce.checks.ring_allreduce import ring_cost
from course_utils.lessons.allreduce.checks.symptoms import spoken_of
from course_utils.words import count, ranks

BLOCKING_CALLS = {"recv": ("Recv", "Sendrecv"), "send": ("Send", "Ssend", "Rsend", "Sendrecv")}
SLOW = 15.0  # this many times as long as a plain ring: programs beside it can make it several, a pause many
TOO_LONG = "the result is right, but rank {rank} sent a message of {nbytes} bytes; a segment has at most {most}"
BLOCKING = "the result is right, but rank {rank} received by {call}, which waits until the message has arrived"
BLOCKING_SEND = "the result is right, but rank {rank} sent by {call}, which may wait until the message is taken"
ONE_AT_A_TIME = "the result is right, but no rank ever had two of its messages on their way at the same time"
BLOCK_BY_BLOCK = "the result is right, but every rank waited for a whole block before it sent a segment on"
SECOND_HALF = "the result is right, but every rank waited for whole blocks before it sent complete segments on"
TOO_SLOW = "the result is right, but it took {times:.1f} times longer than a ring of blocking messages"


def async_cost(room: int) -> CostOf:
    """What the ring costs when no message is longer than `room` numbers: a round for each segment."""

    def cost(size: int, length: int) -> Cost:
        segments = max(1, math.ceil(math.ceil(length / size) / room))
        plain = ring_cost(size, length)
        rounds = plain.rounds * segments
        return Cost(rounds=rounds, messages=rounds * size, bytes_per_rank=plain.bytes_per_rank)

    return cost


def _cases(rng: np.random.Generator, world_size: int) -> Iterator[Case]:
    world_size = max(world_size, LEAST)

    def case(
        size: int,
        length: int,
        room: int,
        dtype: str = "float64",
        nbytes: int = 0,
        judge: Judge = _segments_follow,
    ) -> Case:
        """`room`: numbers that a segment holds; `nbytes`: its bytes, where that is not just their size."""
        vectors = [numbers(rng, length, dtype) for _ in range(size)]
        nbytes = nbytes or room * vectors[0].itemsize
        label = f"{ranks(size)}, {count(length, f'{dtype} number')}, segments of {nbytes} bytes"
        return case_of(vectors, async_cost(room), label, nbytes, judge=judge)

    plain = allreduce_cases(rng, world_size, async_cost(10**9))
    yield next(plain)
    yield powers_of_ten(world_size, 4 * world_size, async_cost(2), ", segments of 16 bytes", 16, judge=_segments_follow)
    yield Case(
        "2 ranks, 500000 float32 numbers",
        [(500_000, SLOW)] * 2,
        judge=lambda outcome: _too_slow(outcome.results[0]),
        harness=against_a_plain_ring,
        timed=True,
    )
    yield case(world_size, 24 * world_size, 3)
    yield from plain
    yield case(world_size, 32 * world_size + 5, 4)
    yield case(world_size - 1, 100, 10, "float32")
    yield case(world_size - 1, 40, 3, "int64")
    yield case(world_size - 1, 3 * world_size - 2, 3, judge=promises_kept)  # one block has a segment more
    yield case(world_size, 8 * world_size + 3, 2, nbytes=20)
    yield dataclasses.replace(case(world_size, 3 * world_size, 1, nbytes=3), key="less-than-a-number")
    yield _default_segments(rng)
    yield case(2, 17, 1)
    yield case(1, 9, 2)
    yield case(world_size, 16 * world_size, 8)


def _default_segments(rng: np.random.Generator) -> Case:
    """Blocks of a little more than `SEGMENT_BYTES` on two ranks; the call names no size."""
    vectors = [numbers(rng, 2 * SEGMENT_BYTES // 8 + 9, "float64") for _ in range(2)]
    label = "2 ranks, blocks longer than a segment, whose size is not given"
    case = case_of(vectors, async_cost(1), label, judge=_no_longer_than_default, key="default")
    return dataclasses.replace(case, cost=None)


def _no_longer_than_default(outcome: Outcome) -> Finding | None:
    for event in outcome.run.events:
        if event.kind == "send" and event.bytes > SEGMENT_BYTES:
            return own("long-segment", TOO_LONG, rank=event.rank, nbytes=event.bytes, most=SEGMENT_BYTES)
    return promises_kept(outcome)


def _too_slow(times: float) -> Finding | None:
    return own("too-slow", TOO_SLOW, measured={"times": times}) if times > SLOW else None


def _segments_follow(outcome: Outcome) -> Finding | None:
    most = max(outcome.case.arguments[0][1], outcome.case.arguments[0][0].itemsize)
    sends = [[event for event in reply.events if event.kind == "send"] for reply in outcome.attempt.replies]
    receives = [[event for event in reply.events if event.kind == "recv"] for reply in outcome.attempt.replies]
    broken = promises_kept(outcome)
    if broken or outcome.world_size == 1:
        return broken
    for rank, sent in enumerate(sends):
        nbytes = max((event.bytes for event in sent), default=0)
        if nbytes > most:
            return own("long-segment", TOO_LONG, rank=rank, nbytes=nbytes, most=most)
    if max(_at_once(events) for events in [*sends, *receives]) < 2:
        return own("one-at-a-time", ONE_AT_A_TIME)
    for event in (event for received in receives for event in received):
        if event.name in BLOCKING_CALLS["recv"]:
            return own("blocking-receive", BLOCKING, rank=event.rank, call=event.name)
    for event in (event for sent in sends for event in sent):
        if event.name in BLOCKING_CALLS["send"]:
            return own("blocking-send", BLOCKING_SEND, rank=event.rank, call=event.name)
    segments = outcome.case.cost.rounds // (2 * (outcome.world_size - 1))
    early = set().union(*(_early_steps(*both, segments) for both in zip(sends, receives, strict=True)))
    return _block_by_block(early, outcome.world_size)


def _block_by_block(early: set[int], size: int) -> Finding | None:
    """Blocks are passed on in the steps 1 … 2 P − 3; from step P on, they are finished."""
    if not early & {*range(1, size)}:
        return own("block-by-block", BLOCK_BY_BLOCK)
    if size > 2 and not early & {*range(size, 2 * size - 2)}:
        return own("block-by-block", SECOND_HALF)
    return None


def _at_once(events: list) -> int:
    """How many of the messages were begun and not yet complete, at most."""
    starts, ends = sorted(event.start for event in events), sorted(event.end for event in events)
    return max((bisect_right(starts, moment) - bisect_right(ends, moment) for moment in starts), default=0)


def _early_steps(sent: list, received: list, segments: int) -> set[int]:
    """The steps whose first segment went out before the last of the step before had come."""
    starts, ends = sorted(event.start for event in sent), sorted(event.end for event in received)
    firsts = range(segments, min(len(starts), len(ends) + 1), segments)
    return {first // segments for first in firsts if starts[first] < ends[first - 1]}


def _praise(outcome: Outcome) -> str:
    at_once = max(
        _at_once([event for event in reply.events if event.kind == kind])
        for reply in outcome.attempt.replies
        for kind in ("send", "recv")
    )
    sent = max(outcome.run.bytes_per_rank) / outcome.arguments[0][0].nbytes
    return (
        f"{ranks(outcome.world_size)} agree; a rank had up to {count(at_once, 'segment')} on their way at once, and "
        f"each sent {sent:.2f} times its vector, the least possible"
    )


EXERCISE = Exercise(
    library="async_ring",
    number=5,
    minutes=45,
    difficulty=3,
    turn="send each segment on as soon as it has arrived",
    title="a ring in which each segment is sent on at once",
    cases=_cases,
    wrong_blocks=wrong_sums,
    hints=(
        "A segment that has arrived and has been added can be sent on at once, without waiting for the others of its "
        "block. In which order do the segments of all blocks arrive at rank 0? Which of them does it send on, and to "
        "which of them does it add?",
        "First start an `Isend` for each segment of the block that the ring sends first. Then make a list of all "
        "segments that will arrive, in order, and go through it. For each, there is an `Irecv` that was started "
        "earlier, one or two segments ahead. Wait for it, add it in the first P − 1 steps, or copy it into the vector "
        "after that, and start an `Isend` of the same segment, except in the last step. Let each `Irecv` fill an array "
        "of its own, and each `Isend` send a copy; then no two of them get into each other's way. At the end, wait for "
        "all sends.",
    ),
    symptoms=spoken_of(__file__),
    praise=_praise,
)
