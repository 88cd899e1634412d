"""A communicator as strict as the standard allows: what works on it works on every MPI.

MPI may read the buffer of an Isend, and write into that of an Irecv, at any moment until the request is complete; and a
receive from anybody may get any message. A program that forgets this works today and fails on another machine. Here it
never works: the place of a receive holds NaN until it completes, a send compares what it was given with what is there
when it completes, and who receives from anybody gets a message that was meant for something else.
"""

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from course_utils.trace.recorder import current_line

MOST_CALLS = 500  # of one rank; the longest of these algorithms needs fewer than fifty on eight ranks
MOST_CALLS_FOR_EACH_RANK = 16  # the same, where there are many ranks
CHANGED, TAKEN = "changed-while-sent", "two-in-one-array"
"""What is done to numbers on their way: they change while they are sent, or two messages come into one array."""

if TYPE_CHECKING:
    from mpi4py import MPI


class EndlessMessages(RuntimeError):
    """A rank made more calls than any all-reduce takes."""


def on_a_strict_communicator(
    function: Callable, comm: "MPI.Intracomm", *arguments: Any
) -> tuple[Any, list[tuple[str, str]], int, int]:
    """Call the learner's function; return its result and what was seen.

    Returns:
        the result; what was done to numbers on their way: `CHANGED` or `TAKEN`, and the call with its line; how many
        receives did not say from whom; and how many that do not wait write into the vector itself.
    """
    strict = _strict(comm)
    vector, *more = arguments
    strict.vector = vector
    result = function(strict, vector, *with_operation(function, *more))
    return result, strict.haste, strict.anybody, strict.into_vector


def with_operation(function: Callable, *more: Any) -> tuple:
    """The arguments after the vector. An answer written for an older version of the course takes an operation first."""
    try:
        takes_one = "op" in inspect.signature(function).parameters
    except (TypeError, ValueError):
        takes_one = False
    return (None, *more) if more and takes_one else more


def _strict(comm: "MPI.Intracomm") -> Any:
    """The messages of `comm`, moved as late as they may be. On ranks only, real or virtual: it needs their MPI."""
    from mpi4py import MPI

    class StrictComm(type(comm)):
        """Calls the same call of `comm`'s class, with arrays of its own. Persistent requests are as they were.

        Defined here, for where answers are graded the ranks can import nothing of the checks.
        """

        haste: list[tuple[str, str]]
        receiving: list
        anybody: int
        vector: np.ndarray
        into_vector = 0
        calls = 0

        def Send(self, buf, dest, tag=0):
            self.tally("Send")
            super().Send(buf, dest, tag)

        def Ssend(self, buf, dest, tag=0):
            self.tally("Ssend")
            super().Ssend(buf, dest, tag)

        def Rsend(self, buf, dest, tag=0):
            self.tally("Rsend")
            super().Rsend(buf, dest, tag)

        def Isend(self, buf, dest, tag=0):
            self.tally("Isend")
            return self.compared(super().Isend(buf, dest, tag), buf)

        def Issend(self, buf, dest, tag=0):
            self.tally("Issend")
            return self.compared(super().Issend(buf, dest, tag), buf)

        def compared(self, request, buf):
            """The request of a send, at whose end what was sent must still be there."""
            if isinstance(buf, np.ndarray):
                before, record = buf.tobytes(), request.on_completion

                def on_completion(end, status):
                    if buf.tobytes() != before:
                        self.haste.append((CHANGED, f"{request.text}{request.source_line}"))
                    record(end, status)

                request.on_completion = on_completion
            return request

        def Recv(self, buf, source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG, status=None):
            super().Recv(buf, self.certain(source, tag), tag, status)

        def Irecv(self, buf, source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG):
            source = self.certain(source, tag)
            if not isinstance(buf, np.ndarray):
                return super().Irecv(buf, source, tag)
            self.into_vector += np.may_share_memory(buf, self.vector)
            fresh, taken = self.emptied(buf)
            request = super().Irecv(fresh, source, tag)
            record = request.on_completion
            if taken:
                self.haste.append((TAKEN, f"{request.text}{request.source_line}"))

            def on_completion(end, status):
                self.arrived(buf, fresh if status is not None else None)
                record(end, status)

            request.on_completion = on_completion
            return request

        def emptied(self, buf):
            """An array to receive into for `buf`, which holds NaN meanwhile; and whether another receive has it too."""
            fresh = buf.copy()
            taken = any(np.may_share_memory(buf, other) for other in self.receiving)
            if buf.dtype.kind == "f":
                buf.fill(np.nan)
            self.receiving.append(buf)
            return fresh, taken

        def arrived(self, buf, fresh):
            """`fresh`: the message; None where none came."""
            self.receiving = [other for other in self.receiving if other is not buf]
            if fresh is not None:
                buf[...] = fresh

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
            source = self.certain(source, recvtag)
            self.tally("Sendrecv")
            if not isinstance(recvbuf, np.ndarray) or source == MPI.PROC_NULL:
                super().Sendrecv(sendbuf, dest, sendtag, recvbuf, source, recvtag, status)
                return
            line = current_line()[1]
            fresh, taken = self.emptied(recvbuf)
            if taken:
                self.haste.append((TAKEN, f"Sendrecv(source={source}){line}"))
            before = sendbuf.tobytes() if isinstance(sendbuf, np.ndarray) else b""
            super().Sendrecv(sendbuf, dest, sendtag, fresh, source, recvtag, status)
            self.arrived(recvbuf, fresh)
            if before and sendbuf.tobytes() != before:
                self.haste.append((CHANGED, f"Sendrecv(dest={dest}){line}"))

        def recv(self, buf=None, source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG, status=None):
            return super().recv(buf, self.certain(source, tag, self.inner.isend), tag, status)

        def irecv(self, buf=None, source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG):
            return super().irecv(buf, self.certain(source, tag, self.inner.isend), tag)

        def sendrecv(
            self,
            sendobj,
            dest,
            sendtag=0,
            recvbuf=None,
            source=MPI.ANY_SOURCE,
            recvtag=MPI.ANY_TAG,
            status=None,
        ):
            source = self.certain(source, recvtag, self.inner.isend)
            return super().sendrecv(sendobj, dest, sendtag, recvbuf, source, recvtag, status)

        def tally(self, name):
            """One call more, and an end where there are too many."""
            self.calls += 1
            most = max(MOST_CALLS, MOST_CALLS_FOR_EACH_RANK * self.size)
            if self.calls > most:
                raise EndlessMessages(f"{most} messages, and no end: {name} was called once more")

        def certain(self, source, tag, send=None):
            """The rank to receive from: for anybody, this rank, which sends a number that belongs to no vector."""
            self.tally("a receive")
            if source != MPI.ANY_SOURCE:
                return source
            self.anybody += 1
            (send or self.inner.Isend)(np.full(1, 777.0), dest=self.rank, tag=max(tag, 0))
            return self.rank

    strict = StrictComm(comm.inner, comm.world_ranks)
    strict.haste, strict.receiving, strict.anybody = [], [], 0
    return strict
