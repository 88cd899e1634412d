"""What runs on the ranks: a few steps of naive data parallelism as the measure, then the learner's training."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy
from torch.optim.optimizer import register_optimizer_step_pre_hook

from course_utils.lessons.data_parallel.replicas import all_reduce_flat
from course_utils.lessons.read_the_manual.capstone.past_the_links import (
    NOTHING_SHARED,
    NoSocketToOthers,
    PastTheLinks,
    written,
)
from course_utils.lessons.read_the_manual.capstone.sent_bytes import LINK, SentBytes
from course_utils.lessons.read_the_manual.capstone.task import NAIVE_BATCH, RATE, STEP_SECONDS, as_images, network

TIMED, WARM_UP = 4, 1
"""Steps of naive data parallelism that count, and those before them."""


class _Meter:
    """Bytes and seconds from its making on.

    The nodes share the cores of one machine, which real nodes do not: the clock also counts waiting for a core. So
    seconds are those of this rank's processor, and what its bytes take at the link's rate; where the clock behind a
    link says less, the rank has computed while it sent, and the difference is taken off.
    """

    def __init__(self) -> None:
        dist.barrier()
        self._sent, self.past = SentBytes(), PastTheLinks()
        self._clock, self._processor = time.perf_counter(), time.process_time()

    def read(self, shortened: float | None = None) -> dict[str, Any]:
        """What was sent, what was handed over past the links, in how many seconds, and where it was counted.

        Args:
            shortened: the processor's seconds count so much each; None, after naive steps: as `STEP_SECONDS` has it.
        """
        took, computed = time.perf_counter() - self._clock, time.process_time() - self._processor
        sent = self._sent.so_far()
        if shortened is None:
            shortened = min(1.0, TIMED * STEP_SECONDS / computed)
        seconds = seconds_of(computed, 8 * sent / RATE, took if self._sent.where == LINK else None, shortened)
        past, where = self.past.so_far(sent), self._sent.where
        return {"sent": sent, "past": past, "seconds": seconds, "shortened": shortened, "where": where}


def seconds_of(computed: float, sending: float, took: float | None, shortened: float) -> float:
    """Seconds on a node of its own.

    Args:
        computed: seconds of the rank's processor.
        sending: seconds of its bytes on the link.
        took: by the clock, behind a link; None where there is none.
        shortened: of each second of computing, this much counts: the rest is the machine's.
    """
    overlapped = max(0.0, computed + sending - took) if took is not None else 0.0
    return shortened * (computed - overlapped) + sending


def trained(function: Callable, seed: int, pixels: np.ndarray, labels: np.ndarray) -> dict[str, Any]:
    """Let the learner's function train on this rank's images; plain data comes back.

    Args:
        seed: of this rank's first weights.
        pixels, labels: see `course_utils.lessons.read_the_manual.capstone.task.Dealt`.

    Returns:
        "weights": name → array, or None where no VGG-11 came back; "returned": its type's name; "images": how many the
        model was trained on, each time counted; "sent" and "seconds" of the training, "where" they were counted;
        "start": bytes that were written before the first image; "past": see `PastTheLinks.so_far`; "shortened": how
        much a second of the processor counts; "began", "own" and "used": see `FirstStep`; "naive_sent" and
        "naive_seconds" of one step of naive data parallelism.
    """
    images, classes = as_images(pixels), torch.from_numpy(labels)
    naive = naive_step(network(0), images, classes)
    shortened = naive.pop("shortened")
    model, wanted = network(seed), network(seed).state_dict()
    torch.manual_seed(seed)
    with FirstStep(model) as first:
        meter, before = _Meter(), written()
        passes = count_images(model, meter.past.note_mappings)
        with _said_of_unix_sockets(meter.past):
            returned = function(model, images, classes)
        result = meter.read(shortened)
    result |= {"weights": weights_of(returned, wanted), "returned": type(returned).__name__}
    result |= {"images": sum(size for size, _ in passes), "start": passes[0][1] - before if passes else 0}
    return result | {"began": first.began, "own": first.own, "used": first.used, **naive}


@contextmanager
def _said_of_unix_sockets(past: PastTheLinks) -> Iterator[None]:
    """Behind links no Unix socket leads to another node: an error there says so."""
    try:
        yield
    except OSError as error:
        if past.so_far(0)["Unix sockets"]:
            refused = NoSocketToOthers(error.errno, f"{error.strerror}; {NOTHING_SHARED}")
            raise refused.with_traceback(error.__traceback__) from None
        raise


def count_images(model: nn.Module, note: Callable[[], object] = lambda: None) -> list[tuple[int, int]]:
    """A list that grows by each batch that the model's first convolution gets while it is trained.

    That is the layer which all images pass, be the model called as a whole, layer by layer, or in stages.

    Args:
        note: called before the first, second, fourth, eighth … of them.

    Returns:
        For each (images, bytes that this process had written before it).
    """
    passes: list[tuple[int, int]] = []

    def count(layer: nn.Module, given: tuple[torch.Tensor, ...], named: dict[str, torch.Tensor]) -> None:
        if layer.training:
            passes.append((len(given[0] if given else named["input"]), written()))
            if len(passes).bit_count() == 1:
                note()

    first = next(layer for layer in model.modules() if isinstance(layer, nn.Conv2d))
    first.register_forward_pre_hook(count, with_kwargs=True)
    return passes


class FirstStep:
    """Looks at the last layer's bias in the first step, until the end of the `with` block.

    Attributes:
        began: its values in the first backward pass, (classes,); None where none ran.
        own: its gradient as this rank's backward passes made it, or None.
        used: the same as the optimizer got it; None where none of torch's took a step.
    """

    def __init__(self, model: nn.Module) -> None:
        self._bias = [layer for layer in model.modules() if isinstance(layer, nn.Linear)][-1].bias
        self.began: np.ndarray | None = None
        self.own: np.ndarray | None = None
        self.used: np.ndarray | None = None

    def __enter__(self) -> "FirstStep":
        self._hooks = [
            self._bias.register_post_accumulate_grad_hook(self._made),
            register_optimizer_step_pre_hook(self._taken),
        ]
        return self

    def __exit__(self, *_: object) -> None:
        for hook in self._hooks:
            hook.remove()

    def _made(self, bias: torch.Tensor) -> None:
        if self.began is None:
            self.began = bias.detach().numpy().copy()
        if self.used is None:
            self.own = bias.grad.numpy().copy()

    def _taken(self, optimizer: torch.optim.Optimizer, *_: object) -> None:
        if self.used is None and self._bias.grad is not None:
            self.used = self._bias.grad.numpy().copy()


def naive_step(model: nn.Module, images: torch.Tensor, labels: torch.Tensor) -> dict[str, float]:
    """One step, as the mean of a few: every gradient is averaged over the ranks after the backward pass.

    Args:
        images: (n, 3, 32, 32), enough for the steps; labels: (n,).

    Returns:
        "naive_sent": bytes; "naive_seconds"; "shortened": how much a second of the processor counts on this machine.
    """
    replica, optimizer = all_reduce_flat(model), torch.optim.SGD(model.parameters(), 0.05)
    for number in range(WARM_UP + TIMED):
        if number == WARM_UP:
            meter = _Meter()
        optimizer.zero_grad()
        batch = slice(number * NAIVE_BATCH, (number + 1) * NAIVE_BATCH)
        cross_entropy(replica.module(images[batch]), labels[batch]).backward()
        replica.finish()
        optimizer.step()
    result = meter.read()
    naive = {f"naive_{name}": result[name] / TIMED for name in ("sent", "seconds")}
    return naive | {"shortened": result["shortened"]}


def weights_of(returned: Any, wanted: dict[str, torch.Tensor]) -> dict[str, np.ndarray] | None:
    """The weights of the network that was asked for, taken out of DistributedDataParallel; None where it is none."""
    model = getattr(returned, "module", returned) if isinstance(returned, nn.Module) else None
    if model is None:
        return None
    state = {name: values.detach().clone() for name, values in nn.Module.state_dict(model).items()}
    if {name: values.shape for name, values in state.items()} != {
        name: tensor.shape for name, tensor in wanted.items()
    }:
        return None
    return {name: values.to(wanted[name].dtype).numpy() for name, values in state.items()}
