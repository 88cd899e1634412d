"""What a notebook holds of virtual ranks: the interface of `Ranks`, without a process, a network or a wait.

What holds on real ranks holds here: each rank has copies of its own of the function and its arguments, and what it
prints carries its number. What does not: a computation takes no time unless `comm.compute(seconds)` says so. That
includes additions, however they are written: NumPy tells nobody that it adds. Only where MPI adds, in `Reduce`,
`Allreduce` and their like, each byte costs the network's γ, where it has one (`virtual.collective_costs`).

The generator of `numpy.random.normal` and its like is one for all ranks, and modules are shared: who changes one
changes it for all, and what counts the memory of a process counts that of all ranks.
They have no groups of torch.distributed.
"""

import builtins
import contextlib
import io
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NoReturn

import numpy as np

from course_utils.draw.block_frames import BlockFrames
from course_utils.errors import CourseError, RankError
from course_utils.machine import memory_left
from course_utils.progress_bar import ProgressBar
from course_utils.ranks.ending import STOPPED_BY_USER, BrokenOff, Ending, ending_of
from course_utils.ranks.engine.reply import Raised, Reply, describe_exception, from_bytes, learner_line
from course_utils.ranks.failure_report import describe, print_from
from course_utils.ranks.hang_detector import deadlock_cause
from course_utils.ranks.interface import LIMIT, PATIENCE
from course_utils.ranks.links.network import EmulatedNetwork
from course_utils.ranks.links.traffic import Traffic, traffic_of
from course_utils.ranks.run import Attempt, LastRun, Run, check_function, events_of, pack_or_explain, spread
from course_utils.ranks.virtual import virtual_mpi
from course_utils.ranks.virtual.block_snapshots import ObservedRun, Stretches, block_frames
from course_utils.ranks.virtual.communicator import VirtualComm, VirtualGrid
from course_utils.ranks.virtual.groups_and_grids import VirtualGroup, compute_dims
from course_utils.ranks.virtual.virtual_network import OwnLinks, network_model_of
from course_utils.ranks.virtual.virtual_persistent import MatchedMessage, VirtualPersistentRequest
from course_utils.ranks.virtual.virtual_requests import Request
from course_utils.ranks.virtual.virtual_time import RunIsOver, Scheduler, VirtualRank
from course_utils.trace.events import count_rounds
from course_utils.trace.ledger import WORLD
from course_utils.trace.recorder import SourceLine, learner_frame, outside_text, virtual_clocks
from course_utils.trace.wait_graph import WaitGraph
from course_utils.words import bytes_text, count, seconds_text, wrapped

MOST = 16_384
"""Virtual ranks at once."""
TRACED = 64
"""Ranks up to which each message is kept as an event, for pictures and for counting rounds."""
_EACH = 40_000
"""Bytes that a rank takes beside what the function needs: its greenlet, its clock, its copy of the function."""
_WIDTH = 88  # as the lines of real ranks
_PER_MESSAGE = 25e-6
"""Seconds of real time that a message takes, about."""


@dataclass(frozen=True)
class VirtualRun(Run):
    """A call on all virtual ranks. Seconds are virtual; bytes are those that the numbers stand for.

    Attributes:
        network: what the messages went over, in words.
        sent: for each rank, bytes and messages that it sent; the bytes of collectives count too.
    """

    network: str = ""
    sent: list[tuple[int, int]] = field(default_factory=list)

    @property
    def messages(self) -> int:
        """Messages sent from rank to rank."""
        return sum(messages for _, messages in self.sent)

    @property
    def bytes_per_rank(self) -> list[int]:
        """Bytes that each rank sent, or contributed to a collective."""
        return [nbytes for nbytes, _ in self.sent]

    @property
    def rounds(self) -> int:
        """Rounds of messages when each rank sends one and receives one at a time.

        Raises:
            CourseError: there were too many ranks to keep each message.
        """
        if not self.events and self.messages:
            raise CourseError(
                "Rounds are counted from each message, kept up to 64 ranks; run(…, traced=True) keeps more."
            )
        return count_rounds(self.events)

    def __repr__(self) -> str:
        return (
            f"<virtual run on {count(self.world_size, 'rank')}: {seconds_text(self.seconds)} of virtual time, "
            f"{count(self.messages, 'message')}, {bytes_text(self.bytes)}; {self.network}>"
        )


