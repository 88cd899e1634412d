"""A contained rank. It serves one submission, speaks with the grader alone, and keeps its limits from the beginning.

Started under mpiexec as `python -m course_utils.teacher.contained_rank FOLDER`.
"""

import json
import os
import resource
import signal
import socket
import sys
from pathlib import Path

from mpi4py import MPI

from course_utils.ranks.engine import calls, engine, guard_hook
from course_utils.ranks.engine.reply import Raised, Reply
from course_utils.ranks.processes.ranks_folder import RanksFolder
from course_utils.teacher import wire
from course_utils.teacher.copies import hide_in_this_process
from course_utils.teacher.guard import Guard
from course_utils.trace.activity import ActivityFile
from course_utils.trace.recorder import recorder


def limit_this_process(limits: dict[str, int]) -> None:
    """Set soft and hard limits, never above those that are in force."""
    for name, wanted in limits.items():
        which = getattr(resource, name)
        hard = resource.getrlimit(which)[1]
        lowest = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(which, (lowest, lowest))


def _join(path: Path) -> None:
    """What `engine.main` does, but for the engine: traced communicators, an activity file, harmless interrupts."""
    world = MPI.COMM_WORLD
    engine.folder = RanksFolder(path)
    recorder.rank = world.rank
    recorder.activity = ActivityFile(engine.folder.activity_file(world.rank))
    os.environ["COURSE_RANK"] = str(world.rank)
    engine.communicators = engine.Communicators()
    engine.world = engine.TracedComm(engine.communicators.get(world.size, 0))
    engine.trace_mpi(engine.world)
    signal.signal(signal.SIGINT, engine._on_interrupt)


def main(path: Path) -> None:
    """Serve calls until the grader closes the line."""
    os.umask(0o077)
    line = socket.socket(socket.AF_UNIX)
    line.connect(str(path / "line"))
    settings = json.loads((path / "settings.json").read_text())
    _join(path)
    hide_in_this_process(path / "copies")
    limit_this_process(settings["limits"])
    guard = Guard(path, settings["hidden"])
    guard_hook.hooks.append(guard.arm)
    calls.to_bytes = lambda reply: reply  # it leaves this process by `wire.pack`, below
    hello = {"rank": engine.world.rank, "shell": os.getppid()}
    line.sendall(json.dumps(hello).encode() + b"\n")
    while True:
        number, size = wire.HEADER.unpack(_read(line, wire.HEADER.size))
        reply = _call(_read(line, size))
        guard.look_back()
        data = _packed(reply, guard.offences)
        line.sendall(wire.HEADER.pack(number, len(data)) + data)


def _call(payload: bytes) -> Reply:
    try:
        return calls.call(payload)
    except BaseException as error:  # the submission reached beyond its own call
        return Reply(engine.world.rank, "raised", error=Raised(type(error).__name__, "outside the answer"))


def _packed(reply: Reply, offences: list[str]) -> bytes:
    try:
        return wire.pack((reply, offences))
    except Exception as error:
        problem = Raised(type(error).__name__, "the result cannot be sent to the grader")
        return wire.pack((Reply(reply.rank, "raised", error=problem), offences))


def _read(line: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        piece = line.recv(min(size - len(data), 1 << 20))
        if not piece:
            os._exit(0)
        data += piece
    return bytes(data)


if __name__ == "__main__":
    # `engine` takes its place under the name by which `calls` knows it; this module has no other name.
    main(Path(sys.argv[1]))
