"""The pictures of deck 14: a timeline to count in, wrong clocks and one clock, overlap, and five slow programs."""

from functools import cache, partial

from matplotlib.figure import Figure

import course_utils as course
from course_utils.lessons.data_parallel.replicas import all_reduce_flat
from course_utils.lessons.overlap.buckets import overlapped
from course_utils.lessons.profiling import pictures
from course_utils.lessons.profiling.lanes import Lanes
from course_utils.lessons.profiling.record_profiles import Profile, profile_ranks, training_step
from course_utils.lessons.profiling.sentences import overlap_text, profile_text
from course_utils.lessons.profiling.slow_programs import profile_program, race

BATCH = 32
STEPS = 3  # that are profiled
ROUNDS = 5  # of a slow program and its faster one
AHEAD = (0.0, 0.6, -0.4, 1.0)  # of a step: clocks, played
DRAFT = {"BATCH": 4, "STEPS": 1, "ROUNDS": 1}


@cache
def nodes():
    """The ranks that all pictures of this deck run on."""
    return course.start(4, link="400 Mbit/s")


@cache
def profiled(overlap: bool) -> Profile:
    """Steps with all messages at the end, or in buckets."""
    way = partial(overlapped, bucket_bytes=500_000) if overlap else all_reduce_flat
    return profile_ranks(nodes(), training_step, way, BATCH, steps=STEPS)


@cache
def slow(number: int) -> list[Lanes]:
    """A whole run of a slow program."""
    return profile_program(nodes(), number).lanes


def by_hand() -> Figure:
    """Ten seconds of one rank, made up."""
    rank_0 = Lanes(0, 0, 10, [(0, 4), (6, 9)], [(2, 6), (5, 7)], {})
    return pictures.profile([rank_0], "Ten seconds, made up to be counted")


def clocks() -> Figure:
    """Four traces side by side, each on a clock of its own."""
    step = profiled(False).lanes[0].seconds / STEPS
    lanes = profiled(False).lanes_by_clocks([share * step for share in AHEAD])
    return pictures.profile(lanes, "Four clocks: on rank 2 a message ends before rank 3 begins it")


def merged() -> Figure:
    """The same on one clock."""
    lanes = profiled(False).lanes
    return pictures.profile(lanes, profile_text(lanes))


def hidden() -> Figure:
    """The same steps with buckets."""
    before, after = profiled(False).lanes, profiled(True).lanes
    return pictures.profile(after, profile_text(after), overlap_text(before, after, "buckets"))


def patient(number: int) -> Figure:
    """A slow program, the cause not told."""
    return pictures.profile(slow(number), f"Slow program {number}", profile_text(slow(number)))


def cured(number: int) -> Figure:
    """The slow program and the better one, on rank 0."""
    taken = race(nodes(), number, ROUNDS)
    both = [slow(number)[0], profile_program(nodes(), number, fast=True).lanes[0]]
    title = f"Program {number}: {taken}"
    return pictures.profile(both, title, "Rank 0, one run of each", names=["slow", "better"])


FIGURES = {
    "14_by_hand": by_hand,
    "14_clocks": clocks,
    "14_merged": merged,
    "14_hidden": hidden,
    **{f"14_slow_{number}": partial(patient, number) for number in (1, 4, 5)},
    **{f"14_cured_{number}": partial(cured, number) for number in (1, 4, 5)},
}
