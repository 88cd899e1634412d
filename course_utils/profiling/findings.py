"""What a profile says, in a sentence: written here once, chosen by the numbers."""

import statistics
from collections.abc import Sequence

from course_utils.draw.style import number_text, percent, seconds_text
from course_utils.profiling.intervals import length
from course_utils.profiling.lanes import Lanes
from course_utils.profiling.ratio import Ratio

LITTLE = 0.05
TIE = 0.05
"""Ratios nearer to 1 than this are called equal."""


def exposed_share(lanes: Lanes) -> float:
    """Exposed communication as a share of the rank's steps."""
    return lanes.exposed_seconds / lanes.seconds


def profile_said(lanes: Sequence[Lanes]) -> str:
    """Where the time of the ranks went, on average: the largest of what is not computing."""
    exposed = statistics.fmean(exposed_share(one) for one in lanes)
    idle = statistics.fmean(one.idle_share for one in lanes)
    computing = f"the ranks compute {percent(statistics.fmean(length(one.computing) / one.seconds for one in lanes))}"
    told = f"Of each step {computing} of the time"
    if max(exposed, idle) < LITTLE:
        return f"{told}: little is lost"
    if exposed >= idle:
        return f"{told}; {percent(exposed)} is exposed communication"
    return f"{told}; {percent(idle)} is idle: no computing, no messages"


def overlap_said(before: Sequence[Lanes], after: Sequence[Lanes], name: str) -> str:
    """How much of the communication is hidden in one profile and in another one, whose `name` is said."""
    first, second = (statistics.fmean(one.overlap_share for one in lanes) for lanes in (before, after))
    told = f"Hidden: {percent(first)} of the communication before, {percent(second)} with {name}"
    if second > first + LITTLE:
        return told
    return f"{told}. Nothing is gained here: is the machine busy with other work?"


def step_text(lanes: Lanes) -> str:
    """`rank 2: 31 ms a step, 4 ms of it exposed communication, 12 % idle`."""
    each = [seconds_text(seconds / lanes.steps) for seconds in (lanes.seconds, lanes.exposed_seconds)]
    idle = percent(lanes.idle_share)
    return f"rank {lanes.rank}: {each[0]} a step, {each[1]} of it exposed communication, {idle} idle"


def latest_rank(lanes: Sequence[Lanes]) -> int:
    """The rank that the others wait for: it computes longest."""
    return max(lanes, key=lambda one: length(one.computing)).rank


def ratio_said(taken: Ratio, target: float | None = None) -> str:
    """How many times as fast, and how far the rounds lie apart."""
    low, high = min(taken.ratios), max(taken.ratios)
    told = f"{number_text(taken.factor)} times as fast ({number_text(low)} to {number_text(high)} in single rounds)"
    if abs(taken.factor - 1) < TIE:
        told = f"as fast as before ({number_text(low)} to {number_text(high)} times in single rounds)"
    elif taken.factor < 1:
        told = f"slower: {told}"
    if target is None:
        return told
    return f"{told}; {number_text(target)} were asked for"
