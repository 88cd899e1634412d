"""One rank in a communicator of virtual ranks: its number there, its clock, and the events that it records."""

from collections.abc import Sequence
from typing import Any, Self

from course_utils.errors import NoSuchRank
from course_utils.ranks.virtual.virtual_mpi import PROC_NULL
from course_utils.ranks.virtual.virtual_time import Scheduler, VirtualRank
from course_utils.trace.events import Agreement, Event
from course_utils.trace.recorder import current_line


class RankInCommunicator:
    """A communicator on one virtual rank.

    Attributes:
        rank, size: of this communicator.
        world_ranks: for each of its ranks, its number in the run.
        label: its name, the same on all its ranks.
        traced: whether what it does is the learner's, and recorded.
    """

    traced = True

    def _initialise(self, scheduler: Scheduler, me: VirtualRank, world_ranks: Sequence[int], label: str) -> Self:
        self.scheduler, self.me, self.world_ranks, self.label = scheduler, me, world_ranks, label
        self.members = world_ranks
        self.size = len(world_ranks)
        self.rank = me.number if isinstance(world_ranks, range) else list(world_ranks).index(me.number)
        self._scale, self._records = scheduler.scale, scheduler.traced
        self._cost: dict[int, float] = {}
        self._needs: dict[tuple[int, int], tuple] = {}
        scheduler.members.setdefault(label, world_ranks)
        return self

    @classmethod
    def on(cls, scheduler: Scheduler, me: VirtualRank, world_ranks: Sequence[int], label: str) -> Self:
        """The communicator of these ranks of the run, as the rank `me` holds it."""
        return cls()._initialise(scheduler, me, world_ranks, label)

    def Get_rank(self) -> int:
        return self.rank

    def Get_size(self) -> int:
        return self.size

    def Get_name(self) -> str:
        return self.label

    def compute(self, seconds: float) -> None:
        """Let virtual time pass on this rank: what a computation costs, additions too, is for the caller to say."""
        began = self.me.clock
        self.me.clock += seconds
        self.scheduler.moved = True
        if self._records:
            self._add_event("compute", "phase", began, self.me.clock)

    def Abort(self, errorcode: int = 0) -> None:
        raise SystemExit(errorcode)

    # --- recording --------------------------------------------------------------------------------------------------

    def _reserve_event(self) -> int | None:
        """A place among the events for what begins now and ends later: they stand in the order of beginnings."""
        if not self._records:
            return None
        self.me.events.append(None)
        return len(self.me.events) - 1

    def moment(self) -> float:
        """The rank's time; where it keeps events, a later one each time, so that they keep their order."""
        return self.me.next_moment() if self._records else self.me.clock

    def _add_event(
        self,
        name: str,
        kind: str,
        start: float,
        end: float,
        *more: Any,
        agreement: Agreement | None = None,
        line: int | None = None,
        position: int | None = None,
    ) -> None:
        peer, tag, size, number, holds = more or (None, None, 0, 0, "")
        line = current_line()[0] if line is None else line
        label = "" if kind == "phase" else self.label
        what, where = (self.me.number, name, kind, peer, tag, size), (line, label, number)
        event = Event(*what, start, end, *where, holds, not self.me.by_test, agreement)
        if position is None:
            self.me.events.append(event)
        else:
            self.me.events[position] = event

    def check_peer(self, call: str, rank: int, least: int = 0) -> None:
        """A clear line for a rank that does not exist."""
        if rank != PROC_NULL and not least <= rank < self.size:
            raise NoSuchRank(f"{call}: there is no rank {rank}; the ranks are 0 to {self.size - 1}")
