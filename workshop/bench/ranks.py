"""Ranks for as long as a bench needs them, without the lines that they print when they start."""

import contextlib
import io
from collections.abc import Iterator
from typing import TYPE_CHECKING

from course_utils.errors import CourseError
from course_utils.ranks.links import network

if TYPE_CHECKING:
    from course_utils.ranks.ranks import Ranks


def add_ones(comm) -> int:
    """On each rank how many there are: whoever gets that can work."""
    return comm.allreduce(1)


@contextlib.contextmanager
def ranks_of(number: int, **options) -> Iterator["Ranks"]:
    """This many ranks of this machine for as long as the block lasts; options as for `course_utils.start`."""
    from course_utils.ranks.start import start

    with contextlib.redirect_stdout(io.StringIO()):
        ranks = start(number, **options)
    try:
        yield ranks
    finally:
        ranks.stop()


@contextlib.contextmanager
def nodes_of(nodes: int, rate: int, latency: str | None = None) -> Iterator["Ranks"]:
    """This many nodes behind links of `rate` Mbit/s for as long as the block lasts.

    Raises:
        CourseError: the system allows none.
    """
    with ranks_of(nodes, link=f"{rate} Mbit/s", latency=latency) as ranks:
        if not ranks.facts["network"]:
            raise CourseError(f"This bench needs nodes behind links. {network.obstacle() or ''}".strip())
        yield ranks