class VirtualRanks(LastRun):
    """Ranks that are no processes. Made by `course.start(n, where="nowhere")`.

    Attributes:
        world_size: how many there are.
        facts: as those of `Ranks`.
    """

    connection = None
    healthy = True
    last_run_name = "The last run"

    def __init__(self, world_size: int, network: Any = None, scale: float = 1.0) -> None:
        """Args: as `start`'s.

        Raises:
            CourseError: there are too many, or the network fits another number of ranks.
        """
        check_number(world_size)
        if isinstance(scale, bool) or not isinstance(scale, (int, float)) or not scale > 0:
            raise CourseError(f"scale={scale!r}: for how many numbers does each number stand? 1 or more.")
        self.world_size, self.scale = world_size, scale
        self._network = network if network is not None else assumed_network(world_size)
        network_model = network_model_of(self._network, world_size)
        self.facts: dict[str, Any] = {
            "network": None,
            "virtual": network_model.name,
            "ranks": [],
            "line": self._line(network_model.name),
        }
        self._last: VirtualRun | None = None

    def _line(self, name: str) -> str:
        stand = f", each number stands for {self.scale:g}" if self.scale != 1 else ""
        return f"{self.world_size:,} virtual ranks in this kernel, no process and no network: {name}{stand}"

    @property
    def client(self) -> NoReturn:
        """Refuse: nothing here is an engine of ipyparallel.

        Raises:
            CourseError: always.
        """
        raise CourseError(
            "Virtual ranks are not processes, so ipyparallel has no engines and no client for them. "
            "`course.start(4)` starts real ones."
        )

    view = controller = client

    # --- running ----------------------------------------------------------------------------------------------------

    def run(
        self,
        function: Callable,
        *args: Any,
        ranks: int | None = None,
        network: Any = None,
        scale: float | None = None,
        traced: bool | None = None,
        backend: str | None = None,
        **kwargs: Any,
    ) -> VirtualRun:
        """Call `function(comm, *args, **kwargs)` once on every virtual rank and give back results and trace.

        Args:
            function, args: as for `Ranks.run`.
            ranks: take only the first this many.
            network, scale: for this run instead of those of `start`. What the function adds itself costs no time;
                `comm.compute(seconds)` says what a computation takes.
            traced: keep each message as an event; None: up to 64 ranks.
            backend: None; virtual ranks have no groups of torch.distributed.

        Raises:
            RankError: a rank raised, or ranks wait for what will never come; the text says which, where, and why.
            CourseError: the function does what virtual ranks cannot, or the arguments make no sense.
        """
        size = self._size(ranks)
        check_function(function)
        virtual_mpi.reject_backend(backend)
        network = network if network is not None else self._network_for(size)
        each = spread(args, kwargs, size)
        scale, traced = self.scale if scale is None else scale, size <= TRACED if traced is None else traced
        work = _VirtualCall(size, network, scale, traced)
        with ProgressBar(f"{size:,} virtual ranks at work") as bar:
            replies, cause = work.run(function, each, on_progress=bar.refresh)
        self._remember(work, replies)
        if size <= TRACED:
            for reply in replies:
                print_from(reply.rank, reply.output)
        else:
            print_from(0, replies[0].output)
        rejected = next((r.error for r in replies if r.error and r.error.type == "VirtualRanksCannot"), None)
        if rejected:
            where = f" ({rejected.line})" if rejected.line else ""
            text = rejected.message.removesuffix(".")
            raise CourseError(f"{text}{where}. `course.start(4)` starts ranks that are processes, with all of MPI.")
        if trouble := describe(replies, cause):
            raise RankError(trouble, ending_of((reply.kind for reply in replies), cause))
        run = replace(work.outcome(replies), replay=partial(snapshots_of_blocks, function, each))
        self._last = run
        for note in run.notes:
            print(wrapped(f"By luck: {note}"))
        return run

    def attempt(
        self,
        function: Callable,
        arguments: Sequence[tuple],
        *,
        with_comm: bool = True,
        backend: str | None = None,
        patience: float = PATIENCE,
        limit: float = LIMIT,
    ) -> Attempt:
        """Call a function that may be wrong, with one tuple of arguments for each rank; never raises for its errors.

        The replies carry the arguments as they are after the call. It is broken off by the stop button alone, and by
        what the ranks themselves show to be a hang.

        Raises:
            CourseError: it asks for a group of torch.distributed.
        """
        virtual_mpi.reject_backend(backend)
        return Attempt.of(*self.replies(function, arguments, with_comm))

    def replies(
        self, function: Callable, arguments: Sequence[tuple], with_comm: bool = True
    ) -> tuple[list[Reply], BrokenOff | None]:
        """What `attempt` is made of: the reply of each rank, and why the call was broken off, if it was."""
        size = self._size(len(arguments))
        work = _VirtualCall(size, self._network_for(size), self.scale, traced=True, with_comm=with_comm)
        replies, cause = work.run(function, [(own, {}) for own in arguments])
        self._remember(work, replies)
        return replies, cause

    def attempt_each(
        self,
        tasks: Sequence[tuple[Callable, tuple]],
        *,
        seconds: float = 1.0,
        patience: float = PATIENCE,
        limit: float = LIMIT,
    ) -> list[Attempt]:
        """Call functions that need no other rank, each with its arguments, one after the other."""
        return [self.attempt(function, [own], with_comm=False) for function, own in tasks]

    def _remember(self, work: "_VirtualCall", replies: list[Reply]) -> None:
        self._last = None
        self._last_events = events_of(replies)
        self._last_waits = work.stuck, replies

    def _network_for(self, size: int) -> Any:
        """The network of all; where fewer take part, they are the first on it."""
        if size != self.world_size and hasattr(self._network, "world_size"):
            return replace(self._network, world_size=size)
        return self._network

    # --- looking ----------------------------------------------------------------------------------------------------

    def traffic(self) -> Traffic:
        """Bytes out of and into each rank during the last run, without headers; shows as a picture.

        Raises:
            CourseError: nothing has run yet, or no messages were kept.
        """
        if not any(event.kind == "send" for event in self._last_events):
            raise CourseError("No message of a run was kept, so there is no traffic to show.")
        size = self._last.world_size if self._last else self.world_size
        network_model = network_model_of(self._network_for(size), size)
        rate = 8 / max(
            1e-30, (network_model.idle_seconds(0, size - 1, 1e9) - network_model.idle_seconds(0, size - 1, 0)) / 1e9
        )
        return traffic_of(self._last_events, size, round(rate))

    # --- the end ----------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Nothing to end."""

    def restart(self) -> "VirtualRanks":
        """Nothing to start."""
        return self

    def load_torch(self) -> None:
        """Nothing to load."""

    def __repr__(self) -> str:
        return f"<{self.facts['line']}>"


