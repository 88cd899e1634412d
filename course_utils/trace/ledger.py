"""The ledger that a rank keeps of its messages and collectives, and the snapshot of it that an observer reads."""

import functools
import itertools
import json
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields as fields_of
from typing import Any

from course_utils.trace.events import Agreement, is_well_formed
from course_utils.trace.wait_graph import (
    ACTING_THREADS,
    IS_DONE,
    LINGERS,
    NO_THREADS,
    WAITING_THREADS,
    WAITS,
    WORKS,
    Collective,
    CombinedNeed,
    Lock,
    Message,
    Need,
    Receive,
    Send,
    Snapshot,
)

WORLD = "world"
"""The communicator of a run, and of a cell; others are made from it."""
EARLIER_RUNS = f"{WORLD}/run "
"""How names of communicators of earlier runs begin, which threads go on using."""
PROCESS_GROUPS = f"{WORLD}/torch "
"""How names of process groups of torch.distributed begin."""
_LATEST_COLLECTIVES = 32
"""How many collectives are kept."""


class Ledger:
    """What this rank has sent, received and begun, on each communicator.

    Attributes:
        members: the ranks of each communicator, numbered as in the run.
        freed: communicators that were freed, or are lost to the learner; the next run knows nothing of them.
        locks: locks of windows that this rank holds.
        complete: whether no call was made that they do not hold.
        run_size: how many ranks take part in the run or cell.
        sent_before: what of `sent` earlier runs and cells have sent.
    """

    def __init__(self) -> None:
        self.complete = True
        self.run_size = 0
        self.sent: Counter[Message] = Counter()
        self.received: Counter[Message] = Counter()
        self.sent_before: Counter[Message] = Counter()
        self.collectives: dict[str, tuple[int, deque[Agreement]]] = {}
        self.members: dict[str, list[int]] = {}
        self.freed: set[str] = set()
        self.locks: dict[tuple[str, int], Lock] = {}

    def begin(self) -> None:
        """Begin a run: nothing is under way on its communicator. What a cell has made lives on, with its messages."""
        for counts in (self.sent, self.received):
            for message in [message for message in counts if not self._lives_on(message.communicator)]:
                del counts[message]
        for by_name in (self.collectives, self.members):
            for name in [name for name in by_name if not self._lives_on(name)]:
                del by_name[name]
        self.sent_before = self.sent.copy()
        self.locks, self.freed = {}, set()
        self.complete = True

    def _lives_on(self, communicator: str) -> bool:
        return communicator.startswith(f"{WORLD}/") and communicator not in self.freed

    def rename(self, old: str, new: str) -> None:
        """Give a communicator another name."""
        for counts in (self.sent, self.received, self.sent_before):
            for message in [message for message in counts if message.communicator == old]:
                counts[message._replace(communicator=new)] = counts.pop(message)
        by_name: Any
        for by_name in (self.collectives, self.members):
            if old in by_name:
                by_name[new] = by_name.pop(old)

    def forget(self, communicators: Collection[str]) -> None:
        """Nothing can be under way on these communicators: they are gone, or used from the beginning once more."""
        for counts in (self.sent, self.received, self.sent_before):
            for message in [message for message in counts if message.communicator in communicators]:
                del counts[message]
        for by_name in (self.collectives, self.members):
            for name in communicators:
                by_name.pop(name, None)

    def add_send(self, communicator: str, members: list[int], to: int, tag: int) -> Send:
        """This rank sends a message to another rank of the run."""
        self.members[communicator] = members
        send = Send(_message(communicator, to, tag))
        self.sent[send.message] += 1
        return send

    def add_receive(self, communicator: str, members: list[int], source: int | None, tag: int | None) -> Receive:
        """This rank begins to receive; None for any source, or any tag.

        Each receive is an object of its own: `snapshot` tells by it which of several like ones is waited for.
        """
        self.members[communicator] = members
        return Receive(_message(communicator, source, tag))

    def add_received(self, communicator: str, source: int | None, tag: int) -> None:
        """A message has been received."""
        self.received[_message(communicator, source, tag)] += 1

    def add_collective(self, communicator: str, members: list[int], agreement: Agreement) -> Collective:
        """This rank begins the next collective of a communicator."""
        self.members[communicator] = members
        count, latest = self.collectives.get(communicator) or (0, deque(maxlen=_LATEST_COLLECTIVES))
        latest.append(agreement)
        self.collectives[communicator] = count + 1, latest
        return Collective(communicator, count + 1, agreement)

    def remove_collective(self, collective: Collective) -> None:
        """The collective that was begun last was none: its arguments were rejected."""
        self.collectives[collective.communicator][1].pop()
        self.collectives[collective.communicator] = collective.number - 1, self.collectives[collective.communicator][1]

    @contextmanager
    def remove_if_rejected(self, collective: Collective) -> Iterator[None]:
        """Inside, the collective is asked for; an error says that its arguments were rejected, and takes it back."""
        try:
            yield
        except BaseException:
            self.remove_collective(collective)
            raise

    def collective_snapshot(self, collective: Collective) -> bytes:
        """What others may know of a rank that dies in a collective."""
        name = collective.communicator
        return _to_json(Snapshot(WORKS, collectives={name: self.collectives[name]}), {name: self.members[name]})

    def snapshot(self, need: Need | None, requests: Iterable[Any], threads: str = NO_THREADS) -> bytes:
        """What others may know: the need, and the ledger.

        Nothing, where the ledger is not complete: then nobody can tell what is under way.

        Args:
            requests: requests that are not completed; those that receive have a `need`.
            threads: what threads of the learner's do that a call has left behind, see `Snapshot`.
        """
        if not self.complete:
            return b""
        receives = [request.need for request in requests if isinstance(getattr(request, "need", None), Receive)]
        earlier = itertools.takewhile(lambda receive: receive is not need, receives)
        ahead = sum(receive == need for receive in earlier)
        posted, locks = [receive.message for receive in receives], list(self.locks.values())
        return _to_json(
            Snapshot(
                WORKS,
                need,
                self.sent,
                self.received,
                posted,
                ahead,
                self.collectives,
                locks,
                threads,
                self.sent_before,
            ),
            self.members,
        )


