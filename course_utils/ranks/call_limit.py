"""How long a learner's function may run: in processor time, so that a busy machine does not reject what is right."""

import math
import time
from collections.abc import Callable, Mapping

from course_utils.ranks.ending import BrokenOff, Ending
from course_utils.trace.activity import Activity

_SLEEPS = 10
"""How many times the limit a function may take that computes little, as it sleeps or waits for a processor."""
_BEGINS = 120.0
"""Seconds after which the clock runs though no rank has begun: an import or the start of a group may take long."""


class CallLimit:
    """The limit of one call. It counts from when the learner's function begins, on the rank that computes most."""

    def __init__(
        self,
        limit: float,
        computed: Callable[[int], float],
        wants_to_run: Callable[[int], bool],
        until: float = math.inf,
    ) -> None:
        """Start the clock.

        Args:
            limit: seconds of processor time; they count no faster than those on the wall, for threads add up.
            computed: processor seconds of a rank so far.
            wants_to_run: does a rank compute, or wait for a processor that others use?
            until: when the call is over in any case, on the clock of `time.monotonic`.
        """
        self._limit, self._computed, self._wants_to_run = limit, computed, wants_to_run
        self._submitted, self._until = time.monotonic(), until
        self._began: dict[int, tuple[float, float]] = {}  # rank → when, and what it had computed before

    def reason_to_end(self, activities: Mapping[int, Activity]) -> BrokenOff | None:
        """Why the call must end now, if it must. `activities`: of the ranks that have not replied."""
        now = time.monotonic()
        for rank, activity in activities.items():
            if activity.begun and rank not in self._began:
                self._began[rank] = now, self._computed(rank)
        began = min((when for when, _ in self._began.values()), default=self._submitted + _BEGINS)
        if now - began > self._limit:
            running = [rank for rank in activities if rank in self._began]
            seconds = max((self._computed(rank) - self._began[rank][1] for rank in running), default=0.0)
            if seconds > self._limit:
                text = f"not finished after {self._limit:.0f} s of computing, not counting the time spent waiting."
                return BrokenOff(Ending.NOT_FINISHED, text)
            if now - began > _SLEEPS * self._limit:
                is_starved = not running or any(map(self._wants_to_run, running))
                return _too_long(now - began, seconds, is_starved)
        if now > self._until:
            return BrokenOff(Ending.NOT_FINISHED, f"not finished after {now - self._submitted:.0f} s.")
        return None


def _too_long(seconds: float, computed: float, is_starved: bool) -> BrokenOff:
    """The end of a call that took many times its limit and computed little, as it slept or the machine was busy."""
    if not is_starved:
        text = f"not finished after {seconds:.0f} s, in which it computed for {computed:.0f} s."
        return BrokenOff(Ending.NOT_FINISHED, text)
    busy = f"the machine was busy and gave it {computed:.0f} s of computing time"
    return BrokenOff(Ending.TOO_BUSY, f"not finished after {seconds:.0f} s, but {busy}.")
