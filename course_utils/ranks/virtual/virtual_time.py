"""The scheduler of virtual ranks: whose clock is furthest behind goes on, so that whatever happens, happens in order.

A virtual rank is a greenlet: a function that can be left in the middle and gone on with. Each has a clock of its own,
in seconds of virtual time. A rank runs until it waits, or sends while another rank's clock is behind its own. So all
messages enter the network in the order of virtual time, and ranks of equal clocks go in the order of their numbers:
nothing depends on the computer, and the same run twice is the same to the nanosecond.

Source: conservative simulation of processes in one address space as in SMPI (Clauss and others 2011, "Single Node
On-Line Simulation of MPI Applications with SMPI").
"""

import math
from collections import deque
from collections.abc import Callable, Collection, Sequence
from heapq import heappop, heappush
from typing import Any

import greenlet

from course_utils.ranks.virtual.virtual_network import VirtualNetwork
from course_utils.trace.events import Agreement, Event
from course_utils.trace.recorder import current_line
from course_utils.trace.wait_graph import (
    IS_DONE,
    WAITS,
    Collective,
    CombinedNeed,
    Message,
    Need,
    Receive,
    Snapshot,
    WaitGraph,
    differ,
)

IN_VAIN = 1_000
"""So often may a rank test in vain, while nothing else happens on any rank, before it counts as stuck."""
MOST_TIMES_LEFT = 100
"""So often is a rank told that its run is over; an `except` without a type may catch it."""
_stubborn: list = []  # ranks that have not left: letting go of them would go on with them
_PROGRESS_INTERVAL = 4_096
"""Between two looks at the progress bar, so many changes from rank to rank."""


class RunIsOver(BaseException):
    """Raised in a virtual rank whose run is over: it waits for what will never come, or the learner has stopped it."""


class VirtualMessage:
    """A message under way, or waiting for its receiver.

    Attributes:
        source: the sender's number in the communicator.
        data: a copy of what was sent.
        arrival: the second at which its last byte arrives.
        taken_at: the second at which a receive has taken it; None until then.
        synchronous_sender: the rank that waits for that.
    """

    __slots__ = ("source", "tag", "data", "nbytes", "kind", "arrival", "taken_at", "synchronous_sender")

    def __init__(self, source: int, tag: int, data: Any, nbytes: int, kind: str, arrival: float) -> None:
        self.source, self.tag, self.data, self.nbytes, self.kind = source, tag, data, nbytes, kind
        self.arrival = arrival
        self.taken_at: float | None = None
        self.synchronous_sender: VirtualRank | None = None


class PostedReceive:
    """A receive: from whom, which tag (None for any), and the message, once it has one.

    Attributes:
        posted_at: the second at which it began.
    """

    __slots__ = ("channel", "source", "tag", "message", "need", "posted_at")

    def __init__(self, channel: str, source: int | None, tag: int | None, need: Receive | None) -> None:
        self.channel, self.source, self.tag, self.need = channel, source, tag, need
        self.message: VirtualMessage | None = None
        self.posted_at = 0.0

    def fits(self, message: VirtualMessage) -> bool:
        """Whether the message may be taken for it; the channel is the same."""
        return self.source in (None, message.source) and self.tag in (None, message.tag)


class OpenCollective:
    """A collective to which ranks come: who has come, with what, and when it is over."""

    def __init__(self, need: Collective, size: int) -> None:
        self.need, self.size = need, size
        self.agreements: dict[int, Agreement] = {}
        self.parts: dict[int, Any] = {}
        self.latest = 0.0
        self.ends: float | None = None
        self._shared: Any = None

    def shared(self, make: Callable[[list], Any]) -> Any:
        """What all ranks need of all parts, made once."""
        if self._shared is None:
            self._shared = (make([self.parts[rank] for rank in range(self.size)]),)
        return self._shared[0]


