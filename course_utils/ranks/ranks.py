"""What a notebook holds of its ranks: run functions on them, look at them, stop them, bring them back."""

import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from course_utils import draw, system
from course_utils.draw.block_frames import BlockFrames
from course_utils.errors import CourseError, RankError, RanksGone
from course_utils.machine import gpus, memory_bytes
from course_utils.progress_bar import ProgressBar
from course_utils.ranks.call_lock import call_lock
from course_utils.ranks.connection import CallProgress, Connection
from course_utils.ranks.deferred_interrupts import deferred_interrupts
from course_utils.ranks.ending import ending_of
from course_utils.ranks.engine.reply import RankTask, Reply, from_bytes
from course_utils.ranks.failure_report import activity_text, describe, print_from
from course_utils.ranks.hang_detector import Observation
from course_utils.ranks.interface import LIMIT, PATIENCE
from course_utils.ranks.links.traffic import LinksAtRest, Meter, Traffic
from course_utils.ranks.px_magic import register
from course_utils.ranks.quiet_notice import QuietNotice
from course_utils.ranks.run import (
    Attempt,
    LastRun,
    Run,
    check_function,
    check_takes_no_comm,
    events_of,
    pack_or_explain,
    spread,
)
from course_utils.ranks.sharing import sharing_text
from course_utils.words import count, wrapped

if TYPE_CHECKING:
    import ipyparallel as ipp

    from course_utils.ranks.engine_connection import EngineConnection

_MEETING_SECONDS = 1.0
"""Seconds in which ranks come together that can; it takes them some milliseconds."""
_MEETING_SECONDS_ON_LINKS = 10.0
"""The same, while the links still carry what was sent before."""

_MOST_LEFT = 50_000
"""Messages that nobody received: MPI holds them, and their memory, as long as the ranks live."""
_NEW_RANKS = "New ranks were started. The variables of the old ones are lost."


