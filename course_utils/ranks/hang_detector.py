"""Notices that ranks wait for what will never come, from the snapshot of each, without a clock.

What cannot be known that way keeps clocks: for how long nothing has moved.
"""

import contextlib
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from course_utils.ranks.ending import BrokenOff, Ending
from course_utils.trace.activity import IDLE, RUNNING, TESTING, WAITING, Activity
from course_utils.trace.ledger import read_snapshot
from course_utils.trace.wait_explanations import explanation_text
from course_utils.trace.wait_graph import (
    IS_DONE,
    WAITS,
    WORKS,
    Snapshot,
    WaitGraph,
    cycle_text,
    mismatch_text,
    waits_in_vain_text,
)


class Situation(StrEnum):
    """What the ranks of one call amount to at one moment."""

    MOVING = "moving"
    """Some rank can go on."""
    STUCK = "stuck"
    """Some ranks wait for what will never come."""
    UNKNOWN = "unknown"
    """Every rank that is not done waits, and one cannot say for what."""
    ALL_WAIT = "all wait"
    """Every rank that is not done waits for what seems to be on its way."""
    IN_VAIN = "in vain"
    """Ranks that test again and again test for what will never come, and the others wait."""
    UNDELIVERED = "undelivered"
    """A rank has not begun, and none works."""


_MAY_BE_ON_LINKS = Situation.UNKNOWN, Situation.ALL_WAIT
"""Situations in which the links may still carry what ranks wait for."""


@dataclass(frozen=True)
class Observation:
    """What was observed of the ranks of one call.

    Attributes:
        situation: what they amount to.
        seconds: for which that has not changed: no rank has moved, nor, where that matters, anything on the links.
        stuck: the graph of waits, where some ranks wait for what will never come.
        in_vain: the same graph, where ranks test for it instead.
        unmoved: seconds since any rank has moved.
        links_at_rest: seconds since anything has passed the links.
    """

    situation: Situation = Situation.MOVING
    seconds: float = 0.0
    stuck: WaitGraph | None = None
    in_vain: WaitGraph | None = None
    unmoved: float = 0.0
    links_at_rest: float = math.inf

    def seconds_in(self, *situations: Situation) -> float:
        """Return how long one of these situations has lasted; 0 where the situation is a different one."""
        return self.seconds if self.situation in situations else 0.0


class HangDetector:
    """Observes the ranks of one call again and again."""

    def __init__(self, lag: float, links_at_rest: Callable[[], float] = lambda: math.inf) -> None:
        """Prepare the first observation.

        Args:
            lag: by how many seconds what is seen of one rank may be older than what is seen of another. Nothing must
                have changed for so long, so that all that was seen was true at once.
            links_at_rest: seconds since anything has passed the links.
        """
        self._lag, self._links_at_rest = lag, links_at_rest
        self._last_progress: list | None = None
        self._since = 0.0
        self._graph: WaitGraph | None = None
        self._situation = Situation.MOVING

    def observe(self, activities: Mapping[int, Activity], replied: set[int]) -> Observation:
        """Say what the ranks amount to at this moment.

        Args:
            activities: of all ranks of the call.
            replied: those that have returned or raised.
        """
        progress = [(rank, activity.progress, rank in replied) for rank, activity in activities.items()]
        now = time.monotonic()
        if progress != self._last_progress:
            self._last_progress, self._since = progress, now
            self._situation = self._classify(activities, replied)
        unmoved, links_at_rest = now - self._since, self._links_at_rest()
        seconds = min(unmoved, links_at_rest) if self._situation in _MAY_BE_ON_LINKS else unmoved
        stuck = self._graph if self._situation is Situation.STUCK and unmoved >= self._lag else None
        in_vain = self._graph if self._situation is Situation.IN_VAIN else None
        return Observation(self._situation, seconds, stuck, in_vain, unmoved, links_at_rest)

    def _classify(self, activities: Mapping[int, Activity], replied: set[int]) -> Situation:
        snapshots, members, known = self._snapshots(activities, replied)
        self._graph = WaitGraph(snapshots, members)
        states = {activity.state for rank, activity in activities.items() if rank not in replied}
        if self._graph.stuck():
            return Situation.STUCK
        if IDLE in states and RUNNING not in states:
            return Situation.UNDELIVERED
        if states == {WAITING}:
            return Situation.ALL_WAIT if known else Situation.UNKNOWN
        if TESTING in states:
            testing = {rank for rank, activity in activities.items() if activity.state == TESTING}
            waiting = {rank: replace(snapshots[rank], state=WAITS) for rank in testing}
            as_waiting = WaitGraph(snapshots | waiting, members)
            if testing & set(as_waiting.stuck()):
                self._graph = as_waiting
                return Situation.IN_VAIN
        return Situation.MOVING

    def _snapshots(
        self, activities: Mapping[int, Activity], replied: set[int]
    ) -> tuple[dict[int, Snapshot], dict[str, list[int]], bool]:
        """What is known of each rank, the communicators, and whether each that waits could say for what."""
        snapshots: dict[int, Snapshot] = {}
        members: dict[str, list[int]] = {}
        known = True
        for rank, activity in activities.items():
            snapshots[rank] = Snapshot(WORKS)
            if rank not in replied and activity.state not in (WAITING, TESTING):
                continue
            state = IS_DONE if rank in replied else WAITS if activity.state == WAITING else WORKS
            try:
                snapshots[rank], theirs = read_snapshot(state, activity.snapshot)
            except ValueError:
                known = False
                continue
            members |= theirs
            may_act = rank in replied and snapshots[rank].state == WORKS  # by a thread that it has left behind
            known &= not may_act and (rank in replied or snapshots[rank].need is not None)
        return snapshots, members, known


def deadlock_cause(waits: WaitGraph) -> BrokenOff:
    """Why the waiting ranks can never go on."""
    mismatches = [mismatch_text(need.number, begun) for need, begun in waits.mismatches()]
    cycle = waits.cycle()
    why = mismatches[0] if mismatches else f"rank {cycle_text(cycle)}" if cycle else waits_in_vain_text(waits)
    return BrokenOff(Ending.DEADLOCK, f"deadlock: {why}.", explanation_text(waits))


def mismatched_call_text(activities: Mapping[int, Activity]) -> str:
    """A sentence on a collective that is not the same on all ranks, of which a rank may have died; "" for none.

    It begins with a small letter.

    gloo ends a process to which more comes than it has made room for.
    """
    snapshots: dict[int, Snapshot] = {}
    members: dict[str, list[int]] = {}
    for rank, activity in activities.items():
        with contextlib.suppress(ValueError):
            snapshots[rank], theirs = read_snapshot(IS_DONE, activity.snapshot)
            members |= theirs
    graph = WaitGraph(snapshots, members)
    for communicator in members:
        for number in range(
            1, 1 + max(snapshot.collectives.get(communicator, (0, ()))[0] for snapshot in snapshots.values())
        ):
            if begun := graph.mismatch(communicator, number):
                return f"{mismatch_text(number, begun)}."
    return ""
