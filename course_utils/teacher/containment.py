"""Ranks for a stranger's code: processes with limits, in boxes, that speak with the grader through one socket each.

Nothing that the grader relies on lies where they could reach it: how a rank ended, what it waits for and what it
answers come as bounded data (`wire`), and memory that both see (`activity`) has a size that nobody can change.
"""

import contextlib
import os
import select
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from course_utils.errors import RanksGone
from course_utils.ranks.connection import CallProgress, Connection
from course_utils.ranks.ending import BrokenOff, Ending
from course_utils.ranks.engine.reply import Raised, RankTask, Reply, to_bytes
from course_utils.ranks.interface import LIMIT, PATIENCE
from course_utils.ranks.processes.exit_status import status_text
from course_utils.ranks.processes.process_control import LocalProcesses
from course_utils.ranks.ranks import Ranks
from course_utils.ranks.run import Attempt
from course_utils.teacher.boxes_of_ranks import StartedBoxes, least_memory, start_boxes
from course_utils.teacher.counted_links import Carried, disagreement
from course_utils.teacher.wire import ENDED, HEADER, unpack_reply
from course_utils.trace.activity import ActivityFile
from course_utils.words import ranks_in_words

SECONDS = 600.0  # for one submission
LARGEST_REPLY = 256 << 20
_TRIES = 3
MISCOUNTED = "Miscounted"
"""The error of a rank whose trace tells of other bytes than passed its link."""
_FIRST_PORT, _PORTS = 20_000, 10_000


class ContainedProcesses(LocalProcesses):
    """Contained ranks as processes: their ends come through their lines."""

    def __init__(self, boxes: StartedBoxes) -> None:
        super().__init__([line.pid for line in boxes.lines], [ActivityFile(line.memory) for line in boxes.lines])
        self._boxes = boxes
        self.ended: list[tuple[int, int]] = []  # (rank, exit status), in the order in which it was heard
        for line in boxes.lines:
            os.close(line.memory)

    def source_line(self, rank: int) -> str:
        return ""

    def how_it_ended(self) -> str:
        """A sentence on the rank that died first, or on why all were ended."""
        if self._boxes.memory_ran_out:
            return (
                f"the machine had less than {least_memory() / 1e9:.1f} GB left, so all was ended; was it this notebook?"
            )
        if self.ended:
            rank, status = self.ended[0]
            return status_text(f"rank {rank}", status)
        return f"{ranks_in_words(self.dead() or list(range(len(self.pids))))} ended."


