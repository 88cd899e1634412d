"""What a pass through a model moves between ranks, read from its trace: which collectives, in which phase, how much."""

from collections.abc import Iterable, Sequence

from course_utils.errors import CourseError
from course_utils.trace.events import Event, phase_seconds
from course_utils.words import bytes_text, count, join

WORDS = {
    "all_reduce": "all-reduce",
    "all_gather": "all-gather",
    "all_gather_single": "all-gather",
    "reduce_scatter": "reduce-scatter",
    "reduce_scatter_single": "reduce-scatter",
    "all_to_all": "all-to-all",
    "all_to_all_single": "all-to-all",
}
"""torch's names for collectives, and what they are called in sentences."""


def collectives_in(events: Iterable[Event], phase: str, rank: int = 0) -> list[Event]:
    """The collectives that a rank began within its phases of this name, in order."""
    mine = [event for event in events if event.rank == rank]
    spans = [(event.start, event.end) for event in mine if event.kind == "phase" and event.name == phase]
    within = [
        event
        for event in mine
        if event.kind == "collective" and any(start <= event.start <= end for start, end in spans)
    ]
    return sorted(within, key=lambda event: event.start)


def in_phase(events: Sequence[Event], phase: str) -> list[Event]:
    """All ranks' phases of this name, and the collectives that they began in them: what a picture of it needs."""
    ranks = sorted({event.rank for event in events})
    phases = [event for event in events if event.kind == "phase" and event.name == phase]
    return phases + [event for rank in ranks for event in collectives_in(events, phase, rank)]


def moved_text(events: Sequence[Event], phase: str, rank: int = 0) -> str:
    """What a phase moves, in words: `2 all-reduces of 24 KB`, or `nothing`."""
    moved = [(event.name, event.bytes) for event in collectives_in(events, phase, rank)]
    amounts = [
        f"{count(moved.count(message), WORDS.get(message[0], message[0]))} of {bytes_text(message[1])}"
        for message in dict.fromkeys(moved)
    ]
    return join(amounts) or "nothing"


def ring_bytes(event: Event, ranks: int) -> float:
    """Bytes that each rank sends in a collective where it is done by rings, as on most large machines.

    The trace counts what a rank contributes: its vector to an all-reduce or reduce-scatter, its part to an all-gather.
    In an all-to-all, each part of it is sent straight to its rank, and one stays.

    Raises:
        CourseError: another collective.

    Source: lesson 5; Thakur et al. 2005, §4.
    """
    if event.name not in WORDS:
        raise CourseError(f"{event.name!r} is not one of {', '.join(WORDS)}.")
    vectors = {"all-reduce": 2 * (ranks - 1) / ranks, "reduce-scatter": (ranks - 1) / ranks, "all-gather": ranks - 1}
    vectors["all-to-all"] = (ranks - 1) / ranks
    return vectors[WORDS[event.name]] * event.bytes


def pass_bytes(events: Sequence[Event], ranks: int, rank: int = 0) -> float:
    """Bytes that a rank sends in all collectives of a run, were they done by rings."""
    return sum(ring_bytes(event, ranks) for event in events if event.kind == "collective" and event.rank == rank)


def idle_share(events: Sequence[Event], ranks: int) -> float:
    """The share of all ranks' time in which no phase of theirs was going on, from the first phase to the last.

    Raises:
        CourseError: the run has no phase.
    """
    phases = [event for event in events if event.kind == "phase"]
    if not phases:
        raise CourseError("This run has no phase. Put `with phase(...)` around what counts as work.")
    span = max(event.end for event in phases) - min(event.start for event in phases)
    return 1 - sum(phase_seconds(phases).values()) / (ranks * span)
