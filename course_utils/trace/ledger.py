"""The ledger that a rank keeps of its messages and collectives, and the snapshot of it that an observer reads."""

import functools
import itertools
import json
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import fields as fields_of
from typing import Any

from course_utils.trace.events import Agreement, is_well_formed
from course_utils.trace.wait_graph import (
    IS_DONE,
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
_LATEST_COLLECTIVES = 32
"""How many collectives are kept."""
OWN_THREADS = "course-"
"""How the names of the trace's own threads begin."""
_DATA_THREADS = "multiprocessing.queues", "torch.utils.data", "torch._inductor", "tqdm"
"""Modules whose threads run no learner's code: those of a DataLoader with workers, of a compiler, of a bar."""


class Ledger:
    """What this rank has sent, received and begun, on each communicator.

    Attributes:
        members: the ranks of each communicator, numbered as in the run.
        locks: locks of windows that this rank holds.
        complete: whether no call was made that they do not hold.
        begun: whether it has begun a run; before, it takes the process's own threads for a learner's.
    """

    def __init__(self) -> None:
        self.complete, self.begun = True, False
        self.sent: Counter[Message] = Counter()
        self.received: Counter[Message] = Counter()
        self.collectives: dict[str, tuple[int, deque[Agreement]]] = {}
        self.members: dict[str, list[int]] = {}
        self.locks: dict[tuple[str, int], Lock] = {}
        self._threads: set[threading.Thread] = set()

    def begin(self) -> None:
        """Begin a run: nothing is under way on its communicator. What a cell has made lives on, with its messages."""
        for counts in (self.sent, self.received):
            for message in [message for message in counts if not message.communicator.startswith(f"{WORLD}/")]:
                del counts[message]
        for by_name in (self.collectives, self.members):
            for name in [name for name in by_name if not name.startswith(f"{WORLD}/")]:
                del by_name[name]
        self.locks = {}
        self._threads = set(threading.enumerate())
        self.complete = self.begun = True

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

    def snapshot(self, need: Need | None, requests: Iterable[Any]) -> bytes:
        """What others may know: the need, unless a thread of the learner's could meet it, and the ledger.

        Nothing, where the ledger is not complete: then nobody can tell what is under way.

        Args:
            requests: requests that are not completed; those that receive have a `need`.
        """
        if not self.complete:
            return b""
        others = (thread for thread in threading.enumerate() if thread not in self._threads)
        if any(map(_may_communicate, others)):
            need = None
        receives = [request.need for request in requests if isinstance(getattr(request, "need", None), Receive)]
        earlier = itertools.takewhile(lambda receive: receive is not need, receives)
        ahead = sum(receive == need for receive in earlier)
        posted, locks = [receive.message for receive in receives], list(self.locks.values())
        return _to_json(
            Snapshot(WORKS, need, self.sent, self.received, posted, ahead, self.collectives, locks), self.members
        )


def _may_communicate(thread: threading.Thread) -> bool:
    """Whether a thread may run a learner's code: none of ours, and none of those that only pass data on."""
    owner = getattr(getattr(thread, "_target", None), "__module__", "") or type(thread).__module__
    return not (thread.name.startswith(OWN_THREADS) or owner.startswith(_DATA_THREADS))


@functools.lru_cache(10_000)
def _message(communicator: str, peer: int | None, tag: int | None) -> Message:
    return Message(communicator, peer, tag)


def need_in(data: bytes) -> Need | None:
    """What a rank that waits has told of what it waits for; None where it has told nothing."""
    with suppress(ValueError):
        return read_snapshot(WAITS, data)[0].need
    return None


def _to_json(snapshot: Snapshot, members: Mapping[str, Sequence[int]]) -> bytes:
    """A snapshot without its state, which its reader knows, and the members of communicators."""
    fields: dict[str, Any] = {name: getattr(snapshot, name) for name in _FIELDS} | {"members": members}
    fields |= {name: list(fields[name].items()) for name in ("sent", "received")}  # no key of JSON is a tuple
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
        sent, received = ({Message(*parts): count for parts, count in fields[name]} for name in ("sent", "received"))
        posted, locks = [Message(*parts) for parts in fields["posted"]], tuple(map(_lock, fields["locks"]))
        collectives = {
            communicator: (count, list(map(_agreement, latest)))
            for communicator, (count, latest) in fields["collectives"].items()
        }
        need = None if state == IS_DONE else need
        return Snapshot(state, need, sent, received, posted, fields["ahead"], collectives, locks), members
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
    "CombinedNeed": lambda needs, every: CombinedNeed(tuple(map(_need, needs)), every),
}
"""What makes a need of its parts."""
_FIELDS = [field.name for field in fields_of(Snapshot) if field.name != "state"]
