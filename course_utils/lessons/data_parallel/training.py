"""The same training run twice: by one process, and by P ranks that act as one.

`train_parallel` differs from `train_serial` in three lines: it broadcasts the first weights, takes its shard of every
batch, and averages the gradients before the step. Everything else is the same code.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional

from course_utils.lessons.data_parallel.batch_norm import SyncBatchNorm
from course_utils.lessons.data_parallel.gradients import average_gradients, broadcast_parameters
from course_utils.lessons.data_parallel.shards import shard_indices, shard_of_batch
from course_utils.trace.recorder import phase

Data = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]
"""(train_x, train_y, test_x, test_y), as `course_utils.data.digits` gives them."""
Rate = float | Callable[[int], float]
"""A learning rate, or a function of the step number (counted from 0)."""
MakeOptimizer = Callable[[list[nn.Parameter]], "Sgd | torch.optim.Optimizer"]
"""Makes an optimizer of parameters: `Sgd`, or one of `torch.optim`."""


@dataclass
class History:
    """What one rank remembers of its training."""

    losses: list[float]
    """The loss on this rank's share of the batch at each step, before the weights change."""
    test_accuracy: float
    """The share of test images recognised by this rank's weights at the end."""
    parameters: torch.Tensor
    """All weights at the end, in one vector."""


def mean_losses(histories: Sequence[History]) -> list[float]:
    """The loss of the whole global batch at each step, from what each rank remembers of its equal share."""
    return torch.tensor([history.losses for history in histories], dtype=torch.float64).mean(dim=0).tolist()


def digits_mlp(seed: int, hidden: int = 64, norm: Callable[[int], nn.Module] | None = None) -> nn.Module:
    """A network for 64 pixels and ten digits, with two hidden layers; the seed fixes its first weights.

    Args:
        norm: makes a layer that follows each hidden one, from the number of its features.
    """
    torch.manual_seed(seed)
    layers: list[nn.Module] = []
    for inputs in (64, hidden):
        layers += [nn.Linear(inputs, hidden), norm(hidden) if norm else nn.Identity(), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(hidden, 10))


def wide_mlp(seed: int) -> nn.Module:
    """`digits_mlp` with 512 hidden units: 301,066 parameters, enough for communication to be seen."""
    return digits_mlp(seed, hidden=512)


def local_norm_mlp(seed: int) -> nn.Module:
    """`digits_mlp` with batch norm; every rank uses the statistics of its own examples."""
    return digits_mlp(seed, norm=nn.BatchNorm1d)


def sync_norm_mlp(seed: int) -> nn.Module:
    """`digits_mlp` with batch norm over the examples of all ranks."""
    return digits_mlp(seed, norm=SyncBatchNorm)


def own_weights(seed: int, build: Callable[[int], nn.Module] = digits_mlp) -> nn.Module:
    """Build a model whose first weights are this rank's own, as in a program that seeds every process differently."""
    return build(seed + dist.get_rank())


class Sgd:
    """Plain gradient descent, w ← w − rate · gradient: what `torch.optim.SGD` does.

    That one imports torch's compiler when it is made, a second of work for every rank.
    """

    def __init__(self, parameters: Iterable[nn.Parameter], rate: float = 0.1) -> None:
        self.parameters = list(parameters)
        self.rate = rate

    def zero_grad(self) -> None:
        """Forget all gradients."""
        for parameter in self.parameters:
            parameter.grad = None

    def step(self) -> None:
        """Move every parameter against its gradient, in place; without one it stays."""
        with torch.no_grad():
            for parameter in self.parameters:
                if parameter.grad is not None:
                    parameter.add_(parameter.grad, alpha=-self.rate)


def set_rate(optimizer: Sgd | torch.optim.Optimizer, rate: float) -> None:
    """Give the next steps this learning rate."""
    if isinstance(optimizer, Sgd):
        optimizer.rate = rate
    else:
        for group in optimizer.param_groups:
            group["lr"] = rate


def batches(indices: torch.Tensor, size: int, keep_last: bool = False) -> Iterator[torch.Tensor]:
    """Cut `indices` into batches of `size`; what is left over at the end is dropped, or kept as a smaller batch."""
    end = len(indices) if keep_last else len(indices) - size + 1
    for start in range(0, end, size):
        yield indices[start : start + size]


def flat_parameters(model: nn.Module) -> torch.Tensor:
    """All parameters in one vector, detached."""
    return nn.utils.parameters_to_vector(model.parameters()).detach()