def assumed_network(world_size: int) -> OwnLinks:
    """A network where nothing was said: 1 µs and 10 GB/s between any two ranks. An assumption, measured nowhere."""
    return OwnLinks("1 µs and 10 GB/s between any two (assumed)", (1e-10,) * (2 * world_size), 1e-6)


def behind_links(
    ranks: int, link: str, latency: str | None, slow: Mapping[int, str] | None, ranks_per_node: int
) -> OwnLinks:
    """The network that `start` would emulate with these words, for as many nodes as one likes.

    Raises:
        CourseError: something that cannot be read, or ranks that share a node: a topology says how those are linked.
    """
    if ranks_per_node != 1:
        raise CourseError(
            "ranks_per_node= is for real ranks; virtual ones take network=two_level(P, node_size, between, inside)."
        )
    two = EmulatedNetwork.from_words(2, link, latency)
    assert two
    rates = [two.rates[0]] * ranks
    for rank, rate in (slow or {}).items():
        if isinstance(rank, bool) or not isinstance(rank, int) or not 0 <= rank < ranks:
            raise CourseError(f"slow={{{rank!r}: …}}: the ranks are 0 to {ranks - 1}.")
        own = EmulatedNetwork.from_words(2, rate)
        assert own
        rates[rank] = own.rates[0]
    beta = tuple(8 / rate for rate in rates)
    name = f"each behind a link of {link}" + (f", {latency} from the next" if latency else "")
    return OwnLinks(name, beta * 2, two.latency)


