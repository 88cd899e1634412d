"""What a call on the ranks gives back: results in rank order, and what the trace counted."""

import contextlib
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from course_utils import draw
from course_utils.draw.block_frames import BlockFrames
from course_utils.errors import CourseError
from course_utils.ranks.ending import BrokenOff, Ending, ending_of
from course_utils.ranks.engine.reply import Reply, to_bytes
from course_utils.ranks.failure_report import describe, reply_text
from course_utils.trace.events import Event, bytes_of_ranks, count_rounds
from course_utils.trace.latent_errors import latent_errors
from course_utils.trace.wait_graph import WaitGraph
from course_utils.words import count, ranks_in_words


class per_rank:  # noqa: N801 - reads as a function: course.per_rank([…])
    """An argument that differs between ranks: `values[r]` is what rank r gets."""

    def __init__(self, values: Sequence[Any]) -> None:
        self.values = list(values)

    def __repr__(self) -> str:
        return f"per_rank({self.values!r})"


def spread(arguments: tuple, keywords: dict, world_size: int) -> list[tuple[tuple, dict]]:
    """For each rank its arguments, with every `per_rank` replaced by that rank's value.

    Raises:
        CourseError: a `per_rank` has not one value for each rank.
    """
    for argument in (*arguments, *keywords.values()):
        if isinstance(argument, per_rank) and len(argument.values) != world_size:
            raise CourseError(
                f"per_rank was given {len(argument.values)} values for {world_size} ranks; it needs one for each."
            )

    def own(argument: Any, rank: int) -> Any:
        return argument.values[rank] if isinstance(argument, per_rank) else argument

    return [
        (tuple(own(a, rank) for a in arguments), {key: own(a, rank) for key, a in keywords.items()})
        for rank in range(world_size)
    ]


@dataclass(frozen=True)
class Run:
    """One call on all ranks that came to its end.

    Attributes:
        results: what each rank returned, in rank order.
        events: what happened, with times in seconds since the run began.
        seconds: from the first rank's beginning to the last rank's end.
        output: what each rank printed.
        noticed: what each rank has noticed of itself, where that went well by luck only.
        left: what each rank has made and not freed, in words: it went well, and long programs run out of it.
        unfinished: ranks of which threads go on.
        replay: runs the function once more with marked numbers, for `blocks`; None where nobody has kept it.
    """

    results: list
    events: list[Event]
    seconds: float
    output: list[str] = field(default_factory=list)
    noticed: list[tuple[str, ...]] = field(default_factory=list)
    left: list[tuple[str, ...]] = field(default_factory=list)
    unfinished: list[int] = field(default_factory=list)
    replay: Callable[[], BlockFrames] | None = field(default=None, repr=False, compare=False)

    @classmethod
    def of(cls, replies: list[Reply]) -> "Run":
        """Put the ranks' replies together on one clock."""
        began = min(reply.began for reply in replies)
        return cls(
            results=[reply.value for reply in replies],
            events=events_of(replies),
            seconds=max(reply.ended for reply in replies) - began,
            output=[reply.output for reply in replies],
            noticed=[reply.notes for reply in replies],
            left=[reply.unfreed for reply in replies],
            unfinished=[reply.rank for reply in replies if reply.leaves_threads],
        )

    @property
    def world_size(self) -> int:
        return len(self.results)

    @cached_property
    def rounds(self) -> int:
        """Rounds of messages when each rank sends one and receives one at a time."""
        return count_rounds(self.events)

    @property
    def messages(self) -> int:
        """Messages sent from rank to rank; those inside a collective are MPI's own affair and not counted."""
        return sum(event.kind == "send" for event in self.events)

    @cached_property
    def bytes_per_rank(self) -> list[int]:
        """Bytes that each rank sent, or contributed to a collective."""
        return bytes_of_ranks(self.events, self.world_size)

    @property
    def bytes(self) -> int:
        """Bytes of all ranks together."""
        return sum(self.bytes_per_rank)

    @property
    def collectives(self) -> int:
        """Collective operations that rank 0 took part in."""
        return sum(event.kind == "collective" and event.rank == 0 for event in self.events)

    @cached_property
    def notes(self) -> list[str]:
        """Sentences on what went well by luck only."""
        return [*latent_errors(self.events, self.world_size, self.unfinished), *_notes_with_ranks(self.noticed)]

    @cached_property
    def leftovers(self) -> list[str]:
        """Sentences on what was made and is never freed."""
        return _notes_with_ranks(self.left)

    def timeline(self, title: str | None = None):
        """A picture of the run: ranks as rows, messages as arrows."""
        return draw.timeline(self, title=title)

    @cached_property
    def block_frames(self) -> BlockFrames:
        """What each rank's blocks hold after each round: the function is run once more, on virtual ranks.

        Raises:
            CourseError: the function takes no vector, there are too many ranks, or virtual ranks cannot run it.
        """
        if self.replay is None:
            raise CourseError("The function of this run was not kept, so it cannot be run again to draw its blocks.")
        return self.replay()

    def blocks(self, title: str | None = None):
        """A picture of what is where: ranks as rows, the blocks of each rank's vector as squares, a frame a round."""
        return draw.blocks(self, title=title)

    def __repr__(self) -> str:
        return (
            f"<run on {count(self.world_size, 'rank')}: {self.seconds * 1000:.1f} ms, "
            f"{count(self.messages, 'message')} in {count(self.rounds, 'round')}, "
            f"{count(self.collectives, 'collective')}, {self.bytes:,} bytes>"
        )


