"""Calls of which there is no event: they say so in the ledger, and run in a thread, so that they can be left."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

from mpi4py import MPI

from course_utils.trace.blocking_calls import call_in_thread
from course_utils.trace.mpi.persistent_requests import PlainPersistentRequest
from course_utils.trace.mpi.requests import TracedRequest
from course_utils.trace.recorder import current_line, recorder

_Request, _Prequest = MPI.Request, MPI.Prequest
_LOCAL_CALLS = (
    *("Attach_", "Call_errhandler", "Compare", "Delete_", "Detach_", "Free", "Get_", "Is_", "Set_", "Shift"),
    *("free", "py2f", "toint"),
)
"""How the names of calls begin that move nothing between ranks."""


def mark_unrecorded_calls(owner: type) -> type:
    """A class whose inherited calls, which are not recorded, say so in the ledger."""
    plain = next(base for base in owner.__mro__ if base.__module__.startswith("mpi4py"))
    ours = {name for base in owner.__mro__[: owner.__mro__.index(plain)] for name in vars(base)}
    for name in set(dir(plain)) - ours:
        call = getattr(plain, name)
        if inspect.isroutine(call) and not inspect.ismethod(call) and not name.startswith(("_", *_LOCAL_CALLS)):
            setattr(owner, name, _with_uncounted_note(call))
    return owner


def _with_uncounted_note(call: Callable) -> Callable:
    @functools.wraps(call)
    def unrecorded(*args: Any, **kwargs: Any) -> Any:
        recorder.ledger.complete = False
        recorder.add_uncounted(call.__name__)
        result = call_in_thread(functools.partial(call, *args, **kwargs), call.__name__)
        return _with_waits_that_can_be_left(result, call.__name__)

    return unrecorded


def _with_waits_that_can_be_left(result: Any, name: str) -> Any:
    """The result of a call, a request of MPI's as one of ours."""

    def wrap(request: MPI.Request) -> TracedRequest:
        return TracedRequest.wrap(request, name, current_line()[1], lambda end, status: None)

    if isinstance(result, _Prequest):
        return PlainPersistentRequest(name, result, wrap)
    return wrap(result) if isinstance(result, _Request) and not isinstance(result, TracedRequest) else result