@functools.lru_cache(10_000)
def _message(communicator: str, peer: int | None, tag: int | None) -> Message:
    return Message(communicator, peer, tag)


def need_in(data: bytes) -> Need | None:
    """What a rank that waits has told of what it waits for; None where it has told nothing."""
    with suppress(ValueError):
        return read_snapshot(WAITS, data)[0].need
    return None


def threads_left(data: bytes) -> str:
    """What the threads do that a rank which has returned has left behind, see `Snapshot`."""
    with suppress(ValueError):
        return read_snapshot(IS_DONE, data)[0].threads
    return NO_THREADS


def _to_json(snapshot: Snapshot, members: Mapping[str, Sequence[int]]) -> bytes:
    """A snapshot without its state, which its reader knows, and the members of communicators."""
    fields: dict[str, Any] = {name: getattr(snapshot, name) for name in _FIELDS} | {"members": members}
    fields |= {name: list(fields[name].items()) for name in _COUNTS}  # no key of JSON is a tuple
    return json.dumps(fields, default=_as_json).encode()


def _as_json(value: Any) -> Any:
    """A need with its kind, of which `_need` makes it again; the latest collectives as a list."""
    return list(value) if isinstance(value, deque) else [type(value).__name__, *vars(value).values()]


def read_snapshot(state: str, data: bytes) -> tuple[Snapshot, dict[str, list[int]]]:
    """Make again what `Ledger.snapshot` gave: the snapshot, and the members of the communicators that the rank knows.

    Raises:
        ValueError: it is not of that form.
    """
    try:
        fields = json.loads(data)
        need, members = _need(fields["need"]) if fields["need"] else None, fields["members"]
        sent, received, sent_before = ({Message(*parts): count for parts, count in fields[name]} for name in _COUNTS)
        posted, locks = [Message(*parts) for parts in fields["posted"]], tuple(map(_lock, fields["locks"]))
        collectives = {
            communicator: (count, list(map(_agreement, latest)))
            for communicator, (count, latest) in fields["collectives"].items()
        }
        threads = fields["threads"]
        if state == IS_DONE:  # but for the threads that it has left behind
            state, need = _STATES_WITH_THREADS[threads], need if threads == WAITING_THREADS else None
        ahead = fields["ahead"]
        snapshot = Snapshot(state, need, sent, received, posted, ahead, collectives, locks, threads, sent_before)
        return snapshot, members
    except (KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
        raise ValueError(f"no snapshot of a rank: {error}") from None


def _need(parts: list) -> Need:
    kind, *arguments = parts
    return _NEEDS[kind](*arguments)


def _lock(parts: list) -> Lock:
    return Lock(*parts[1:])


def _agreement(parts: list) -> Agreement:
    agreement = Agreement(*parts)
    if not is_well_formed(agreement):
        raise TypeError("a malformed agreement")
    return agreement


_NEEDS: dict[str, Callable[..., Need]] = {
    "Send": lambda message: Send(Message(*message)),
    "Receive": lambda message: Receive(Message(*message)),
    "Collective": lambda communicator, number, agreement: Collective(communicator, number, _agreement(agreement)),
    "Lock": Lock,
    "CombinedNeed": lambda needs, every, of_threads: CombinedNeed(tuple(map(_need, needs)), every, of_threads),
}
"""What makes a need of its parts."""
_STATES_WITH_THREADS = {NO_THREADS: IS_DONE, WAITING_THREADS: LINGERS, ACTING_THREADS: WORKS}
"""What a rank does that has returned, by the threads that it has left behind."""
_COUNTS = "sent", "received", "sent_before"
"""The fields of a snapshot that count messages."""
_FIELDS = [field.name for field in fields_of(Snapshot) if field.name != "state"]