def _notes_with_ranks(noticed: Sequence[Sequence[str]]) -> list[str]:
    """Sentences, each with the ranks on which it holds."""
    ranks: dict[str, list[int]] = {}
    for rank, notes in enumerate(noticed):
        for note in notes:
            ranks.setdefault(note, []).append(rank)
    return [f"On {ranks_in_words(found)}: {note}." for note, found in ranks.items()]


def events_of(replies: list[Reply]) -> list[Event]:
    """All ranks' events, with times counted from the moment at which the first rank began."""
    began = min((reply.began for reply in replies), default=0.0)
    if not began:  # as on virtual ranks
        return [event for reply in replies for event in reply.events]
    return [e._replace(start=e.start - began, end=e.end - began) for reply in replies for e in reply.events]


@dataclass(frozen=True)
class Attempt:
    """A call that may have failed.

    Attributes:
        replies: of every rank.
        trouble: what went wrong, in words, beginning with a small letter; None where every rank returned.
        afterwards: what was lost by it, in words.
        ending: why it came to its end.
    """

    replies: list[Reply]
    trouble: str | None
    afterwards: str = ""
    ending: Ending = Ending.RETURNED

    @classmethod
    def of(cls, replies: list[Reply], cause: BrokenOff | None, afterwards: str = "") -> "Attempt":
        """`cause`: why it was broken off, if it was."""
        trouble = describe(replies, cause, "your function" if len(replies) == 1 else "")
        return cls(replies, trouble, afterwards, ending_of((reply.kind for reply in replies), cause))

    @classmethod
    def of_each(cls, replies: list[Reply], cause: BrokenOff | None) -> "list[Attempt]":
        """Calls that were made one after the other, of which the last may have been broken off."""
        return [cls.of([reply], None if reply.kind == "returned" else cause) for reply in replies]

    @cached_property
    def run(self) -> Run | None:
        """The run, when every rank returned."""
        return None if self.trouble else Run.of(self.replies)


def pack_or_explain(function: Callable, thing: Any) -> bytes:
    """Pack a function, or something that it is called with, so that a rank has a copy of its own.

    Raises:
        CourseError: it holds something that cannot leave the notebook.
    """
    try:
        return to_bytes(thing)
    except Exception as error:
        name = getattr(function, "__name__", "the function")
        raise CourseError(
            f"{name} uses {kept_in_the_notebook(function, error)}. "
            "Create it inside the function, or pass it as an argument."
        ) from None


def kept_in_the_notebook(function: Callable, error: Exception) -> str:
    """In words, the first thing that a function uses and that cannot be packed; the error if that cannot be told."""
    with contextlib.suppress(TypeError, ValueError):
        used = inspect.getclosurevars(function)
        for name, thing in {**used.globals, **used.nonlocals}.items():
            try:
                to_bytes(thing)
            except Exception:  # whatever an object's own pickling may raise
                return f"`{name}` from the notebook, which cannot be sent to the ranks"
    return f"something from the notebook that cannot be sent to the ranks: {error}"


def check_function(function: Any) -> None:
    """Reject what `run` cannot call.

    Raises:
        CourseError: it is no function.
    """
    if not callable(function):
        raise CourseError(f"run needs a function, but got {function!r}. Write its name without quotes and brackets.")


def check_takes_no_comm(function: Callable, arguments: tuple, keywords: dict, backend: str) -> None:
    """Reject what wants a communicator where it will get none.

    Raises:
        CourseError: the function has one parameter more than there are arguments.
    """
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # as of some that are written in C
        return
    with contextlib.suppress(TypeError):
        signature.bind(*arguments, **keywords)
        return
    with contextlib.suppress(TypeError):
        signature.bind(None, *arguments, **keywords)
        first = next(iter(signature.parameters))
        raise CourseError(
            f"{getattr(function, '__name__', 'the function')} has a parameter {first!r} more than it gets. A function "
            f"that runs with backend={backend!r} gets no communicator, because it uses torch.distributed instead. "
            f"Leave {first!r} out, and take the rank from dist.get_rank()."
        )


class LastRun:
    """What ranks, real and virtual, show of what ran on them last.

    Attributes:
        world_size: how many ranks there are.
        last_run_name: how sentences speak of it.
    """

    world_size: int
    last_run_name = "The last cell or run"
    _last_events: Sequence[Event] = ()
    _last_waits: tuple[WaitGraph | None, Sequence[Reply]] = (None, ())

    def _size(self, ranks: int | None) -> int:
        size = self.world_size if ranks is None else ranks
        if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= self.world_size:
            raise CourseError(f"{size!r} ranks were asked for; there are {self.world_size}.")
        return size

    def timeline(self, title: str | None = None):
        """A picture of the messages of the last cell or run."""
        took_part = [reply.rank for reply in self._last_waits[1]] or range(self.world_size)
        return draw.timeline(self._last_events, title=title, ranks=took_part)

    def waits(self, title: str | None = None):
        """A picture of who waited for whom when the last cell or run was broken off as a deadlock.

        Raises:
            CourseError: it was not.
        """
        stuck, replies = self._last_waits
        if stuck is None:
            raise CourseError(f"{self.last_run_name} was not a deadlock, so there is no waiting to draw.")
        waits_for = {rank: stuck.waits_for(rank) for rank in stuck.stuck()}
        doing = {reply.rank: reply_text(reply) for reply in replies}
        returned = [reply.rank for reply in replies if reply.kind == "returned"]
        return draw.waits(doing, waits_for, stuck.cycle(), title=title, returned=returned)