class Ranks(LastRun):
    """Processes that wait for work. Made by `course.start(n)`.

    Attributes:
        world_size: how many there are.
        folder: what they keep on disk.
    """

    def __init__(self, connection: Connection, facts: dict, start_again: Callable[[], tuple[Connection, dict]]) -> None:
        self._start_again = start_again
        self._meter = Meter([], None)
        self._use_connection(connection, facts)

    def _use_connection(self, connection: Connection, facts: dict) -> None:
        self.connection: Connection | None = connection
        self._usable = True
        self.folder = connection.folder
        self._known_owners: set[int] = set()
        self.facts = facts
        self.world_size: int = connection.world_size
        if self.engines:
            from course_utils.ranks.direct_requests import see_through

            see_through(self)

    @property
    def pids(self) -> list[int]:
        """The process of each rank, on its own node."""
        return [fact["pid"] for fact in self.facts["ranks"]]

    # --- as ipyparallel has them ------------------------------------------------------------------------------------

    @property
    def client(self) -> "ipp.Client":
        """Return ipyparallel's own client of the cluster whose engines these ranks are; engine r is rank r.

        Functions that it sends find the traced `MPI.COMM_WORLD`, one for all of them that no `run` and no `%%px` cell
        uses. What waits for their results, `apply_sync`, `get` or `wait` without a timeout, is told as `run` is: an
        error with its rank and line, a deadlock, and the stop button, after which the ranks go on. The same holds for
        another `ipp.Client` of this notebook. Not told are: a deadlock of tasks that a load-balanced view deals out,
        of which nobody knows where the next one goes; and what nobody waits for, or another process. What they do is
        counted in no `Run`.

        Raises:
            RanksGone: the ranks have ended.
            CourseError: they are no engines.
        """
        return self._engine_connection().client

    @property
    def view(self) -> "ipp.DirectView":
        """Return ipyparallel's own view of all ranks, in their order, whose methods wait until they are done.

        It has `push`, `pull`, `scatter`, `gather`, `apply_sync`, `map_sync` and `execute`; see `client` for what the
        course does about them.

        Raises:
            RanksGone: the ranks have ended.
            CourseError: they are no engines.
        """
        return self._engine_connection().view

    @property
    def controller(self) -> str:
        """Host and port of the controller of ipyparallel that stands between this notebook and the ranks.

        Raises:
            RanksGone: the ranks have ended.
            CourseError: they are no engines.
        """
        return self._engine_connection().address

    @property
    def engines(self) -> list[int]:
        """The engine id of each rank; empty where they are no engines."""
        return list(getattr(self.connection, "engines", ()))

    @property
    def session_key(self) -> bytes | None:
        """By which clients of these ranks know each other."""
        return self.connection.client.session.key if self.engines else None  # type: ignore[union-attr]

    def see_through(self, result: "ipp.AsyncResult") -> None:
        """Wait for what ipyparallel has asked of the ranks itself, as `run` waits; break it off where that is in vain.

        Raises:
            RankError: ranks wait for what will never come, or the stop button was pressed.
            RanksGone: a rank has ended.
        """
        from course_utils.ranks.direct_requests import requests_of

        connection = self._engine_connection()
        requests = requests_of(result, self.engines)
        with call_lock(connection.folder) as lock:
            if requests is None:
                call = connection.wait_for_tasks(result)
            else:
                call = self._watch_requests(connection, result, requests)
            if call.cause is None:
                lock.clean()
                return
            if not call.lost:
                self._usable = self._can_meet(connection, lock.communicator + 1)
        replies = [call.replies[rank] for rank in sorted(call.replies)]
        self._last_waits = call.stuck, replies
        result.broken_off = call.cause
        self._raise_trouble(call, replies)

    def _watch_requests(
        self, connection: "EngineConnection", result: "ipp.AsyncResult", requests: dict[int, Any]
    ) -> CallProgress:
        """See them through; ranks without one count as done where nothing else is on its way to them."""
        alone = (connection.client.outstanding | result._client.outstanding) <= set(result.msg_ids)
        others = [rank for rank in range(self.world_size) if rank not in requests] if alone else []
        with ProgressBar(f"{count(len(requests), 'rank')} at work") as bar:
            notice = QuietNotice(connection.control, list(requests))

            def observe(observation: Observation, replies: Mapping[int, Reply]) -> None:
                bar.refresh()
                notice.observe(observation, replies)

            rest = self._links_at_rest()
            return connection.wait_for(requests, others=others, observe=observe, links_at_rest=rest, may_be_lost=False)

    def _engine_connection(self) -> "EngineConnection":
        from course_utils.ranks.engine_connection import EngineConnection

        connection = self._living_connection()
        if not isinstance(connection, EngineConnection):
            raise CourseError("These ranks are not engines of ipyparallel, so they have no client and no view.")
        return connection

    # --- running ----------------------------------------------------------------------------------------------------

    def run(
        self, function: Callable, *args: Any, ranks: int | None = None, backend: str | None = None, **kwargs: Any
    ) -> Run:
        """Call `function(comm, *args, **kwargs)` once on every rank and give back results and trace.

        Args:
            function: any function, also one from the cell above. `comm` is a communicator made for this call.
            args: equal on all ranks, but for what is wrapped in `course.per_rank([…])`.
            ranks: take only the first this many.
            backend: "gloo" or "nccl" for torch.distributed: its default group is set up for the call, and there is no
                `comm`. With "nccl" each rank has a GPU, `torch.device("cuda")`; tensors on processors go over gloo.

        Raises:
            RankError: a rank raised, or ranks wait for what will never come; the text says which, where, and why.
            RanksGone: the ranks have ended.
            CourseError: the arguments make no sense.
        """
        size = self._size(ranks)
        check_function(function)
        if backend not in (None, "gloo", "nccl"):
            raise CourseError(f'run(backend={backend!r}): "gloo" and "nccl" are known here.')
        if backend:
            check_takes_no_comm(function, args, kwargs, backend)
        each = spread(args, kwargs, size)
        rendezvous = self._rendezvous(backend)

        packed = pack_or_explain(function, function)

        def tasks(communicator: int) -> dict[int, tuple]:
            common = {"world_size": size, "communicator": communicator, "backend": backend, "rendezvous": rendezvous}
            return {
                rank: (_task_bytes(function, packed, own, keywords, **common),)
                for rank, (own, keywords) in enumerate(each)
            }

        call, replies = self._call("call", tasks)
        for reply in replies:
            print_from(reply.rank, reply.output)
        self._raise_trouble(call, replies)
        run = replace(Run.of(replies), replay=partial(_replayed_blocks, function, each))
        for note in run.notes:
            print(wrapped(f"By luck: {note}"))
        for leftover in run.leftovers:
            print(wrapped(f"Left over: {leftover}"))
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

        The replies carry the arguments as they are after the call. Where ranks had to be ended, new ones are started.
        """
        size = self._size(len(arguments))
        packed = pack_or_explain(function, function)

        def tasks(communicator: int) -> dict[int, tuple]:
            common = {"world_size": size, "communicator": communicator, "with_comm": with_comm, "backend": backend}
            common |= {"rendezvous": self._rendezvous(backend), "keep_arguments": True}
            return {rank: (_task_bytes(function, packed, own, {}, **common),) for rank, own in enumerate(arguments)}

        call, replies = self._call_on_living_ranks("call", tasks, patience, limit)
        if any(reply.kind == "unusable" for reply in replies):  # by the fault of an earlier call, not of this function
            self._ensure_usable()
            call, replies = self._call("call", tasks, patience=patience, limit=limit)
        has_new_ranks = self._ensure_usable(call)
        return Attempt.of(replies, call.cause, _NEW_RANKS if has_new_ranks else "")

    def attempt_each(
        self,
        tasks: Sequence[tuple[Callable, tuple]],
        *,
        seconds: float = 1.0,
        patience: float = PATIENCE,
        limit: float = LIMIT,
    ) -> list[Attempt]:
        """Call functions that need no other rank, each with its arguments, one after the other on rank 0.

        They travel together, which saves most of what an attempt costs. Gives back the attempts that came to an end
        before the seconds were over; none where the rank was lost, for nobody knows by which function.
        """
        options = {"world_size": 1, "communicator": 0, "with_comm": False, "keep_arguments": True}
        payloads = [
            _task_bytes(function, pack_or_explain(function, function), own, {}, **options) for function, own in tasks
        ]
        call, replies = self._call_on_living_ranks("call_each", lambda _: {0: (payloads, seconds)}, patience, limit)
        self._ensure_usable(call)
        if replies[0].kind != "returned":
            return []
        return Attempt.of_each([from_bytes(data) for data in replies[0].value], call.cause)

    def _call_on_living_ranks(
        self, function: str, arguments_with: Callable[[int], dict[int, tuple]], patience: float, limit: float
    ) -> tuple[CallProgress, list[Reply]]:
        """As `_call`. If the ranks have ended since the call before, which another notebook may cause, on new ones.

        Raises:
            RanksGone: this notebook has stopped them.
        """
        self._ensure_usable()
        try:
            return self._call(function, arguments_with, patience=patience, limit=limit)
        except RanksGone:
            if self.connection is None:
                raise
        self._start_anew()
        print(wrapped(f"The ranks had ended since the last cell. {_NEW_RANKS}"))
        return self._call(function, arguments_with, patience=patience, limit=limit)

    def _ensure_usable(self, call: CallProgress | None = None) -> bool:
        """Start new ranks where a call has ended some, or has left them unable to use MPI; whether it was so."""
        broken = bool(not self._usable or (call and call.lost))
        if broken:
            self._start_anew()
        return broken

    def _rendezvous(self, backend: str | None) -> str:
        """Where the ranks of a torch group meet."""
        return self._living_connection().rendezvous() if backend else ""

    def _call(
        self,
        function: str,
        arguments_with: Callable[[int], dict[int, tuple]],
        *,
        patience: float | None = None,
        limit: float = math.inf,
        others: Collection[int] = (),
    ) -> tuple[CallProgress, list[Reply]]:
        """Run something of a learner's on the ranks, one notebook at a time.

        Args:
            arguments_with: gives the arguments of each rank that is wanted, from the number of the communicator to use.
            patience: seconds without progress after which the call is broken off; None to tell the learner only.
            limit: seconds of processor time that the call may take, see `call_limit`.
            others: ranks that take no part, and are on the same communicator.
        """
        connection = self._living_connection()
        if patience is None:
            self.tell_who_shares_them(joined_only=True)
        with call_lock(connection.folder) as lock:
            arguments = arguments_with(lock.communicator)
            call = self._watch_call(connection, function, arguments, patience, limit, others)
            replies = [call.replies[rank] for rank in sorted(call.replies)]
            left = _unreceived(replies)
            if (
                all(reply.kind == "returned" and reply.clean for reply in replies)
                and not left
                and not _collectives_differ(replies)
            ):
                lock.clean()
            self._usable = all(reply.kind != "unusable" for reply in replies)
            if call.cause and not call.lost:
                self._usable &= self._can_meet(connection, lock.communicator + 1)
                self._usable &= sum(map(abs, left.values())) <= _MOST_LEFT
        self._last_events = events_of([reply for reply in replies if reply.began])
        self._last_waits = call.stuck, replies
        return call, replies

    def _can_meet(self, connection: Connection, communicator: int) -> bool:
        """Whether the ranks can use MPI after a call was broken off, which may have left something half done."""
        with deferred_interrupts():
            try:
                pending = connection.submit("meet", dict.fromkeys(range(self.world_size), (communicator,)))
            except RanksGone:  # a rank has died meanwhile
                return False
            rest = self._links_at_rest()
            until = time.monotonic() + _MEETING_SECONDS_ON_LINKS
            call = connection.wait_for(pending, patience=_MEETING_SECONDS, until=until, links_at_rest=rest)
        return all(reply.kind == "returned" for reply in call.replies.values())

    def _links_at_rest(self) -> Callable[[], float]:
        return LinksAtRest(self.pids, self.facts.get("network")).seconds

    def _watch_call(
        self,
        connection: Connection,
        function: str,
        arguments: dict[int, tuple],
        patience: float | None,
        limit: float,
        others: Collection[int],
    ) -> CallProgress:
        """Start the call and see it through, with a progress bar, and count what passes the nodes' links."""
        with ProgressBar(f"{count(len(arguments), 'rank')} at work") as bar:
            self._meter = meter = Meter(self.pids, self.facts.get("network"))
            notice = QuietNotice(connection.control, list(arguments))

            def observe(observation: Observation, replies: Mapping[int, Reply]) -> None:
                bar.refresh()
                meter.sample()
                if patience is None:
                    notice.observe(observation, replies)

            with deferred_interrupts() as pressed:
                pending = connection.submit(function, arguments)
            size = sum(len(part) for own in arguments.values() for part in own if isinstance(part, bytes))
            call = connection.wait_for(
                pending,
                patience=patience,
                limit=limit,
                size=size,
                others=others,
                observe=observe,
                links_at_rest=self._links_at_rest(),
                already_stopped=bool(pressed),
            )
            meter.sample(at_once=True)
        return call

    def execute(
        self, cell: str, show: Callable[[list[Reply]], None] = lambda replies: None, ranks: Sequence[int] | None = None
    ) -> list[Reply]:
        """Run a cell's text on ranks as `%%px` does; show what came back, then raise where something went wrong.

        Args:
            ranks: those that run it, without waiting for the others; None for all.

        Raises:
            RankError: a rank raised, or ranks wait for what will never come.
            RanksGone: the ranks have ended.
        """
        wanted = range(self.world_size) if ranks is None else ranks
        together = ranks is None

        def arguments(communicator: int) -> dict[int, tuple]:
            return dict.fromkeys(wanted, (cell, communicator if together else None))

        others = [rank for rank in range(self.world_size) if rank not in wanted]
        call, replies = self._call("execute", arguments, others=others)
        show(replies)
        self._raise_trouble(call, replies)
        return replies

    def _raise_trouble(self, call: CallProgress, replies: list[Reply]) -> None:
        trouble, ending = describe(replies, call.cause), ending_of((reply.kind for reply in replies), call.cause)
        if trouble is None:
            return
        if not (self._usable or call.lost or any(reply.kind == "unusable" for reply in replies)):
            trouble += " MPI cannot end what was under way."
        if call.lost or not self._usable:
            trouble += " `ranks.restart()` starts new ranks, without the variables of the old ones."
            raise RanksGone(trouble, ending)
        raise RankError(trouble, ending)

    # --- looking ----------------------------------------------------------------------------------------------------

    def traffic(self) -> Traffic:
        """Bytes out of and into each node during the last cell or run, counted by the kernel; shows as a picture.

        Raises:
            CourseError: the ranks are not nodes, or nothing has run yet.
        """
        return self._meter.traffic(self.facts.get("network"))

    def picture(self):
        """A picture of this machine's cores, and which ranks may use them."""
        return draw.cores(
            [(fact["rank"], fact["cores"], fact["threads"]) for fact in self.facts["ranks"]],
            system.cores(),
            memory_bytes(),
            gpus(),
        )

    def status(self) -> None:
        """Print one line for each rank: its process and what it does at this moment."""
        connection = self._living_connection()
        dead = set(connection.control.dead())
        lines = []
        for rank, pid in enumerate(self.pids):
            seen = connection.control.activity(rank)
            lines.append(f"rank {rank}  process {pid}  {'has ended' if rank in dead else activity_text(seen)}")
        print("\n".join(lines))

    def other_notebooks(self) -> int:
        """How many other notebooks use these ranks."""
        return len(self.folder.other_owners())

    def tell_who_shares_them(self, joined_only: bool = False) -> None:
        """Print a line where other notebooks use these ranks.

        Args:
            joined_only: print it only where one has joined since this was last looked up.
        """
        owners = set(self.folder.other_owners())
        joined, self._known_owners = owners - self._known_owners, owners
        if joined or (owners and not joined_only):
            print(wrapped(sharing_text(len(owners))))

    @property
    def healthy(self) -> bool:
        """Do all ranks live, and can they use MPI? Those whose folder is gone are about to be ended."""
        connection = self.connection
        return bool(connection and self._usable and connection.folder.path.exists() and not connection.control.dead())

    # --- the end, and the beginning ---------------------------------------------------------------------------------

    def stop(self) -> None:
        """End the ranks, unless another notebook uses them too. A second call does nothing."""
        if self.connection is None:
            return
        connection, self.connection = self.connection, None
        can_go_on = not connection.control.dead()
        try:
            connection.close()
        finally:  # whoever presses the stop button meanwhile wants no ranks that nobody holds
            ended = connection.folder.leave()
        if not ended and can_go_on:
            print("Another notebook is still using these ranks, so they keep running.")

    def restart(self) -> "Ranks":
        """End the ranks and start as many new ones. Variables that lived on them are gone."""
        self._start_anew()
        print(f"{self.facts['line']}. The variables of the old ranks are lost.")
        return self

    def _start_anew(self) -> None:
        self.stop()
        self._use_connection(*self._start_again())
        register(self)

    def load_torch(self) -> None:
        """Begin to import torch on every rank, and return at once: it takes seconds, and one can read meanwhile."""
        connection = self._living_connection()
        connection.submit("import_in_background", dict.fromkeys(range(self.world_size), ("torch.distributed",)))

    def _living_connection(self) -> Connection:
        if self.connection is None:
            raise RanksGone("These ranks were stopped. `ranks = course.start(4)` starts new ones.")
        if not self.connection.folder.path.exists():
            raise RanksGone("These ranks were ended from outside. `ranks.restart()` brings new ones.")
        if not self._usable:
            raise RanksGone("These ranks can use MPI no more, by a call before. `ranks.restart()` brings new ones.")
        return self.connection

    def __repr__(self) -> str:
        if self.connection is None:
            return f"<{count(self.world_size, 'rank')}, stopped>"
        return f"<{self.facts['line']}>"


