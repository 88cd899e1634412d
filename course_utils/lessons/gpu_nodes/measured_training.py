"""Measured on the processes of a training: all-reduces of several sizes, and steps with bfloat16 or the compiler."""

import time
from collections.abc import Callable, Mapping, Sequence

import torch
import torch.distributed as dist

from course_utils.lessons.gpu_nodes.launch import Group, process_group
from course_utils.lessons.gpu_nodes.resumable_training import network, replica, train_step
from course_utils.lessons.gpu_nodes.training_settings import Settings
from course_utils.measuring import by_turns

Taken = dict[str, list[list[float]]]
"""Operation → for each size the seconds of all runs."""


def collective_seconds(
    sizes: Sequence[int],
    operations: Sequence[str] = ("all_reduce",),
    runs: int = 5,
    warm_ups: int = 2,
    calls: int = 1,
) -> tuple[str, Taken]:
    """Time collectives on vectors of this many bytes, over NCCL or gloo as `process_group` chooses.

    A run begins at a barrier and ends when the slowest rank has its result; that time is the same on all ranks.

    Args:
        sizes: bytes of the whole vector, as nccl-tests count: what each rank has at the end of an all-gather, or at the
            beginning of a reduce-scatter. Filled up so that each rank has as many numbers.
        operations: "all_reduce", "all_gather", "reduce_scatter".
        warm_ups: calls before each size that do not count.
        calls: one right after the other in a run, whose time is their mean.

    Returns:
        the backend, and the seconds.

    Source: NVIDIA, nccl-tests, doc/PERFORMANCE.md.
    """
    with process_group() as group:
        taken: Taken = {}
        for operation in operations:
            taken[operation] = []
            for size in sizes:
                call = _collective(operation, size, group)
                for _ in range(warm_ups):
                    call()
                taken[operation].append([_one_run(call, calls, group.device) for _ in range(runs)])
        return group.backend, taken


def _collective(operation: str, size: int, group: Group) -> Callable[[], object]:
    """A function that does it once, on vectors that are made now; it has been tried, and gives the right numbers."""
    own = -(-size // (4 * group.world_size))  # numbers of each rank, of 4 bytes
    whole, part = torch.zeros(own * group.world_size, device=group.device), torch.zeros(own, device=group.device)
    calls = {
        "all_reduce": lambda: dist.all_reduce(whole, group=group.gradients),
        "all_gather": lambda: dist.all_gather_single(whole, part, group=group.gradients),
        "reduce_scatter": lambda: dist.reduce_scatter_single(part, whole, group=group.gradients),
    }
    call = calls[operation]
    whole.fill_(1), part.fill_(1)
    call()
    result, due = (
        (part if operation == "reduce_scatter" else whole),
        (1 if operation == "all_gather" else group.world_size),
    )
    if not bool((result == due).all()):
        raise ValueError(f"the {operation} does not give what it should")
    whole.zero_(), part.zero_()  # so that sums stay numbers however often it is called
    return call


def _one_run(call: Callable[[], object], calls: int, device: torch.device) -> float:
    """Seconds of a call, the mean of this many, on the slowest rank."""
    _wait_for(device)
    dist.barrier()
    began = time.perf_counter()
    for _ in range(calls):
        call()
    _wait_for(device)
    seconds = torch.tensor((time.perf_counter() - began) / calls, dtype=torch.float64)
    dist.all_reduce(seconds, op=dist.ReduceOp.MAX)
    return seconds.item()


def step_seconds(ways: Mapping[str, Settings], runs: int = 15) -> tuple[dict[str, float], dict[str, list[float]]]:
    """Time training steps of several settings by turns, A B A B …, on a batch that each rank makes up.

    Returns:
        the seconds of the first step, in which kernels are made, and those of all others.
    """
    with process_group() as group:
        steps = {name: _stepper(settings, group) for name, settings in ways.items()}
        first = {name: step() for name, step in steps.items()}
        for step in steps.values():
            step()
        return first, by_turns(steps, runs)


def _stepper(settings: Settings, group: Group) -> Callable[[], float]:
    """A function that takes one step and says how long it took."""
    model = network(settings).to(group.device)
    module = replica(model, settings, group)
    optimizer = torch.optim.SGD(model.parameters(), settings.rate, settings.momentum)
    x = torch.rand(settings.batch_size // group.world_size, 64, device=group.device)
    y = torch.arange(len(x), device=group.device) % 10

    def step() -> float:
        _wait_for(group.device)
        began = time.perf_counter()
        train_step(module, optimizer, x, y, settings)
        _wait_for(group.device)
        return time.perf_counter() - began

    return step


def _wait_for(device: torch.device) -> None:
    """Return when the GPU has done all that was asked of it."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
