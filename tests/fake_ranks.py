"""Ranks for unit tests of the checks: threads in this process, with a toy communicator, and no MPI at all."""

import copy
import pickle
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from course_utils.ranks.ending import BrokenOff, Ending, ending_of
from course_utils.ranks.engine.reply import Raised, Reply
from course_utils.ranks.interface import LIMIT, PATIENCE
from course_utils.ranks.run import Attempt, Run

if TYPE_CHECKING:
    from course_utils.ranks.interface import RanksInterface
    from course_utils.ranks.offline.stand_ins import WorkerCalls, WorkerVirtualRanks
    from course_utils.ranks.ranks import Ranks
    from course_utils.ranks.virtual.virtual_ranks import VirtualRanks
    from course_utils.teacher.containment import ContainedRanks


class Comm:
    """Rank, size, send, recv and allgather; a wait that lasts longer than `patience` is a hang."""

    def __init__(self, rank: int, boxes: list[list[queue.Queue]], patience: float):
        self.rank, self.size, self._boxes, self._patience = rank, len(boxes), boxes, patience

    def send(self, thing: Any, dest: int) -> None:
        self._boxes[dest][self.rank].put(pickle.dumps(thing))

    def recv(self, source: int) -> Any:
        try:
            return pickle.loads(self._boxes[self.rank][source].get(timeout=self._patience))
        except queue.Empty:
            raise _Hangs(f"recv(source={source})") from None

    def allgather(self, thing: Any) -> list:
        for other in range(self.size):
            self.send(thing, other)
        return [self.recv(other) for other in range(self.size)]


class _Hangs(BaseException):
    pass


@dataclass(frozen=True)
class CountedRun(Run):
    """A run that claims to have counted `counts`."""

    counts: Mapping[str, Any] = field(default_factory=dict)
    rounds = property(lambda self: self.counts["rounds"])
    messages = property(lambda self: self.counts["messages"])
    bytes_per_rank = property(lambda self: self.counts["bytes_per_rank"])
    collectives = property(lambda self: self.counts["collectives"])


class FakeRanks:
    """Ranks for `judge`. `counts` is what every run claims to have counted."""

    def __init__(self, world_size: int = 4, **counts: Any):
        self.world_size = world_size
        self.counts = {"rounds": 0, "messages": 0, "bytes_per_rank": [0] * world_size, "collectives": 0, **counts}
        self.attempts = 0

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
        self.attempts += 1
        size = len(arguments)
        boxes: list[list[queue.Queue]] = [[queue.Queue() for _ in range(size)] for _ in range(size)]
        replies = [Reply(rank, "returned") for rank in range(size)]

        def work(rank: int) -> None:
            mine = copy.deepcopy(arguments[rank])
            reply = replies[rank]
            reply.arguments = mine
            try:
                comm = (Comm(rank, boxes, min(patience, 0.2)),) if with_comm else ()
                reply.value = function(*comm, *mine)
            except _Hangs as hang:
                reply.kind, reply.waiting = "interrupted", str(hang)
            except Exception as error:
                reply.kind = "raised"
                reply.error = Raised(type(error).__name__, str(error), "line 7 of your cell")

        threads = [threading.Thread(target=work, args=(rank,)) for rank in range(size)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        stuck = [reply for reply in replies if reply.kind != "returned"]
        cause = None
        if stuck:
            waits = [f"rank {reply.rank} is waiting in {reply.waiting}" for reply in stuck if reply.waiting]
            cause = BrokenOff(Ending.NO_PROGRESS, f"no progress for {patience:g} s. {'; '.join(waits)}.")
        ending = ending_of((reply.kind for reply in replies), cause)
        attempt = Attempt(replies, cause.text if cause else None, ending=ending)
        if not stuck:
            results = [reply.value for reply in replies]
            vars(attempt)["run"] = CountedRun(results, events=[], seconds=0.0, counts=self.counts)
        return attempt

    def attempt_each(
        self,
        tasks: Sequence[tuple[Callable, tuple]],
        *,
        seconds: float = 1.0,
        patience: float = PATIENCE,
        limit: float = LIMIT,
    ) -> list[Attempt]:
        """The first alone: a second is over."""
        function, arguments = tasks[0]
        return [self.attempt(function, [arguments], with_comm=False, patience=patience, limit=limit)]


def can_all_be_judged_on(
    real: "Ranks",
    contained: "ContainedRanks",
    virtual: "VirtualRanks",
    none: "WorkerCalls",
    apart: "WorkerVirtualRanks",
    fake: FakeRanks,
) -> "list[RanksInterface]":
    """Never called: here `make lint` sees whether each kind of ranks has the interface."""
    return [real, contained, virtual, none, apart, fake]
