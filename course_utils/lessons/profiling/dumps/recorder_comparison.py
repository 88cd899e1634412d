"""Compare the dumps of several ranks: up to which collective they agree, who waits, and who has not come.

`torchfrtrace`, which comes with torch, compares dumps as well. It stops with a KeyError at gloo's groups, does not
say who is behind if a dump is missing, takes the rank that differs from the lowest one for the culprit, and runs
whatever a pickle asks for. So files from elsewhere are read by `recorder_dumps` and compared here.

Collectives are matched by their number in the group, so it does not matter if the first ones are no longer in the
buffer. Messages are matched by their order between two ranks.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from course_utils.lessons.profiling.dumps.recorder_dumps import GLOO, Dumps, GroupProgress, RankDump, RecordedCall

DEFAULT_GROUP = "default_pg"
"""What torch calls the group of all ranks."""
MOST_RANKS = 1_000_000
NO_DESCRIPTION = ("", "undefined")
Calls = tuple[RecordedCall, ...]
"""What a rank called under one number: one collective, or several that were coalesced."""


class GroupKind(Enum):
    """How the ranks of a group end up."""

    DIFFERENT = "ranks called different collectives under the same number"
    BEHIND = "ranks have not called a collective that others have called"
    UNKNOWN = "those with a dump agree and wait, and other dumps are missing"
    ALONE = "one rank has called a collective, and torch has not recorded who else is in the group"
    TOGETHER = "all ranks are in the same collective, and it does not end"
    OVER = "all that was called is over"


class Feature(Enum):
    """What is not the same on all ranks."""

    OPERATION = "operation"
    TYPE = "type"
    SIZE = "size"


@dataclass(frozen=True)
class RecordedGroup:
    """A process group.

    Attributes:
        members: its ranks, in the order of their numbers in the group.
        is_known: whether torch has recorded the members; otherwise they are those that have used it, and
            those that must be in it because they are in no other group of the same description.
        size: number of ranks, as far as it can be known.
        candidates: ranks that may be in it as well, as they are in no other group of its description.
    """

    name: str
    description: str
    members: tuple[int, ...]
    is_known: bool
    size: int
    candidates: tuple[int, ...] = ()


@dataclass(frozen=True)
class GroupState:
    """What became of a group.

    Attributes:
        agreed: numbers of the first and last collective in which all dumps agree; None if there is no such.
        sequence: number of the first collective that is different, not called by all or not over; -1 if there is none.
        parties: ranks that called the same under this number, the largest party first.
        calls: what each of them called.
        waiting: those of them that have not gone on, as far as the dumps show.
        absent: ranks with a dump that have not called it.
        missing: members without a dump.
        last: each rank's last collective in the group, if there is one in the buffer.
        unfinished: number of the first collective that has not ended on a rank, for each rank that has one.
        progress: how far ranks have got by torch's own count, as far as that is known.
        is_held_up: whether all have come, but on a rank an older call goes on that waits for others, so that its GPU
            has not begun with this one.
    """

    group: RecordedGroup
    kind: GroupKind
    agreed: tuple[int, int] | None
    sequence: int
    parties: tuple[tuple[int, ...], ...]
    calls: dict[int, Calls]
    waiting: tuple[int, ...]
    absent: tuple[int, ...]
    missing: tuple[int, ...]
    last: dict[int, RecordedCall]
    unfinished: dict[int, int]
    progress: dict[int, GroupProgress]
    is_held_up: bool = False

    @property
    def called(self) -> dict[int, int]:
        """The number of each rank's last collective in the group, by its calls or by torch's own count."""
        return _last_numbers(self.last, self.progress)

    @property
    def ended_elsewhere(self) -> int:
        """The number up to which collectives have ended on some rank; -1 if that isn't known."""
        before_open = max(self.unfinished.values(), default=0) - 1
        return max([before_open, *(progress.ended for progress in self.progress.values())])

    @property
    def present(self) -> tuple[int, ...]:
        """Members with a dump."""
        return tuple(rank for rank in self.group.members if rank not in self.missing)

    @property
    def lagging(self) -> dict[int, int]:
        """Ranks on whose GPUs a collective has not ended that has ended on others, and its number."""
        if any(calls[-1].backend == GLOO for calls in self.calls.values()):
            return {}
        furthest = self.ended_elsewhere
        return {rank: number for rank, number in self.unfinished.items() if number <= furthest}

    @property
    def feature(self) -> Feature:
        """What distinguishes the parties."""
        shown = list(self.calls.values())
        if len({tuple(call.operation for call in calls) for calls in shown}) > 1:
            return Feature.OPERATION
        if len({tuple(frozenset(call.types) for call in calls) for calls in shown}) > 1:
            return Feature.TYPE
        return Feature.SIZE

    @property
    def odd(self) -> tuple[int, ...]:
        """Ranks in other parties than the largest; none if the largest is not larger than the next."""
        if len(self.parties) < 2 or len(self.parties[0]) == len(self.parties[1]):
            return ()
        return tuple(sorted(rank for party in self.parties[1:] for rank in party))

    @property
    def waited_for(self) -> tuple[int, ...]:
        """Ranks whose fault it may be: those that have not come, or are in something else."""
        return self.absent or self.odd or self.group.candidates


