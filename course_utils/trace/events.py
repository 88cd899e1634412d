"""What a run leaves behind: one `Event` for each thing that happened on a rank, and what can be counted in them.

Pictures, costs and reports of deadlocks all read these events; nothing else in the course does its own timing.
"""

import math
import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints

OBJECT, BYTES = "object", "bytes"
"""What a message holds: a pickled object; a buffer of which only the size is known."""
UNKNOWN_ROOT = -1
"""The root of a collective of two groups, on the ranks that are in its group: they give PROC_NULL."""
_MAX_SWEEPS = 100  # a message that overtakes another needs a second look; one sweep settles nearly every run


class Agreement(NamedTuple):
    """What must be the same on all ranks of a collective.

    Attributes:
        name: of the call, "Bcast".
        root: None where there is none.
        op: the operation, "SUM"; "" where there is none.
        amount, unit: how much each rank brings, 10 of "float64" or of BYTES; None and "" where it need not be the same,
            or is not known.
        between_groups: whether it is one of two groups, whose root is numbered as in the run.
    """

    name: str
    root: int | None = None
    op: str = ""
    amount: int | None = None
    unit: str = ""
    between_groups: bool = False

    def __str__(self) -> str:
        """ "Bcast(root=0) of 10 float64"; a sum goes without saying."""
        number = f"rank {self.root}" if self.between_groups else self.root
        root = "" if self.root is None else f"root={'MPI.PROC_NULL' if self.root == UNKNOWN_ROOT else number}"
        operation = f"op={self.op}" if self.op not in ("", "SUM") else ""
        more = ", ".join(filter(None, [root, operation]))
        return f"{self.name}{f'({more})' if more else ''}{f' of {self.amount} {self.unit}' if self.unit else ''}"


@cache
def unit_bytes(unit: str) -> int:
    """Bytes of a number of a type, by its name, "float64" or "bool"; 0 where that is not known."""
    bits = re.fullmatch(r"[a-z]+(\d+)", unit)
    return 1 if unit == "bool" else int(bits[1]) // 8 if bits else 0


class BufferLayout(NamedTuple):
    """What a rank gives to a message or a collective, or has room for.

    Attributes:
        unit: the type of the numbers, "float64", or BYTES.
        sizes: bytes for each rank of the communicator, in the order of their numbers in the run; a single one where it
            is the same for all; () where that is not known, and for a message, whose event has it.
        shape: of an array whose memory order matters; () for the rest.
        by_columns: whether its columns lie one behind the other in memory, rather than its rows.
    """

    unit: str
    sizes: tuple[int, ...] = ()
    shape: tuple[int, ...] = ()
    by_columns: bool = False


class Event(NamedTuple):
    """One operation or phase on one rank.

    Attributes:
        rank: the rank on which it happened, counted in the communicator of the run.
        name: the call ("Send", "recv", "Allreduce") or the phase ("forward").
        kind: "send", "recv", "collective", "wait" or "phase".
        peer: the other rank of a message; None for the rest.
        tag: the message's tag; None for the rest.
        bytes: payload sent or received; for a collective, this rank's contribution; 0 for phases and waits.
        start, end: seconds since the run began, on one clock for all ranks; `end` is inf where it never ended.
        line: the line of the learner's code that called, where there is one.
        comm: the communicator or group, by its name in the ledger; "" for phases.
        number: which collective of its communicator this is, from 1; 0 for the rest.
        holds: the type of what a message holds: "float64", OBJECT or BYTES; "" where that is not known.
        awaited: False where the rank did not stand still until the end: a test has seen it, or a wait for any of
            several.
        agreement: of a collective, what must be the same on all ranks; None for the rest.
        layouts: of a collective on buffers, what this rank gives and what it has room for, None for nothing; of a
            message, its array where the memory order matters; () for the rest.
    """

    rank: int
    name: str
    kind: str
    peer: int | None
    tag: int | None
    bytes: int
    start: float
    end: float
    line: int | None = None
    comm: str = ""
    number: int = 0
    holds: str = ""
    awaited: bool = True
    agreement: Agreement | None = None
    layouts: tuple[BufferLayout | None, ...] = ()


def read_layouts(parts: Any) -> tuple[BufferLayout | None, ...]:
    """Make again what came from outside as lists.

    Raises:
        TypeError: these are no layouts.
    """
    layouts = tuple(None if part is None else _read_layout(*part) for part in parts)
    numbers = [number for layout in layouts if layout for number in (*layout.sizes, *layout.shape)]
    if not all(is_well_formed(layout) for layout in layouts if layout) or any(type(n) is not int for n in numbers):
        raise TypeError("a malformed layout")
    return layouts


def _read_layout(unit: str, sizes: Iterable[int], shape: Iterable[int], by_columns: bool) -> BufferLayout:
    return BufferLayout(unit, tuple(sizes), tuple(shape), by_columns)


def is_well_formed(fields: NamedTuple) -> bool:
    """Whether an event or an agreement that came from outside has in each field what its class says."""
    return all(type(value) in kinds for value, kinds in zip(fields, _kinds_of(type(fields)), strict=True))


