"""Says, once in a call, that nothing moves, where nobody can know whether that is a deadlock. It breaks nothing off."""

import time
from collections.abc import Sequence

from course_utils.ranks.failure_report import activities_text
from course_utils.ranks.hang_detector import Observation, Situation
from course_utils.ranks.processes.process_control import ProcessControl
from course_utils.trace.activity import RUNNING
from course_utils.trace.wait_explanations import explanation_text
from course_utils.words import wrapped

QUIET_SECONDS = 30.0
"""After so long without a call, without computing and without bytes on the links, the learner is told."""
VAIN_SECONDS = 1.0
"""The same, while a rank tests again and again for what will never come."""
_INTERVAL = 1.0  # seconds between two looks at what was computed and sent
_COMPUTES = 0.1  # CPU seconds per second: less is what a process does that waits
_ADVICE = "It is not certain that this is a deadlock, so the call goes on. The stop button (■) ends it."


class QuietNotice:
    """Looks at the ranks of one call, and prints its notice when it is time."""

    def __init__(self, control: ProcessControl, ranks: Sequence[int]) -> None:
        self._control, self._ranks = control, ranks
        self._printed = False
        self._checked_at = self._moved_at = time.monotonic()
        self._before = 0.0
        self._ran: set[int] = set()

    def observe(self, observation: Observation) -> None:
        """Tell the learner, if nothing has moved for long enough."""
        now = time.monotonic()
        if observation.seconds_in(Situation.IN_VAIN) > VAIN_SECONDS:
            explanation = explanation_text(observation.in_vain) if observation.in_vain else ""
            self._print_once("Some ranks are testing for something that can never arrive", explanation)
        if now - self._checked_at < _INTERVAL:
            return
        at_work = [rank for rank in self._ranks if self._control.activity(rank).state == RUNNING]
        computed, seconds = sum(map(self._control.computed, at_work)), now - self._checked_at
        quiet = abs(computed - self._before) < _COMPUTES * seconds and observation.links_at_rest > seconds
        runs = set(filter(self._control.wants_to_run, at_work))
        quiet &= not runs & self._ran  # on a busy machine little is computed by who computes all the time
        self._ran = runs
        if not quiet or observation.unmoved < seconds:
            self._moved_at = now
        self._checked_at, self._before = now, computed
        if now - self._moved_at > QUIET_SECONDS:
            self._print_once(f"Nothing has moved for {QUIET_SECONDS:.0f} s")

    def _print_once(self, what: str, explanation: str = "") -> None:
        if not self._printed:
            self._printed = True
            activities = activities_text({rank: self._control.activity(rank) for rank in self._ranks})
            print(wrapped(" ".join(filter(None, [f"{what}: {activities}.", explanation, _ADVICE]))))
