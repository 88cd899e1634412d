"""What ranks need, tried out: they start, send, add up with torch and send over a link; torch computes on the GPUs.

Each proof gives back what it found, or raises what the learner must read. Its ranks are not those of any notebook.
"""

import contextlib
import json
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from course_utils.machine import ranks_python
from course_utils.progress_bar import ProgressBar
from course_utils.ranks.links.network import EmulatedNetwork
from course_utils.ranks.start import start_separate_ranks

if TYPE_CHECKING:
    from mpi4py import MPI

    from course_utils.ranks.ranks import Ranks

LINK = 100e6
"""Bits per second of the link that is tried."""
MESSAGE_BYTES = 3_000_000
MESSAGES = 4
"""Over the link they take about a second together."""
GPU_SECONDS = 60.0
"""So long torch may look for GPUs; on a cold disk its import alone takes half of it."""
_ASK_TORCH = """
import json, torch
names = []
for number in range(torch.cuda.device_count()):
    torch.ones(2, device=f"cuda:{number}").sum().item()
    names.append(torch.cuda.get_device_name(number))
print(json.dumps({"version": torch.__version__, "cuda": torch.version.cuda, "names": names}))
"""


@contextlib.contextmanager
def two_ranks(network: EmulatedNetwork | None = None) -> Iterator["Ranks"]:
    """Two ranks that end with the block.

    Raises:
        CourseError: they do not start; the text has the last lines that they wrote.
    """
    ranks = start_separate_ranks(2, network)
    try:
        yield ranks
    finally:
        ranks.stop()


def there_and_back(comm: "MPI.Intracomm", size: int, times: int) -> float:
    """The seconds of the quickest message of `size` bytes from rank 0 to rank 1, its receipt included.

    Raises:
        ValueError: what rank 1 says it got is not what rank 0 sent.
    """
    sent, best = bytes(range(256)) * (size // 256), float("inf")
    for _ in range(times):
        comm.Barrier()
        began = time.perf_counter()
        if comm.rank == 0:
            comm.Send(sent, dest=1)
            if comm.recv(source=1) != sum(sent[:256]):
                raise ValueError("rank 1 did not receive what rank 0 sent")
        else:
            received = bytearray(len(sent))
            comm.Recv(received, source=0)
            comm.send(sum(received[-256:]), dest=0)
        best = min(best, time.perf_counter() - began)
    return best


def add_over_gloo() -> float:
    """All-reduce rank + 1 by torch's gloo; 3.0 on two ranks."""
    import torch
    import torch.distributed as dist

    vector = torch.tensor([dist.get_rank() + 1.0])
    dist.all_reduce(vector)
    return vector.item()


def bits_per_second(ranks: "Ranks") -> float:
    """What the link between two ranks carries, in the quickest of some messages."""
    return 8 * MESSAGE_BYTES / ranks.run(there_and_back, MESSAGE_BYTES, MESSAGES).results[0]


def carried_by_a_link() -> tuple[float, bool]:
    """Shape a link and send over it for about a second: bits per second, and whether that is what was asked for."""
    with two_ranks(EmulatedNetwork((round(LINK),) * 2)) as ranks:
        carried = bits_per_second(ranks)
    return carried, 0.8 < carried / LINK < 1.05


@dataclass(frozen=True)
class TorchSeen:
    """What a torch in a process of its own found.

    Attributes:
        version: of torch, such as "2.13.0+cpu".
        cuda: the version of CUDA that it is built for; None for a build for processors alone.
        names: of the GPUs on which it has computed.
        error: the last line that it wrote, where it failed; or that it said nothing in time: then `silent` is true.
    """

    version: str = ""
    cuda: str | None = None
    names: tuple[str, ...] = ()
    error: str = ""
    silent: bool = False


def ask_torch() -> TorchSeen:
    """Import torch, in the Python of ranks and in a process of its own, and compute on each GPU that it sees."""
    command = [ranks_python(), "-c", _ASK_TORCH]
    with (
        ProgressBar("torch is looking for GPUs") as bar,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process,
    ):
        until = time.monotonic() + GPU_SECONDS
        while True:
            try:
                output, complained = process.communicate(timeout=0.1)
                break
            except subprocess.TimeoutExpired:
                bar.refresh()
                if time.monotonic() > until:
                    process.kill()
                    return TorchSeen(error=f"no answer after {GPU_SECONDS:.0f} s", silent=True)
    if process.returncode:
        return TorchSeen(error=(complained.strip() or "no reason given").splitlines()[-1])
    found = json.loads(output.splitlines()[-1])
    return TorchSeen(found["version"], found["cuda"], tuple(found["names"]))
