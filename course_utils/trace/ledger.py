"""The books that a rank keeps of its messages and collectives, and what it tells of them to who looks from outside."""

import functools
import itertools
import json
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from course_utils.trace.events import Agreement, well_formed
from course_utils.trace.wait_graph import IS_DONE, WAITS, Lock, Look, Meeting, Message, Need, Receive, Send, Some

WORLD = "world"
"""The communicator of a run, and of a cell; others are made from it."""
_LATEST = 32
"""How many collectives are kept."""
_NOTHING: dict[str, Any] = {
    "need": None,
    "sent": [],
    "received": [],
    "posted": [],
    "ahead": 0,
    "met": {},
    "held": [],
    "members": {},
}
OURS = "course-"
"""How the names of the trace's own threads begin."""
_PASS_ON = "multiprocessing.queues", "torch.utils.data", "torch._inductor", "tqdm"
"""Modules whose threads run no learner's code: those of a DataLoader with workers, of a compiler, of a bar."""


class Books:
    """What this rank has sent, received and begun, on each communicator.

    Attributes:
        members: the ranks of each communicator, numbered as in the run.
        held: locks of windows that this rank holds.
        complete: whether no call was made that they do not hold.
    """

    def __init__(self) -> None:
        self.complete = True
        self.sent: Counter[Message] = Counter()
        self.received: Counter[Message] = Counter()
        self.met: dict[str, tuple[int, deque[Agreement]]] = {}
        self.members: dict[str, list[int]] = {}
        self.held: dict[tuple[str, int], Lock] = {}
        self._threads: set[threading.Thread] = set()

    def begin(self) -> None:
        """Begin a run: nothing is under way on its communicator. What a cell has made lives on, with its messages."""
        for counts in (self.sent, self.received):
            for message in [one for one in counts if not one.communicator.startswith(f"{WORLD}/")]:
                del counts[message]
        for known in (self.met, self.members):
            for name in [one for one in known if not one.startswith(f"{WORLD}/")]:
                del known[name]
        self.held = {}
        self._threads = set(threading.enumerate())
        self.complete = True

    def send(self, communicator: str, members: list[int], to: int, tag: int) -> Send:
        """This rank sends a message to another rank of the run."""
        self.members[communicator] = members
        send = Send(_message(communicator, to, tag))
        self.sent[send.message] += 1
        return send

    def receive(self, communicator: str, members: list[int], source: int | None, tag: int | None) -> Receive:
        """This rank begins to receive; None for any source, or any tag.

        Each receive is an object of its own: `look` tells by it which of several like ones is waited for.
        """
        self.members[communicator] = members
        return Receive(_message(communicator, source, tag))

    def took(self, communicator: str, source: int | None, tag: int) -> None:
        """A message has been received."""
        self.received[_message(communicator, source, tag)] += 1

    def meet(self, communicator: str, members: list[int], agreement: Agreement) -> Meeting:
        """This rank begins the next collective of a communicator."""
        self.members[communicator] = members
        count, latest = self.met.get(communicator) or (0, deque(maxlen=_LATEST))
        latest.append(agreement)
        self.met[communicator] = count + 1, latest
        return Meeting(communicator, count + 1, agreement)

    def take_back(self, meeting: Meeting) -> None:
        """The collective that was begun last was none: its arguments were rejected."""
        self.met[meeting.communicator][1].pop()
        self.met[meeting.communicator] = meeting.number - 1, self.met[meeting.communicator][1]

    @contextmanager
    def unless_rejected(self, meeting: Meeting) -> Iterator[None]:
        """Inside, the collective is asked for; an error says that its arguments were rejected, and takes it back."""
        try:
            yield
        except BaseException:
            self.take_back(meeting)
            raise

    def begun(self, meeting: Meeting) -> bytes:
        """What others may know of a rank that dies in a collective."""
        count, latest = self.met[meeting.communicator]
        met, members = [count, list(latest)], self.members[meeting.communicator]
        return json.dumps(
            _NOTHING | {"met": {meeting.communicator: met}, "members": {meeting.communicator: members}}
        ).encode()

    def look(self, need: Need | None, begun: Iterable[Any]) -> bytes:
        """What others may know: the need, unless a thread of the learner's could meet it, and the books.

        Nothing, where the books are not complete: then nobody can tell what is under way.

        Args:
            begun: requests that are not completed; those that receive have a `need`.
        """
        if not self.complete:
            return b""
        others = (thread for thread in threading.enumerate() if thread not in self._threads)
        if any(map(_may_communicate, others)):
            need = None
        receives = [one.need for one in begun if isinstance(getattr(one, "need", None), Receive)]
        earlier = itertools.takewhile(lambda one: one is not need, receives)
        told = {
            "need": need and _as_list(need),
            "sent": list(self.sent.items()),
            "received": list(self.received.items()),
            "posted": [receive.message for receive in receives],
            "ahead": sum(one == need for one in earlier),
            "met": {communicator: [count, list(latest)] for communicator, (count, latest) in self.met.items()},
            "held": list(self.held.values()),
            "members": self.members,
        }
        return json.dumps(told).encode()


def _may_communicate(thread: threading.Thread) -> bool:
    """Whether a thread may run a learner's code: none of ours, and none of those that only pass data on."""
    owner = getattr(getattr(thread, "_target", None), "__module__", "") or type(thread).__module__
    return not (thread.name.startswith(OURS) or owner.startswith(_PASS_ON))


@functools.lru_cache(10_000)
def _message(communicator: str, peer: int | None, tag: int | None) -> Message:
    return Message(communicator, peer, tag)


def need_of(told: bytes) -> Need | None:
    """What a rank that waits has told of what it waits for; None where it has told nothing."""
    with suppress(ValueError):
        return read_look(WAITS, told)[0].need
    return None


def read_look(state: str, told: bytes) -> tuple[Look, dict[str, list[int]]]:
    """What a rank has told, and the members of the communicators that it knows.

    Raises:
        ValueError: it is not of that form.
    """
    try:
        seen = json.loads(told)
        need = _need(seen["need"]) if seen["need"] else None
        sent, received = ({Message(*parts): count for parts, count in seen[name]} for name in ("sent", "received"))
        posted = [Message(*parts) for parts in seen["posted"]]
        met = {
            communicator: (count, list(map(_agreement, latest)))
            for communicator, (count, latest) in seen["met"].items()
        }
        held = tuple(Lock(*parts) for parts in seen["held"])
        need = None if state == IS_DONE else need
        return Look(state, need, sent, received, posted, seen["ahead"], met, held), seen["members"]
    except (KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
        raise ValueError(f"no look of a rank: {error}") from None


def _as_list(need: Need) -> list:
    """The need with its kind, of which `_need` makes it again."""
    if isinstance(need, Some):
        return ["Some", need.all, *map(_as_list, need.needs)]
    return [type(need).__name__, *(need if isinstance(need, Lock) else vars(need).values())]


def _need(told: list) -> Need:
    kind, *parts = told
    return _NEEDS[kind](*parts)


def _agreement(parts: list) -> Agreement:
    agreement = Agreement(*parts)
    if not well_formed(agreement):
        raise TypeError("a malformed agreement")
    return agreement


_NEEDS: dict[str, Callable[..., Need]] = {
    "Send": lambda message: Send(Message(*message)),
    "Receive": lambda message: Receive(Message(*message)),
    "Meeting": lambda communicator, number, agreement: Meeting(communicator, number, _agreement(agreement)),
    "Lock": Lock,
    "Some": lambda every, *needs: Some(tuple(map(_need, needs)), every),
}
"""What makes a need of its parts."""
