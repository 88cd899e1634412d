"""The links between running ranks, measured with the messages that a strategy sends: exchanges and all-reduces."""

import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.distributed as dist

from course_utils.lessons.allreduce.cost_model import Network
from course_utils.lessons.allreduce.network_fit import fit_network
from course_utils.lessons.hardware.machine_rates import using_threads
from course_utils.lessons.strategy_search.costs.device_topology import DeviceTopology, Link
from course_utils.lessons.strategy_search.program.tensor_moves import Spread, exchange
from course_utils.trace.torch.torch_distributed import unrecorded

if TYPE_CHECKING:
    from course_utils.ranks.ranks import Ranks

SIZES = (64, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20)
"""Bytes of the messages. Further bytes of a longer one take as long as those between the last two."""
REPEATS = 5
_SHORT = 64 << 10
_REST = 0.003
"""Seconds of computing between two messages, as in training: a link that has rested lets some bytes through at once,
and a processor that has rested takes its time to wake."""


def measured_topology(ranks: "Ranks", memory: Sequence[int] = (), repeats: int = REPEATS) -> DeviceTopology:
    """The running ranks as devices, with their links as they are.

    Measured between ranks 0 and 1, one way and both ways at once, and among the first 2, 3, … ranks as an all-reduce;
    links between other ranks are taken to be like it. For each the two lines of lesson 5, one for
    short messages and one for long ones.

    Args:
        memory: bytes that each rank may use for training; empty: it does not matter.
        repeats: the median of this many counts; of three times as many where messages are short.
    """
    names = tuple(f"rank {rank}" for rank in range(ranks.world_size))
    if ranks.world_size == 1:
        return DeviceTopology(names, tuple(memory), None)
    measured = ranks.run(time_links, SIZES, repeats, backend="gloo").results
    lines = {what: _line([rank[what] for rank in measured]) for what in measured[0]}
    link = Link(lines["one way"], lines["both ways"])
    message = 0.0
    if ranks.world_size > 2:  # with everybody at once: what the further messages cost, beside their bytes
        further = lines["all at once"].message_seconds(SIZES[0]) - lines["both ways"].message_seconds(SIZES[0])
        message = max(0.0, further) / (2 * ranks.world_size - 4)
    sums = {size: lines[f"sum of {size}"] for size in range(2, ranks.world_size + 1)}
    return DeviceTopology(names, tuple(memory), link, sums, message)


def _line(times: list[list[list[float]]]) -> Network:
    """A line through the medians of each size; a message ends when its last rank has it.

    Args:
        times: of each rank, for each size, the seconds.
    """
    medians = [statistics.median(map(max, zip(*each, strict=True))) for each in zip(*times, strict=True)]
    return fit_network(SIZES, np.maximum.accumulate(medians), segments=2)


# --- on the ranks ---------------------------------------------------------------------------------------------------


def time_links(sizes: Sequence[int], repeats: int) -> dict[str, list[list[float]]]:
    """Seconds on this rank: for each kind of message and each of the sizes, of `repeats` that begin together."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    everybody = tuple(range(world_size))
    ways = {
        "one way": (Spread((1,), (0,)), Spread((1,), (1,))),
        "both ways": (Spread((2,), (0, 1)), Spread((2,), (1, 0))),
    }
    if world_size > 2:
        ways["all at once"] = (Spread((world_size,), everybody), Spread((1,), (everybody,)))
    groups = {size: dist.new_group(range(size)) for size in range(2, world_size)} | {world_size: None}
    found: dict[str, list[list[float]]] = {}
    with using_threads(1), unrecorded():
        for name, (have, need) in ways.items():
            for nbytes in sizes:
                shape = (len(have.ranks) * nbytes // 4,)
                x = torch.zeros(nbytes // 4 if rank in have.ranks else 0, requires_grad=True)
                there_and_back = _timed(partial(_there_and_back, x, shape, have, need), _often(nbytes, repeats))
                found.setdefault(name, []).append([seconds / 2 for seconds in there_and_back])
        for size, group in groups.items():
            for nbytes in sizes:
                gradient = torch.zeros(nbytes // 4)
                work = partial(_sum, gradient, group) if rank < size else int
                found.setdefault(f"sum of {size}", []).append(_timed(work, _often(nbytes, repeats)))
    return found


def _there_and_back(x: torch.Tensor, shape: tuple[int], have: Spread, need: Spread) -> None:
    """An exchange, and that of its gradients in the backward pass."""
    made = exchange(x, shape, have, need)
    made.backward(torch.ones_like(made))


def _sum(gradient: torch.Tensor, group: dist.ProcessGroup | None) -> None:
    """Of gradients, which are first put into one vector."""
    dist.all_reduce(torch.cat([gradient, gradient[:0]]), group=group)


def _often(nbytes: int, repeats: int) -> int:
    return repeats * (3 if nbytes <= _SHORT else 1)


def _timed(work: Callable[[], object], repeats: int) -> list[float]:
    """The first, which finds buffers cold, does not count."""
    seconds = []
    for _ in range(repeats + 1):
        until = time.perf_counter() + _REST
        while time.perf_counter() < until:
            pass
        dist.barrier()
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return seconds[1:]
