"""Links between the boxes of a submission's ranks, whose bytes the kernel counts where no rank can reach the counters.

Each rank's box lies in a network of its own, with one cable to a switch; the switch is a network in which nothing runs
but the process that keeps it. What a rank's trace says is held against its cable: see `disagreement`.
"""

import functools
import os
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from course_utils.errors import CourseError
from course_utils.ranks.links import network
from course_utils.ranks.processes.launch_ranks import mpi_library
from course_utils.trace.events import Event

_READY = "ready"
_CALL, _JOINING = 500, 6_000
"""Bytes for each rank that a cable may carry beside all messages: in the meeting before a call, and while all connect.
"""
_EACH = 400
"""Bytes beside the payload of a message, on both ends: headers, acknowledgements."""
_SHARE = 0.05
"""Of the payload: headers of its packets, and acknowledgements."""


class CountedLinks:
    """The cables of a submission's ranks."""

    def __init__(self, ranks: int, folder: Path) -> None:
        """`folder`: an empty one, in which the networks get names.

        Raises:
            CourseError: the system does not allow networks of one's own.
        """
        self._nodes, self._ranks = folder, ranks
        cables = network.EmulatedNetwork(rates=(float("inf"),) * ranks)
        inside = ["nsenter", f"--net={folder}/switch", "sh", "-c", f"echo {_READY}; exec cat"]
        command = network.beside_nodes(cables, folder, inside, as_root=os.geteuid() == 0)
        self._keeper = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        if self._keeper.stdout.readline().strip() != _READY:
            _, told = self._keeper.communicate()
            raise CourseError(f"no networks for the boxes: {(told.strip() or 'no reason given').splitlines()[-1]}")

    def beside(self, rank: int) -> list[str]:
        """What must stand before a command that is to run in the rank's network."""
        keeper = str(self._keeper.pid)
        user = [] if os.geteuid() == 0 else ["--user"]
        return ["nsenter", "--target", keeper, *user, f"--net=/proc/{keeper}/root{self._nodes}/{rank}"]

    def counted(self) -> list[tuple[int, int]]:
        """For each rank the bytes that have left its box so far, and those that went in."""
        lines = Path(f"/proc/{self._keeper.pid}/net/dev").read_text().splitlines()[2:]
        fields = {name.strip(): told.split() for name, _, told in (line.partition(":") for line in lines)}
        return [(int(fields[f"v{rank}"][0]), int(fields[f"v{rank}"][8])) for rank in range(self._ranks)]

    def address(self, rank: int) -> str:
        """The rank's own on its link."""
        return network.address(rank)

    def close(self) -> None:
        """Take the cables away, when nobody is left in the boxes."""
        self._keeper.kill()
        self._keeper.communicate()


@functools.cache
def obstacle() -> str | None:
    """Why boxes can have no counted links here; None where they can."""
    if "MPICH" not in (library := mpi_library()):
        return f"{library} joins its ranks in another way than MPICH."
    return network.obstacle()


def disagreement(
    events: Mapping[int, Sequence[Event]],
    before: Sequence[tuple[int, int]],
    after: Sequence[tuple[int, int]],
    joining: bool,
) -> tuple[int, str] | None:
    """The rank whose trace cannot be true, and why; None where every cable has carried what the traces say.

    Args:
        events: by rank, what its trace says.
        before, after: what each cable had carried, out and in.
        joining: whether the ranks may have made connections meanwhile.
    """
    everything = [event for own in events.values() for event in own]
    largest: dict[tuple[str, int], int] = defaultdict(int)  # contribution to each collective
    for event in everything:
        if event.kind == "collective":
            largest[event.comm, event.number] = max(largest[event.comm, event.number], event.bytes)
    ranks = len(after)
    for rank, own in events.items():
        collectives = [event for event in own if event.kind == "collective"]
        together = 2 * ranks * sum(largest[event.comm, event.number] for event in collectives)
        out, into = (now - then for now, then in zip(after[rank], before[rank], strict=True))
        received = _payload(own, "recv", rank)
        if into < received:
            return rank, f"the trace tells of {received:,} bytes received; {into:,} came over its link"
        sent = _payload(own, "send", rank)
        messages = len(own) - len(collectives) + 2 * ranks * len(collectives)
        beside = (_JOINING if joining else _CALL) * ranks + _EACH * messages + _SHARE * (received + sent + together)
        if out > beside + sent + together:
            return rank, f"the trace tells of {sent:,} bytes sent; {out:,} left over its link"
    return None


def _payload(events: Iterable[Event], kind: str, rank: int) -> int:
    """Bytes of messages from or to other ranks that came to their end."""
    return sum(e.bytes for e in events if e.kind == kind and e.peer != rank and e.end < float("inf"))
