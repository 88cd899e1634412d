"""Says, once in a call, that nothing moves, where nobody can know whether that is a deadlock. It breaks nothing off."""

import time
from collections.abc import Sequence

from course_utils.ranks.failure_report import what_is_seen
from course_utils.ranks.hang_detector import Seen
from course_utils.ranks.processes.process_control import ProcessControl
from course_utils.trace.activity import RUNNING
from course_utils.words import wrapped

STILL_SECONDS = 30.0
"""After so long without a call, without computing and without bytes on the links, the learner is told."""
VAIN_SECONDS = 1.0
"""The same, while a rank tests again and again for what will never come."""
_INTERVAL = 1.0  # seconds between two looks at what was computed and sent
_COMPUTES = 0.1  # CPU seconds per second: less is what a process does that waits
_ADVICE = "This need not be a deadlock, so nothing is broken off; the stop button (■) does."


class StillnessNotice:
    """Looks at the ranks of one call, and prints its notice when it is time."""

    def __init__(self, control: ProcessControl, ranks: Sequence[int]) -> None:
        self._control, self._ranks = control, ranks
        self._told = False
        self._looked = self._moved = time.monotonic()
        self._before = 0.0
        self._ran: set[int] = set()

    def look(self, seen: Seen) -> None:
        """Tell the learner, if nothing has moved for long enough."""
        now = time.monotonic()
        if seen.in_vain > VAIN_SECONDS:
            self._tell("What some ranks ask for will never come")
        if now - self._looked < _INTERVAL:
            return
        at_work = [rank for rank in self._ranks if self._control.activity(rank).state == RUNNING]
        computed, seconds = sum(map(self._control.computed, at_work)), now - self._looked
        quiet = abs(computed - self._before) < _COMPUTES * seconds and seen.links_at_rest > seconds
        runs = set(filter(self._control.wants_to_run, at_work))
        quiet &= not runs & self._ran  # on a busy machine little is computed by who computes all the time
        self._ran = runs
        if not quiet or seen.unmoved < seconds:
            self._moved = now
        self._looked, self._before = now, computed
        if now - self._moved > STILL_SECONDS:
            self._tell(f"Nothing has moved for {STILL_SECONDS:.0f} s")

    def _tell(self, what: str) -> None:
        if not self._told:
            self._told = True
            seen = what_is_seen({rank: self._control.activity(rank) for rank in self._ranks})
            print(wrapped(f"{what}: {seen}. {_ADVICE}"))
