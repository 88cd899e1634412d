"""The line to ranks: sends tasks, waits for replies, and notices when nothing moves any more."""

import contextlib
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from course_utils.ranks.call_limit import CallLimit
from course_utils.ranks.deferred_interrupts import deferred_interrupts
from course_utils.ranks.ending import STOPPED_BY_USER, BrokenOff, Ending
from course_utils.ranks.engine.reply import Raised, Reply
from course_utils.ranks.hang_detector import HangDetector, Observation, Situation, deadlock_cause, mismatched_call_text
from course_utils.ranks.processes.process_control import ProcessControl
from course_utils.ranks.processes.ranks_folder import RanksFolder
from course_utils.ranks.processor_use import ProcessorUse
from course_utils.trace.activity import CLEANUP, IDLE, IMPORTS, TESTING, WAITING, Activity, reply_size
from course_utils.trace.ledger import need_in
from course_utils.trace.wait_graph import Need, WaitGraph
from course_utils.words import capital, ranks_in_words

_AFTER_AN_ERROR = 0.4  # seconds without progress, once a rank has raised: the rest waits for it
_AFTER_AN_ERROR_WITHIN = 2.0  # the same, where the rank may have raised within what the others wait for
_UNDELIVERED = 20.0  # a task that its rank has not begun by then was lost on the way, if the slowest way was enough
_SLOWEST_RATE = 10e6  # bytes per second
_STUBBORN = 8.0  # a rank that ignores interrupts for so long is ended
_SAYS_SO = 2.0  # after so long the learner is told who has not stopped yet
_IMPORTS = 60.0  # the same, while it imports something, or cleans up: torch gives each worker of a DataLoader 5 s
POLL_SECONDS = 0.01
"""For which `collect` waits where no reply has come."""


@dataclass
class CallProgress:
    """What is known of a call while it runs."""

    pending: dict[int, Any]
    replies: dict[int, Reply] = field(default_factory=dict)
    waiting: dict[int, tuple[str, Need | None]] = field(default_factory=dict)  # when the call was broken off
    cause: BrokenOff | None = None
    stuck: WaitGraph | None = None
    lost: list[int] = field(default_factory=list)  # ranks that had died, or would not stop