@dataclass(frozen=True)
class LoneMessage:
    """A send or receive that has no counterpart on the other rank.

    Attributes:
        peer: the other rank.
        other: the counterpart, if there is one of a different size.
        has_dump: whether there is a dump of the other rank.
    """

    call: RecordedCall
    peer: int
    other: RecordedCall | None
    has_dump: bool


@dataclass(frozen=True)
class DumpComparison:
    """What the dumps show.

    Attributes:
        groups: those in which something is wrong first, and of them those that explain others.
        messages: those without a counterpart.
        met: for each message that goes on though both ranks have called it, a rank on which it goes on, and the other.
        ranks: those with a dump.
        missing: ranks without a dump.
        unreadable: those of them whose dump is there but can't be read.
        last: the last call of each rank, in whatever group.
        has_open_calls_only: whether calls that have ended are left out of the dumps.
    """

    groups: tuple[GroupState, ...]
    messages: tuple[LoneMessage, ...]
    met: tuple[tuple[int, int], ...]
    ranks: tuple[int, ...]
    missing: tuple[int, ...]
    last: dict[int, RecordedCall]
    has_open_calls_only: bool
    unreadable: frozenset[int] = frozenset()

    @property
    def is_compared(self) -> bool:
        """Whether there is a group of which there are two dumps, as one alone can't be compared with anything."""
        return any(len(state.present) > 1 for state in self.groups)

    @property
    def is_wrong(self) -> bool:
        """Whether anything differs, or a rank waits."""
        goes_on = any(not call.is_over for call in self.last.values())
        return goes_on or bool(self.messages) or any(state.kind is not GroupKind.OVER for state in self.groups)

    @property
    def has_ended_well(self) -> bool:
        """Whether the dumps show that nothing is wrong. If there is nothing to compare them with, they don't."""
        return not self.is_wrong and (self.is_compared or not self.missing)

    @property
    def causes(self) -> tuple[GroupState, ...]:
        """Groups in which something is wrong that does not follow from another group or a message."""
        wrong = [state for state in self.groups if state.kind is not GroupKind.OVER]
        own = tuple(state for state in wrong if not self.follows(state))
        return own if own or self.messages else tuple(wrong)

    @property
    def followers(self) -> tuple[GroupState, ...]:
        """Groups that wait for ranks which wait elsewhere."""
        causes = self.causes
        return tuple(state for state in self.groups if state.kind is not GroupKind.OVER and state not in causes)

    @property
    def is_circle(self) -> bool:
        """Whether the groups wait for each other, so that none of them is the cause of the others."""
        return len(self.causes) > 1 and all(map(self.follows, self.causes))

    def follows(self, state: GroupState) -> bool:
        """Whether all ranks that are waited for in this group wait in a different one, or for a message.

        If all have come, nobody is waited for; then it is whether an older call holds one of them up.
        """
        if state.kind is GroupKind.TOGETHER:
            return state.is_held_up
        waited_for = state.waited_for
        return bool(waited_for) and all(self.waits_in(rank, state.group.name) for rank in waited_for)

    def waits_in(self, rank: int, group: str) -> GroupState | LoneMessage | None:
        """Return what a rank waits in outside of this group, so that it does not come to it."""
        for state in self.groups:
            if state.group.name != group and rank in state.waiting:
                return state
        return next((lone for lone in self.messages if lone.call.rank == rank and not lone.call.is_over), None)


