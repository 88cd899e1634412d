"""The line from a notebook to its ranks: sends tasks, waits for replies, and notices when nothing moves any more."""

import contextlib
import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import ipyparallel as ipp

from course_utils.errors import RanksGone
from course_utils.ranks.engine.reply import Raised, Reply, from_bytes
from course_utils.ranks.hang_detector import HangDetector, Seen, cause_of, unlike_calls
from course_utils.ranks.presses import presses
from course_utils.ranks.processes.process_control import ProcessControl
from course_utils.ranks.processes.ranks_folder import RanksFolder
from course_utils.trace.activity import IDLE, IMPORTS, TESTING, WAITING
from course_utils.trace.waiting import WaitGraph
from course_utils.words import ranks_in_words

_AFTER_AN_ERROR = 0.4  # seconds without progress, once a rank has raised: the rest waits for it
_AFTER_AN_ERROR_WITHIN = 2.0  # the same, where the rank may have raised within what the others wait for
_UNDELIVERED = 20.0  # a task that its rank has not begun by then was lost on the way, if the slowest way was enough
_SLOWEST_WAY = 10e6  # bytes per second
_STUBBORN = 5.0  # a rank that ignores interrupts for so long is ended
_IMPORTS = 60.0  # the same, while it imports something
_LOOK = 0.01


def _on_the_rank(function: str, *arguments: Any) -> Any:
    """Runs in the rank, where alone the functions of `calls` can be imported: they need MPI."""
    from course_utils.ranks.engine import calls

    return getattr(calls, function)(*arguments)


def introductions(client: ipp.Client, path: list[str]) -> dict[int, ipp.AsyncResult]:
    """Ask who stands behind each engine id, and put `path` on the ranks' import path."""
    return {engine: client[engine].apply_async(_on_the_rank, "introduce", path) for engine in client.ids}


