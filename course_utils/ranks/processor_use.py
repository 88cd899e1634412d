"""Which ranks compute, and which only wait: from the processor time that each has used, looked at once a second."""

import time
from collections.abc import Sequence

from course_utils.ranks.processes.process_control import ProcessControl

INTERVAL = 1.0
"""Seconds between two looks."""
COMPUTES = 0.1
"""Processor seconds per second: less is what a process uses that waits."""


class ProcessorUse:
    """The processor time of some ranks.

    Attributes:
        shares: of each rank, the processor seconds per second between the last two looks.
        seconds: between the last two looks.
    """

    def __init__(self, control: ProcessControl, ranks: Sequence[int]) -> None:
        self._control, self._ranks = control, list(ranks)
        self._checked_at = time.monotonic()
        self._before: dict[int, float] = {}
        self.shares: dict[int, float] = {}
        self.seconds = 0.0

    def measure(self) -> bool:
        """Look again, if it is time; whether it was."""
        now = time.monotonic()
        if now - self._checked_at < INTERVAL and self._before:
            return False
        computed = {rank: self._control.computed(rank) for rank in self._ranks}
        seconds, before = now - self._checked_at, self._before
        self._checked_at, self._before = now, computed
        if not before:
            return False
        self.seconds = seconds
        self.shares = {rank: abs(computed[rank] - before[rank]) / seconds for rank in self._ranks}
        return True

    def computes(self, rank: int) -> bool:
        """Whether a rank uses the processor, or would like to: between the last two looks, since then, or now."""
        since = time.monotonic() - self._checked_at
        used = abs(self._control.computed(rank) - self._before[rank]) if rank in self._before else 0.0
        lately = self.shares.get(rank, 0.0) > COMPUTES or used > COMPUTES * max(since, INTERVAL / 2)
        return lately or self._control.wants_to_run(rank)