def compare_dumps(dumps: Dumps) -> DumpComparison:
    """Compare all groups and messages of the dumps."""
    groups = recorded_groups(dumps) if dumps.ranks else []
    states = [group_state(group, dumps.ranks) for group in groups]
    messages = tuple(lone for group in groups for lone in lone_messages(group, dumps.ranks))
    met = tuple(pair for group in groups for pair in met_messages(group, dumps.ranks))
    everyone = {rank for group in groups for rank in group.members} | set(dumps.ranks)
    missing = tuple(sorted(everyone - set(dumps.ranks)))
    last = {rank: dump.calls[-1] for rank, dump in dumps.ranks.items() if dump.calls}
    states = _with_held_up(states, messages)
    found = DumpComparison(
        tuple(states),
        messages,
        met,
        tuple(dumps.ranks),
        missing,
        last,
        dumps.has_open_calls_only,
        dumps.unread_ranks.intersection(missing),
    )
    order = list(GroupKind)
    states.sort(key=lambda state: (state.kind is GroupKind.OVER, found.follows(state), order.index(state.kind)))
    return replace(found, groups=tuple(states))


def _with_held_up(states: Sequence[GroupState], messages: Sequence[LoneMessage]) -> list[GroupState]:
    """Mark the groups in which all have come, but a rank has an older call that waits, directly or through others.

    A GPU works through most calls in the order in which it was given them.
    """
    oldest: dict[int, float] = defaultdict(lambda: math.inf)
    for lone in messages:
        if not lone.call.is_over:
            oldest[lone.call.rank] = min(oldest[lone.call.rank], lone.call.record)
    new = [state for state in states if state.kind not in (GroupKind.OVER, GroupKind.TOGETHER)]
    left = [state for state in states if state.kind is GroupKind.TOGETHER]
    held_up: set[int] = set()
    while True:
        for state in new:
            for rank in state.waiting:
                oldest[rank] = min(oldest[rank], state.calls[rank][0].record)
        new = [state for state in left if any(oldest[rank] < state.calls[rank][0].record for rank in state.waiting)]
        if not new:
            break
        held_up |= set(map(id, new))
        left = [state for state in left if id(state) not in held_up]
    return [replace(state, is_held_up=id(state) in held_up) for state in states]


def recorded_groups(dumps: Dumps) -> list[RecordedGroup]:
    """Return the groups in which ranks have called something.

    With NCCL, dumps have the ranks of each group. With gloo, torch 2.13 forgets them once there are two groups.
    """
    users: dict[tuple[str, str, tuple[int, ...]], set[int]] = defaultdict(set)
    for rank, dump in dumps.ranks.items():
        for name, description in {(call.group, call.description) for call in dump.calls}:
            users[name, description, dump.members.get(name, ())].add(rank)
    named = {name for name, _, members in users if members}
    groups = []
    for (name, description, members), used_by in sorted(users.items(), key=lambda item: (len(item[0][0]), item[0])):
        if members:
            groups.append(RecordedGroup(name, description, members, True, len(members)))
        elif name not in named:
            alike = [others for (_, other, _), others in users.items() if other == description]
            groups.append(_presumed_group(name, description, used_by, alike, dumps))
    return groups


