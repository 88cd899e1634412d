"""Notices that ranks wait for what will never come, from what each of them tells, without a clock."""

import time
from collections.abc import Mapping

from course_utils.trace.activity import IDLE, RUNNING, Activity
from course_utils.trace.books import read_look
from course_utils.trace.waiting import IS_DONE, WAITS, WORKS, Look, WaitGraph, in_words
from course_utils.words import ranks_in_words

_SURE = 0.02  # seconds for which nothing must have changed, so that what was read one after the other was true at once


class HangDetector:
    """Looks at the ranks of one call.

    Attributes:
        knows_all: whether every rank that waits could say, at the last look, what it waits for.
    """

    def __init__(self) -> None:
        self.knows_all = False
        self._picture: list | None = None
        self._since = 0.0
        self._waits: WaitGraph | None = None

    def look(self, activities: Mapping[int, Activity], replied: set[int]) -> WaitGraph | None:
        """The graph of waits where some ranks are stuck for good, else None.

        Args:
            activities: of all ranks of the call.
            replied: those that have returned or raised.
        """
        picture = [(rank, seen.progress, rank in replied) for rank, seen in activities.items()]
        if picture != self._picture:
            self._picture, self._since = picture, time.monotonic()
            self._waits = self._graph(activities, replied)
            return None
        stuck = self._waits and self._waits.stuck()
        return self._waits if stuck and time.monotonic() - self._since >= _SURE else None

    def _graph(self, activities: Mapping[int, Activity], replied: set[int]) -> WaitGraph | None:
        looks: dict[int, Look] = {}
        members: dict[str, list[int]] = {}
        self.knows_all = True
        for rank, seen in activities.items():
            if seen.state == RUNNING or (seen.state == IDLE and rank not in replied):
                looks[rank] = Look(WORKS)
                continue
            try:
                looks[rank], known = read_look(IS_DONE if rank in replied else WAITS, seen.look)
            except ValueError:
                self.knows_all = False
                looks[rank] = Look(WORKS)
                continue
            members |= known
            self.knows_all &= rank in replied or looks[rank].need is not None
        return WaitGraph(looks, members)


def sentence(waits: WaitGraph) -> str:
    """Why nobody can go on."""
    for need, begun in waits.mismatches():
        calls = {name: [rank for rank in begun if begun[rank] == name] for name in begun.values()}
        who = ", ".join(f"{ranks_in_words(ranks)} {name}" for name, ranks in calls.items())
        return f"deadlock: collective number {need.number} is not the same on all ranks ({who})."
    if cycle := waits.cycle():
        return f"deadlock: rank {in_words(cycle)}."
    return "deadlock: what is waited for will never come."
