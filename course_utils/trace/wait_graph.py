"""Who waits for whom, and whether anybody can still move: ranks and what they wait for, as an AND/OR graph.

A rank that waits needs something of others: one of them (a receive from any source), or all (a collective). What it
needs may be on its way already. A rank that works may yet do anything; one that has returned will do nothing more. Who
can move is what follows from these rules; all others are stuck for good, and no clock is needed to know it.

Source: Hilbrich et al. 2012, "MPI runtime error detection with MUST", section 4 (waits with AND and OR); the rules when
a message matches: MPI 4.1, section 3.5.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from course_utils.trace.events import BYTES, UNKNOWN_ROOT, Agreement
from course_utils.words import ranks_in_words

WORKS, WAITS, IS_DONE, LINGERS = "works", "waits", "is done", "lingers"
"""LINGERS: it has returned, and has left threads behind that wait. Nobody minds if they wait for ever."""
NO_THREADS, WAITING_THREADS, ACTING_THREADS = "", "wait", "act"
"""What the threads do that a rank has left behind: there are none, all of them wait, or one may do anything."""


class Message(NamedTuple):
    """A message that is sent or wanted, on one communicator.

    Attributes:
        communicator: its name, the same on all of its ranks.
        peer: the rank of the run at the other end; None for any.
        tag: None for any.
    """

    communicator: str
    peer: int | None
    tag: int | None


@dataclass(frozen=True)
class Send:
    """A send that has not been received."""

    message: Message


@dataclass(frozen=True)
class Receive:
    """A receive to which no message has come."""

    message: Message


@dataclass(frozen=True)
class Collective:
    """A collective: the n-th on its communicator, for which all members have to come, and to the same one."""

    communicator: str
    number: int
    agreement: Agreement


@dataclass(frozen=True)
class Lock:
    """A lock of a window on the memory of one rank: nobody else may hold it, or, where it is shared, hold it alone."""

    window: str
    target: int
    exclusive: bool

    def excludes(self, other: "Lock") -> bool:
        """Can the two not be held at once?"""
        return (self.window, self.target) == (other.window, other.target) and (self.exclusive or other.exclusive)


@dataclass(frozen=True)
class CombinedNeed:
    """Several needs at once, of which one is enough, or all must be met.

    `of_threads`: whether each is that of a thread of its own.
    """

    needs: tuple["Need", ...]
    all: bool
    of_threads: bool = False


Need = Send | Receive | Collective | Lock | CombinedNeed


@dataclass(frozen=True)
class Snapshot:
    """What was seen of a rank at one moment.

    Attributes:
        state: WORKS, WAITS, IS_DONE or LINGERS.
        need: what it waits for; None where that cannot be known.
        sent: how often it has sent what, since the communicator was made.
        received: how often it has received what; peer and tag are the message's own.
        posted: receives that it has begun and not completed.
        ahead: how many of them are like the one that it waits for, and were begun before: messages go to these first.
        collectives: for each communicator how many collectives it has begun, and the latest of them.
        locks: locks of windows that it holds.
        threads: NO_THREADS, WAITING_THREADS or ACTING_THREADS, where it has returned.
        sent_before: what of `sent` earlier runs and cells have sent.
    """

    state: str
    need: Need | None = None
    sent: Mapping[Message, int] = field(default_factory=dict)
    received: Mapping[Message, int] = field(default_factory=dict)
    posted: Sequence[Message] = ()
    ahead: int = 0
    collectives: Mapping[str, tuple[int, Sequence[Agreement]]] = field(default_factory=dict)
    locks: Sequence[Lock] = ()
    threads: str = NO_THREADS
    sent_before: Mapping[Message, int] = field(default_factory=dict)

    def has_begun(self, communicator: str, number: int) -> bool:
        """Whether it has come to the n-th collective on a communicator."""
        return number <= self.collectives.get(communicator, (0, ()))[0]

    def agreement_on(self, communicator: str, number: int) -> Agreement | None:
        """What it has begun as the n-th collective on a communicator; None where it has not, or it is long ago."""
        count, latest = self.collectives.get(communicator, (0, ()))
        return latest[number - count - 1] if count - len(latest) < number <= count else None


class WaitGraph:
    """The graph of one moment."""

    def __init__(self, snapshots: Mapping[int, Snapshot], members: Mapping[str, Sequence[int]]) -> None:
        """`members`: the ranks of each communicator, numbered as in the run; who was not looked at may do anything."""
        self._snapshots = {rank: Snapshot(WORKS) for ranks in members.values() for rank in ranks} | dict(snapshots)
        self._members = members
        self._movable = {
            rank
            for rank, snapshot in self._snapshots.items()
            if snapshot.state == WORKS or (snapshot.state in (WAITS, LINGERS) and not snapshot.need)
        }
        while freed := {rank for rank in self._unmoved() if self._can_be_met(rank, self._snapshots[rank].need)}:
            self._movable |= freed

    @property
    def snapshots(self) -> Mapping[int, Snapshot]:
        """What was seen of each rank."""
        return self._snapshots

    @property
    def members(self) -> Mapping[str, Sequence[int]]:
        """The ranks of each communicator, numbered as in the run."""
        return self._members

    def stuck(self) -> list[int]:
        """The ranks that are waiting for something that can never happen."""
        return sorted(self._waiting())

    def need(self, rank: int) -> Need | None:
        """What a rank needs in order to go on; None where that is not known."""
        return self._snapshots[rank].need

    def waits_for(self, rank: int) -> list[int]:
        """The ranks without which a rank cannot go on, or one of which would do."""
        return sorted(set(self._lacking(rank, self._snapshots[rank].need)))

    def cycle(self) -> list[int]:
        """Ranks of which each waits for the next, and the last for the first; empty where there are none."""
        stuck = set(self._waiting())
        for start in sorted(stuck):
            path = [start]
            while (
                rank := next((waiting for waiting in self.waits_for(path[-1]) if waiting in stuck), None)
            ) is not None:
                if rank in path:
                    return path[path.index(rank) :]
                path.append(rank)
        return []

    def mismatch(self, communicator: str, number: int) -> dict[int, Agreement]:
        """What each rank has begun as the n-th collective on a communicator, where that is not the same on all."""
        begun = {peer: self._snapshots[peer].agreement_on(communicator, number) for peer in self._members[communicator]}
        known = {peer: agreement for peer, agreement in begun.items() if agreement}
        return known if differ(known.values()) else {}

    def mismatches(self) -> list[tuple[Collective, dict[int, Agreement]]]:
        """The collectives that stuck ranks wait for, which others have begun as another one."""
        needs = {self._snapshots[rank].need for rank in self._waiting()}
        collectives = sorted((need for need in needs if isinstance(need, Collective)), key=lambda need: need.number)
        return [(need, found) for need in collectives if (found := self.mismatch(need.communicator, need.number))]

    def _waiting(self) -> Iterator[int]:
        return (rank for rank in self._unmoved() if self._snapshots[rank].state == WAITS)

    def _unmoved(self) -> Iterator[int]:
        """The ranks of which it is not known that they can move, and that would if they could."""
        return (
            rank
            for rank, snapshot in self._snapshots.items()
            if snapshot.state in (WAITS, LINGERS) and rank not in self._movable
        )

    def _can_be_met(self, rank: int, need: Need | None) -> bool:
        if isinstance(need, CombinedNeed):
            return (all if need.all else any)(self._can_be_met(rank, part) for part in need.needs)
        if isinstance(need, Receive):
            message = need.message
            return any(peer in self._movable or self._is_sent(peer, rank, message) for peer in self._peers(message))
        if isinstance(need, Collective) and self.mismatch(need.communicator, need.number):
            return False
        return all(peer in self._movable for peer in self._lacking(rank, need))

    def _lacking(self, rank: int, need: Need | None) -> Iterator[int]:
        """The ranks that have not done yet what a need asks of them."""
        if isinstance(need, CombinedNeed):
            for part in need.needs:
                yield from self._lacking(rank, part)
        elif isinstance(need, Receive):
            yield from (peer for peer in self._peers(need.message) if peer != rank)
        elif isinstance(need, Send):
            peer = need.message.peer
            if peer is not None and not self._is_taken(rank, peer, need.message):
                yield peer
        elif isinstance(need, Lock):
            for peer, snapshot in self._snapshots.items():
                if peer != rank and any(need.excludes(lock) for lock in snapshot.locks):
                    yield peer
        elif isinstance(need, Collective):
            for peer in self._members[need.communicator]:
                if not self._snapshots[peer].has_begun(need.communicator, need.number):
                    yield peer

    def _peers(self, message: Message) -> Sequence[int]:
        return self._members[message.communicator] if message.peer is None else [message.peer]

    def _is_sent(self, sender: int, receiver: int, wanted: Message) -> bool:
        """Whether more has been sent that fits than was received, or goes to other receives."""
        sent = _count_matching(self._snapshots[sender].sent, Message(wanted.communicator, receiver, wanted.tag))
        received = _count_matching(self._snapshots[receiver].received, Message(wanted.communicator, sender, wanted.tag))
        return sent > received + self._snapshots[receiver].ahead

    def _is_taken(self, sender: int, receiver: int, message: Message) -> bool:
        """Whether the receiver waits for a message like this one, or has received all of them."""
        receiver_snapshot = self._snapshots[receiver]
        as_received = Message(message.communicator, sender, message.tag)
        wanted = [
            *receiver_snapshot.posted,
            *(part.message for part in single_needs(receiver_snapshot.need) if isinstance(part, Receive)),
        ]
        if any(matches(as_received, message_wanted) for message_wanted in wanted):
            return True
        sent = self._snapshots[sender].sent.get(message, 0)
        return receiver_snapshot.received.get(as_received, 0) >= sent


def any_of(needs: Iterable[Need | None]) -> CombinedNeed | None:
    """What is needed for any of these to be met; None where one of them is not known."""
    each = tuple(needs)
    known = tuple(need for need in each if need is not None)
    return CombinedNeed(known, all=False) if len(known) == len(each) else None


def renamed(need: Need | None, old: str, new: str) -> Need | None:
    """The same need, with another name for a communicator."""
    if isinstance(need, CombinedNeed):
        parts = (renamed(part, old, new) for part in need.needs)
        return CombinedNeed(tuple(part for part in parts if part), need.all, need.of_threads)
    if isinstance(need, (Send, Receive)) and need.message.communicator == old:
        return type(need)(need.message._replace(communicator=new))
    if isinstance(need, Collective) and need.communicator == old:
        return Collective(new, need.number, need.agreement)
    return need


def single_needs(need: Need | None) -> Iterator[Send | Receive | Collective | Lock]:
    """The single needs that a need is made of."""
    if isinstance(need, CombinedNeed):
        for part in need.needs:
            yield from single_needs(part)
    elif need is not None:
        yield need


def matches(message: Message, wanted: Message) -> bool:
    """Whether a receive that wants this takes a message, whose peer is its sender."""
    return (
        message.communicator == wanted.communicator
        and wanted.peer in (None, message.peer)
        and wanted.tag in (None, message.tag)
    )


def _count_matching(counts: Mapping[Message, int], wanted: Message) -> int:
    return sum(count for message, count in counts.items() if matches(message, wanted))


def differ(agreements: Collection[Agreement]) -> bool:
    """Do ranks call different collectives?

    Sizes count where all of them are known, and all in numbers or all in bytes.
    """
    roots = {agreement.root for agreement in agreements} - {UNKNOWN_ROOT}
    if len(roots) == 1:
        agreements = [agreement._replace(root=next(iter(roots))) for agreement in agreements]
    units = {agreement.unit for agreement in agreements}
    sized = "" not in units and (units == {BYTES} or BYTES not in units)
    return len({agreement if sized else agreement[:3] for agreement in agreements}) > 1


def mismatch_text(number: int, begun: Mapping[int, Agreement]) -> str:
    """Which rank has begun which collective as that of this number."""
    calls: dict[str, list[int]] = {}
    for rank, agreement in sorted(begun.items()):
        calls.setdefault(str(agreement), []).append(rank)
    who = ", ".join(f"{ranks_in_words(ranks)} {name}" for name, ranks in calls.items())
    return f"collective number {number} is not the same on all ranks ({who})"


def waits_in_vain_text(waits: WaitGraph) -> str:
    """What the stuck ranks need and cannot get: "rank 3 is waiting for a message that can never arrive"."""
    stuck = waits.stuck()
    kinds = {type(need) for rank in stuck for need in single_needs(waits.need(rank))}
    one = len(stuck) == 1
    if kinds == {Receive}:
        what = "a message that can never arrive" if one else "messages that can never arrive"
    elif kinds == {Send}:
        what = "its message to be received, which can never happen" if one else "receives that can never happen"
    elif kinds == {Collective}:
        what = "other ranks to make the same call, which can never happen"
    else:
        what = "something that can never happen"
    return f"{ranks_in_words(stuck)} {'is' if one else 'are'} waiting for {what}"


def cycle_text(cycle: Iterable[int]) -> str:
    """ "0 is waiting for 1, 1 for 2, 2 for 0"."""
    ranks = list(cycle)
    pairs = list(zip(ranks, [*ranks[1:], *ranks[:1]], strict=True))
    return ", ".join(
        f"{rank} {'is waiting ' if number == 0 else ''}for {other}" for number, (rank, other) in enumerate(pairs)
    )
