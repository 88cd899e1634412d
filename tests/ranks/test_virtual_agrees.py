"""The same program on real and virtual ranks: same results, errors, counts and deadlocks, or it goes to real ones."""

from dataclasses import dataclass
from typing import Any

import cloudpickle
import numpy as np
import pytest

from course_utils.ranks.ending import Ending
from course_utils.ranks.run import Attempt
from course_utils.ranks.virtual.virtual_ranks import VirtualRanks
from tests.ranks import programs_of_two_kinds
from tests.ranks.programs_of_two_kinds import PROGRAMS

ON_REAL_RANKS_ONLY = {
    "a_window", "counts_beyond_the_array", "with_a_count_beyond_the_array", "world_of_one",
}  # fmt: skip
"""What virtual ranks say that they cannot do; a check then goes on with real ones."""
LEFT_OPEN_BY_MPI = {"a_gather_into_a_place_that_is_too_short", "another_root", "unlike_lengths_in_allreduce"}
"""Mistakes that real ranks may survive, and that virtual ranks tell in any case."""


_SAME_ERRORS = {"MessageTruncated": "Exception", "NotABuffer": "TypeError"}
"""Errors of the course, and of MPI or mpi4py, on the same mistake."""


@dataclass
class Outcome:
    """What is compared of a call."""

    ending: Ending
    raised: list[tuple[int, str]]
    left: list[int]
    results: Any = None
    counts: Any = None

    @classmethod
    def of(cls, attempt: Attempt) -> "Outcome":
        """Of all that a call gave."""
        errors = [(reply.rank, reply.error.type) for reply in attempt.replies if reply.kind == "raised" and reply.error]
        raised = [(rank, _SAME_ERRORS.get(kind, kind)) for rank, kind in errors]
        left = [reply.rank for reply in attempt.replies if reply.kind == "interrupted"] if not raised else []
        if attempt.run is None:
            return cls(attempt.ending, raised, left)
        run = attempt.run
        counts = run.messages, run.bytes_per_rank, run.rounds, run.collectives
        return cls(attempt.ending, raised, left, plain(run.results), counts)


def plain(value: Any) -> Any:
    """Something in which arrays can be compared."""
    if isinstance(value, np.ndarray):
        return str(value.dtype), value.shape, value.tolist()
    return [plain(part) for part in value] if isinstance(value, (list, tuple)) else value


def outcome(ranks: Any, name: str) -> Outcome:
    """What a program gives on four of these ranks."""
    cloudpickle.register_pickle_by_value(programs_of_two_kinds)
    return Outcome.of(ranks.attempt(PROGRAMS[name], [()] * 4))


@pytest.mark.parametrize("name", PROGRAMS)
def test_virtual_ranks_do_what_real_ones_do(name: str, four_ranks) -> None:
    virtual = outcome(VirtualRanks(4), name)
    if name in ON_REAL_RANKS_ONLY:
        assert {kind for _, kind in virtual.raised} == {"VirtualRanksCannot"}
        assert outcome(four_ranks, name).ending != Ending.RANK_ENDED
    elif name in LEFT_OPEN_BY_MPI:
        assert virtual.ending in (Ending.RAISED, Ending.DEADLOCK)
    else:
        assert virtual == outcome(four_ranks, name)


def test_a_lone_run_counts_what_a_check_counts() -> None:
    for name in ("ring_with_waitany", "isendrecvs_in_waitall", "an_isend_that_nobody_waits_for", "in_place"):
        run, attempt = VirtualRanks(4).run(PROGRAMS[name]), VirtualRanks(4).attempt(PROGRAMS[name], [()] * 4)
        assert attempt.run is not None
        assert (run.messages, run.bytes_per_rank) == (attempt.run.messages, attempt.run.bytes_per_rank), name