class Connection(ABC):
    """The line to ranks, whatever carries it.

    Attributes:
        folder: of the ranks.
        control: what can be seen of them, and done to them, without asking them.
        world_size: how many there are.
        deadline: when every call is broken off, on the clock of `time.monotonic`.
        can_lose_tasks: whether a task can be lost on its way.
    """

    deadline = math.inf
    can_lose_tasks = True

    def __init__(self, folder: RanksFolder, control: ProcessControl, world_size: int) -> None:
        self.folder, self.control, self.world_size = folder, control, world_size

    @abstractmethod
    def submit(self, function: str, arguments: Mapping[int, tuple]) -> dict[int, Any]:
        """Start a function of `calls` on some ranks, each with its own arguments; give back what `wait_for` wants.

        Raises:
            RanksGone: a rank has ended.
        """

    @abstractmethod
    def collect(self, call: CallProgress) -> bool:
        """Take the replies that have come, or wait for a moment; true while some are missing."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the ranks."""

    def rendezvous(self) -> str:
        """A file that does not exist yet, at which the ranks of a torch group meet."""
        return str(self.folder.path / f"rendezvous-{time.monotonic_ns()}")

    # --- waiting for learners' code ---------------------------------------------------------------------------------

    def wait_for(
        self,
        pending: dict[int, Any],
        *,
        patience: float | None = None,
        limit: float = math.inf,
        until: float = math.inf,
        size: int = 0,
        others: Collection[int] = (),
        observe: Callable[[Observation, Mapping[int, Reply]], None] = lambda observation, replies: None,
        links_at_rest: Callable[[], float] = lambda: math.inf,
        already_stopped: bool = False,
        may_be_lost: bool = True,
    ) -> CallProgress:
        """Wait for every rank's reply, or break the call off on a deadlock, when time is up, or the user says stop.

        Args:
            patience: seconds for which nothing moves and nobody can know why, after which the call is broken off as
                well; None for never.
            limit: seconds of processor time that the learner's function may take, see `call_limit`.
            until: when the call is broken off in any case, on the clock of `time.monotonic`.
            size: bytes that were sent to the ranks.
            others: ranks on the same communicator that take no part; what they have sent before may be on its way.
            observe: called at every look, with what was seen, and the replies that have come.
            links_at_rest: seconds since anything has passed the links; what is slow on its way is no hang.
            already_stopped: whether the stop button was pressed already.
            may_be_lost: whether a task that its rank does not begin is taken for lost after a while.
        """
        call = CallProgress(dict(pending))
        detector = HangDetector(self.control.lag, links_at_rest)
        until = min(until, self.deadline)
        self._use = ProcessorUse(self.control, list(pending))
        time_limit = CallLimit(limit, self.control.computed, self.control.wants_to_run, until)
        try:
            if already_stopped:
                raise KeyboardInterrupt
            while self.collect(call):
                self._use.measure()
                activities = {rank: self.control.activity(rank) for rank in (*pending, *others)}
                if dead := self.control.dead():
                    call.lost = dead
                    differs, end = mismatched_call_text(activities), self.control.how_it_ended()
                    text = f"{differs} {capital(end)}" if differs else end
                    self._give_up(call, BrokenOff(Ending.RANK_ENDED, text))
                    break
                idle = {rank for rank in others if activities[rank].state == IDLE}
                observation = detector.observe(activities, set(call.replies) | idle)
                raised = any(reply.kind in ("raised", "unusable") for reply in call.replies.values())
                call.stuck = observation.stuck
                under_way = max(size, sum(reply_size(activities[rank]) for rank in call.pending))
                if (
                    self.can_lose_tasks
                    and may_be_lost
                    and observation.seconds_in(Situation.UNDELIVERED) > _UNDELIVERED + under_way / _SLOWEST_RATE
                ):
                    call.lost = list(call.pending)
                    self._give_up(call, BrokenOff(Ending.RANK_ENDED, "a task was lost on its way."))
                elif cause := (
                    _reason_to_break_off(observation, raised, patience, lambda: self._a_rank_is_starved(call))
                    or time_limit.reason_to_end({rank: activities[rank] for rank in call.pending})
                ):
                    self._break_off(call, cause)
                else:
                    observe(observation, call.replies)
        except BaseException as error:
            self._break_off(call, STOPPED_BY_USER)
            if not isinstance(error, KeyboardInterrupt):  # but one of a timer of the learner's, or of the progress bar
                raise
        return call

    def _a_rank_is_starved(self, call: CallProgress) -> bool:
        return any(map(self.control.wants_to_run, call.pending))

    def _break_off(self, call: CallProgress, cause: BrokenOff) -> None:
        """Interrupt every rank that is not done, and wait until each has said so; end those that will not."""
        with deferred_interrupts():
            self._interrupt(call, cause)

    def _interrupt(self, call: CallProgress, cause: BrokenOff) -> None:
        call.cause = cause
        computing = {rank: self._use.computes(rank) for rank in call.pending}
        for rank in call.pending:
            activity = self.control.activity(rank)
            if activity.state in (WAITING, TESTING):
                call.waiting[rank] = self._wait_text(rank, activity), need_in(activity.snapshot)
        begun, again = time.monotonic(), 0.0
        says_so = begun + _SAYS_SO if cause is STOPPED_BY_USER else math.inf
        deadline = begun + _STUBBORN
        while call.pending and not self.control.dead():
            if time.monotonic() > deadline:
                if time.monotonic() > begun + _IMPORTS or not any(map(self._heeds_it_later, call.pending)):
                    break
                deadline = time.monotonic() + _STUBBORN
            if time.monotonic() > says_so:
                says_so = math.inf
                print(f"Stopping: waiting for {ranks_in_words(list(call.pending))} to end …")
            if time.monotonic() >= again:
                for rank in call.pending:
                    self.control.interrupt(rank)
                again = time.monotonic() + 0.25
            with contextlib.suppress(KeyboardInterrupt):  # pressed while a reply was unpacked
                self.collect(call)
        for rank, computes in computing.items():
            if rank in call.replies:
                call.replies[rank].computing = computes
        for rank, (text, need) in call.waiting.items():
            set_free = "returned" if cause.ending is Ending.DEADLOCK else ""  # by a rank that was interrupted before it
            if rank in call.replies and call.replies[rank].kind in ("interrupted", set_free):
                call.replies[rank].waiting, call.replies[rank].need = text, need
        if call.pending:
            call.lost = list(call.pending)
            lines = {rank: self.control.source_line(rank) for rank in call.lost}
            for rank in call.lost:
                self.control.kill(rank)
            deadline = time.monotonic() + _STUBBORN
            while not set(call.lost) <= set(self.control.dead()) and time.monotonic() < deadline:
                time.sleep(POLL_SECONDS)  # until they are gone, so that nobody takes them for well
            lost = capital(ranks_in_words(call.lost))
            text = f"{cause.text} {lost} did not react when told to stop, and had to be ended."
            self._give_up(call, BrokenOff(Ending.RANK_ENDED, text), lines)

    def _wait_text(self, rank: int, activity: Activity) -> str:
        """What a rank waits for. Before the learner's function begins, that may be an import of its own."""
        importing = "" if activity.begun else self.control.standing(rank).importing
        return f"the import of {importing}" if importing else activity.text

    def _heeds_it_later(self, rank: int) -> bool:
        """Is a rank in an import, or cleaning up? While it loads a library, it may be unable to say so for seconds."""
        text = self.control.activity(rank).text
        return text in (IMPORTS, CLEANUP) or self.control.source_line(rank) == IMPORTS

    def _give_up(self, call: CallProgress, cause: BrokenOff, lines: Mapping[int, str] | None = None) -> None:
        """`lines`: the lines in which ranks are lost, as far as they are known."""
        call.cause = cause
        for rank in list(call.pending):
            del call.pending[rank]
            line = (lines or {}).get(rank)
            error = Raised("", "", line) if line else None
            text, need = call.waiting.get(rank, (None, None))
            call.replies[rank] = Reply(rank, "lost", waiting=text, need=need, error=error)


def _reason_to_break_off(
    observation: Observation, raised: bool, patience: float | None, is_starved: Callable[[], bool]
) -> BrokenOff | None:
    """Why nothing more will come of a call, as far as that is known.

    Args:
        observation: of its ranks.
        raised: whether one of them has raised.
        patience: as `Connection.wait_for`'s.
        is_starved: tells whether a rank wants to run and others use the processors: it may have something to do.
    """
    if observation.stuck:
        return deadlock_cause(observation.stuck)
    if raised and (
        observation.seconds_in(Situation.UNKNOWN) > _AFTER_AN_ERROR
        or observation.seconds_in(Situation.ALL_WAIT) > _AFTER_AN_ERROR_WITHIN
    ):
        return BrokenOff(Ending.RAISED, "a rank has raised, and the others wait.")
    if patience is None or observation.seconds_in(Situation.UNKNOWN, Situation.IN_VAIN) <= patience:
        return None
    if observation.situation is Situation.IN_VAIN or not is_starved():
        return BrokenOff(Ending.NO_PROGRESS, f"no progress for {patience:.0f} s.")
    return None
