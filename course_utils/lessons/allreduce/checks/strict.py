"""A communicator as strict as the standard allows: what works on it works on every MPI.

MPI may read the buffer of an Isend, and write into that of an Irecv, at any moment until the request is complete; and a
receive from anybody may get any message. A program that forgets this works today and fails on another machine. Here it
never works: the place of a receive holds NaN until it completes, a send compares what it was given with what is there
when it completes, and who receives from anybody gets a message that was meant for something else.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

MOST_CALLS = 500  # of one rank; the longest of these algorithms needs fewer than fifty on eight ranks
MOST_CALLS_FOR_EACH_RANK = 16  # the same, where there are many ranks
CHANGED = "changed numbers that were still being sent by"
TAKEN = "put two messages into one place at the same time, the second by"

if TYPE_CHECKING:
    from mpi4py import MPI


def on_a_strict_communicator(function: Callable, comm: "MPI.Intracomm", *arguments: Any) -> tuple[Any, list[str], int]:
    """Call the learner's function; return its result and what was seen.

    Returns:
        the result; what was done to numbers on their way, each with the call and its line; and how many receives did
        not say from whom.
    """
    strict = _strict(comm)
    return function(strict, *arguments), strict.haste, strict.anybody


def _strict(comm: "MPI.Intracomm") -> Any:
    """The messages of `comm`, moved as late as they may be. On ranks only, real or virtual: it needs their MPI."""
    from mpi4py import MPI

    class StrictComm(type(comm)):
        """Defined here, for where answers are graded the ranks can import nothing of the checks."""

        haste: list[str]
        receiving: list
        anybody: int
        calls = 0

        def _send_buffer(self, name, start, buf, dest, tag):
            self._count(name)
            super()._send_buffer(name, start, buf, dest, tag)

        def _start_buffer(self, name, start, buf, dest, tag):
            self._count(name)
            request = super()._start_buffer(name, start, buf, dest, tag)
            if isinstance(buf, np.ndarray):
                before, record = buf.tobytes(), request.finished

                def finished(end, status):
                    if buf.tobytes() != before:
                        self.haste.append(f"{CHANGED} {request.text}{request.place}")
                    record(end, status)

                request.finished = finished
            return request

        def _start_receive(self, name, buf, source, tag):
            source = self._certain(source, tag)
            if not isinstance(buf, np.ndarray):
                return super()._start_receive(name, buf, source, tag)
            place = buf.copy()
            taken = any(np.may_share_memory(buf, other) for other in self.receiving)
            if buf.dtype.kind == "f":
                buf.fill(np.nan)
            request = super()._start_receive(name, place, source, tag)
            record = request.finished
            self.receiving.append(buf)
            if taken:
                self.haste.append(f"{TAKEN} {request.text}{request.place}")

            def finished(end, status):
                self.receiving = [other for other in self.receiving if other is not buf]
                if status is not None:
                    buf[...] = place
                record(end, status)

            request.finished = finished
            return request

        def Sendrecv(
            self,
            sendbuf,
            dest,
            sendtag=0,
            recvbuf=None,
            source=MPI.ANY_SOURCE,
            recvtag=MPI.ANY_TAG,
            status=None,
        ):
            self.check_peer("Sendrecv", source, MPI.ANY_SOURCE)
            receive = self._start_receive("Sendrecv", recvbuf, source, recvtag)
            send = self._start_buffer("Sendrecv", self.inner.Isend, sendbuf, dest, sendtag)
            receive.wait_with(status)
            send.wait()

        def _match(self, name, source, tag, kind):
            return super()._match(name, self._certain(source, tag), tag, kind)

        def _irecv(self, name, source, tag):
            return super()._irecv(name, self._certain(source, tag, self.inner.isend), tag)

        def _count(self, name):
            self.calls += 1
            most = max(MOST_CALLS, MOST_CALLS_FOR_EACH_RANK * self.size)
            if self.calls > most:
                raise RuntimeError(f"{most} messages, and no end: {name} was called once more")

        def _certain(self, source, tag, send=None):
            """The rank to receive from: for anybody, this rank, which sends a number that belongs to no vector."""
            self._count("a receive")
            if source != MPI.ANY_SOURCE:
                return source
            self.anybody += 1
            (send or self.inner.Isend)(np.full(1, 777.0), dest=self.rank, tag=max(tag, 0))
            return self.rank

    strict = StrictComm(comm.inner, comm.world_ranks)
    strict.haste, strict.receiving, strict.anybody = [], [], 0
    return strict
