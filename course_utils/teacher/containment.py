"""Ranks for a stranger's code: processes with limits, in a box, that speak with the grader through one socket each.

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
from course_utils.ranks.engine.reply import Raised, RankTask, Reply, to_bytes
from course_utils.ranks.interface import LIMIT, PATIENCE
from course_utils.ranks.processes.exit_status import status_text
from course_utils.ranks.processes.process_control import LocalProcesses
from course_utils.ranks.ranks import Ranks
from course_utils.ranks.run import Attempt
from course_utils.teacher.started_ranks import StartedRanks, least_memory, start_ranks
from course_utils.teacher.wire import ENDED, HEADER, unpack_reply
from course_utils.trace.activity import ActivityFile
from course_utils.words import ranks_in_words

SECONDS = 600.0  # for one submission
LARGEST_REPLY = 256 << 20


class ContainedProcesses(LocalProcesses):
    """Contained ranks as processes: their ends come through their lines."""

    def __init__(self, started: StartedRanks) -> None:
        super().__init__([line.pid for line in started.lines], [ActivityFile(line.memory) for line in started.lines])
        self._contained = started
        self.ended: list[tuple[int, int]] = []  # (rank, exit status), in the order in which it was heard
        for line in started.lines:
            os.close(line.memory)

    def source_line(self, rank: int) -> str:
        return ""

    def how_it_ended(self) -> str:
        """A sentence on the rank that died first, or on why all were ended."""
        if self._contained.memory_ran_out:
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

    def __init__(self, started: StartedRanks, deadline: float) -> None:
        super().__init__(started.folder, ContainedProcesses(started), len(started.lines))
        self._contained, self.deadline = started, deadline
        self._sockets = [line.socket for line in started.lines]
        self._came = [bytearray() for _ in started.lines]
        self._number = 0

    def submit(self, function: str, arguments: Mapping[int, tuple]) -> dict[int, Any]:
        """Send each rank its task, bytes that this process has packed; or one in which they only meet."""
        if time.monotonic() > self.deadline:
            raise RanksGone(f"the submission took more than {SECONDS:.0f} s")
        if self.control.dead():
            self._hear_of_ends()
            raise RanksGone(self.control.how_it_ended())
        self._number += 1
        for rank, (payload,) in arguments.items():
            if function == "meet":
                payload = to_bytes(RankTask(to_bytes(bool), (), {}, len(arguments), payload))
            with contextlib.suppress(OSError):  # a dead rank is seen while waiting
                self._sockets[rank].sendall(HEADER.pack(self._number, len(payload)) + payload)
        return dict.fromkeys(arguments)

    def rendezvous(self) -> str:
        """A file that does not exist yet, which all ranks can write."""
        return f"{self._contained.home}/rendezvous-{time.monotonic_ns()}"

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
        self._contained.close()


class ContainedRanks(Ranks):
    """Ranks in a box. Each call travels by itself."""

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
    number: int, deadline: float = float("inf"), since: str = "", boxed: bool = True
) -> Iterator[Ranks]:
    """Ranks that serve one submission; whatever they have started ends with them.

    Args:
        number: how many.
        deadline: on the clock of `time.monotonic`; later tasks are rejected.
        since: the submission's first lesson, by its stem: what lessons before it taught is in sight; "" hides it too.
        boxed: False for code that is trusted: it runs as whoever grades, with limits and nothing else.

    Raises:
        CourseError: they do not start.
    """

    def launch() -> tuple[ContainedConnection, dict]:
        connection = ContainedConnection(start_ranks(number, since, boxed), deadline)
        ranks = [{"rank": rank, "pid": pid} for rank, pid in enumerate(connection.control.pids)]
        return connection, {"ranks": ranks, "line": f"{number} contained ranks", "network": None}

    ranks = ContainedRanks(*launch(), start_again=launch)
    try:
        yield ranks
    finally:
        ranks.stop()
