"""Links between the boxes of a submission's ranks, whose bytes the kernel counts where no rank can reach the counters.

Each rank's box lies in a network of its own, with a cable to every other. What the ranks' traces say is held against
the cables: see `disagreement`.
"""

import functools
import os
import shlex
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from course_utils import system
from course_utils.errors import CourseError
from course_utils.ranks.links import network
from course_utils.ranks.processes.launch_ranks import mpi_library
from course_utils.trace.events import Event

_READY = "ready"
Carried = dict[tuple[int, int], int]
"""Bytes that have gone over a cable: by the rank that sent, and the one to which it leads."""
_CALL, _JOINING = 3_000, 16_000
"""Bytes that a cable may carry beside all messages: in the meeting before a call, and while ranks connect."""
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
        self._folder, self._ranks = folder, ranks
        self._inside: list[int] = []
        wait = ["sh", "-c", f"echo {_READY}; exec cat"]
        command = network.beside_nodes(_setup(ranks, folder), folder, wait, as_root=os.geteuid() == 0)
        self._keeper = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self._keeper.stdout
        if self._keeper.stdout.readline().strip() != _READY:
            _, told = self._keeper.communicate()
            raise CourseError(f"no networks for the boxes: {(told.strip() or 'no reason given').splitlines()[-1]}")

    def beside(self, rank: int) -> list[str]:
        """What must stand before a command that is to run in the rank's network."""
        keeper = str(self._keeper.pid)
        # Root of its own namespace is who started it: nothing of the credentials needs to change.
        user = [] if os.geteuid() == 0 else ["--user", "--preserve-credentials"]
        return ["nsenter", "--target", keeper, *user, f"--net=/proc/{keeper}/root{self._folder}/{rank}"]

    def count_for(self, processes: Iterable[int]) -> None:
        """Read the counters where these processes are: for each rank one in its network, which it does not command."""
        self._inside = list(processes)

    def carried(self) -> Carried:
        """What every cable has carried so far.

        Raises:
            OSError: a box has ended.
        """
        found: Carried = {}
        for rank, process in enumerate(self._inside):
            counted = system.interfaces(process)
            for peer in range(self._ranks):
                if peer != rank:
                    found[rank, peer] = counted[_cable(peer)][0]
        return found

    def address(self, rank: int) -> str:
        """The rank's own."""
        return network.address(rank)

    def close(self) -> None:
        """Take the cables away, when nobody is left in the boxes."""
        self._keeper.kill()
        self._keeper.communicate()


def _cable(peer: int) -> str:
    return f"to{peer}"


def _setup(ranks: int, folder: Path) -> list[str]:
    """Lines of shell that make a network for each rank, with an address, and a cable from each to each other."""
    names = [shlex.quote(str(folder / str(rank))) for rank in range(ranks)]
    lines = [line for name in names for line in network.new_node(name)]
    cables = [
        f"link add {_cable(b)} netns {names[a]} type veth peer name {_cable(a)} netns {names[b]}"
        for a in range(ranks)
        for b in range(a + 1, ranks)
    ]
    lines += [_in_one_go("ip -batch -", cables)]
    for rank, name in enumerate(names):
        inside = ["link set lo up", "link add eth0 type bridge", f"addr add {network.address(rank)}/24 dev eth0"]
        inside += ["link set eth0 addrgenmode none up"]
        for cable in (_cable(peer) for peer in range(ranks) if peer != rank):
            inside += [f"link set {cable} addrgenmode none master eth0 up"]
            inside += [f"link set {cable} type bridge_slave isolated on"]  # nothing goes on from one peer to another
        lines += [_in_one_go(f"nsenter --net={name} ip -batch -", inside)]
    return lines


def _in_one_go(command: str, lines: Sequence[str]) -> str:
    return "\n".join([f"{command} <<'end'", *lines, "end"])


@functools.cache
def obstacle() -> str | None:
    """Why boxes can have no counted links here; None where they can."""
    if "MPICH" not in (library := mpi_library()):
        return f"{library} joins its ranks in another way than MPICH."
    return network.obstacle()


def disagreement(
    events: Mapping[int, Sequence[Event]], before: Carried, after: Carried, joining: bool
) -> tuple[int, str] | None:
    """The rank whose trace cannot be true, and why; None where every cable has carried what the traces say.

    Args:
        events: by rank, what its trace says.
        before, after: what each cable had carried.
        joining: whether the ranks may have made connections meanwhile.
    """
    ranks = 1 + max(rank for rank, _ in after)
    largest: dict[tuple[str, int], int] = defaultdict(int)  # contribution to each collective
    told: dict[tuple[str, int, int], int] = defaultdict(int)  # bytes, by kind, rank and peer
    counts: dict[tuple[int, int], int] = defaultdict(int)  # messages, by rank and peer
    for rank, own in events.items():
        for event in own:
            if event.kind == "collective":
                largest[event.comm, event.number] = max(largest[event.comm, event.number], event.bytes)
            elif event.peer is not None and event.end < float("inf"):
                told[event.kind, rank, event.peer] += event.bytes
                counts[rank, event.peer] += 1
    for rank, own in events.items():
        collectives = [event for event in own if event.kind == "collective"]
        together = 2 * ranks * sum(largest[event.comm, event.number] for event in collectives)
        beside = (_JOINING if joining else _CALL) + _EACH * 2 * ranks * len(collectives)
        for peer in set(range(ranks)) - {rank}:
            carried = after[rank, peer] - before[rank, peer]
            sent, received = told["send", rank, peer], told["recv", rank, peer]
            came = after[peer, rank] - before[peer, rank]
            if came < received:
                return rank, f"the trace tells of {received:,} bytes from rank {peer}; {came:,} came over the link"
            most = beside + _EACH * counts[rank, peer] + _SHARE * (received + sent + together) + sent + together
            if carried > most:
                return rank, f"the trace tells of {sent:,} bytes to rank {peer}; {carried:,} left over the link"
    return None