@cache
def _kinds_of(cls: type) -> list[tuple[Any, ...]]:
    """For each field of a NamedTuple the types that it may have; JSON writes some floats as integers."""
    hints = get_type_hints(cls).values()
    kinds = [(tuple,) if get_origin(hint) is tuple else get_args(hint) or (hint,) for hint in hints]
    return [(*own, int) if float in own else own for own in kinds]


def pair_messages(events: Iterable[Event]) -> list[tuple[Event, Event]]:
    """Pair each completed send with its receive, ordered by the time at which the send began.

    MPI keeps messages of one communicator, sender, receiver and tag in order (MPI 4.1, §3.5), so the k-th send matches
    the k-th receive. A message that was sent and never received, or the reverse, has no pair and is left out.
    """
    sends: dict[tuple, list[Event]] = defaultdict(list)
    receives: dict[tuple, list[Event]] = defaultdict(list)
    for event in sorted(events, key=lambda event: event.start):
        if event.kind == "send":
            sends[event.comm, event.rank, event.peer, event.tag].append(event)
        elif event.kind == "recv" and math.isfinite(event.end):
            receives[event.comm, event.peer, event.rank, event.tag].append(event)
    pairs = [pair for key, sent in sends.items() for pair in zip(sent, receives[key], strict=False)]
    return sorted(pairs, key=lambda pair: pair[0].start)


def unmatched_receive(events: Sequence[Event]) -> Event | None:
    """A completed receive of which no sender has recorded the message, with this many bytes; None where all have.

    The order does not matter: who probes several messages may take them in any.
    """
    sent = Counter(_message_of(event, event.rank, event.peer) for event in events if event.kind == "send")
    for event in events:
        if event.kind == "recv" and math.isfinite(event.end):
            sent[message := _message_of(event, event.peer, event.rank)] -= 1
            if sent[message] < 0:
                return event
    return None


def _message_of(event: Event, sender: int | None, receiver: int | None) -> tuple:
    return event.comm, sender, receiver, event.tag, event.bytes


def count_rounds(events: Iterable[Event]) -> int:
    """Return the number of rounds that the messages need, each rank sending and receiving one per round."""
    return max((number for _, _, number in message_rounds(events)), default=0)


def message_rounds(events: Iterable[Event]) -> list[tuple[Event, Event, int]]:
    """Return each message, as its send and its receive, with the round it goes in, counted from 1.

    In a round each rank sends one message and receives one.

    A message goes in the first round that is later than every message its sender had sent or received before it,
    and than every message its receiver had received before it: the longest chain of dependent messages. This is the
    one-port model of Chan et al. 2007, §2, with links that carry both directions at once. Collectives are not
    counted: what an MPI library does inside them is its own affair.
    """
    pairs = pair_messages(events)
    before: list[int | None] = []  # for each message, the one that its sender sent before
    latest: dict[int, int] = {}
    for index, (sent, _) in enumerate(pairs):
        before.append(latest.get(sent.rank))
        latest[sent.rank] = index
    in_order_of_arrival = sorted(range(len(pairs)), key=lambda index: pairs[index][1].end)
    rounds = [0] * len(pairs)
    for _ in range(_MAX_SWEEPS):
        previous = list(rounds)
        arrivals: dict[int, list[float]] = defaultdict(list)
        highest: dict[int, list[int]] = defaultdict(lambda: [0])  # [k]: the latest round among the first k arrivals
        for index in in_order_of_arrival:
            sent, got = pairs[index]
            seen_by_sender = highest[sent.rank][bisect_right(arrivals[sent.rank], sent.start)]
            last = before[index]
            rounds[index] = 1 + max(seen_by_sender, highest[got.rank][-1], 0 if last is None else rounds[last])
            arrivals[got.rank].append(got.end)
            highest[got.rank].append(max(highest[got.rank][-1], rounds[index]))
        if rounds == previous:
            break
    return [(sent, got, number) for (sent, got), number in zip(pairs, rounds, strict=True)]


def bytes_sent(events: Iterable[Event], rank: int) -> int:
    """Bytes that `rank` put in: the payload of its sends and its contribution to each collective."""
    return sum(event.bytes for event in events if event.rank == rank and event.kind in _SENDING_KINDS)


def bytes_of_ranks(events: Iterable[Event], world_size: int) -> list[int]:
    """The same for each rank, in one pass."""
    sent = [0] * world_size
    for event in events:
        if event.kind in _SENDING_KINDS:
            sent[event.rank] += event.bytes
    return sent


_SENDING_KINDS = ("send", "collective")
"""The kinds of events whose bytes a rank puts in."""


def phase_seconds(events: Iterable[Event]) -> dict[tuple[int, str], float]:
    """Seconds spent in each phase, keyed by (rank, name of the phase), summed over its repetitions."""
    seconds: dict[tuple[int, str], float] = defaultdict(float)
    for event in events:
        if event.kind == "phase":
            seconds[event.rank, event.name] += event.end - event.start
    return dict(seconds)
