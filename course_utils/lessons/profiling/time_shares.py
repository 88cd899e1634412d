"""Where a rank's time went: exposed communication, the share of communication that is hidden, and the idle share.

They are counted from intervals, in which the rank computed or had messages in flight.
Source of the terms: Holistic Trace Analysis (documentation, "Communication computation overlap", "Idle time").
"""

from collections.abc import Iterable

from course_utils.lessons.profiling.intervals import Interval, difference


def overlap_share(computing: Iterable[Interval], communication: Iterable[Interval]) -> float:
    """Return the share of the communication time in which the rank computes as well, from 0 to 1.

    Intervals may come in any order, overlap others of the same list, and have no length. Time
    counts once, however many operations there are at that moment.

    Args:
        computing: (begin, end) of each computation of one rank, in seconds.
        communication: (begin, end) of each of its messages, in seconds.

    Returns:
        The share, or 0 if no message is in flight at any time.
    """
    # Nothing changes between one begin or end and the next.
    # So go through these moments and add up the times between them.
    changes = []
    for which, intervals in enumerate((computing, communication)):
        for begin, end in intervals:
            changes += [(begin, 1, which), (end, -1, which)]
    at_work = [0, 0]  # how many computations, how many messages
    hidden = under_way = before = 0.0
    for moment, change, which in sorted(changes):
        if at_work[1]:
            under_way += moment - before
            hidden += moment - before if at_work[0] else 0.0
        at_work[which] += change
        before = moment
    return hidden / under_way if under_way else 0.0


def idle_share(
    computing: Iterable[Interval],
    communication: Iterable[Interval],
    begin: float,
    end: float,
) -> float:
    """Return the share of the time from `begin` to `end` in which a rank neither computes nor
    communicates, from 0 to 1.

    Intervals may come in any order, overlap each other, and reach beyond `begin` and `end`. Only
    the time between `begin` and `end` counts.

    Args:
        computing: (begin, end) of each computation of one rank, in seconds.
        communication: (begin, end) of each of its messages, in seconds.
        begin: when the time that counts begins, in seconds.
        end: when it ends.

    Returns:
        The share, or 0 if `end` is not later than `begin`.
    """
    if end <= begin:
        return 0.0
    busy, counted = 0.0, begin  # the time before `counted` is done
    for one_begin, one_end in sorted([*computing, *communication]):
        one_begin, one_end = max(one_begin, counted), min(one_end, end)
        if one_begin < one_end:
            busy += one_end - one_begin
            counted = one_end
    return 1 - busy / (end - begin)


def exposed_communication(computing: Iterable[Interval], communication: Iterable[Interval]) -> list[Interval]:
    """Return when a message was in flight and the rank did not compute, which is what costs time."""
    return difference(communication, computing)
