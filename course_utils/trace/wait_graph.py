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

from course_utils.trace.events import BYTES, Agreement
from course_utils.words import ranks_in_words

WORKS, WAITS, IS_DONE = "works", "waits", "is done"


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
class Meeting:
    """A collective: the n-th on its communicator, for which all members have to come, and to the same one."""

    communicator: str
    number: int
    agreement: Agreement


class Lock(NamedTuple):
    """A lock of a window on the memory of one rank: nobody else may hold it, or, where it is shared, hold it alone."""

    window: str
    target: int
    exclusive: bool

    def excludes(self, other: "Lock") -> bool:
        """Can the two not be held at once?"""
        return (self.window, self.target) == (other.window, other.target) and (self.exclusive or other.exclusive)


@dataclass(frozen=True)
class Some:
    """Several needs at once, of which one is enough, or all must be met."""

    needs: tuple["Need", ...]
    all: bool


Need = Send | Receive | Meeting | Lock | Some


@dataclass(frozen=True)
class Look:
    """What was seen of a rank at one moment.

    Attributes:
        state: WORKS, WAITS or IS_DONE.
        need: what it waits for; None where that cannot be known.
        sent: how often it has sent what, since the communicator was made.
        received: how often it has received what; peer and tag are the message's own.
        posted: receives that it has begun and not completed.
        ahead: how many of them are like the one that it waits for, and were begun before: messages go to these first.
        met: for each communicator how many collectives it has begun, and the latest of them.
        held: locks of windows that it holds.
    """

    state: str
    need: Need | None = None
    sent: Mapping[Message, int] = field(default_factory=dict)
    received: Mapping[Message, int] = field(default_factory=dict)
    posted: Sequence[Message] = ()
    ahead: int = 0
    met: Mapping[str, tuple[int, Sequence[Agreement]]] = field(default_factory=dict)
    held: Sequence[Lock] = ()

    def has_begun(self, communicator: str, number: int) -> bool:
        """Whether it has come to the n-th collective on a communicator."""
        return number <= self.met.get(communicator, (0, ()))[0]

    def begun(self, communicator: str, number: int) -> Agreement | None:
        """What it has begun as the n-th collective on a communicator; None where it has not, or it is long ago."""
        count, latest = self.met.get(communicator, (0, ()))
        return latest[number - count - 1] if count - len(latest) < number <= count else None


