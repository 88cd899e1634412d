"""Programs that take long and are well, which nobody may break off or call stuck: slow transfers, and slow work."""

import contextlib
import fcntl
import io
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import course_utils as course
from course_utils.errors import CourseError
from course_utils.lessons.allreduce.ring import ring_allreduce
from course_utils.lessons.allreduce.tree import tree_allreduce

RANKS = 4
LINK = "10 Mbit/s"
NUMBERS = 16_000_000  # of 4 bytes
SECONDS = 10.0
MINUTE_AND_MORE = 70.0


def ring(comm) -> None:
    """64 MB by the course's ring."""
    ring_allreduce(comm, np.ones(NUMBERS, np.float32))


def tree(comm) -> None:
    """64 MB by the course's tree."""
    tree_allreduce(comm, np.ones(NUMBERS, np.float32))


def mpi(comm) -> None:
    """64 MB by MPI's own all-reduce."""
    comm.Allreduce(np.ones(NUMBERS, np.float32), np.empty(NUMBERS, np.float32))


def gloo() -> None:
    """64 MB by gloo's all-reduce."""
    import torch
    import torch.distributed as dist

    dist.all_reduce(torch.ones(NUMBERS))


def computes(comm) -> None:
    """Rank 0 computes, the others wait for it."""
    until = time.monotonic() + SECONDS
    while comm.rank == 0 and time.monotonic() < until:
        np.linalg.svd(np.ones((50, 50)))
    comm.Barrier()


def sleeps(comm) -> None:
    """Rank 0 sleeps, the others wait for it."""
    if comm.rank == 0:
        time.sleep(SECONDS)
    comm.Barrier()


def waits_for_a_file(comm, path: str) -> None:
    """Each waits until the file is its own."""
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        time.sleep(SECONDS / RANKS)
    comm.Barrier()


def starts_a_process(comm) -> None:
    """Rank 0 waits for another program."""
    if comm.rank == 0:
        subprocess.run([sys.executable, "-c", f"import time; time.sleep({SECONDS})"], check=True)
    comm.Barrier()


def loads_data() -> None:
    """A data loader's workers are slow."""
    import torch
    import torch.distributed as dist
    from torch.utils.data import DataLoader, Dataset

    class Slow(Dataset):
        def __len__(self) -> int:
            return 4

        def __getitem__(self, index: int) -> torch.Tensor:
            time.sleep(SECONDS / 4)
            return torch.ones(3)

    for batch in DataLoader(Slow(), num_workers=1):
        dist.all_reduce(batch)


def validates() -> None:
    """Rank 1 validates for longer than a minute, and the others wait for its gradient."""
    import torch
    import torch.distributed as dist

    until = time.monotonic() + MINUTE_AND_MORE
    while dist.get_rank() == 1 and time.monotonic() < until:
        np.linalg.svd(np.ones((50, 50)))
    total = torch.ones(3)
    dist.all_reduce(total)
    assert total.tolist() == [RANKS] * 3


def sums_in_a_thread() -> None:
    """All ranks sum in a thread, and rank 1 comes to it after more than a minute of work."""
    import torch
    import torch.distributed as dist

    until = time.monotonic() + MINUTE_AND_MORE
    while dist.get_rank() == 1 and time.monotonic() < until:
        np.linalg.svd(np.ones((50, 50)))
    total = torch.ones(3)
    summing = threading.Thread(target=dist.all_reduce, args=(total,))
    summing.start()
    summing.join()
    assert total.tolist() == [RANKS] * 3


BEHIND_LINKS = (ring, tree, mpi, gloo)
AT_WORK = (computes, sleeps, waits_for_a_file, starts_a_process, loads_data, validates, sums_in_a_thread)
WITH_TORCH = (gloo, loads_data, validates, sums_in_a_thread)


def disturbed(say: Callable[[str, str], None]) -> Iterator[bool]:
    """For each of the programs, whether anything was said of it; `say` hears its name and what that was."""
    with tempfile.TemporaryDirectory() as folder:
        for link, programs in ((LINK, BEHIND_LINKS), (None, AT_WORK)):
            ranks = course.start(RANKS, link=link) if link else course.start(RANKS)
            try:
                for program in programs:
                    noise = _disturbance(ranks, program, str(Path(folder) / "lock"))
                    if noise:
                        say(program.__name__, noise)
                    yield bool(noise)
            finally:
                ranks.stop()


def _disturbance(ranks: "course.Ranks", program: Callable, path: str) -> str:
    arguments = (path,) if program is waits_for_a_file else ()
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            ranks.run(program, *arguments, backend="gloo" if program in WITH_TORCH else None)
    except CourseError as error:
        printed.write(str(error))
    return printed.getvalue().strip()
