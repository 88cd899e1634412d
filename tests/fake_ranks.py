"""Ranks for unit tests of the checks: threads in this process, with a toy communicator, and no MPI at all."""

import copy
import pickle
import queue
import threading
import types
from collections.abc import Callable
from typing import Any

from course_utils.ranks.engine.reply import Reply


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


class FakeRanks:
    """Looks like `course_utils.ranks.ranks.Ranks` to `judge`. `counts` is what every run claims to have counted."""

    def __init__(self, world_size: int = 4, **counts: Any):
        self.world_size = world_size
        self.counts = {"rounds": 0, "messages": 0, "bytes_per_rank": [0] * world_size, "collectives": 0, **counts}
        self.attempts = 0

    def attempt(
        self, function: Callable, arguments: list[tuple], *, with_comm=True, backend=None, patience=3.0, limit=30.0
    ):
        self.attempts += 1
        size = len(arguments)
        boxes = [[queue.Queue() for _ in range(size)] for _ in range(size)]
        replies: list[Any] = [None] * size

        def one(rank: int) -> None:
            mine = copy.deepcopy(arguments[rank])
            reply = Reply(rank, "returned", arguments=mine)
            try:
                comm = (Comm(rank, boxes, min(patience, 0.2)),) if with_comm else ()
                reply.value = function(*comm, *mine)
            except _Hangs as hang:
                reply.kind, reply.waiting = "interrupted", str(hang)
            except Exception as error:
                reply.kind = "raised"
                reply.error = types.SimpleNamespace(
                    type=type(error).__name__, message=str(error), line="line 7 of your cell"
                )
            replies[rank] = reply

        threads = [threading.Thread(target=one, args=(rank,)) for rank in range(size)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        stuck = [reply for reply in replies if reply.kind != "returned"]
        trouble = None
        if stuck:
            waits = [f"rank {reply.rank} waits in {reply.waiting}" for reply in stuck if reply.waiting]
            trouble = f"no progress for {patience:g} s. {'; '.join(waits)}."
        run = None if stuck else types.SimpleNamespace(events=[], notes=[], **self.counts)
        return types.SimpleNamespace(replies=replies, trouble=trouble, run=run, afterwards="")

    def attempt_each(self, tasks: list[tuple[Callable, tuple]], *, seconds=1.0, patience=3.0, limit=30.0) -> list:
        """The first alone: a second is over."""
        function, arguments = tasks[0]
        return [self.attempt(function, [arguments], with_comm=False, patience=patience, limit=limit)]