class WaitGraph:
    """The graph of one moment."""

    def __init__(self, looks: Mapping[int, Look], members: Mapping[str, Sequence[int]]) -> None:
        """`members`: the ranks of each communicator, numbered as in the run; who was not looked at may do anything."""
        self._looks = {rank: Look(WORKS) for ranks in members.values() for rank in ranks} | dict(looks)
        self._members = members
        self._movable = {
            rank for rank, look in self._looks.items() if look.state == WORKS or (look.state == WAITS and not look.need)
        }
        while freed := {rank for rank in self._waiting() if self._can_be_met(rank, self._looks[rank].need)}:
            self._movable |= freed

    def stuck(self) -> list[int]:
        """The ranks that wait for what will never come."""
        return sorted(self._waiting())

    def waits_for(self, rank: int) -> list[int]:
        """The ranks without which a rank cannot go on, or one of which would do."""
        return sorted(set(self._lacking(rank, self._looks[rank].need)))

    def cycle(self) -> list[int]:
        """Ranks of which each waits for the next, and the last for the first; empty where there are none."""
        stuck = set(self._waiting())
        for start in sorted(stuck):
            path = [start]
            while (rank := next((one for one in self.waits_for(path[-1]) if one in stuck), None)) is not None:
                if rank in path:
                    return path[path.index(rank) :]
                path.append(rank)
        return []

    def mismatch(self, communicator: str, number: int) -> dict[int, Agreement]:
        """What each rank has begun as the n-th collective on a communicator, where that is not the same on all."""
        begun = {peer: self._looks[peer].begun(communicator, number) for peer in self._members[communicator]}
        known = {peer: agreement for peer, agreement in begun.items() if agreement}
        return known if unlike(known.values()) else {}

    def mismatches(self) -> list[tuple[Meeting, dict[int, Agreement]]]:
        """The collectives that stuck ranks wait for, which others have begun as another one."""
        needs = {self._looks[rank].need for rank in self._waiting()}
        meetings = sorted((need for need in needs if isinstance(need, Meeting)), key=lambda need: need.number)
        return [(need, found) for need in meetings if (found := self.mismatch(need.communicator, need.number))]

    def _waiting(self) -> Iterator[int]:
        return (rank for rank, look in self._looks.items() if look.state == WAITS and rank not in self._movable)

    def _can_be_met(self, rank: int, need: Need | None) -> bool:
        if isinstance(need, Some):
            return (all if need.all else any)(self._can_be_met(rank, one) for one in need.needs)
        if isinstance(need, Receive):
            message = need.message
            return any(peer in self._movable or self._is_sent(peer, rank, message) for peer in self._peers(message))
        if isinstance(need, Meeting) and self.mismatch(need.communicator, need.number):
            return False
        return all(peer in self._movable for peer in self._lacking(rank, need))

    def _lacking(self, rank: int, need: Need | None) -> Iterator[int]:
        """The ranks that have not done yet what a need asks of them."""
        if isinstance(need, Some):
            for one in need.needs:
                yield from self._lacking(rank, one)
        elif isinstance(need, Receive):
            yield from (peer for peer in self._peers(need.message) if peer != rank)
        elif isinstance(need, Send):
            peer = need.message.peer
            if peer is not None and not self._is_taken(rank, peer, need.message):
                yield peer
        elif isinstance(need, Lock):
            for peer, look in self._looks.items():
                if peer != rank and any(need.excludes(lock) for lock in look.held):
                    yield peer
        elif isinstance(need, Meeting):
            for peer in self._members[need.communicator]:
                if not self._looks[peer].has_begun(need.communicator, need.number):
                    yield peer

    def _peers(self, message: Message) -> Sequence[int]:
        return self._members[message.communicator] if message.peer is None else [message.peer]

    def _is_sent(self, sender: int, receiver: int, wanted: Message) -> bool:
        """Whether more has been sent that fits than was received, or goes to other receives."""
        sent = _fitting(self._looks[sender].sent, Message(wanted.communicator, receiver, wanted.tag))
        received = _fitting(self._looks[receiver].received, Message(wanted.communicator, sender, wanted.tag))
        return sent > received + self._looks[receiver].ahead

    def _is_taken(self, sender: int, receiver: int, message: Message) -> bool:
        """Whether the receiver waits for a message like this one, or has received all of them."""
        seen = self._looks[receiver]
        as_received = Message(message.communicator, sender, message.tag)
        wanted = [*seen.posted, *(part.message for part in parts_of(seen.need) if isinstance(part, Receive))]
        if any(_fits(as_received, one) for one in wanted):
            return True
        sent = self._looks[sender].sent.get(message, 0)
        return seen.received.get(as_received, 0) >= sent


def any_of(needs: Iterable[Need | None]) -> Some | None:
    """What is needed for any of these to be met; None where one of them is not known."""
    each = tuple(needs)
    known = tuple(need for need in each if need is not None)
    return Some(known, all=False) if len(known) == len(each) else None


def parts_of(need: Need | None) -> Iterator[Send | Receive | Meeting | Lock]:
    """The single needs that a need is made of."""
    if isinstance(need, Some):
        for part in need.needs:
            yield from parts_of(part)
    elif need is not None:
        yield need


def _fits(message: Message, wanted: Message) -> bool:
    return (
        message.communicator == wanted.communicator
        and wanted.peer in (None, message.peer)
        and wanted.tag in (None, message.tag)
    )


def _fitting(counts: Mapping[Message, int], wanted: Message) -> int:
    return sum(count for message, count in counts.items() if _fits(message, wanted))


def unlike(agreements: Collection[Agreement]) -> bool:
    """Do ranks call different collectives?

    Sizes count where all of them are known, and all in numbers or all in bytes.
    """
    units = {agreement.unit for agreement in agreements}
    sized = "" not in units and (units == {BYTES} or BYTES not in units)
    return len({agreement if sized else agreement[:3] for agreement in agreements}) > 1


def mismatch_in_words(number: int, begun: Mapping[int, Agreement]) -> str:
    """Which rank has begun which collective as that of this number."""
    calls: dict[str, list[int]] = {}
    for rank, agreement in sorted(begun.items()):
        calls.setdefault(str(agreement), []).append(rank)
    who = ", ".join(f"{ranks_in_words(ranks)} {name}" for name, ranks in calls.items())
    return f"collective number {number} is not the same on all ranks ({who})"


def in_words(cycle: Iterable[int]) -> str:
    """ "0 waits for 1, 1 for 2, 2 for 0"."""
    ranks = list(cycle)
    pairs = list(zip(ranks, [*ranks[1:], *ranks[:1]], strict=True))
    return ", ".join(f"{one} {'waits ' if number == 0 else ''}for {other}" for number, (one, other) in enumerate(pairs))
