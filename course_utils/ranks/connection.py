"""The line from a notebook to its ranks: sends tasks, waits for replies, and notices when nothing moves any more."""

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import ipyparallel as ipp

from course_utils.errors import RanksGone
from course_utils.ranks.engine.reply import Raised, Reply, from_bytes
from course_utils.ranks.hang_detector import HangDetector, sentence
from course_utils.ranks.processes.process_control import ProcessControl
from course_utils.ranks.processes.ranks_folder import RanksFolder
from course_utils.trace.activity import IDLE, RUNNING, WAITING, Activity
from course_utils.words import ranks_in_words

PATIENCE = 3.0  # seconds without progress after which ranks that all wait are told to stop
_AFTER_AN_ERROR = 0.4  # the same, once a rank has raised: the rest waits for it
_UNDELIVERED = 20.0  # a task that its rank has not begun by then was lost on the way
_STUBBORN = 5.0  # a rank that ignores interrupts for so long is ended
_LOOK = 0.01


def _on_the_rank(function: str, *arguments: Any) -> Any:
    """Runs in the rank, where alone the functions of `calls` can be imported: they need MPI."""
    from course_utils.ranks.engine import calls

    return getattr(calls, function)(*arguments)


def introductions(client: ipp.Client, path: list[str]) -> dict[int, dict]:
    """Who stands behind each engine id; `path` is put on the ranks' import path."""
    results = {engine: client[engine].apply_async(_on_the_rank, "introduce", path) for engine in client.ids}
    return {engine: result.get(timeout=30) for engine, result in results.items()}


@dataclass
class Watched:
    """What is known of a call while it runs."""

    pending: dict[int, Any]
    replies: dict[int, Reply] = field(default_factory=dict)
    waiting: dict[int, str] = field(default_factory=dict)  # what ranks waited in when the call was broken off
    cause: str = ""
    lost: list[int] = field(default_factory=list)  # ranks that had died, or would not stop


class Connection:
    """A client of ipyparallel that speaks of ranks, never of engine ids."""

    def __init__(
        self, folder: RanksFolder, client: ipp.Client, engines: Sequence[int], control: ProcessControl
    ) -> None:
        """`engines`: the engine id of each rank."""
        self.folder, self.client = folder, client
        self.engines, self.control = list(engines), control

    def close(self) -> None:
        """Let go of the ranks without ending them."""
        with contextlib.suppress(Exception):
            self.client.close()

    def submit(self, function: str, arguments: Sequence[tuple]) -> dict[int, Any]:
        """Start a function of `calls` on the first ranks, each with its own arguments.

        Raises:
            RanksGone: a rank has ended.
        """
        if self.control.dead():
            raise RanksGone(
                f"{self.control.how_it_ended()} `ranks.restart()` brings new ranks; variables of the old ones are gone."
            )
        try:
            return {
                rank: self.client[self.engines[rank]].apply_async(_on_the_rank, function, *own)
                for rank, own in enumerate(arguments)
            }
        except (IndexError, ipp.error.NoEnginesRegistered) as error:
            raise RanksGone("The controller has lost a rank. `ranks.restart()` brings new ones.") from error

    # --- waiting for learners' code ---------------------------------------------------------------------------------

    def wait_for(
        self,
        pending: dict[int, Any],
        *,
        patience: float = PATIENCE,
        limit: float | None = None,
        look: Callable[[], None] = lambda: None,
    ) -> Watched:
        """Wait for every rank's reply, or break the call off when nothing moves, time is up, or the user says stop.

        `look` is called at every look, for a progress bar.
        """
        call = Watched(dict(pending))
        began, stall, detector = time.monotonic(), _Stall(), HangDetector()
        try:
            while self._collect(call):
                look()
                if dead := self.control.dead():
                    call.lost = dead
                    self._give_up(call, self.control.how_it_ended())
                    break
                activities = {rank: self.control.activity(rank) for rank in pending}
                held = stall.seconds({rank: activities[rank] for rank in call.pending})
                raised = any(reply.kind in ("raised", "unusable") for reply in call.replies.values())
                waits = detector.look(activities, set(call.replies))
                if waits:
                    self._break_off(call, sentence(waits))
                elif held.waiting > (min(_AFTER_AN_ERROR, patience) if raised else patience) and not detector.knows_all:
                    self._break_off(call, f"no progress for {patience:.0f} s.")
                elif held.undelivered > _UNDELIVERED:
                    call.lost = list(call.pending)
                    self._give_up(call, "A task was lost on its way.")
                elif limit is not None and time.monotonic() - began > limit:
                    self._break_off(call, f"not finished after {limit:.0f} s.")
        except KeyboardInterrupt:
            self._break_off(call, "stopped by you.")
        return call

    def _collect(self, call: Watched) -> bool:
        """Take the replies that have come; true while some are missing."""
        for rank, result in list(call.pending.items()):
            if result.ready():
                del call.pending[rank]
                call.replies[rank] = _reply_of(rank, result)
        if call.pending:
            next(iter(call.pending.values())).wait(_LOOK)
        return bool(call.pending)

    def _break_off(self, call: Watched, cause: str) -> None:
        """Interrupt every rank that is not done, and wait until each has said so; end those that will not."""
        call.cause = cause
        for rank in call.pending:
            seen = self.control.activity(rank)
            if seen.state == WAITING:
                call.waiting[rank] = seen.text
        deadline, again = time.monotonic() + _STUBBORN, 0.0
        while call.pending and time.monotonic() < deadline and not self.control.dead():
            if time.monotonic() >= again:
                for rank in call.pending:
                    self.control.interrupt(rank)
                again = time.monotonic() + 0.25
            with contextlib.suppress(KeyboardInterrupt):
                self._collect(call)
        for rank, text in call.waiting.items():
            if rank in call.replies and call.replies[rank].kind == "interrupted":
                call.replies[rank].waiting = text
        if call.pending:
            call.lost = list(call.pending)
            for rank in call.lost:
                self.control.kill(rank)
            deadline = time.monotonic() + _STUBBORN
            while not set(call.lost) <= set(self.control.dead()) and time.monotonic() < deadline:
                time.sleep(_LOOK)  # until they are gone, so that nobody takes them for well
            self._give_up(call, f"{cause} {ranks_in_words(call.lost)} did not heed the interrupt and had to be ended.")

    def _give_up(self, call: Watched, cause: str) -> None:
        call.cause = cause
        for rank in list(call.pending):
            del call.pending[rank]
            call.replies[rank] = Reply(rank, "lost", waiting=call.waiting.get(rank))


@dataclass
class _Held:
    waiting: float  # seconds since anything moved, while every rank that is not done waits
    undelivered: float  # seconds since anything moved, while none of them has begun


class _Stall:
    """For how long nothing has moved."""

    def __init__(self) -> None:
        self._last: Any = None
        self._since = time.monotonic()

    def seconds(self, activities: dict[int, Activity]) -> _Held:
        now = time.monotonic()
        picture = [(rank, activity.progress) for rank, activity in activities.items()]
        if picture != self._last:
            self._last, self._since = picture, now
        held = now - self._since
        states = {activity.state for activity in activities.values()}
        return _Held(held if states == {WAITING} else 0.0, held if IDLE in states and RUNNING not in states else 0.0)


def _reply_of(rank: int, result: Any) -> Reply:
    """What came back from a rank; an error of the transport is told as if the rank had raised it."""
    try:
        return from_bytes(result.get())
    except ipp.error.EngineError:
        return Reply(rank, "lost")
    except Exception as error:
        return Reply(rank, "raised", error=Raised(type(error).__name__, str(error)))
