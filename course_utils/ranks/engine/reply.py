"""What the notebook sends to a rank and what comes back. Both travel as bytes made by cloudpickle."""

import functools
import io
import pickle
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import cloudpickle

from course_utils.trace.events import Event
from course_utils.trace.recorder import line_text
from course_utils.trace.standing import standing_of_error
from course_utils.trace.wait_graph import Need
from course_utils.words import count, printable

_LONGEST_TEXT = 2_000
"""Characters of an error's text that reach the notebook: whole arrays may stand in it."""


OWN_REQUEST = "course"
"""The label of requests that the course sends, by which a rank tells them from those of a learner's view."""


@dataclass(slots=True)
class RankTask:
    """Call `function(comm, *arguments, **keywords)` on this rank, together with the first `world_size` ranks.

    Attributes:
        function: packed by itself, once for all ranks; it may hold much.
        communicator: which of the fresh communicators to use; the same number on every rank.
        backend: "gloo" or "nccl" for torch.distributed instead of `comm`.
        rendezvous: the file, or the address, at which the ranks of that group meet.
    """

    function: bytes
    arguments: tuple
    keywords: dict
    world_size: int
    communicator: int
    with_comm: bool = True
    backend: str | None = None
    rendezvous: str = ""
    keep_arguments: bool = False


@dataclass(slots=True)
class Raised:
    """An exception on a rank, in words: its class, its text, and where in the learner's code it was raised.

    `call`: of an interrupt, what that line had called.
    """

    type: str
    message: str
    line: str = ""
    call: str = ""

    def __str__(self) -> str:
        text = f"{self.type}: {self.message}" if self.message else self.type
        return f"{text.removesuffix('.')}, {self.line}" if self.line else text


@dataclass(slots=True)
class Reply:
    """What one rank did with its task.

    Attributes:
        kind: "returned", "raised", "interrupted", "lost" when the rank has ended, "unusable" when a call before this
            one has broken its MPI.
        arguments: the arguments after the call, where they were asked for.
        waiting: the operation in which the rank was stuck, with its line, in words.
        need: what the rank waited for there; None where that is not known.
        never_waited_for: the requests that this rank began and left open, each with its line.
        notes: what went well on this rank by luck only: "no call waits for Isend(dest=1)".
        unfreed: what this rank made and nobody freed, in words, where that is no matter of one or two communicators.
        uncounted: the names of calls that may have moved something of which there is no event.
        bypassed: what the learner's code used that goes past the recorder; looked at in a sandbox alone.
        began, ended: when the run did so on this rank, on the clock whose readings `events` carry.
        computing: whether the rank used the processor when it was interrupted.
        leaves_threads: whether threads of the learner's go on: what they do after the run has ended is not in `events`.
    """

    rank: int
    kind: str
    value: Any = None
    arguments: tuple = ()
    error: Raised | None = None
    waiting: str | None = None
    need: Need | None = None
    events: list[Event] = field(default_factory=list)
    output: str = ""
    never_waited_for: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    unfreed: tuple[str, ...] = ()
    uncounted: tuple[str, ...] = ()
    bypassed: tuple[str, ...] = ()
    began: float = 0.0
    ended: float = 0.0
    leaves_threads: bool = False
    computing: bool = True

    @property
    def clean(self) -> bool:
        """Whether this rank left no request open, and no thread that may still communicate."""
        return not (self.never_waited_for or self.leaves_threads)

    def take_notes(self, left_open: Iterable[Any], notes: Iterable[str]) -> None:
        """Keep which of the learner's requests were left open, and what went well by luck only: notes, and these."""
        self.never_waited_for = tuple(f"{request.text}{request.source_line}" for request in left_open)
        forgotten = [f"no call waits for {text}" for text in self.never_waited_for]
        self.notes = tuple(dict.fromkeys([*notes, *forgotten]))


_CACHED = type(functools.cache(len))


class _Pickler(cloudpickle.Pickler):
    """As cloudpickle's, which would look for a cell's `@functools.cache` on the other side by its name."""

    def reducer_override(self, thing: Any) -> Any:
        if type(thing) is _CACHED and not _is_importable(thing):
            return with_empty_cache, (thing.__wrapped__, thing.cache_parameters())
        return super().reducer_override(thing)


def _is_importable(cached: Any) -> bool:
    """Whether the other side can import it: it stands in a module, and not in one that is packed by value."""
    name, module = cached.__qualname__, str(cached.__module__)
    by_value = {
        "__main__",
        *(registered.partition(".")[0] for registered in cloudpickle.list_registry_pickle_by_value()),
    }
    return module.partition(".")[0] not in by_value and getattr(sys.modules.get(module), name, None) is cached


def with_empty_cache(function: Callable, parameters: dict[str, Any]) -> Callable:
    """The function behind a cache with these parameters, as the other side has it at first."""
    return functools.lru_cache(**parameters)(function)


def to_bytes(thing: Any) -> bytes:
    """Pickle by value what the other side cannot import."""
    file = io.BytesIO()
    _Pickler(file, protocol=5).dump(thing)
    return file.getvalue()


def from_bytes(data: bytes) -> Any:
    """What `to_bytes` packed."""
    return pickle.loads(data)


def learner_line(error: BaseException) -> str:
    """The learner's innermost line that an exception came through, in words; "" where there is none."""
    return standing_of_error(error.__traceback__).line


def describe_exception(error: BaseException, message: str | None = None) -> Raised:
    """An exception in words, with the learner's innermost line; `message` in the place of its own text."""
    if isinstance(error, SyntaxError) and error.filename:
        return Raised(type(error).__name__, error.msg, line_text(error.filename, error.lineno or 0))
    if isinstance(error, SystemExit):
        message = "the code asked its process to end; a rank goes on living"
    call = standing_of_error(error.__traceback__).call if isinstance(error, KeyboardInterrupt) else ""
    return Raised(type(error).__name__, _text_of(error) if message is None else message, learner_line(error), call)


def _text_of(error: BaseException) -> str:
    try:
        text = printable(str(error))
    except Exception:
        return "(its text cannot be read)"
    if isinstance(error, (AttributeError, ImportError)):
        from course_utils.required_packages import outdated_source

        package = outdated_source(error)
        text = f"{text} ({package})" if package else text
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]} … ({count(len(text), 'character')} in all)"


def pack_reply(reply: Reply) -> bytes:
    """The reply as bytes; where its value cannot be pickled, a reply that says so."""
    try:
        return to_bytes(reply)
    except Exception as error:
        problem = Raised(type(error).__name__, f"the result cannot be sent to the notebook: {error}")
        return to_bytes(Reply(reply.rank, "raised", error=problem, events=reply.events, output=reply.output))


def unpacking_failure(rank: int, error: BaseException) -> Reply:
    """The reply of a rank that could not unpack its task."""
    return Reply(rank, "raised", error=Raised(type(error).__name__, f"{error} (while unpacking your function)"))
