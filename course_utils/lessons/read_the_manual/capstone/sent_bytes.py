"""What the kernel has counted for this rank: bytes that left it."""

import contextlib
import os
import socket
import stat
import time
from collections.abc import Iterator

from course_utils import system
from course_utils.trace.events import bytes_sent
from course_utils.trace.kernel_counters import node_bytes
from course_utils.trace.recorder import recorder

LINK, SOCKETS, TRACE = "the node's interface", "the rank's sockets", "the rank's trace"


class SentBytes:
    """Counts bytes from its making on.

    Attributes:
        where: `LINK` where the rank is a node behind a link: everything that left it, headers included. `SOCKETS` where
            the ranks share a machine: the payload of the TCP connections that are open when it is asked, among them
            all of gloo's; what went through one that was closed before is not counted. `TRACE` where the system counts
            nothing of a socket's: what the rank has put into its messages and collectives.
    """

    def __init__(self) -> None:
        before = node_bytes()
        self.where = LINK if before else SOCKETS if system.LINUX else TRACE
        self._before = self._counted()

    def _counted(self) -> dict[int, int]:
        if self.where == TRACE:
            return {0: bytes_sent(recorder.events, recorder.rank)}
        return sockets() if self.where == SOCKETS else {0: _of_the_link()}

    def so_far(self) -> int:
        """Bytes since then."""
        counted = self._counted()
        return sum(sent - self._before.get(number, 0) for number, sent in counted.items())


def _of_the_link() -> int:
    found = node_bytes()
    if found is None:
        raise RuntimeError("the interface of this rank's node is gone, and with it the count of its bytes")
    return found[0]


def sockets() -> dict[int, int]:
    """The number of each open TCP connection of this process → bytes that it has sent so far."""
    found: dict[int, int] = {}
    for number, connection in _connections():
        sent = system.sent_by(connection)
        if sent is not None:
            found[number] = sent
    return found


def wait_until_sent(patience: float = 30.0) -> None:
    """Wait until all that this process has written into open TCP connections has arrived.

    Args:
        patience: seconds after which it is waited for no longer.
    """
    end = time.monotonic() + patience
    while time.monotonic() < end and any(system.queued_in(connection) for _, connection in _connections()):
        time.sleep(0.005)


def _connections() -> Iterator[tuple[int, socket.socket]]:
    """Each open TCP connection of this process, by its number; it is closed again when the next is asked for."""
    for descriptor in system.open_files():
        with contextlib.suppress(OSError):  # closed by now
            status = os.fstat(descriptor)
            if not stat.S_ISSOCK(status.st_mode):
                continue
            with socket.socket(fileno=os.dup(descriptor)) as connection:
                if connection.family in (socket.AF_INET, socket.AF_INET6) and connection.type == socket.SOCK_STREAM:
                    yield status.st_ino, connection
