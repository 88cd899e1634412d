"""Finds out from collectives by how much the clocks of several ranks can differ, if nobody has compared them.

No rank can be through an all-reduce before every other one has begun it, because it needs the numbers of all. So an
all-reduce compares two clocks as a round trip does: if it began on rank b at 12 ms by b's clock and ended on rank a at
15 ms by a's, then b's clock is at most 3 ms behind what it should be next to a's. Every collective gives such a bound
for every two ranks, in both directions, and the smallest ones are the best. Together they say between which two values
the correction of a clock must be, and whether the clocks as they are contradict the collectives.

The middle between the two values is wrong by half the distance between them at most. If you take it for every rank, all
bounds hold. This is sound as long as events were matched that belong together and clocks don't drift, so if the bounds
of some ranks can't all hold, nothing is corrected.

Source: the idea is Cristian's (`rank_clocks`). Smallest bounds over several collectives are shortest paths: Floyd 1962.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from course_utils.lessons.profiling.matched_collectives import MatchedCollective


@dataclass(frozen=True)
class ClockBounds:
    """What the collectives of a trace say of the ranks' clocks.

    Attributes:
        apart: the clocks of two ranks differ by at least this many seconds; 0 if no collective contradicts them.
        bounds: rank → the least and the most seconds to add to its times, to have them on the first rank's clock.
    """

    apart: float
    bounds: Mapping[int, tuple[float, float]]

    @property
    def agree(self) -> bool:
        """Whether corrections exist with which all collectives are possible."""
        return all(least <= most for least, most in self.bounds.values())

    @property
    def corrections(self) -> dict[int, float] | None:
        """Rank → the seconds to add to its times; None if the collectives don't bound them all."""
        if not self.agree or not all(np.isfinite(both).all() for both in self.bounds.values()):
            return None
        return {rank: (least + most) / 2 for rank, (least, most) in self.bounds.items()}

    @property
    def error(self) -> float:
        """By how many seconds the corrected clocks can be wrong."""
        return max((most - least) / 2 for least, most in self.bounds.values())


def clock_bounds(collectives: Sequence[MatchedCollective], ranks: Sequence[int]) -> ClockBounds:
    """Return what the collectives say of the clocks of these ranks.

    Args:
        collectives: as `collectives_of` matches them; those that some ranks may leave before others begin don't count.
        ranks: sorted; the first one's clock is the one to compare with.
    """
    rows = {rank: row for row, rank in enumerate(ranks)}
    most = np.full((len(ranks), len(ranks)), np.inf)  # [a, b]: seconds to add to b's clock at most, if a's is right
    np.fill_diagonal(most, 0.0)
    for collective in collectives:
        if collective.is_for_all:
            own = [rows[rank] for rank in collective.times]
            begins, ends = (np.array([times[side] for times in collective.times.values()]) for side in (0, 1))
            block = np.ix_(own, own)
            most[block] = np.minimum(most[block], ends[:, None] - begins[None, :])
    apart = max(0.0, -float(most.min(initial=0.0)))
    for middle in range(len(ranks)):
        most = np.minimum(most, most[:, [middle]] + most[[middle], :])
    bounds = {rank: (-float(most[row, 0]), float(most[0, row])) for rank, row in rows.items()}
    if most.diagonal().min(initial=0.0) < 0:
        bounds = dict.fromkeys(ranks, (np.inf, -np.inf))
    return ClockBounds(apart, bounds)
