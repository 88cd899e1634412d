"""Tells the learner of a call that goes on: that a rank has raised, or that nothing moves. It breaks nothing off."""

import time
from collections.abc import Mapping, Sequence

from course_utils.ranks.engine.reply import Reply
from course_utils.ranks.failure_report import Doing, doings_text, replies_text
from course_utils.ranks.hang_detector import Observation, Situation
from course_utils.ranks.processes.process_control import ProcessControl
from course_utils.ranks.processor_use import COMPUTES, ProcessorUse
from course_utils.trace.activity import IDLE, RUNNING, WAITING
from course_utils.trace.standing import Standing
from course_utils.trace.wait_explanations import explanation_text
from course_utils.words import capital, ranks_in_words, wrapped

QUIET_SECONDS = 30.0
"""After so long without a call, without computing and without bytes on the links, the learner is told."""
VAIN_SECONDS = 1.0
"""The same, while a rank tests again and again for what will never come."""
RAISED_SECONDS = 1.5
"""After so long the learner is told that a rank has raised, though others are still at work."""
_COMPUTES_WHILE_WAITING = 0.3
"""Processor seconds per second: less is what the polling of a wait uses, more is a thread that computes."""
_ADVICE = "It is not certain that this is a deadlock, so the call goes on. The stop button (■) ends it."


class QuietNotice:
    """Looks at the ranks of one call, and prints its notices when it is time."""

    def __init__(self, control: ProcessControl, ranks: Sequence[int]) -> None:
        self._control, self._ranks = control, ranks
        self._use = ProcessorUse(control, ranks)
        self._printed = self._raised_printed = False
        self._moved_at = time.monotonic()
        self._raised_at: float | None = None
        self._ran: set[int] = set()

    def observe(self, observation: Observation, replies: Mapping[int, Reply]) -> None:
        """Tell the learner, if a rank has raised or nothing has moved for long enough."""
        self._tell_of_errors(replies)
        if observation.seconds_in(Situation.IN_VAIN) > VAIN_SECONDS:
            explanation = explanation_text(observation.in_vain) if observation.in_vain else ""
            self._print_once("Some ranks are testing for something that can never arrive", replies, explanation)
        if not self._use.measure():
            return
        states = {rank: self._control.activity(rank).state for rank in self._ranks}
        at_work = [rank for rank in self._ranks if states[rank] == RUNNING]
        shares = self._use.shares
        quiet = sum(shares[rank] for rank in at_work) < COMPUTES
        quiet &= all(shares[rank] < _COMPUTES_WHILE_WAITING for rank in self._ranks)
        quiet &= observation.links_at_rest > self._use.seconds
        runs = set(filter(self._control.wants_to_run, at_work))
        quiet &= not runs & self._ran  # on a busy machine little is computed by who computes all the time
        self._ran = runs
        now = time.monotonic()
        if not quiet or observation.unmoved < self._use.seconds:
            self._moved_at = now
        if now - self._moved_at > QUIET_SECONDS:
            self._print_once(f"Nothing has moved for {QUIET_SECONDS:.0f} s", replies)

    def _tell_of_errors(self, replies: Mapping[int, Reply]) -> None:
        """Print, once, which rank has raised what while others go on."""
        raised = [reply for reply in replies.values() if reply.kind == "raised"]
        at_work = [rank for rank in self._ranks if rank not in replies]
        if self._raised_printed or not raised or not at_work:
            return
        self._raised_at = self._raised_at or time.monotonic()
        if time.monotonic() - self._raised_at > RAISED_SECONDS:
            self._raised_printed = True
            verb = "has" if len(at_work) == 1 else "have"
            rest = f"{ranks_in_words(at_work)} {verb} not returned yet, so the call goes on"
            print(wrapped(f"{capital(replies_text(raised, len(self._ranks)))}; {rest}."))

    def _print_once(self, what: str, replies: Mapping[int, Reply], explanation: str = "") -> None:
        if not self._printed:
            self._printed = True
            doings = {rank: self._doing(rank, replies.get(rank)) for rank in self._ranks}
            print(wrapped(" ".join(filter(None, [f"{what}: {doings_text(doings)}.", explanation, _ADVICE]))))

    def _doing(self, rank: int, reply: Reply | None) -> Doing:
        activity = self._control.activity(rank)
        begins = activity.state == WAITING and not activity.begun  # it may wait for an import of its own
        asks = reply is None and activity.state != IDLE and (activity.state == RUNNING or begins)
        return Doing(activity, reply, self._control.standing(rank) if asks else Standing(), self._use.computes(rank))