def _presumed_group(
    name: str, description: str, used_by: set[int], alike: Sequence[set[int]], dumps: Dumps
) -> RecordedGroup:
    """Return a group whose ranks torch has not recorded.

    All ranks are in the default group. Groups of the same description, "row" for example, have equally many ranks and
    none in common; so if one alone is short of as many ranks as are in none of them, these are in it.

    Args:
        used_by: ranks that have called something in it.
        alike: the same of all groups of its description, this one included.
    """
    size = _size_by_gathering(name, dumps)
    everyone = set(range(max(dumps.ranks) + 1))
    candidates: set[int] = set()
    if description == DEFAULT_GROUP:
        used_by = used_by | everyone | set(range(size))
    elif description not in NO_DESCRIPTION and sum(map(len, alike)) == len(set().union(*alike)):
        size = max([size, *map(len, alike)])
        candidates = everyone - set().union(*alike)
        if len(used_by) + len(candidates) == size and all(len(others) == size for others in alike if others != used_by):
            used_by, candidates = used_by | candidates, set()
    return RecordedGroup(
        name, description, tuple(sorted(used_by)), False, max(len(used_by), size), tuple(sorted(candidates))
    )


def _size_by_gathering(name: str, dumps: Dumps) -> int:
    """How many ranks a group has, from an all-gather: by so much its result is larger than what a rank gives. Or 0."""
    for dump in dumps.ranks.values():
        for call in dump.calls:
            given, result = _total(call.inputs), _total(call.outputs)
            is_gathering = call.group == name and call.operation.strip("_").startswith("all_gather")
            if is_gathering and given and not result % given and result // given < MOST_RANKS:
                return result // given
    return 0


def group_state(group: RecordedGroup, dumps: dict[int, RankDump]) -> GroupState:
    """Go through the collectives of a group until the ranks differ, one is absent, or it is not over."""
    present = [rank for rank in group.members if rank in dumps]
    numbered = {rank: _by_sequence(group, dumps[rank]) for rank in present}
    last = {rank: calls[max(calls)][-1] for rank, calls in numbered.items() if calls}
    missing = tuple(rank for rank in group.members if rank not in dumps)
    progress = _progress_in(group, dumps)
    called = _last_numbers(last, progress)
    first = max([min(numbered[rank]) for rank in last if dumps[rank].has_dropped], default=0)
    unfinished = {rank: number for rank in last if (number := _first_unfinished(numbered[rank], dumps[rank])) >= 0}
    agreed: tuple[int, int] | None = None
    for sequence in sorted({number for calls in numbered.values() for number in calls if number >= first}):
        calls = {rank: numbered[rank][sequence] for rank in present if sequence in numbered[rank]}
        absent = tuple(rank for rank in present if called.get(rank, -1) < sequence)
        parties = _parties(calls)
        waiting = tuple(rank for rank, called in calls.items() if _has_not_gone_on(called[-1], dumps[rank]))
        if len(parties) > 1 or _splits_disagree(calls, group):
            kind = GroupKind.DIFFERENT
        elif absent:
            kind = GroupKind.BEHIND
        elif waiting and not group.is_known and group.size == 1:
            kind = GroupKind.ALONE
        elif _waits(sequence, calls, numbered):
            kind = GroupKind.UNKNOWN if len(present) < group.size else GroupKind.TOGETHER
        elif _may_have_failed(sequence, calls, last) and len(present) < group.size:
            kind = GroupKind.UNKNOWN
        else:
            agreed = (agreed[0] if agreed else sequence, sequence)
            continue
        return GroupState(
            group, kind, agreed, sequence, parties, calls, waiting, absent, missing, last, unfinished, progress
        )
    return GroupState(group, GroupKind.OVER, agreed, -1, (), {}, (), (), missing, last, unfinished, progress)