class ContainedConnection(Connection):
    """The line to contained ranks. What comes back is read as data, see `wire`."""

    control: ContainedProcesses
    can_lose_tasks = False

    def __init__(self, boxes: StartedBoxes, deadline: float) -> None:
        super().__init__(boxes.folder, ContainedProcesses(boxes), len(boxes.lines))
        self._boxes, self.deadline = boxes, deadline
        self._sockets = [line.socket for line in boxes.lines]
        self._came = [bytearray() for _ in boxes.lines]
        self._number = 0
        self._carried: Carried = {}  # before the call
        self._joining = True  # whether ranks may make connections in this call

    def submit(self, function: str, arguments: Mapping[int, tuple]) -> dict[int, Any]:
        """Send each rank its task, bytes that this process has packed; or one in which they only meet."""
        if time.monotonic() > self.deadline:
            raise RanksGone(f"the submission took more than {SECONDS:.0f} s")
        if self.control.dead():
            self._hear_of_ends()
            raise RanksGone(self.control.how_it_ended())
        self._number += 1
        self._carried = self._carried_so_far() or {}
        for rank, (payload,) in arguments.items():
            if function == "meet":
                payload = to_bytes(RankTask(to_bytes(bool), (), {}, len(arguments), payload))
            with contextlib.suppress(OSError):  # a dead rank is seen while waiting
                self._sockets[rank].sendall(HEADER.pack(self._number, len(payload)) + payload)
        return dict.fromkeys(arguments)

    def verify(self, call: CallProgress) -> None:
        """Hold what the ranks say they have sent against what passed their links."""
        if self._boxes.links:
            carried = self._carried_so_far()
            if carried is None and not call.lost:  # then nobody can know whether what they said is true
                self._hear_of_ends()
                call.lost = list(call.replies)
                call.cause = BrokenOff(Ending.RANK_ENDED, self.control.how_it_ended())
                call.replies = {rank: Reply(rank, "lost") for rank in call.replies}
            events = {rank: reply.events for rank, reply in call.replies.items()}
            if carried and (found := disagreement(events, self._carried, carried, self._joining)):
                rank, why = found
                call.replies[rank] = Reply(rank, "raised", error=Raised(MISCOUNTED, why))
        self._joining = False

    def _carried_so_far(self) -> Carried | None:
        """Of the links, where there are any; None when a box has ended."""
        with contextlib.suppress(OSError):
            return self._boxes.links.carried() if self._boxes.links else None
        return None

    def rendezvous(self) -> str:
        """Where the ranks of a group of torch meet: on rank 0's end of the links, or at a file that all can write."""
        self._joining = True
        if self._boxes.links:
            return f"tcp://{self._boxes.links.address(0)}:{_FIRST_PORT + self._number % _PORTS}"
        return f"{self._boxes.home}/rendezvous-{time.monotonic_ns()}"

    def collect(self, call: CallProgress) -> bool:
        """As every connection's."""
        for rank, reply in self._read(call.lost):
            if rank in call.pending:
                del call.pending[rank]
                call.replies[rank] = reply
        if self.control.dead():
            self._hear_of_ends()
        return bool(call.pending)

    def _hear_of_ends(self) -> None:
        """Read on until it was said how a rank has ended."""
        until = time.monotonic() + 0.5
        while not self.control.ended and time.monotonic() < until:
            for _ in self._read([]):
                pass

    def _read(self, lost: list[int]) -> Iterator[tuple[int, Reply]]:
        """The replies to this call that have come; `lost` gets ranks whose lines cannot be used again."""
        ranks = {line: rank for rank, line in enumerate(self._sockets)}
        for line in select.select(list(ranks), [], [], 0.01)[0]:
            rank = ranks[line]
            with contextlib.suppress(OSError):
                piece = line.recv(1 << 20)
                if not piece:
                    time.sleep(0.01)  # its end is heard of by its process
                self._came[rank] += piece
            while (reply := self._reply(rank, lost)) is not None:
                yield rank, reply

    def _reply(self, rank: int, lost: list[int]) -> Reply | None:
        """The rank's reply, once it is there."""
        came = self._came[rank]
        while len(came) >= HEADER.size:
            number, size = HEADER.unpack_from(came)
            if size > LARGEST_REPLY:
                came.clear()
                lost.append(rank)  # the rest of it still comes; new ranks start before the next call
                return Reply(rank, "raised", error=Raised("MemoryError", "its result is too large to send"))
            if len(came) < HEADER.size + size:
                return None
            data = bytes(came[HEADER.size : HEADER.size + size])
            del came[: HEADER.size + size]
            if number == ENDED:
                self.control.ended.append((rank, data[0] if data else 0))
            elif number == self._number:
                return unpack_reply(rank, data)
        return None

    def close(self) -> None:
        """End everything that the ranks have started."""
        for line in self._sockets:
            line.close()
        self._boxes.close()


class ContainedRanks(Ranks):
    """Ranks in a box. Each call travels by itself."""

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
        """As for a notebook's ranks; again where the links disagree, for the kernel may have sent a packet twice."""
        for _ in range(_TRIES):
            attempt = super().attempt(
                function, arguments, with_comm=with_comm, backend=backend, patience=patience, limit=limit
            )
            if not any(reply.error and reply.error.type == MISCOUNTED for reply in attempt.replies):
                break
        return attempt

    def attempt_each(
        self,
        tasks: Sequence[tuple[Callable, tuple]],
        *,
        seconds: float = 1.0,
        patience: float = PATIENCE,
        limit: float = LIMIT,
    ) -> list[Attempt]:
        """None: what travels together would have to be taken apart again."""
        return []


@contextmanager
def contained_ranks(
    number: int, deadline: float = float("inf"), since: str = "", boxed: bool = True, apart: bool = True
) -> Iterator[Ranks]:
    """Ranks that serve one submission; whatever they have started ends with them.

    Args:
        number: how many.
        deadline: on the clock of `time.monotonic`; later tasks are rejected.
        since: the submission's first lesson, by its stem: what lessons before it taught is in sight; "" hides it too.
        boxed: False for code that is trusted: it runs as whoever grades, with limits and nothing else.
        apart: each rank in a box of its own, where links between boxes can be had; False: they share files.

    Raises:
        CourseError: they do not start.
    """

    def launch() -> tuple[ContainedConnection, dict]:
        connection = ContainedConnection(start_boxes(number, since, boxed, apart), deadline)
        ranks = [{"rank": rank, "pid": pid} for rank, pid in enumerate(connection.control.pids)]
        return connection, {"ranks": ranks, "line": f"{number} contained ranks", "network": None}

    ranks = ContainedRanks(*launch(), start_again=launch)
    try:
        yield ranks
    finally:
        ranks.stop()