def _replayed_blocks(function: Callable, each: list[tuple[tuple, dict]]) -> BlockFrames:
    """What is where when virtual ranks run the function again; they are loaded only where somebody asks."""
    from course_utils.ranks.virtual.virtual_ranks import snapshots_of_blocks

    return snapshots_of_blocks(function, each)


def _task_bytes(function: Callable, packed: bytes, arguments: tuple, keywords: dict, **more: Any) -> bytes:
    """A `RankTask` as bytes.

    Raises:
        CourseError: an argument holds something that cannot leave this process.
    """
    return pack_or_explain(function, RankTask(packed, arguments, keywords, **more))


def _collectives_differ(replies: list[Reply]) -> bool:
    """Did some ranks take part in a collective without the others?

    A root has sent its part and gone on. What ranks do in groups of their own counts as well: then it may be nothing.
    """
    collectives = [Counter(event.name for event in reply.events if event.kind == "collective") for reply in replies]
    return any(made != collectives[0] for made in collectives)


def _unreceived(replies: list[Reply]) -> dict[tuple[int, int], int]:
    """Source and destination → the messages that nobody received."""
    sent: Counter = Counter()
    for reply in replies:
        for event in reply.events:
            if event.kind == "send":
                sent[event.rank, event.peer] += 1
            elif event.kind == "recv":
                sent[event.peer, event.rank] -= 1
    return {pair: left for pair, left in sent.items() if left}
