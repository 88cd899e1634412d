"""Starting and stopping ranks many times in a row: what fails, and what is left behind."""

import os
import tempfile
import time
from pathlib import Path

import course_utils as course
from course_utils import settings, system
from course_utils.ranks.processes.ranks_folder import RanksFolder
from workshop.bench.ranks import add_ones
from workshop.bench.rows import Row, seconds_row

RANKS = 4
STARTS_PER_RUN = 20  # five runs, the default, make a hundred


def run(runs: int) -> list[Row]:
    """Start, use and stop ranks `runs` × `STARTS_PER_RUN` times, in a runtime folder of their own."""
    seconds, failures, leftovers = [], 0, 0
    with tempfile.TemporaryDirectory(prefix="course-bench-") as runtime, settings.RUNTIME.temporarily(runtime):
        for _ in range(runs * STARTS_PER_RUN):
            begin = time.perf_counter()
            processes, memory, well = start_and_stop()
            seconds.append(time.perf_counter() - begin)
            failures += not well
            leftovers += len(processes) + len(memory & system.shared_names())
        servers = [RanksFolder(folder) for folder in Path(runtime).iterdir()]
        leftovers += max(len(servers) - 1, 0)  # the fork server stays as long as this process wants it
        for server in servers:
            server.leave()
        leftovers += len(os.listdir(runtime)) + sum(len(server.processes()) for server in servers)
    return [
        Row("starts", "failures", failures, "", "lower", 0, 0.0, len(seconds)),
        Row("starts", "processes, files and shared memory left", leftovers, "", "lower", 0, 0.0, len(seconds)),
        seconds_row("starts", "start, one all-reduce and stop", seconds),
    ]


def start_and_stop() -> tuple[list[int], set[str], bool]:
    """The processes that outlived the ranks, the names they had in shared memory, and whether their sum was right."""
    ranks = course.start(RANKS)
    folder: RanksFolder = ranks.connection.folder
    memory = folder.shared_memory()
    well = ranks.run(add_ones).results == [RANKS] * RANKS
    ranks.stop()
    return [pid for pid in folder.processes() if system.started_at(pid)], memory, well
