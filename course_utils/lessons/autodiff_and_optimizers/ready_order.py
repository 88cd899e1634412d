"""When each gradient of a model becomes ready during the backward pass, recorded by torch's own hooks.

The backward pass walks the graph from the loss to the first layer, so gradients become ready one after the other. A
gradient that is ready can be sent while the rest is still being computed, as `DistributedDataParallel` does.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from course_utils.progress_bar import ProgressBar


@dataclass(frozen=True)
class Ready:
    """One gradient that became ready.

    Attributes:
        name: of the parameter, as in `model.named_parameters()`, for example "conv1.weight".
        bytes: of the gradient.
        seconds: since the backward pass began.
    """

    name: str
    bytes: int
    seconds: float


@contextmanager
def watch_gradients(model: nn.Module) -> Iterator[list[Ready]]:
    """Record every gradient of `model` that becomes complete within the block, in a list that grows meanwhile.

    A parameter that is used twice is recorded once for each backward pass, after its last part has been added. Seconds
    count from the beginning of the block. The hooks are removed at its end.

    Source: `torch.Tensor.register_post_accumulate_grad_hook`; Li et al. 2020, "PyTorch Distributed", §3.2.3.
    """
    ready: list[Ready] = []
    begin = time.perf_counter()

    def listen(name: str) -> Callable[[torch.Tensor], None]:
        def hook(parameter: torch.Tensor) -> None:
            ready.append(Ready(name, parameter.grad.nbytes, time.perf_counter() - begin))

        return hook

    trained = [(name, parameter) for name, parameter in model.named_parameters() if parameter.requires_grad]
    handles = [parameter.register_post_accumulate_grad_hook(listen(name)) for name, parameter in trained]
    begin = time.perf_counter()
    try:
        yield ready
    finally:
        for handle in handles:
            handle.remove()


@dataclass(frozen=True)
class BackwardTimes:
    """Several backward passes through one model: which gradient was ready when.

    Attributes:
        names: of the parameters, in the order in which their gradients became ready (the last layer's first).
        bytes: of each gradient, in that order.
        seconds: (passes, parameters), since the pass began.
        ends: (passes,), how long each whole backward pass took.
        forwards: (passes,), how long the forward pass before it took.
    """

    names: tuple[str, ...]
    bytes: tuple[int, ...]
    seconds: np.ndarray
    ends: np.ndarray
    forwards: np.ndarray

    @property
    def median(self) -> np.ndarray:
        """The median of each gradient's seconds, but never less than that of an earlier gradient."""
        return np.maximum.accumulate(np.median(self.seconds, axis=0))

    @property
    def end(self) -> float:
        """The median length of a backward pass, in seconds."""
        return float(np.median(self.ends))


def measure_ready_order(
    model: nn.Module, loss: Callable[[], torch.Tensor], repeats: int = 7, warm_up: int = 2
) -> BackwardTimes:
    """Run forward and backward several times and record when each gradient was ready.

    Args:
        model: in training mode. Its old gradients are lost.
        loss: runs the model forward and returns its loss.
        repeats: the number of passes that count. Before them, there are `warm_up` more.
    """
    passes: list[list[Ready]] = []
    ends, forwards = [], []
    with ProgressBar("timing forward and backward passes") as bar:
        for _ in range(warm_up + repeats):
            bar.refresh()
            model.zero_grad(set_to_none=True)
            begin = time.perf_counter()
            value = loss()
            forwards.append(time.perf_counter() - begin)
            with watch_gradients(model) as ready:
                begin = time.perf_counter()
                value.backward()
                ends.append(time.perf_counter() - begin)
            passes.append(ready)
    names = tuple(gradient.name for gradient in passes[-1])
    sizes = tuple(gradient.bytes for gradient in passes[-1])
    by_name = [{gradient.name: gradient.seconds for gradient in ready} for ready in passes[warm_up:]]
    seconds = np.array([[times[name] for name in names] for times in by_name])
    return BackwardTimes(names, sizes, seconds, np.array(ends[warm_up:]), np.array(forwards[warm_up:]))


def layers(times: BackwardTimes, together: Callable[[str], str] = str) -> list[tuple[str, int, float]]:
    """Return (layer, bytes, median seconds) for each layer, in the order in which the last of its gradients was ready.

    Args:
        together: maps the name of a layer to a name that it may share with others. They then count as one layer.
    """
    found: dict[str, tuple[int, float]] = {}
    for name, size, seconds in zip(times.names, times.bytes, times.median, strict=True):
        layer = together(name.rpartition(".")[0])
        before = found.pop(layer, (0, 0.0))
        found[layer] = (before[0] + size, float(seconds))
    return [(layer, size, seconds) for layer, (size, seconds) in found.items()]
