"""Notices that ranks wait for what will never come, from what each of them tells, without a clock.

What cannot be known that way keeps clocks: for how long nothing has moved.
"""

import contextlib
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from course_utils.ranks.ending import BrokenOff, Ending
from course_utils.trace.activity import IDLE, RUNNING, TESTING, WAITING, Activity
from course_utils.trace.ledger import read_look
from course_utils.trace.wait_graph import (
    IS_DONE,
    WAITS,
    WORKS,
    Look,
    WaitGraph,
    in_words,
    mismatch_in_words,
)
from course_utils.words import capital

_ON_ITS_WAY = "unknown", "all_wait"
"""The clocks of what may be on its way over the links."""


@dataclass(frozen=True)
class Seen:
    """What a look at the ranks of one call tells.

    Attributes:
        stuck: the graph of waits, where some ranks wait for what will never come.
        unknown: seconds since a rank or the links have moved, while every rank that is not done waits, and one cannot
            say for what.
        all_wait: the same, while every rank that is not done waits for what seems to be on its way.
        in_vain: seconds since a rank has moved, while ranks that test again and again test for what will never come,
            and others wait.
        undelivered: the same, while a rank has not begun, and none works.
        unmoved: seconds since any rank has moved.
        links_at_rest: seconds since anything has passed the links.
    """

    stuck: WaitGraph | None = None
    unknown: float = 0.0
    in_vain: float = 0.0
    undelivered: float = 0.0
    all_wait: float = 0.0
    unmoved: float = 0.0
    links_at_rest: float = math.inf


class HangDetector:
    """Looks at the ranks of one call again and again."""

    def __init__(self, lag: float, links_at_rest: Callable[[], float] = lambda: math.inf) -> None:
        """`lag`: by how many seconds what is seen of one rank may be older than what is seen of another.

        Nothing must have changed for so long, so that all that was seen was true at once.

        `links_at_rest`: seconds since anything has passed the links.
        """
        self._lag, self._links_at_rest = lag, links_at_rest
        self._picture: list | None = None
        self._since = 0.0
        self._graph: WaitGraph | None = None
        self._kind = ""

    def look(self, activities: Mapping[int, Activity], replied: set[int]) -> Seen:
        """What can be said of this moment.

        Args:
            activities: of all ranks of the call.
            replied: those that have returned or raised.
        """
        picture = [(rank, seen.progress, rank in replied) for rank, seen in activities.items()]
        now = time.monotonic()
        if picture != self._picture:
            self._picture, self._since = picture, now
            self._think(activities, replied)
        held = now - self._since
        stuck = self._graph if self._kind == "stuck" and held >= self._lag else None
        at_rest = self._links_at_rest()
        still = min(held, at_rest) if self._kind in _ON_ITS_WAY else held
        clocks = {self._kind: still} if self._kind not in ("stuck", "") else {}
        return Seen(stuck, unmoved=held, links_at_rest=at_rest, **clocks)

    def _think(self, activities: Mapping[int, Activity], replied: set[int]) -> None:
        """What these ranks amount to: a clock of `Seen`, stuck or, while they can go on, nothing."""
        looks, members, known = self._looks(activities, replied)
        self._kind = ""
        self._graph = WaitGraph(looks, members)
        states = {seen.state for rank, seen in activities.items() if rank not in replied}
        if self._graph.stuck():
            self._kind = "stuck"
        elif IDLE in states and RUNNING not in states:
            self._kind = "undelivered"
        elif states == {WAITING}:
            self._kind = "all_wait" if known else "unknown"
        elif TESTING in states:
            testing = {rank for rank, seen in activities.items() if seen.state == TESTING}
            patient = {rank: replace(look, state=WAITS) if rank in testing else look for rank, look in looks.items()}
            if testing & set(WaitGraph(patient, members).stuck()):
                self._kind = "in_vain"

    def _looks(
        self, activities: Mapping[int, Activity], replied: set[int]
    ) -> tuple[dict[int, Look], dict[str, list[int]], bool]:
        """What is known of each rank, the communicators, and whether each that waits could say for what."""
        looks: dict[int, Look] = {}
        members: dict[str, list[int]] = {}
        known = True
        for rank, seen in activities.items():
            looks[rank] = Look(WORKS)
            if rank not in replied and seen.state not in (WAITING, TESTING):
                continue
            state = IS_DONE if rank in replied else WAITS if seen.state == WAITING else WORKS
            try:
                looks[rank], theirs = read_look(state, seen.look)
            except ValueError:
                known = False
                continue
            members |= theirs
            known &= rank in replied or looks[rank].need is not None
        return looks, members, known


def cause_of(waits: WaitGraph) -> BrokenOff:
    """Why nobody can go on."""
    mismatches = [mismatch_in_words(need.number, begun) for need, begun in waits.mismatches()]
    cycle = waits.cycle()
    why = mismatches[0] if mismatches else f"rank {in_words(cycle)}" if cycle else "what is waited for will never come"
    return BrokenOff(Ending.DEADLOCK, f"deadlock: {why}.")


def unlike_calls(activities: Mapping[int, Activity]) -> str:
    """A sentence on a collective that is not the same on all ranks, of which a rank may have died; "" for none.

    gloo ends a process to which more comes than it has made room for.
    """
    looks: dict[int, Look] = {}
    members: dict[str, list[int]] = {}
    for rank, seen in activities.items():
        with contextlib.suppress(ValueError):
            looks[rank], theirs = read_look(IS_DONE, seen.look)
            members |= theirs
    graph = WaitGraph(looks, members)
    for communicator in members:
        for number in range(1, 1 + max(look.met.get(communicator, (0, ()))[0] for look in looks.values())):
            if begun := graph.mismatch(communicator, number):
                return f"{capital(mismatch_in_words(number, begun))}."
    return ""