def _progress_in(group: RecordedGroup, dumps: dict[int, RankDump]) -> dict[int, GroupProgress]:
    """Return how far ranks have got in a group, unless it has messages too, which torch may have counted as well."""
    present = [rank for rank in group.members if rank in dumps]
    calls = [call for rank in present for call in dumps[rank].calls if call.group == group.name]
    if not group.is_known or any(call.is_message or call.backend == GLOO for call in calls):
        return {}
    return {
        rank: dumps[rank].progress[group.name]
        for rank in present
        if group.name in dumps[rank].progress and dumps[rank].members.get(group.name) == group.members
    }


def _last_numbers(last: dict[int, RecordedCall], progress: dict[int, GroupProgress]) -> dict[int, int]:
    numbers = {rank: counted.called for rank, counted in progress.items()}
    return numbers | {rank: max(call.sequence, numbers.get(rank, -1)) for rank, call in last.items()}


def _has_not_gone_on(call: RecordedCall, dump: RankDump) -> bool:
    """Whether the rank may be waiting in this call. Over gloo, one that has failed looks as if it had ended."""
    return not call.is_over or (call.backend == GLOO and call.record == dump.calls[-1].record)


def _first_unfinished(calls: dict[int, Calls], dump: RankDump) -> int:
    """Return the number of the first collective that goes on; -1 if there is none.

    A rank that has ended a later one has ended it too. Over gloo, only the rank's very last call may go on.
    """
    first = -1
    for sequence in sorted(calls, reverse=True):
        call = calls[sequence][-1]
        if not _has_not_gone_on(call, dump):
            return first
        first = sequence
    return first


def _by_sequence(group: RecordedGroup, dump: RankDump) -> dict[int, Calls]:
    if group.is_known and dump.members.get(group.name, group.members) != group.members:
        return {}  # a different group of the same name
    calls: dict[int, list[RecordedCall]] = defaultdict(list)
    for call in dump.calls:
        if call.group == group.name and not call.is_message:
            calls[call.sequence].append(call)
    return {sequence: tuple(together) for sequence, together in calls.items()}


def _waits(sequence: int, calls: dict[int, Calls], numbered: dict[int, dict[int, Calls]]) -> bool:
    """Whether a collective that all have called goes on.

    Torch notes its end a bit late. So a rank has also ended it if it has ended a later one, and over gloo, where there
    are no other signs of life, if any rank has.
    """
    has_ended = [
        called[-1].is_over or any(later > sequence and numbered[rank][later][-1].is_over for later in numbered[rank])
        for rank, called in calls.items()
    ]
    is_gloo = all(called[-1].backend == GLOO for called in calls.values())
    return not (any(has_ended) if is_gloo else all(has_ended))


def _may_have_failed(sequence: int, calls: dict[int, Calls], last: dict[int, RecordedCall]) -> bool:
    """Whether this is the last collective of all ranks, over gloo, where failed calls look like others."""
    is_gloo = all(called[-1].backend == GLOO for called in calls.values())
    return is_gloo and all(call.sequence == sequence for call in last.values())


def _parties(calls: dict[int, Calls]) -> tuple[tuple[int, ...], ...]:
    parties: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for rank, called in calls.items():
        parties[tuple(map(_must_agree, called))].append(rank)
    return tuple(sorted(map(tuple, parties.values()), key=lambda party: (-len(party), party)))


def _must_agree(call: RecordedCall) -> tuple[object, ...]:
    """What has to be the same on all ranks: the operation, the type, and the number of elements where it matters."""
    return call.operation, frozenset(call.types), _equal_sizes(call)