class VirtualRank:
    """One rank: its clock, what has been sent to it, and what it waits for."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.clock = 0.0
        self.moment = -1.0  # of the last event's beginning or end
        self.greenlet: Any = None
        self.version = 0  # of its place in the queue; older ones are void
        self.inboxes: dict[tuple[str, int], deque[VirtualMessage]] = {}
        self.posted: dict[tuple[str, int], deque[PostedReceive]] = {}
        self.undecided: dict[str, list[PostedReceive]] = {}  # see `Scheduler.post`
        self.unreceived: VirtualMessage | None = None  # the synchronous send for which it stands still
        self.receive: PostedReceive | None = None  # what it stands still for, if that is a message
        self.waiting: tuple[str, Need | None] | None = None
        self.testing = self.by_test = False
        self.in_vain = 0
        self.done = False
        self.times_left = 0  # how often it has been told that its run is over
        self.collectives: dict[str, list[Agreement]] = {}
        self.events: list[Event | None] = []  # None: the place of one that has not ended
        self.sent_bytes = self.sent_messages = 0
        self.open: dict[int, Any] = {}
        self.notes: list[str] = []
        self.attached: Any = None  # the memory of `MPI.Attach_buffer`
        self.printed: list[str] = []
        self.on_moment: Callable[[float], None] | None = None  # told of each beginning and end, before data arrive

    def next_moment(self) -> float:
        """The rank's time, later each time, so that what happened at once keeps its order."""
        self.moment = (
            self.clock if self.clock > self.moment else max(self.moment + 1e-12, math.nextafter(self.moment, math.inf))
        )
        if self.on_moment:
            self.on_moment(self.moment)
        return self.moment


