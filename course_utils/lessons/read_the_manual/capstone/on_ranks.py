"""What runs on the ranks: a few steps of naive data parallelism as the measure, then the learner's training."""

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
from course_utils.lessons.read_the_manual.capstone.sent_bytes import SentBytes, wait_until_sent
from course_utils.lessons.read_the_manual.capstone.task import BACKWARD, FORWARD, NAIVE_BATCH, as_images, network

COUNTED_STEPS, WARM_UP = 4, 1
"""Steps of naive data parallelism that count, and those before them."""


class _Meter:
    """Counts what leaves this rank, from its making on."""

    def __init__(self) -> None:
        dist.barrier()
        self._sent, self.past = SentBytes(), PastTheLinks()

    def read(self) -> dict[str, Any]:
        """Return the bytes that were "sent", what was handed over "past" the links, and "where" it was counted.

        What was written last may still wait for the link, a broadcast for example. It is waited for: until it has
        left, it would be missing in what was sent, and look like something that was written into a file.
        """
        wait_until_sent()
        sent = self._sent.so_far()
        return {"sent": sent, "past": self.past.so_far(sent), "where": self._sent.where}


def trained(function: Callable, seed: int, pixels: np.ndarray, labels: np.ndarray) -> dict[str, Any]:
    """Let the learner's function train on this rank's images; plain data comes back.

    Args:
        seed: of this rank's first weights.
        pixels, labels: see `course_utils.lessons.read_the_manual.capstone.task.Dealt`.

    Returns:
        "weights": name → array, or None where no VGG-11 came back; "returned": its type's name; "images": how many the
        model was trained on, each time counted; "passes": see `ImagePasses`; "sent" by the training, "where" it was
        counted; "start": bytes that were written before the first image; "past": see `PastTheLinks.so_far`; "began",
        "own" and "used": see `FirstStep`; "naive_sent" by one step of naive data parallelism.
    """
    images, classes = as_images(pixels), torch.from_numpy(labels)
    naive = naive_step(network(0), images, classes)
    model, wanted = network(seed), network(seed).state_dict()
    torch.manual_seed(seed)
    with FirstStep(model) as first:
        meter, before = _Meter(), written()
        passes = ImagePasses(model, meter.past.note_mappings)
        with _said_of_unix_sockets(meter.past):
            returned = function(model, images, classes)
        result = meter.read()
    result |= {"weights": weights_of(returned, wanted), "returned": type(returned).__name__}
    result |= {"images": passes.trained, "passes": passes.total, "start": (passes.first or before) - before}
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


class ImagePasses:
    """Counts the images that go through a model, from its making on.

    Forward passes are seen at the first convolution and backward passes at the last layer. All images pass both, be the
    model called as a whole, layer by layer, or in stages.

    Attributes:
        trained: images of forward passes in `train()`.
        total: image passes: an image costs `FORWARD` in each forward pass, in `eval()` too, and `BACKWARD` in each
            backward pass.
        first: bytes that this process had written before the first image in `train()`; None where there was none.
    """

    def __init__(self, model: nn.Module, note: Callable[[], object] = lambda: None) -> None:
        """Watch the model.

        Args:
            note: called before the first, second, fourth, eighth … batch in `train()`.
        """
        self.trained, self.total = 0, 0
        self.first: int | None = None
        self._note, self._batches = note, 0
        convolution = next(layer for layer in model.modules() if isinstance(layer, nn.Conv2d))
        convolution.register_forward_pre_hook(self._forward, with_kwargs=True)
        _last(model).register_forward_hook(self._watch_backward)

    def _forward(self, layer: nn.Module, given: tuple[torch.Tensor, ...], named: dict[str, torch.Tensor]) -> None:
        images = len(given[0] if given else named["input"])
        self.total += FORWARD * images
        if layer.training:
            self.first = written() if self.first is None else self.first
            self.trained += images
            self._batches += 1
            if self._batches.bit_count() == 1:
                self._note()

    def _watch_backward(self, layer: nn.Module, given: tuple[torch.Tensor, ...], outputs: torch.Tensor) -> None:
        if outputs.requires_grad:
            outputs.register_hook(self._backward)

    def _backward(self, gradient: torch.Tensor) -> None:
        self.total += BACKWARD * len(gradient)


def _last(model: nn.Module) -> nn.Linear:
    """The layer whose outputs are the classes."""
    return [layer for layer in model.modules() if isinstance(layer, nn.Linear)][-1]


class FirstStep:
    """Looks at the last layer's bias in the first step, until the end of the `with` block.

    Attributes:
        began: its values in the first backward pass, (classes,); None where none ran.
        own: its gradient as this rank's backward passes made it, or None.
        used: the same as the optimizer got it; None where none of torch's took a step.
    """

    def __init__(self, model: nn.Module) -> None:
        self._bias = _last(model).bias
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
        "naive_sent": bytes.
    """
    replica, optimizer = all_reduce_flat(model), torch.optim.SGD(model.parameters(), 0.05)
    for number in range(WARM_UP + COUNTED_STEPS):
        if number == WARM_UP:
            meter = _Meter()
        optimizer.zero_grad()
        batch = slice(number * NAIVE_BATCH, (number + 1) * NAIVE_BATCH)
        cross_entropy(replica.module(images[batch]), labels[batch]).backward()
        replica.finish()
        optimizer.step()
    return {"naive_sent": meter.read()["sent"] / COUNTED_STEPS}


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
