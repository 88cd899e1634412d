"""Measured on the processes of a training: an all-reduce, and steps with bfloat16 or the compiler."""

import time
from collections.abc import Callable, Mapping

import torch
import torch.distributed as dist

from course_utils.lessons.gpu_nodes.launch import Group, process_group
from course_utils.lessons.gpu_nodes.resumable_training import network, replica, train_step
from course_utils.lessons.gpu_nodes.settings import Settings
from course_utils.measuring import by_turns


def allreduce_seconds(nbytes: int, runs: int = 5, warm_ups: int = 2) -> tuple[str, list[float]]:
    """Time an all-reduce of a vector of `nbytes`, over NCCL or gloo as `process_group` chooses.

    A run begins at a barrier and ends when the slowest rank has its result; that time is the same on all ranks.

    Args:
        warm_ups: calls that do not count; the first one is looked at.

    Returns:
        the backend, and the seconds of all runs.

    Raises:
        ValueError: the sum is wrong.
    """
    with process_group() as group:
        vector = torch.ones(nbytes // 4, device=group.device)
        dist.all_reduce(vector, group=group.gradients)
        if not bool((vector == group.world_size).all()):
            raise ValueError("the all-reduce does not give what it should")
        vector.zero_()  # so that sums stay numbers however often it is called
        taken = [_one_run(vector, group) for _ in range(warm_ups - 1 + runs)]
        return group.backend, taken[-runs:]


def _one_run(vector: torch.Tensor, group: Group) -> float:
    """Seconds of an all-reduce on the slowest rank."""
    _wait_for(group.device)
    dist.barrier()
    began = time.perf_counter()
    dist.all_reduce(vector, group=group.gradients)
    _wait_for(group.device)
    seconds = torch.tensor(time.perf_counter() - began, dtype=torch.float64)
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