def start_virtual(
    ranks: int, link: str | None, latency: str | None, slow: Mapping[int, str] | None, ranks_per_node: int, **more: Any
) -> VirtualRanks:
    """What `start(ranks, where="nowhere", …)` gives; prints one line that says what there is.

    Raises:
        CourseError: something that cannot be meant.
    """
    check_number(ranks)
    if unknown := sorted(set(more) - {"network", "scale"}):
        raise CourseError(f"start({unknown[0]}=…) is unknown. For virtual ranks there are: network, scale.")
    if link is not None:
        if more.get("network") is not None:
            raise CourseError("Give link= or network=, not both.")
        more["network"] = behind_links(ranks, link, latency, slow, ranks_per_node)
    elif latency is not None or slow or ranks_per_node != 1:
        EmulatedNetwork.from_words(2, None, latency, slow, ranks_per_node)
    made = VirtualRanks(ranks, **more)
    print(wrapped(made.facts["line"], _WIDTH))
    return made


def check_number(ranks: Any) -> None:
    """Reject what is no number of virtual ranks, or too many, and say what they would take.

    Raises:
        CourseError: so it is.
    """
    if isinstance(ranks, bool) or not isinstance(ranks, int) or ranks < 1:
        raise CourseError(f"start({ranks!r}): how many ranks? A number from 1 on.")
    if ranks > MOST:
        messages = 2 * (ranks - 1) * ranks
        raise CourseError(
            f"{ranks:,} virtual ranks would take {bytes_text(ranks * _EACH)} before they hold one number, and a ring "
            f"on them {messages:.0e} messages, {seconds_text(messages * _PER_MESSAGE)}. At most {MOST:,} are started."
        )


