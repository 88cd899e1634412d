"""Files that all ranks of a communicator open together: `MPI.File` with every collective call one that can be left.

MPI-IO's collective calls have no form that can be left. So the ranks meet first, on a communicator that the file has
for itself, and each makes the call when all have come to the same: then it finishes.
"""

import functools
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from mpi4py import MPI

from course_utils.trace.blocking_calls import call_in_thread
from course_utils.trace.events import Agreement
from course_utils.trace.mpi.memory import check_memory
from course_utils.trace.mpi.requests import TracedRequest
from course_utils.trace.recorder import current_line, recorder

_File, _SELF = MPI.File, MPI.COMM_SELF
_SETTINGS = ("Preallocate", "Seek_shared", "Set_atomicity", "Set_info", "Set_size", "Set_view", "Sync")
_TRANSFERS = tuple(f"{what}_{how}" for what in ("Read", "Write") for how in ("all", "at_all", "ordered"))


class TracedFile(MPI.File):
    """Takes the class's place in `mpi4py.MPI`.

    Attributes:
        comm: the file's own copy of the communicator on which it was opened; None where that is not traced.
        name: of the file, without its folder.
    """

    comm: Any = None
    name = ""

    @classmethod
    def Open(cls, comm, filename, amode=MPI.MODE_RDONLY, info=MPI.INFO_NULL):
        if not hasattr(comm, "inner"):
            return _File.Open(comm, filename, amode, info)
        own = comm.private_copy("File.Open")
        try:
            file = cls(call_in_thread(partial(_File.Open, own.inner, filename, amode, info), "File.Open"))
        except Exception:
            own.Free()
            raise
        file.comm, file.name = own, Path(filename).name
        return recorder.add_resource(file, "File.Open")

    def Close(self):
        self.meet_and_call("Close", _File.Close)
        recorder.remove_resource(self)
        if self.comm is not None:
            self.comm.Free()

    def _text(self, call: str) -> str:
        return f"File.{call} of {self.name}"

    def meet_and_call(self, call: str, plain: Callable, *arguments: Any, **keywords: Any) -> Any:
        """Make a collective call when all ranks have come to it."""
        make = partial(plain, self, *arguments, **keywords)
        if self.comm is None:
            return make()
        self.comm.wait_for_all_ranks(self._text(call))
        return call_in_thread(make, self._text(call))

    def begin(self, call: str, plain: Callable, *arguments: Any, **keywords: Any) -> MPI.Request:
        """Begin a nonblocking collective call."""
        request = plain(self, *arguments, **keywords)
        if self.comm is None:
            return request
        need = recorder.ledger.add_collective(self.comm.label, self.comm.members, Agreement(self._text(call)))
        return TracedRequest.wrap(request, self._text(call), current_line()[1], lambda end, status: None, need)


def _collective(call: str) -> Callable:
    plain = getattr(_File, call)

    @functools.wraps(plain)
    def collective(self: TracedFile, *args: Any, **kwargs: Any) -> Any:
        if call.startswith(_TRANSFERS):
            _check_buffer(call, args, kwargs)
        return self.meet_and_call(call, plain, *args, **kwargs)

    return collective


def _nonblocking_collective(call: str) -> Callable:
    plain = getattr(_File, call)

    @functools.wraps(plain)
    def collective(self: TracedFile, *args: Any, **kwargs: Any) -> MPI.Request:
        return self.begin(call, plain, *args, **kwargs)

    return collective


def _check_buffer(call: str, args: tuple, kwargs: dict) -> None:
    """Raise before other ranks are in the call what mpi4py raises for what is no buffer, or does not fit its type."""
    position = 1 if "_at_" in call else 0
    buffer = args[position] if len(args) > position else kwargs.get("buf")
    check_memory(call, buffer)
    (_SELF.Recv_init if call.startswith("Read") else _SELF.Send_init)(buffer, 0).Free()


for _call in (*_SETTINGS, *_TRANSFERS, *(f"{call}_begin" for call in _TRANSFERS)):
    setattr(TracedFile, _call, _collective(_call))
for _call in ("Iread_all", "Iread_at_all", "Iwrite_all", "Iwrite_at_all"):
    setattr(TracedFile, _call, _nonblocking_collective(_call))