class Scheduler:
    """Runs virtual ranks until all are done, or none can go on.

    Attributes:
        current: the rank that runs.
        traced: whether events are kept.
        scale: for how many numbers each number of a buffer stands.
    """

    def __init__(
        self,
        world_size: int,
        network_model: VirtualNetwork,
        traced: bool,
        scale: float,
        on_progress: Callable[[], None],
    ) -> None:
        """`on_progress`: called now and then, for a progress bar."""
        self._main = greenlet.getcurrent()
        self.ranks = [VirtualRank(number) for number in range(world_size)]
        self.network_model, self.traced, self.scale = network_model, traced, scale
        self.open_collectives: dict[tuple[str, int], OpenCollective] = {}
        self.members: dict[str, Sequence[int]] = {}
        self.current = self.ranks[0]
        self.now = 0.0
        self.stuck: WaitGraph | None = None
        self.over = False
        self.pressed = False
        self._queue: list[tuple[float, int, int]] = []
        self.moved = True  # whether anything but tests in vain has happened
        self._on_progress, self._until_progress = on_progress, _PROGRESS_INTERVAL

    # --- the loop ---------------------------------------------------------------------------------------------------

    def run(self, work: Callable[[VirtualRank], None]) -> None:
        """Call `work(rank)` on all ranks, in virtual time. It must not raise."""
        for rank in self.ranks:
            rank.greenlet = greenlet.greenlet(lambda rank=rank: self._life(rank, work))
            rank.greenlet.switch()  # begun from here, none stands on the stack of another
            heappush(self._queue, (0.0, rank.number, 0))
        vain = 0
        while not self.pressed:
            following = self._next()
            if following is None and not self._ask_again(vain):
                break
            vain = 0 if self.moved else vain + 1
            if following is not None:
                self._go_on(following)
        self.over = True
        if not all(rank.done for rank in self.ranks):
            self.stuck = None if self.pressed else self._graph()
            for rank in self.ranks:
                if rank.done:
                    continue
                self.current = rank
                if rank.greenlet:
                    rank.greenlet.throw(RunIsOver)

    def now_here(self) -> float:
        """A moment of the rank that runs."""
        return self.current.next_moment() if self.traced else self.current.clock

    def add_phase(self, name: str, start: float, end: float) -> None:
        """Keep a phase of the rank that runs."""
        if self.traced:
            line = current_line()[0]
            self.current.events.append(Event(self.current.number, name, "phase", None, None, 0, start, end, line))

    def _life(self, rank: VirtualRank, work: Callable[[VirtualRank], None]) -> None:
        try:
            self._main.switch()
            work(rank)
        except RunIsOver:  # before it has begun
            pass
        finally:
            rank.done, self.moved = True, True

    def _ask_again(self, vain: int) -> bool:
        """Let ranks go on that test in vain, when nothing else happens: they may yet do something else."""
        testing = [rank for rank in self.ranks if rank.testing]
        if self.moved:
            self.moved = False
        elif vain > IN_VAIN:
            return False
        for rank in testing:
            self._enqueue(rank, max(rank.clock, self.now))
        return bool(testing)

    def _next(self) -> VirtualRank | None:
        queue, ranks = self._queue, self.ranks
        while queue:
            time, number, version = heappop(queue)
            rank = ranks[number]
            if rank.version == version and not rank.done:
                rank.version += 1
                if time > rank.clock:
                    rank.clock = time
                self.now = time
                return rank
        return None

    def _go_on(self, rank: VirtualRank) -> None:
        """Change to a rank; comes back when somebody changes to the one that called."""
        self._until_progress -= 1
        if not self._until_progress:
            self._until_progress = _PROGRESS_INTERVAL
            self._on_progress()
        self.current = rank
        rank.greenlet.switch()

    def _enqueue(self, rank: VirtualRank, time: float) -> None:
        heappush(self._queue, (time, rank.number, rank.version))

    def _stand_still(self, me: VirtualRank) -> None:
        """Let others run until this rank is in the queue, and its turn has come."""
        if self.over:
            self._leave(me)
        following = self._next()
        if following is None:
            self._main.switch()
        elif following is not me:
            self._go_on(following)
        self.current = me
        if self.over:
            self._leave(me)

    def _leave(self, me: VirtualRank) -> None:
        """End the rank's run; who catches that, and waits again and again, stands still for good."""
        me.times_left += 1
        if me.times_left <= MOST_TIMES_LEFT:
            raise RunIsOver
        _stubborn.append(me.greenlet)
        while True:
            self._main.switch()

    def in_turn(self, me: VirtualRank) -> None:
        """Come back when no other rank is behind in time."""
        queue = self._queue
        if queue and queue[0][0] <= me.clock:
            entry = (me.clock, me.number, me.version)
            if queue[0] < entry:
                heappush(queue, entry)
                self._stand_still(me)

    # --- messages ---------------------------------------------------------------------------------------------------

    def send(
        self, me: VirtualRank, channel: str, source: int, dest: int, tag: int, data: Any, nbytes: int, kind: str
    ) -> VirtualMessage:
        """Hand a message to the network. `source` counts in the communicator, `dest` in the run."""
        self.in_turn(me)
        self.moved, me.in_vain = True, 0
        me.clock += self.network_model.overhead
        me.sent_bytes += nbytes
        me.sent_messages += 1
        arrival = self.network_model.arrival_time(me.number, dest, nbytes, me.clock)
        message = VirtualMessage(source, tag, data, nbytes, kind, arrival)
        receiver = self.ranks[dest]
        waiting = receiver.posted.get((channel, source))
        if waiting:
            for receive in waiting:
                if receive.tag is None or receive.tag == tag:
                    waiting.remove(receive)
                    self._match(receive, message)
                    if receiver.receive is receive or receiver.testing:
                        self._enqueue(receiver, max(arrival, receiver.clock))
                    return message
        box = receiver.inboxes.get((channel, source))
        if box is None:
            box = receiver.inboxes[channel, source] = deque()
        box.append(message)
        awaited = receiver.receive
        if receiver.testing or (
            awaited is not None
            and awaited.channel == channel
            and (awaited.fits(message) or receiver.undecided.get(channel))
        ):
            self._enqueue(receiver, max(arrival, receiver.clock))
        return message

    def post(self, me: VirtualRank, receive: PostedReceive) -> None:
        """Begin to receive.

        A receive from any source, and each that is posted after it and before it has a message, is undecided: which
        message it takes depends on which arrives first. See `_assignment`.
        """
        self.moved, me.in_vain = True, 0
        receive.posted_at = me.clock
        if receive.source is None or me.undecided.get(receive.channel):
            me.undecided.setdefault(receive.channel, []).append(receive)
            self._wake_synchronous_senders(me, receive)
            return
        box = me.inboxes.get((receive.channel, receive.source))
        if box:
            for message in box:
                if receive.tag is None or receive.tag == message.tag:
                    box.remove(message)
                    self._match(receive, message)
                    return
        key = receive.channel, receive.source
        if key not in me.posted:
            me.posted[key] = deque()
        me.posted[key].append(receive)

    def claim(self, me: VirtualRank, receive: PostedReceive, message: VirtualMessage) -> None:
        """Give a message that has arrived to a receive that nobody has posted."""
        self.moved, me.in_vain = True, 0
        receive.posted_at = me.clock
        me.inboxes[receive.channel, message.source].remove(message)
        self._match(receive, message)

    def withdraw(self, me: VirtualRank, receive: PostedReceive) -> None:
        """Receive nothing any more."""
        if receive in me.undecided.get(receive.channel, ()):
            me.undecided[receive.channel].remove(receive)
        if receive.source is not None and receive in me.posted.get((receive.channel, receive.source), ()):
            me.posted[receive.channel, receive.source].remove(receive)

    def receive(self, me: VirtualRank, receive: PostedReceive, text: str) -> VirtualMessage:
        """Wait for a receive that was posted; the clock goes on to when the message is there, and has been taken in."""
        if receive.message is None:
            if receive in me.undecided.get(receive.channel, ()):
                self._wait_for_arrival(me, receive, text)
            else:
                me.receive, me.waiting = receive, (text, receive.need)
                self._stand_still(me)
                me.receive = me.waiting = None
        message = receive.message
        assert message is not None
        there = message.arrival + self.network_model.overhead
        if there > me.clock:
            me.clock = there
        self.moved, me.in_vain = True, 0
        return message

    def _match(self, receive: PostedReceive, message: VirtualMessage) -> None:
        """Give a message to a receive; its sender, where that is a synchronous one, may go on."""
        receive.message = message
        message.taken_at = max(message.arrival + self.network_model.overhead, receive.posted_at)
        sender = message.synchronous_sender
        if sender and (sender.testing or sender.unreceived is message):
            self.wake(sender, message.taken_at)

    def _assignment(self, me: VirtualRank, channel: str) -> dict[PostedReceive, VirtualMessage]:
        """Which undecided receive takes which of the messages that were sent so far.

        Messages are looked at as they arrive, those of one sender in the order in which they were sent; each goes to
        the first receive posted that it fits. It is certain for a message once its arrival has passed.
        """
        receives = me.undecided.get(channel)
        if not receives:
            return {}
        if len(receives) == 1:
            first = self.earliest(me, receives[0])
            return {receives[0]: first} if first else {}
        arrivals = []
        for (other, _), box in me.inboxes.items():
            latest = 0.0
            for message in box if other == channel else ():
                latest = max(latest, message.arrival)
                arrivals.append((latest, message.source, message))
        arrivals.sort(key=lambda arrival: arrival[:2])
        found: dict[PostedReceive, VirtualMessage] = {}
        for _, _, message in arrivals:
            receive = next((post for post in receives if post not in found and post.fits(message)), None)
            if receive:
                found[receive] = message
        return found

    def _take(self, me: VirtualRank, receive: PostedReceive, message: VirtualMessage) -> None:
        """Decide it: this undecided receive of a rank gets this message."""
        me.undecided[receive.channel].remove(receive)
        me.inboxes[receive.channel, message.source].remove(message)
        self._match(receive, message)

    def _is_due(self, me: VirtualRank, time: float) -> bool:
        """Whether nothing can happen before this second; where something can, the rank's turn comes then."""
        if not self._queue or self._queue[0] > (time, me.number, me.version):
            return True
        self._enqueue(me, time)
        return False

    def _wait_for_arrival(self, me: VirtualRank, receive: PostedReceive, text: str) -> None:
        me.receive, me.waiting = receive, (text, receive.need)
        while receive.message is None:
            message = self._assignment(me, receive.channel).get(receive)
            if message and self._is_due(me, time := max(me.clock, message.arrival)):
                me.clock = time
                self._take(me, receive, message)
                break
            self._stand_still(me)
        me.receive = me.waiting = None

    def is_taken(self, me: VirtualRank, message: VirtualMessage, receiver: VirtualRank, channel: str) -> bool:
        """Whether a receive has taken a message of this rank by this rank's time."""
        if message.taken_at is None:
            time, receive = self._will_be_taken(message, receiver, channel)
            if receive and time <= me.clock:
                self._take(receiver, receive, message)
        return message.taken_at is not None and message.taken_at <= me.clock

    def _will_be_taken(
        self, message: VirtualMessage, receiver: VirtualRank, channel: str
    ) -> tuple[float, PostedReceive | None]:
        for receive, its_message in self._assignment(receiver, channel).items():
            if its_message is message:
                return max(message.arrival + self.network_model.overhead, receive.posted_at), receive
        return math.inf, None

    def wait_until_taken(
        self, me: VirtualRank, message: VirtualMessage, receiver: VirtualRank, channel: str, text: str, need: Need
    ) -> None:
        """Wait until a receive has taken a message, which it may have done when it was posted."""
        me.unreceived, me.waiting = message, (text, need)
        while message.taken_at is None:
            time, receive = self._will_be_taken(message, receiver, channel)
            if receive and self._is_due(me, max(me.clock, time)):
                self._take(receiver, receive, message)
                if receiver.receive is receive or receiver.testing:
                    self._enqueue(receiver, max(message.arrival, receiver.clock))
                break
            self._stand_still(me)
        me.unreceived = me.waiting = None
        assert message.taken_at is not None
        me.clock = max(me.clock, message.taken_at)
        self.moved, me.in_vain = True, 0

    def _wake_synchronous_senders(self, me: VirtualRank, receive: PostedReceive) -> None:
        """Let those look again whose message may go to a receive that was posted now."""
        for (channel, _), box in me.inboxes.items():
            for message in box if channel == receive.channel else ():
                sender = message.synchronous_sender
                if sender and receive.fits(message) and (sender.testing or sender.unreceived is message):
                    self.wake(sender, max(message.arrival, me.clock))

    def first_to_come(self, me: VirtualRank, receive: PostedReceive, text: str) -> VirtualMessage:
        """Wait until a message has arrived that fits, and leave it where it is: of several the one that came first.

        It is none that a receive takes which was posted before.
        """
        me.receive, me.waiting = receive, (text, receive.need)
        while True:
            message = self.unassigned(me, receive)
            if message is not None and self._is_due(me, time := max(me.clock, message.arrival)):
                me.clock = time
                break
            self._stand_still(me)
        me.receive = me.waiting = None
        return message

    def earliest(
        self, me: VirtualRank, receive: PostedReceive, assigned: Collection[VirtualMessage] = ()
    ) -> VirtualMessage | None:
        """Of the messages that fit, sent so far, the one that arrives first; each sender's stay in order."""
        found = None
        for (channel, source), box in me.inboxes.items():
            if channel != receive.channel or receive.source not in (None, source):
                continue
            fitting = (message for message in box if receive.tag is None or receive.tag == message.tag)
            first = next((message for message in fitting if not assigned or message not in assigned), None)
            if first and (found is None or (first.arrival, first.source) < (found.arrival, found.source)):
                found = first
        return found

    def unassigned(self, me: VirtualRank, receive: PostedReceive) -> VirtualMessage | None:
        """The same, of the messages that no receive takes which was posted before."""
        return self.earliest(me, receive, self._assignment(me, receive.channel).values())

    def has_come(self, me: VirtualRank, receive: PostedReceive) -> bool:
        """Whether a receive could be completed at this rank's time; one that is undecided takes its message."""
        if receive.message is None:
            found = self._assignment(me, receive.channel).get(receive)
            if found is not None and found.arrival <= me.clock:
                self._take(me, receive, found)
        return receive.message is not None and receive.message.arrival <= me.clock

    def test(self, me: VirtualRank, done: Callable[[], bool], text: str, need: Need | None) -> bool:
        """Look once, at this rank's time. From the second look in vain on, time passes until something can change."""
        self.in_turn(me)
        if done():
            self.moved, me.in_vain = True, 0
            return True
        me.in_vain += 1
        if me.in_vain == 1:
            return False
        me.testing, me.waiting = True, (text, need)
        coming = [box[0].arrival for box in me.inboxes.values() if box and box[0].arrival > me.clock]
        coming += self._coming(me)
        if coming:
            self._enqueue(me, min(coming))
        self._stand_still(me)
        me.testing, me.waiting = False, None
        if done():
            self.moved, me.in_vain = True, 0
            return True
        return False

    def _coming(self, me: VirtualRank) -> list[float]:
        """When what this rank has begun will be done, as far as that is known."""
        times = (request.done_at() for request in me.open.values())
        return [time for time in times if time is not None and time > me.clock]

    def wait(self, me: VirtualRank, text: str, need: Need | None) -> None:
        """Stand still until `wake`."""
        me.waiting = text, need
        self._stand_still(me)
        me.waiting = None

    def wake(self, rank: VirtualRank, time: float) -> None:
        """Let a rank go on that stands still, at this second or later."""
        self._enqueue(rank, max(time, rank.clock))

    # --- collectives ------------------------------------------------------------------------------------------------

    def enter_collective(
        self,
        me: VirtualRank,
        channel: str,
        size: int,
        rank: int,
        agreement: Agreement,
        part: Any,
        seconds: Callable[[], float],
    ) -> OpenCollective:
        """Take part in the next collective of a communicator, and do not wait.

        Args:
            agreement: what must be the same on all ranks.
            seconds: what the collective takes once all have come.
        """
        self.moved, me.in_vain = True, 0
        collectives = me.collectives.setdefault(channel, [])
        collectives.append(agreement)
        key = channel, len(collectives)
        collective = self.open_collectives.get(key)
        if collective is None:
            collective = self.open_collectives[key] = OpenCollective(
                Collective(channel, len(collectives), agreement), size
            )
        collective.agreements[rank], collective.parts[rank] = agreement, part
        collective.latest = max(collective.latest, me.clock)
        if len(collective.parts) == size and not differ(collective.agreements.values()):
            collective.ends = collective.latest + seconds()
            del self.open_collectives[key]
            for number in self.members[channel]:
                other = self.ranks[number]
                if other is not me and (other.testing or (other.waiting and self._needs(other, collective))):
                    self.wake(other, collective.ends)
        return collective

    def _needs(self, rank: VirtualRank, collective: OpenCollective) -> bool:
        need = rank.waiting[1] if rank.waiting else None
        needs = need.needs if isinstance(need, CombinedNeed) else (need,)
        same = collective.need.communicator, collective.need.number
        return any(isinstance(part, Collective) and (part.communicator, part.number) == same for part in needs)

    def wait_for_collective(self, me: VirtualRank, collective: OpenCollective, text: str) -> None:
        """Wait until a collective is over."""
        if collective.ends is None:
            self.wait(me, text, collective.need)
        assert collective.ends is not None
        me.clock = max(me.clock, collective.ends)
        self.moved, me.in_vain = True, 0

    # --- when nobody can go on --------------------------------------------------------------------------------------

    def _graph(self) -> WaitGraph:
        """Who waits for whom: messages that were sent count, those that were received are forgotten."""
        sent: dict[int, dict[Message, int]] = {rank.number: {} for rank in self.ranks}
        for rank in self.ranks:
            taken = [message for channel in rank.undecided for message in self._assignment(rank, channel).values()]
            for (channel, source), box in rank.inboxes.items():
                for message in box if not taken else [message for message in box if message not in taken]:
                    key = Message(channel, rank.number, message.tag)
                    mine = sent[self.members[channel][source]]
                    mine[key] = mine.get(key, 0) + 1
        snapshots = {}
        for rank in self.ranks:
            collectives = {channel: (len(begun), begun[-32:]) for channel, begun in rank.collectives.items()}
            need = rank.waiting[1] if rank.waiting else None
            state = IS_DONE if rank.done else WAITS
            snapshots[rank.number] = Snapshot(state, need, sent[rank.number], collectives=collectives)
        return WaitGraph(snapshots, self.members)
