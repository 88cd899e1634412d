"""Who stayed behind, as far as the watchdogs of NCCL tell: the last collective that each rank asked for."""

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from course_utils.lessons.gpu_nodes.failures.log_line import Line

_ENQUEUED = re.compile(
    r"\[PG (?:ID )?(?P<group>\d+)\b[^\]]*?Rank (?P<rank>\d+)\].*last enqueued (?:NCCL )?work: (?P<work>-?\d+)"
)


@dataclass(frozen=True)
class Behind:
    """The ranks of a group that asked for fewer collectives than the others.

    Attributes:
        ranks: they, sorted.
        work: the number of the last collective that they asked for.
        others: that of the rank that is the furthest.
    """

    ranks: tuple[int, ...]
    work: int
    others: int


def behind_of(lines: Iterable[Line]) -> Behind | None:
    """The ranks that stayed behind, in the first group whose ranks report different numbers, or None."""
    groups: dict[int, dict[int, int]] = defaultdict(dict)
    for line in lines:
        if "last enqueued" in line.text and (found := _ENQUEUED.search(line.text)):
            rank = line.rank if line.rank is not None else int(found["rank"])
            groups[int(found["group"])].setdefault(rank, int(found["work"]))
    for _, works in sorted(groups.items()):
        if len(set(works.values())) > 1:
            lowest = min(works.values())
            return Behind(tuple(sorted(rank for rank in works if works[rank] == lowest)), lowest, max(works.values()))
    return None