def accuracy(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> float:
    """The share of the images `x` whose digit `y` the model finds."""
    model.eval()
    with torch.no_grad():
        return (model(x).argmax(dim=1) == y).double().mean().item()


def train_step(
    model: nn.Module,
    optimizer: Sgd | torch.optim.Optimizer,
    x: torch.Tensor,
    y: torch.Tensor,
    finish: Callable[[], None] | None = None,
    weight: float = 1.0,
) -> float:
    """One step on one batch, its four phases recorded in the trace; returns the loss before the step.

    Args:
        finish: what the ranks do with their gradients after the backward pass; None: nothing.
        weight: of this rank's gradients in the mean; 1 where all ranks have as many examples.
    """
    with phase("forward"):
        loss = functional.cross_entropy(model(x), y)
    with phase("backward"):
        optimizer.zero_grad()
        (weight * loss).backward()
    if finish is not None:
        with phase("communication"):
            finish()
    with phase("step"):
        optimizer.step()
    return loss.item()


def rate_of(rate: Rate, step: int) -> float:
    """The learning rate of `step`."""
    return rate(step) if callable(rate) else rate


def train_serial(
    data: Data,
    build: Callable[[int], nn.Module] = digits_mlp,
    *,
    epochs: int = 1,
    batch_size: int = 64,
    rate: Rate = 0.1,
    optimizer: MakeOptimizer = Sgd,
    seed: int = 0,
    keep_last: bool = False,
) -> History:
    """Train `build(seed)` in this process alone. Dtype and device are those of the data.

    Args:
        build: makes the model from a seed.
        batch_size: examples in a batch.
        optimizer: makes the optimizer; its learning rate is `rate`, whatever it begins with.
        keep_last: train on the last batch of an epoch, too, where it is not full.
    """
    x, y, test_x, test_y = data
    model = build(seed).to(x).train()
    stepper = optimizer(list(model.parameters()))
    losses: list[float] = []
    for epoch in range(epochs):
        for batch in batches(shard_indices(len(x), 0, 1, epoch, seed), batch_size, keep_last):
            set_rate(stepper, rate_of(rate, step=len(losses)))
            losses.append(train_step(model, stepper, x[batch], y[batch]))
    return History(losses, accuracy(model, test_x, test_y), flat_parameters(model))


def train_parallel(
    data: Data,
    build: Callable[[int], nn.Module] = digits_mlp,
    synchronise: Callable[[nn.Module], None] = average_gradients,
    *,
    epochs: int = 1,
    batch_size: int = 64,
    rate: Rate = 0.1,
    optimizer: MakeOptimizer = Sgd,
    seed: int = 0,
    keep_last: bool = False,
    broadcast: Callable[[nn.Module], None] = broadcast_parameters,
) -> History:
    """The same training on all ranks of torch.distributed's default group; each rank returns its own history.

    First rank 0's weights are broadcast. Per step, every rank sends what `synchronise` sends: with
    `average_gradients`, one all-reduce of every gradient.

    Args:
        build: makes the model from a seed. The ranks' first weights may differ, as those of `own_weights` do.
        batch_size: the *global* batch; each rank works on batch_size / world_size examples of it.
        synchronise: what the ranks do with their gradients between backward and step.
        optimizer: makes each rank's optimizer; its learning rate is `rate`, whatever it begins with.
        keep_last: train on the last batch of an epoch, too, where it is not full. Some ranks then have an example more
            than others; weights make the mean of their means the mean of the batch.
        broadcast: what makes the first weights of all ranks equal.

    Raises:
        ValueError: the global batch does not divide among the ranks; the mean of their means would not be its mean.
            Or the last one has fewer examples than there are ranks, and `keep_last`.
    """
    x, y, test_x, test_y = data
    model = build(seed).to(x).train()
    broadcast(model)
    stepper = optimizer(list(model.parameters()))
    losses: list[float] = []
    for epoch in range(epochs):
        for batch in batches(shard_indices(len(x), 0, 1, epoch, seed), batch_size, keep_last):
            batch, weight = shard_of_batch(batch, batch_size)
            set_rate(stepper, rate_of(rate, step=len(losses)))
            losses.append(train_step(model, stepper, x[batch], y[batch], partial(synchronise, model), weight))
    return History(losses, accuracy(model, test_x, test_y), flat_parameters(model))
