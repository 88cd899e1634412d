"""Who waits for whom in the dumps of torch's Flight Recorder, and at which ranks to look first.

After a hang nearly every rank waits: some for the rank that is at fault, and the others for ranks that wait for it. So
the waits of all groups and messages are put together. A rank that is waited for and waits for nobody is where to look.
If some waits lead to no such rank, they lead to a circle of ranks that wait for each other, and then to all of these.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from course_utils.lessons.profiling.dumps.recorder_comparison import (
    DumpComparison,
    GroupKind,
    GroupState,
    LoneMessage,
)


@dataclass(frozen=True)
class RecordedWait:
    """The ranks that wait in a group or for a message.

    Attributes:
        cause: the group or message.
        others: for each rank that waits, those that it waits for. They may be none, if there are only unseen ones.
        unseen: ranks that all of them may be waiting for as well, as the dumps don't show whether these have come.
    """

    cause: GroupState | LoneMessage
    others: dict[int, frozenset[int]]
    unseen: frozenset[int]

    def waiting_for(self, ranks: frozenset[int]) -> frozenset[int]:
        """Return those that wait for one of these ranks, or may do so."""
        return frozenset(rank for rank, others in self.others.items() if ranks & (others | self.unseen))

    @property
    def wanted(self) -> frozenset[int]:
        """All ranks that are waited for, or may be."""
        return self.unseen.union(*self.others.values())


@dataclass(frozen=True)
class FirstRanks:
    """The ranks at which to look first, and who waits for them.

    Attributes:
        ranks: those with a dump that are waited for.
        missing: those without a dump that may be waited for.
        circle: those of the ranks that wait for each other.
        waiting: further ranks, which wait for the suspects.
        is_direct: whether all of these wait for a suspect directly, and none only through others.
        is_certain: whether the dumps show that each suspect is waited for.
        shows_where: whether there are suspects, and they are not mostly ranks that wrote no dump.
        waits: all waits, of all groups and messages.
    """

    ranks: frozenset[int]
    missing: frozenset[int]
    circle: frozenset[int]
    waiting: frozenset[int]
    is_direct: bool
    is_certain: bool
    shows_where: bool
    waits: tuple[RecordedWait, ...]

    @property
    def suspects(self) -> frozenset[int]:
        """The ranks with a dump, or if there are none, the missing ones."""
        return self.ranks or self.missing


def first_ranks(found: DumpComparison) -> FirstRanks:
    """Follow the waits of all groups and messages to the ranks at which they end."""
    waits = recorded_waits(found)
    waited_for: dict[int, set[int]] = defaultdict(set)
    surely: dict[int, set[int]] = defaultdict(set)
    for wait in waits:
        for rank in wait.waiting_for(wait.wanted):
            waited_for[rank] |= wait.others[rank] | wait.unseen
            surely[rank] |= wait.others[rank]
    ends = _ends(waited_for)
    # A circle stays one, whatever ranks without a dump do. If they alone may be waited for, there is no circle.
    circle = _circle({rank: others for rank, others in surely.items() if others}) or _circle(waited_for)
    ranks = (ends & set(found.ranks)) | circle
    suspects = ranks or ends
    waiting = _leading_to(suspects, waited_for, _unfinished_together(found)) - suspects
    return FirstRanks(
        ranks=ranks,
        missing=(ends - ranks) | _unseen_where_calls_differ(found),
        circle=circle,
        waiting=waiting,
        is_direct=waiting <= frozenset().union(*(wait.waiting_for(suspects) for wait in waits)),
        is_certain=suspects <= {rank for wait in waits for others in wait.others.values() for rank in others},
        shows_where=bool(ranks) or 0 < len(ends) <= len(found.ranks),
        waits=waits,
    )


def _ends(waited_for: dict[int, set[int]]) -> frozenset[int]:
    """Return the ranks that are waited for and wait for nobody."""
    return frozenset().union(*waited_for.values()) - set(waited_for)


def _circle(waited_for: dict[int, set[int]]) -> frozenset[int]:
    """Return the ranks that wait for each other, and lead to none that waits for nobody."""
    leading = _leading_to(_ends(waited_for), waited_for)
    return _in_circles({rank: others for rank, others in waited_for.items() if rank not in leading})


def _unseen_where_calls_differ(found: DumpComparison) -> frozenset[int]:
    """Return the ranks without a dump that may have called something else, as others did, or nothing."""
    differing = (state for state in found.groups if state.kind is GroupKind.DIFFERENT)
    return frozenset(rank for state in differing for rank in state.missing)


def recorded_waits(found: DumpComparison) -> tuple[RecordedWait, ...]:
    """Return who waits for whom in each group and for each message."""
    waits = [_wait_in_group(state) for state in found.groups if state.kind is not GroupKind.OVER]
    waits += [_wait_for_message(lone) for lone in found.messages]
    return tuple(wait for wait in waits if wait.others and wait.wanted)


def _wait_in_group(state: GroupState) -> RecordedWait:
    if state.kind is GroupKind.DIFFERENT:
        return RecordedWait(state, _waited_for_in_other_parties(state), frozenset())
    behind = {number: _behind(state, number) for number in set(state.unfinished.values())}
    # What has ended on other ranks waits for no rank without a dump, since that rank must have come to it.
    others = {
        rank: behind[number] for rank, number in state.unfinished.items() if behind[number] or rank not in state.lagging
    }
    return RecordedWait(state, others, frozenset(state.missing or state.group.candidates))


def _behind(state: GroupState, number: int) -> frozenset[int]:
    """Return who is waited for in a collective: those that have not called it, or are not through with an earlier one.

    So a rank whose last call has not ended does not wait for others that are already further.
    """
    called = state.called
    return frozenset(
        rank for rank in state.present if called.get(rank, -1) < number or state.unfinished.get(rank, number) < number
    )


def _waited_for_in_other_parties(state: GroupState) -> dict[int, frozenset[int]]:
    """The largest party waits for the ranks that called something else; if none is the largest, all wait for all."""
    waited_for = {}
    for party in state.parties:
        others = frozenset(state.odd or set(state.calls) - set(party)) | set(state.absent)
        for rank in sorted({*state.waiting, *state.unfinished}.intersection(party) - set(state.odd)):
            waited_for[rank] = others
    return waited_for


def _wait_for_message(lone: LoneMessage) -> RecordedWait:
    """Both wait for each other if the counterpart has a different size."""
    calls = {lone.call.rank: lone.call} | ({lone.peer: lone.other} if lone.other else {})
    ends = {lone.call.rank: lone.peer, lone.peer: lone.call.rank}
    waiting = [rank for rank, call in calls.items() if not call.is_over]
    if lone.has_dump:
        return RecordedWait(lone, {rank: frozenset({ends[rank]}) for rank in waiting}, frozenset())
    return RecordedWait(lone, {rank: frozenset() for rank in waiting}, frozenset({lone.peer}))


def _unfinished_together(found: DumpComparison) -> Iterator[tuple[frozenset[int], frozenset[int]]]:
    """Yield the ranks of each call to which all have come and that goes on, and those of them on which it goes on.

    If one of these ranks waits elsewhere, its GPU has usually not begun with the call, and the others wait through it.
    """
    for state in found.groups:
        if state.kind is GroupKind.TOGETHER:
            yield frozenset(state.present), frozenset(state.unfinished)
    for rank, peer in found.met:
        yield frozenset({rank, peer}), frozenset({rank})


def _leading_to(
    ranks: frozenset[int],
    waited_for: dict[int, set[int]],
    unfinished_together: Iterable[tuple[frozenset[int], frozenset[int]]] = (),
) -> frozenset[int]:
    """Return these ranks, and all that wait for one of them, directly or through others."""
    waiting: dict[int, set[int]] = defaultdict(set)
    for rank, others in waited_for.items():
        for other in others:
            waiting[other].add(rank)
    together: dict[int, list[frozenset[int]]] = defaultdict(list)
    for present, unfinished in unfinished_together:
        for rank in present:
            together[rank].append(unfinished)
    reached, new = set(ranks), list(ranks)
    while new:
        rank = new.pop()
        found = waiting[rank].union(*together[rank]) - reached
        reached |= found
        new += found
    return frozenset(reached)


def _in_circles(waited_for: dict[int, set[int]]) -> frozenset[int]:
    """Return the ranks that wait in circles: those left after all are taken away that no other rank waits for."""
    left = frozenset(waited_for)
    while unwanted := left - frozenset().union(*(waited_for[rank] for rank in left)):
        left -= unwanted
    return left


def example_groups(first: FirstRanks, most: int) -> list[GroupState]:
    """Choose the groups that show best why to look at these ranks: as few as show all of them, if there are such.

    Of those that show equally many, the one is taken in which most ranks wait for them.
    """
    suspects, shown = first.suspects, frozenset[int]()
    groups = [(wait.cause, wait) for wait in first.waits if isinstance(wait.cause, GroupState)]
    chosen: list[GroupState] = []
    while len(chosen) < most and (groups := [each for each in groups if each[1].wanted & suspects - shown]):
        state, wait = max(
            groups, key=lambda each: (len(each[1].wanted & suspects - shown), len(each[1].waiting_for(suspects)))
        )
        chosen.append(state)
        shown |= wait.wanted
    return chosen


def example_messages(found: DumpComparison, first: FirstRanks, most: int) -> list[LoneMessage]:
    """Choose messages, first those that wait for these ranks."""
    return sorted(found.messages, key=lambda lone: lone.peer not in first.suspects)[:most]
