"""Three numbers that say where a rank's time went: exposed communication, the share that is hidden, the idle share.

They are counted in intervals: when the rank computed, and when communication of its was under way.
Source of the terms: Holistic Trace Analysis (documentation, "Communication computation overlap", "Idle time").
"""

from collections.abc import Iterable

from course_utils.lessons.profiling.intervals import Interval, difference


def overlap_share(computing: Iterable[Interval], communication: Iterable[Interval]) -> float:
    """Which share of the communication time is hidden: while the rank computes, too. From 0 to 1.

    Intervals may overlap, also within one list, stand in any order, and be empty: time counts once,
    however many operations are under way. Nothing moves between ranks.

    Args:
        computing: (begin, end) of each computation of one rank, in seconds.
        communication: the same of its messages.

    Returns:
        The share; 0 where there is no communication.
    """
    # Between a begin or an end and the next, nothing changes:
    # go through these moments and add up the time between.
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
    """Which share of the time from `begin` to `end` a rank neither computes nor communicates. From
    0 to 1.

    Intervals may overlap, stand in any order, and reach beyond `begin` and `end`: only what lies
    between them counts. Nothing moves between ranks.

    Args:
        computing: (begin, end) of each computation of one rank, in seconds.
        communication: the same of its messages.

    Returns:
        The share; 0 where `end` is not later than `begin`.
    """
    if end <= begin:
        return 0.0
    busy, counted = 0.0, begin  # what lies before `counted` is done
    for one_begin, one_end in sorted([*computing, *communication]):
        one_begin, one_end = max(one_begin, counted), min(one_end, end)
        if one_begin < one_end:
            busy += one_end - one_begin
            counted = one_end
    return 1 - busy / (end - begin)


def exposed_communication(computing: Iterable[Interval], communication: Iterable[Interval]) -> list[Interval]:
    """When communication was under way and the rank did not compute: only this costs time."""
    return difference(communication, computing)