@dataclass
class Watched:
    """What is known of a call while it runs."""

    pending: dict[int, Any]
    replies: dict[int, Reply] = field(default_factory=dict)
    waiting: dict[int, str] = field(default_factory=dict)  # what ranks waited in when the call was broken off
    cause: str = ""
    stuck: WaitGraph | None = None
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

    def submit(self, function: str, arguments: Mapping[int, tuple]) -> dict[int, Any]:
        """Start a function of `calls` on some ranks, each with its own arguments.

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
                for rank, own in arguments.items()
            }
        except (IndexError, ipp.error.NoEnginesRegistered) as error:
            raise RanksGone("The controller has lost a rank. `ranks.restart()` brings new ones.") from error

    # --- waiting for learners' code ---------------------------------------------------------------------------------

    def wait_for(
        self,
        pending: dict[int, Any],
        *,
        patience: float | None = None,
        limit: float | None = None,
        size: int = 0,
        others: Collection[int] = (),
        look: Callable[[Seen], None] = lambda seen: None,
        links_at_rest: Callable[[], float] = lambda: math.inf,
        stopped: bool = False,
    ) -> Watched:
        """Wait for every rank's reply, or break the call off on a deadlock, when time is up, or the user says stop.

        Args:
            patience: seconds for which nothing moves and nobody can know why, after which the call is broken off as
                well; None for never.
            limit: seconds that the call may take.
            size: bytes that were sent to the ranks.
            others: ranks on the same communicator that take no part; what they have sent before may be on its way.
            look: called at every look, with what was seen.
            links_at_rest: seconds since anything has passed the links; what is slow on its way is no hang.
            stopped: whether the stop button was pressed already.
        """
        call = Watched(dict(pending))
        began, detector = time.monotonic(), HangDetector(self.control.lag, links_at_rest)
        try:
            if stopped:
                raise KeyboardInterrupt
            while self._collect(call):
                activities = {rank: self.control.activity(rank) for rank in (*pending, *others)}
                if dead := self.control.dead():
                    call.lost = dead
                    self._give_up(call, " ".join(filter(None, [self.control.how_it_ended(), unlike_calls(activities)])))
                    break
                idle = {rank for rank in others if activities[rank].state == IDLE}
                seen = detector.look(activities, set(call.replies) | idle)
                raised = any(reply.kind in ("raised", "unusable") for reply in call.replies.values())
                if seen.stuck:
                    call.stuck = seen.stuck
                    self._break_off(call, cause_of(seen.stuck))
                elif raised and (seen.unknown > _AFTER_AN_ERROR or seen.all_wait > _AFTER_AN_ERROR_WITHIN):
                    self._break_off(call, "a rank has raised, and the others wait.")
                elif patience is not None and max(seen.unknown, seen.in_vain) > patience:
                    self._break_off(call, f"no progress for {patience:.0f} s.")
                elif seen.undelivered > _UNDELIVERED + size / _SLOWEST_WAY:
                    call.lost = list(call.pending)
                    self._give_up(call, "A task was lost on its way.")
                elif limit is not None and time.monotonic() - began > limit:
                    self._break_off(call, f"not finished after {limit:.0f} s.")
                else:
                    look(seen)
        except KeyboardInterrupt:
            self._break_off(call, "stopped by you.")
        return call

    def _collect(self, call: Watched) -> bool:
        """Take the replies that have come; true while some are missing."""
        for rank, result in list(call.pending.items()):
            if result.ready():
                call.replies[rank] = _reply_of(rank, result)
                del call.pending[rank]
        if call.pending:
            next(iter(call.pending.values())).wait(_LOOK)
        return bool(call.pending)

    def _break_off(self, call: Watched, cause: str) -> None:
        """Interrupt every rank that is not done, and wait until each has said so; end those that will not."""
        with presses():
            self._interrupt(call, cause)

    def _interrupt(self, call: Watched, cause: str) -> None:
        call.cause = cause
        for rank in call.pending:
            seen = self.control.activity(rank)
            if seen.state in (WAITING, TESTING):
                call.waiting[rank] = seen.text
        begun, again = time.monotonic(), 0.0
        deadline = begun + _STUBBORN
        while call.pending and not self.control.dead():
            if time.monotonic() > deadline:
                if time.monotonic() > begun + _IMPORTS or not any(map(self._imports, call.pending)):
                    break
                deadline = time.monotonic() + _STUBBORN
            if time.monotonic() >= again:
                for rank in call.pending:
                    self.control.interrupt(rank)
                again = time.monotonic() + 0.25
            with contextlib.suppress(KeyboardInterrupt):  # pressed while a reply was unpacked
                self._collect(call)
        for rank, text in call.waiting.items():
            if rank in call.replies and call.replies[rank].kind == "interrupted":
                call.replies[rank].waiting = text
        if call.pending:
            call.lost = list(call.pending)
            places = {rank: self.control.place(rank) for rank in call.lost}
            for rank in call.lost:
                self.control.kill(rank)
            deadline = time.monotonic() + _STUBBORN
            while not set(call.lost) <= set(self.control.dead()) and time.monotonic() < deadline:
                time.sleep(_LOOK)  # until they are gone, so that nobody takes them for well
            self._give_up(
                call, f"{cause} {ranks_in_words(call.lost)} did not heed the interrupt and had to be ended.", places
            )

    def _imports(self, rank: int) -> bool:
        """Is a rank in an import? One that loads a large library may be unable to say so for seconds."""
        return IMPORTS in (self.control.activity(rank).text, self.control.place(rank))

    def _give_up(self, call: Watched, cause: str, places: Mapping[int, str] | None = None) -> None:
        """`places`: the lines in which ranks are lost, as far as they are known."""
        call.cause = cause
        for rank in list(call.pending):
            del call.pending[rank]
            line = (places or {}).get(rank)
            place = Raised("", "", line) if line else None
            call.replies[rank] = Reply(rank, "lost", waiting=call.waiting.get(rank), error=place)


def _reply_of(rank: int, result: Any) -> Reply:
    """What came back from a rank; an error of the transport is told as if the rank had raised it."""
    try:
        with presses() as pressed:  # to unpack it may import torch
            reply = from_bytes(result.get())
        if pressed:
            raise KeyboardInterrupt
        return reply
    except ipp.error.EngineError:
        return Reply(rank, "lost")
    except Exception as error:
        return Reply(rank, "raised", error=Raised(type(error).__name__, str(error)))
