"""What a learner's mistake costs: seconds until the report is there, and until the ranks work again.

Each fault is what a cell of a notebook could hold. It is run on four ranks; the report is read for the words that must
be in it, and afterwards the ranks have to add up their numbers.
"""

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass

import course_utils as course
from course_utils.errors import CourseError, RanksGone
from workshop.bench.ranks import add_ones
from workshop.bench.rows import Row, seconds_row

RANKS = 4


@dataclass(frozen=True)
class Fault:
    """Something that goes wrong on the ranks.

    Attributes:
        words: must stand in the report.
        report: seconds within which the report has to come.
        again: seconds within which the ranks have to work again, with `ranks.restart()` where they are gone.
    """

    name: str
    function: Callable
    words: str
    report: float
    again: float = 10.0


def nobody_sends(comm) -> None:
    """Rank 0 receives what no rank sends."""
    if comm.rank == 0:
        comm.recv(source=3)


def each_waits_for_the_other(comm) -> None:
    """Two ranks receive first."""
    if comm.rank < 2:
        comm.recv(source=1 - comm.rank)


def three_in_a_circle(comm) -> None:
    """Each of three receives first, from its neighbour, while the fourth works."""
    if comm.rank < 3:
        comm.recv(source=(comm.rank + 1) % 3)
    time.sleep(60)


def other_collectives(comm) -> None:
    """Rank 1 sums, where all others wait for each other."""
    if comm.rank == 1:
        comm.allreduce(1)
    comm.Barrier()


def one_skips_a_collective(comm) -> None:
    """Rank 2 does not come to the barrier."""
    if comm.rank != 2:
        comm.Barrier()


def tags_differ(comm) -> None:
    """Sent with one tag, received with another."""
    if comm.rank == 0:
        comm.send("hello", dest=1, tag=1)
    elif comm.rank == 1:
        comm.recv(source=0, tag=2)


def one_raises(comm) -> None:
    """Rank 2 raises while the rest waits for it."""
    if comm.rank == 2:
        raise ValueError("on purpose")
    comm.Barrier()


def one_is_killed(comm) -> None:
    """Rank 2 is ended by kill -9."""
    if comm.rank == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    comm.Barrier()


def one_exits(comm) -> None:
    """Rank 1 leaves its process."""
    if comm.rank == 1:
        os._exit(1)
    comm.Barrier()


def recursion_without_end(comm) -> None:
    """A function that calls itself for ever."""
    recursion_without_end(comm)


def torch_skips_a_collective() -> None:
    """Rank 2 does not come to torch's all-reduce."""
    import torch
    import torch.distributed as dist

    if dist.get_rank() != 2:
        dist.all_reduce(torch.ones(3))


AT_ONCE = 0.3
"""Seconds after which a true deadlock is told."""
FAULTS = (
    Fault("rank 0 receives, nobody sends", nobody_sends, "rank 0 waits in recv(source=3)", AT_ONCE),
    Fault("two ranks wait for each other", each_waits_for_the_other, "rank 1 waits in recv(source=0)", AT_ONCE),
    Fault("three ranks wait in a circle", three_in_a_circle, "0 waits for 1, 1 for 2, 2 for 0", AT_ONCE),
    Fault("collectives mixed up", other_collectives, "rank 1 allreduce", AT_ONCE),
    Fault("one rank skips a collective", one_skips_a_collective, "rank 2 has returned", AT_ONCE),
    Fault("tags differ", tags_differ, "rank 1 waits in recv(source=0)", AT_ONCE),
    Fault("one rank raises, others wait", one_raises, "rank 2 raised ValueError: on purpose", 2.0),
    Fault("kill -9 of one rank", one_is_killed, "rank 2 was ended by signal 9, SIGKILL", 2.0),
    Fault("os._exit(1) on one rank", one_exits, "rank 1 ended itself, with exit code 1", 2.0),
    Fault("recursion without end", recursion_without_end, "RecursionError", 2.0),
    Fault("one rank skips torch's collective", torch_skips_a_collective, "wait in all_reduce", AT_ONCE),
)


def run(runs: int) -> list[Row]:
    """Inject every fault `runs` times; two rows for each."""
    ranks = course.start(RANKS)
    rows = []
    try:
        for fault in FAULTS:
            ranks.run(_torch_is_there)  # new ones may have come
            reports, returns = zip(*(inject(ranks, fault) for _ in range(runs)), strict=True)
            rows.append(seconds_row("faults", f"{fault.name}: report", reports, target=fault.report))
            rows.append(seconds_row("faults", f"{fault.name}: ranks work again", returns, target=fault.again))
    finally:
        ranks.stop()
    return rows


def inject(ranks: "course.Ranks", fault: Fault) -> tuple[float, float]:
    """Seconds to the report, and from the report until the ranks have answered again.

    Raises:
        CourseError: there was no report, or it does not say what it should.
    """
    begin = time.perf_counter()
    try:
        ranks.run(fault.function, backend="gloo" if fault.function is torch_skips_a_collective else None)
    except CourseError as error:
        reported, gone = time.perf_counter(), isinstance(error, RanksGone)
        if fault.words not in str(error):
            raise CourseError(f"{fault.name}: the report says {error}") from error
    else:
        raise CourseError(f"{fault.name}: went unnoticed")
    if gone:
        ranks.restart()
    if ranks.run(add_ones).results != [RANKS] * RANKS:
        raise CourseError(f"{fault.name}: the ranks cannot add any more")
    return reported - begin, time.perf_counter() - reported


def _torch_is_there(comm) -> None:
    import torch.distributed  # noqa: F401