class _VirtualCall:
    """One call on virtual ranks."""

    def __init__(
        self,
        size: int,
        network: Any,
        scale: float,
        traced: bool,
        with_comm: bool = True,
        on_begin: Callable[[VirtualRank, tuple, dict], None] | None = None,
    ) -> None:
        """`on_begin`: called on each rank with its own copies of the arguments, before the function is."""
        self.size, self.network, self.scale, self.traced, self.with_comm = size, network, scale, traced, with_comm
        self.on_begin = on_begin
        self.stuck: WaitGraph | None = None

    def run(
        self, function: Callable, each: list[tuple[tuple, dict]], on_progress: Callable[[], None] = lambda: None
    ) -> tuple[list[Reply], BrokenOff | None]:
        """The replies of all ranks, and why the run was broken off, if it was."""
        network_model = network_model_of(self.network, self.size)
        packed = pack_or_explain(function, function)
        shared = pack_or_explain(function, each[0]) if _are_identical(each) else None
        check_memory(self.size, len(packed) + len(shared or pack_or_explain(function, each[0])))
        self.scheduler = scheduler = Scheduler(self.size, network_model, self.traced, self.scale, on_progress)
        replies: list[Reply] = []

        def work(me: VirtualRank) -> None:
            replies.append(self._run_rank(me, packed, shared or pack_or_explain(function, each[me.number])))

        mpi = virtual_mpi.module(lambda: scheduler.current.clock, Request, VirtualComm, **_more_of_mpi(scheduler))
        with virtual_mpi.replace_mpi(mpi), _capture_prints(scheduler), _record_phases(scheduler):
            scheduler.run(work)
        self.stuck = scheduler.stuck
        replied = {reply.rank for reply in replies}
        for rank in scheduler.ranks:
            if rank.number not in replied:
                text, need = rank.waiting or (None, None)
                replies.append(Reply(rank.number, "interrupted", waiting=text, need=need))
        replies.sort(key=lambda reply: reply.rank)
        cause = STOPPED_BY_USER if scheduler.pressed else None
        return replies, cause or (_hang_cause(self.stuck) if self.stuck else None)

    def _run_rank(self, me: VirtualRank, packed: bytes, arguments: bytes) -> Reply:
        scheduler, own = self.scheduler, ()
        try:
            function, (own, keywords) = from_bytes(packed), from_bytes(arguments)
            comm = (VirtualComm.on(scheduler, me, range(self.size), WORLD),) if self.with_comm else ()
            if self.on_begin:
                self.on_begin(me, own, keywords)
            reply = Reply(me.number, "returned", value=function(*comm, *own, **keywords))
        except RunIsOver as left:
            reply = Reply(me.number, "interrupted", error=None if me.waiting else Raised("RunIsOver", ""))
            if me.waiting:
                reply.waiting, reply.need = f"{me.waiting[0]}{_waiting_line(left)}", me.waiting[1]
        except KeyboardInterrupt as error:
            scheduler.pressed = True
            reply = Reply(me.number, "interrupted", error=Raised("KeyboardInterrupt", "", learner_line(error)))
        except BaseException as error:
            reply = Reply(me.number, "raised", error=describe_exception(error))
        reply.arguments, reply.events, reply.ended = own, [event for event in me.events if event], me.clock
        reply.output = "".join(me.printed)
        mine = [request for request in me.open.values() if request.by_learner and not request.inactive]
        for request in mine:
            if request.sends is not None:  # it was never completed, and real ranks count what was
                me.sent_bytes -= request.sends
                me.sent_messages -= 1
        reply.take_notes(mine, me.notes)
        return reply

    def outcome(self, replies: list[Reply]) -> VirtualRun:
        """The run, when every rank returned."""
        run = Run.of(replies)
        sent = [(rank.sent_bytes, rank.sent_messages) for rank in self.scheduler.ranks]
        own = {name: getattr(run, name) for name in ("results", "events", "seconds", "output", "noticed")}
        return VirtualRun(**own, network=self.scheduler.network_model.name, sent=sent)


def _more_of_mpi(scheduler: Scheduler) -> dict[str, Any]:
    """What further names `MPI` has on virtual ranks."""

    def attach_buffer(buf: Any) -> None:
        scheduler.current.attached = buf

    def detach_buffer() -> Any:
        attached, scheduler.current.attached = scheduler.current.attached, None
        return attached

    return {
        **{"Attach_buffer": attach_buffer, "Detach_buffer": detach_buffer, "Compute_dims": compute_dims},
        **{"Prequest": VirtualPersistentRequest, "Message": MatchedMessage, "Group": VirtualGroup},
        **{"Cartcomm": VirtualGrid, "Get_processor_name": lambda: "a virtual rank"},
    }


def _hang_cause(waits: WaitGraph) -> BrokenOff:
    """Why no rank can go on; the scheduler knows that none can, whether or not the graph tells why."""
    return deadlock_cause(waits) if waits.stuck() else BrokenOff(Ending.DEADLOCK, "deadlock: no rank can go on.")


def snapshots_of_blocks(function: Callable, each: list[tuple[tuple, dict]]) -> BlockFrames:
    """Run a function again on virtual ranks, and say what is where after each round.

    Raises:
        CourseError: none of its arguments can be marked, there are too many ranks, or it cannot run on virtual ranks.
    """
    return block_frames(function, each, _observe)


