"""What a contained rank does: join MPI, take calls from the grader's line, and give back replies as data."""

import json
import os
import socket
import sys
from pathlib import Path

from mpi4py import MPI

from course_utils.ranks.engine import calls, notebook_cells
from course_utils.ranks.engine.rank_process import join
from course_utils.ranks.engine.reply import Raised, Reply
from course_utils.ranks.processes.ranks_folder import RanksFolder
from course_utils.teacher.second_record import SecondRecord
from course_utils.teacher.wire import HEADER, pack


def serve(line: socket.socket) -> None:
    """Say which rank this is, and serve calls until the grader closes the line."""
    world = MPI.COMM_WORLD
    process = b"".join(part.to_bytes(4, sys.byteorder) for part in (os.getpid(), os.getuid(), os.getgid()))
    known_by_the_kernel = [(socket.SOL_SOCKET, socket.SCM_CREDENTIALS, process)]
    line.sendmsg([json.dumps({"rank": world.rank}).encode() + b"\n"], known_by_the_kernel)
    _, [memory], _, _ = socket.recv_fds(line, 1, 1)
    join(RanksFolder(Path.home()), memory)
    notebook_cells.stand_in_for_the_notebook()
    record = SecondRecord()
    while True:
        number, size = HEADER.unpack(_read(line, HEADER.size))
        data = _answered(_read(line, size), world.rank, record)
        line.sendall(HEADER.pack(number, len(data)) + data)


def _answered(payload: bytes, rank: int, record: SecondRecord) -> bytes:
    record.begin()
    try:
        reply = record.complete(calls.call(payload, pack=lambda own: own))  # `wire.pack` packs it, below
    except BaseException as error:  # the submission reached beyond its own call
        reply = Reply(rank, "raised", error=Raised(type(error).__name__, "outside the answer"))
    try:
        return pack(reply)
    except Exception as error:
        problem = Raised(type(error).__name__, f"the result cannot be sent to the grader: {error}"[:300])
        return pack(Reply(rank, "raised", error=problem))


def _read(line: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        piece = line.recv(min(size - len(data), 1 << 20))
        if not piece:
            os._exit(0)
        data += piece
    return bytes(data)
