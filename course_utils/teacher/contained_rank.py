"""A contained rank: it serves one submission, and keeps its limits from the beginning.

Started under mpiexec as `python -m course_utils.teacher.contained_rank PLACE LIMITS`: the socket to the grader, and the
limits as JSON. Two processes: the rank, and one that waits for its end and tells the grader how it came to it.
"""

import json
import os
import resource
import signal
import socket
import sys

from course_utils.teacher.wire import ENDED, HEADER


def main(address: str, limits: dict[str, int]) -> None:
    """Serve calls until the grader closes the line."""
    os.umask(0o077)
    line = socket.socket(socket.AF_UNIX)
    line.connect(address)
    rank = os.fork()
    if rank:
        _tell_its_end(line, rank)
    for name, wanted in limits.items():
        _limit(getattr(resource, name), wanted)
    from course_utils.teacher.rank_service import serve

    serve(line)


def _limit(which: int, wanted: int) -> None:
    """Set the soft and the hard limit, never above those that are in force."""
    hard = resource.getrlimit(which)[1]
    lowest = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(which, (lowest, lowest))


def _tell_its_end(line: socket.socket, rank: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _, ended = os.waitpid(rank, 0)
    status = os.waitstatus_to_exitcode(ended)
    status = status if status >= 0 else 128 - status
    line.sendall(HEADER.pack(ENDED, 1) + bytes([status & 255]))
    os._exit(status & 255)


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