def _equal_sizes(call: RecordedCall) -> object:
    """Numbers of elements that are equal on all ranks. Shapes may differ, as only the elements are sent."""
    name = call.operation.strip("_")
    given, result = _counts(call.inputs), _counts(call.outputs)
    if name.startswith(("all_to_all", "alltoall", "barrier", "split", "new_window", "coalesced")) or "_v" in name:
        return ()
    if name in ("scatter", "broadcast_oop"):  # the root alone has the other tensors
        return result
    if name in ("gather", "reduce_oop"):
        return given
    if name.startswith("all_gather"):  # parts of different sizes are allowed
        return sum(result), given if len(set(result)) <= 1 else ()
    if name.startswith("reduce_scatter"):
        return sum(given), result if len(set(given)) <= 1 else ()
    return given or result


def _splits_disagree(calls: dict[int, Calls], group: RecordedGroup) -> bool:
    """Whether in an all-to-all, all ranks together give more or fewer elements than they expect."""
    called = [rank_calls[0] for rank_calls in calls.values()]
    if len(calls) < group.size or not called[0].operation.startswith("all_to_all"):
        return False
    given, result = (sum(map(_total, shapes)) for shapes in zip(*[(c.inputs, c.outputs) for c in called], strict=True))
    return given != result


def _counts(shapes: Iterable[Sequence[int]]) -> tuple[int, ...]:
    return tuple(math.prod(shape) for shape in shapes)


def _total(shapes: Iterable[Sequence[int]]) -> int:
    return sum(_counts(shapes))


def lone_messages(group: RecordedGroup, dumps: dict[int, RankDump]) -> list[LoneMessage]:
    """Return for each pair of ranks the first message that has no counterpart, or one of a different size."""
    lone = [_first_lone(*pair, dumps) for pair in _messages_between(group, dumps)]
    return [message for message in lone if message]


def met_messages(group: RecordedGroup, dumps: dict[int, RankDump]) -> list[tuple[int, int]]:
    """Return for each message that both ranks have called and that goes on, a rank on which it does, and the other."""
    pairs = []
    for sender, receiver, sends, receives in _messages_between(group, dumps):
        for send, receive in zip(sends, receives, strict=False):
            pairs += [(sender, receiver)] if not send.is_over else []
            pairs += [(receiver, sender)] if not receive.is_over else []
    return list(dict.fromkeys(pairs))


def _messages_between(
    group: RecordedGroup, dumps: dict[int, RankDump]
) -> list[tuple[int, int, list[RecordedCall], list[RecordedCall]]]:
    """Return for each pair of ranks the sends of the first and the receives of the second.

    If calls have fallen out of a buffer, or a dump is missing, only those that go on can be matched by their order.
    """
    lists: dict[tuple[int, int], dict[str, list[RecordedCall]]] = defaultdict(lambda: {"send": [], "recv": []})
    for rank in group.members:
        for call in dumps[rank].calls if rank in dumps else ():
            ends = call.sender, call.receiver
            if call.group == group.name and call.operation in ("send", "recv") and max(ends) < len(group.members):
                sender, receiver = (group.members[end] for end in ends)
                lists[sender, receiver][call.operation].append(call)
    found = []
    for (sender, receiver), calls in sorted(lists.items()):
        have_dumps = sender in dumps and receiver in dumps
        if not have_dumps or dumps[sender].has_dropped or dumps[receiver].has_dropped:
            calls = {kind: [call for call in kept if not call.is_over] for kind, kept in calls.items()}
        found.append((sender, receiver, calls["send"], calls["recv"]))
    return found


def _first_lone(
    sender: int,
    receiver: int,
    sends: list[RecordedCall],
    receives: list[RecordedCall],
    dumps: dict[int, RankDump],
) -> LoneMessage | None:
    for send, receive in zip(sends, receives, strict=False):
        if _total(send.inputs) != _total(receive.outputs):
            return LoneMessage(receive, sender, send, True)
    left = sends[len(receives) :] or receives[len(sends) :]
    waiting = [call for call in left if not call.is_over]
    if not waiting:
        return None
    peer = receiver if waiting[0].operation == "send" else sender
    return LoneMessage(waiting[0], peer, None, peer in dumps)
