"""Counting what is in memory: the tensors themselves, each piece of storage once.

Nothing is asked of the operating system: what a process holds besides, such as libraries and memory that is kept for
later, is not counted, nor are tensors that live for one operation.
"""

import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import nn
from torch.autograd.graph import saved_tensors_hooks

from course_utils.lessons.model_parallel.memory_parts import Memory


class Saved:
    """Bytes that are saved for the backward pass: now, and at most until now."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self._holders: Counter[int] = Counter()  # of each piece of storage, by its address
        self._bytes: dict[int, int] = {}

    def add(self, tensor: torch.Tensor, holder: object) -> None:
        """Count a tensor's storage, unless it is counted, until the holder is gone."""
        storage = tensor.untyped_storage()
        address = storage.data_ptr()
        if not self._holders[address]:
            self._bytes[address] = storage.nbytes()
            self.now += self._bytes[address]
            self.most = max(self.most, self.now)
        self._holders[address] += 1
        weakref.finalize(holder, self._release, address).atexit = False

    def _release(self, address: int) -> None:
        self._holders[address] -= 1
        if not self._holders[address]:
            self.now -= self._bytes.pop(address)


_counting: list[Saved] = []
"""Who counts at the moment, the innermost last."""


class _Holder:
    """What autograd keeps in place of a tensor; dies when it is no longer needed."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor


@contextmanager
def counting_saved(model: nn.Module) -> Iterator[Saved]:
    """Count what is saved inside the `with`. The model's parameters, which are there anyway, are left out.

    Blocks that are computed again in the backward pass are counted too, where `checkpointed` does it.
    """
    saved = Saved()

    def pack(tensor: torch.Tensor) -> _Holder | torch.Tensor:
        if tensor.untyped_storage().data_ptr() in addresses(model.parameters()):
            return tensor
        holder = _Holder(tensor)
        saved.add(tensor, holder)
        return holder

    def unpack(kept: _Holder | torch.Tensor) -> torch.Tensor:
        return kept.tensor if isinstance(kept, _Holder) else kept

    _counting.append(saved)
    try:
        with saved_tensors_hooks(pack, unpack):
            yield saved
    finally:
        _counting.pop()


@contextmanager
def counting_again(block: nn.Module) -> Iterator[None]:
    """Count also what a checkpointed block saves when it is computed again.

    Then `torch.utils.checkpoint` takes what is saved, and hooks from outside see nothing. Here they come first, and
    hand it on.
    """
    handed_to = torch._C._autograd._top_saved_tensors_default_hooks(False)
    if not _counting or handed_to is None:
        yield
        return
    known, (pack_below, unpack) = addresses(block.parameters()), handed_to

    def pack(tensor: torch.Tensor) -> object:
        kept = tensor.detach()
        if kept.untyped_storage().data_ptr() not in known:
            _counting[-1].add(kept, kept)
        return pack_below(kept)

    with saved_tensors_hooks(pack, unpack):
        yield


def own_part(tensor: torch.Tensor) -> torch.Tensor:
    """What this rank has of a tensor; of a DTensor its shard."""
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


def addresses(tensors: Iterable[torch.Tensor]) -> set[int]:
    """Where the tensors' storages lie."""
    return {own_part(tensor).untyped_storage().data_ptr() for tensor in tensors}


def bytes_of(tensors: Iterable[torch.Tensor], without: Iterable[torch.Tensor] = ()) -> int:
    """Bytes of the tensors on this rank, each piece of storage once.

    Args:
        without: tensors whose storages are not counted.
    """
    storages = [own_part(tensor.detach()).untyped_storage() for tensor in tensors]
    left_out = addresses(without)
    return sum(
        {storage.data_ptr(): storage.nbytes() for storage in storages if storage.data_ptr() not in left_out}.values()
    )


def measured_memory(
    model: nn.Module,
    optimizer: torch.optim.Optimizer | Iterable[torch.Tensor],
    step: Callable[[], object],
) -> Memory:
    """Do one step, and count what this rank keeps: the fields of `training_memory`, from the tensors themselves.

    Args:
        model: this rank's part.
        optimizer: whose state is counted, and parameters of its own, if it has any; or the tensors of a state.
        step: a forward and a backward pass, and a step of the optimizer. Gradients are there afterwards.
    """
    with counting_saved(model) as saved:
        step()
    parameters = list(model.parameters())
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    state = state_of(optimizer) if isinstance(optimizer, torch.optim.Optimizer) else list(optimizer)
    return Memory(bytes_of(parameters), bytes_of(gradients), bytes_of(state, without=parameters), saved.most)


def state_of(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    """The tensors that an optimizer works with: its state, and what it takes for parameters."""
    state = [value for kept in optimizer.state.values() for value in kept.values() if isinstance(value, torch.Tensor)]
    return state + [parameter for group in optimizer.param_groups for parameter in group["params"]]
