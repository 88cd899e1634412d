"""Programs that strategies became, run on ranks: their losses, their gradients, and the seconds of a step."""

import contextlib
import inspect
import time
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType

import torch
import torch.distributed as dist
from torch import nn

from course_utils.training import Sgd


@contextlib.contextmanager
def unrecorded() -> Iterator[None]:
    """Inside, messages are torch's own: recording one takes a thread, and so about a millisecond."""
    recorded = {name: getattr(dist, name) for name in ("all_reduce", "barrier", "isend", "irecv")}
    for name, one in recorded.items():
        setattr(dist, name, inspect.unwrap(one))
    try:
        yield
    finally:
        for name, one in recorded.items():
            setattr(dist, name, one)


def loaded(text: str) -> ModuleType:
    """A program as a module, without its being run."""
    module = ModuleType("strategy_program")
    exec(compile(text, "strategy_program.py", "exec"), module.__dict__)
    return module


def parallel_model(text: str, model: nn.Module) -> nn.Module:
    """One rank's part of the model, as a program cuts it."""
    module = loaded(text)
    made = [one for name, one in vars(module).items() if name.startswith("Parallel")]
    return made[0](model)


def gradients(part: nn.Module, model: nn.Module) -> dict[str, tuple[slice, torch.Tensor]]:
    """For each parameter of the model that this rank has a part of: which rows of it, and their gradient."""
    names = {id(one): name for name, one in model.named_parameters()}
    found = {}
    for parameter in part.parameters():
        whole = getattr(parameter, "whole", parameter)
        rows = getattr(parameter, "rows", slice(0, len(whole)))
        found[names[id(whole)]] = rows, parameter.grad
    return found


def steps(
    texts: Sequence[str],
    build: Callable[[], nn.Module],
    batch: Callable[[], tuple[torch.Tensor, torch.Tensor]],
    rounds: int,
    warm_up: int = 1,
) -> list[list[float]]:
    """On every rank: the seconds of one training step of each program, again and again by turns.

    A step: forward, backward with the sums of gradients, and the change of the weights. All ranks meet before each.

    Args:
        build, batch: give equal models and batches on all ranks; the programs share one model, whose weights change.
        rounds: that count; `warm_up` rounds go before them.
    """
    model, (inputs, labels) = build(), batch()
    with unrecorded():
        parts = [parallel_model(text, model) for text in texts]
        taken: list[list[float]] = [[] for _ in texts]
        for _ in range(warm_up + rounds):
            for part, seconds in zip(parts, taken, strict=True):
                seconds.append(_step(part, inputs, labels))
        return [seconds[warm_up:] for seconds in taken]


def _step(part: nn.Module, inputs: torch.Tensor, labels: torch.Tensor) -> float:
    optimizer = Sgd(part.parameters(), 1e-3)
    dist.barrier()
    begin = time.perf_counter()
    part(inputs, labels).backward()
    optimizer.step()
    optimizer.zero_grad()
    return time.perf_counter() - begin