def _observe(
    function: Callable, each: list[tuple[tuple, dict]], find: Callable, wanted: list[set[float]]
) -> ObservedRun:
    """Run a function on virtual ranks, and keep each rank's vector at the moments that are wanted of it."""
    size = len(each)
    moments: list[list[float]] = [[] for _ in range(size)]
    snapshots: list[list[tuple[float, Stretches]]] = [[] for _ in range(size)]
    vectors: list[Any] = [None] * size

    def on_begin(me: VirtualRank, own: tuple, keywords: dict) -> None:
        vector = vectors[me.number] = find((own, keywords))

        def on_moment(moment: float) -> None:
            moments[me.number].append(moment)
            if moment in wanted[me.number]:
                snapshots[me.number].append((moment, Stretches.of(vector)))

        if isinstance(vector, np.ndarray):
            me.on_moment = on_moment

    work = _VirtualCall(size, assumed_network(size), 1.0, traced=True, on_begin=on_begin)
    replies, _ = work.run(function, each)
    works_in_place = all(reply.value is None for reply in replies)
    finals = [
        vectors[reply.rank]
        if reply.value is None and (works_in_place or hasattr(vectors[reply.rank], "dtype"))
        else reply.value
        for reply in replies
    ]
    raised = ((r.rank, r.error) for r in replies if r.error and r.kind == "raised")
    error = next((f"rank {rank} raised {error.type}: {error.message}" for rank, error in raised), "")
    ended = all(reply.kind == "returned" for reply in replies)
    return ObservedRun(moments, snapshots, finals, events_of(replies), ended, error)


def _are_identical(each: list[tuple[tuple, dict]]) -> bool:
    """Whether all ranks are given the very same objects, so that they need packing once."""
    first, keywords = each[0]
    return all(
        len(own) == len(first)
        and all(own_argument is first_argument for own_argument, first_argument in zip(own, first))
        and all(more[key] is keywords[key] for key in keywords)
        for own, more in each
    )


def check_memory(size: int, nbytes: int) -> None:
    """Reject what does not fit into memory, before it is taken.

    Raises:
        CourseError: the ranks' copies need more than there is.
    """
    needed, left = size * (nbytes + _EACH), memory_left()
    if needed > 0.8 * left:
        raise CourseError(
            f"{size:,} virtual ranks with {bytes_text(nbytes)} of function and arguments each need "
            f"{bytes_text(needed)}; {bytes_text(left)} are free. Take shorter vectors and set scale=, "
            "so that each number represents many."
        )


def _waiting_line(left: BaseException) -> str:
    """Where a rank stood still, to put behind what it called."""
    traceback = left.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    innermost = traceback.tb_frame if traceback else None
    frame = learner_frame(innermost)
    return str(SourceLine(frame.f_code.co_filename, frame.f_lineno)) if frame else outside_text(innermost)


class _Output(io.TextIOBase):
    """What the ranks print, kept for each of them; other threads print as before."""

    def __init__(self, scheduler: Scheduler, before: Any) -> None:
        self._scheduler, self._before = scheduler, before

    def write(self, text: str) -> int:
        if not virtual_mpi.is_on_a_rank():
            return self._before.write(text)
        self._scheduler.current.printed.append(text)
        return len(text)


@contextlib.contextmanager
def _record_phases(scheduler: Scheduler) -> Iterator[None]:
    """Inside, phases are those of the rank that runs, in its time."""
    virtual_clocks.append((scheduler.now_here, scheduler.add_phase))
    try:
        yield
    finally:
        virtual_clocks.pop()


@contextlib.contextmanager
def _capture_prints(scheduler: Scheduler) -> Iterator[None]:
    before = builtins.print, sys.stdout
    sys.stdout = _Output(scheduler, before[1])
    try:
        yield
    finally:
        sys.stdout = before[1]
