"""What lesson 9 runs on the ranks: parts of a cut layer, a block beside its serial self, seeds that differ.

All of it talks through torch.distributed's default group.
"""

from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import gelu

from course_utils.errors import CourseError
from course_utils.lessons.model_parallel.activation_checkpointing import checkpointed
from course_utils.lessons.model_parallel.differentiable_collectives import (
    all_gathered,
    join_over_ranks,
    own_part,
    split_over_ranks,
)
from course_utils.lessons.model_parallel.memory_counter import measured_memory
from course_utils.lessons.model_parallel.memory_parts import Memory
from course_utils.lessons.model_parallel.parallel_block import (
    parallelise_block,
    parallelise_model,
    sequence_parameters,
    sum_sequence_gradients,
)
from course_utils.lessons.model_parallel.transformer import Block
from course_utils.trace.recorder import phase

WIDTH, HEADS, LENGTH, BATCH = 16, 4, 8, 3
"""Of the small block that is compared with its serial self."""


def mlp_beside_whole(mlp: Callable[..., torch.Tensor]) -> float:
    """The largest difference to one process, on this rank, of a perceptron's output and of the gradient of its input.

    Args:
        mlp: called with x, and the whole weight and bias of both layers, equal on all ranks, in float64; cuts them.
    """
    torch.manual_seed(0)
    up, down = nn.Linear(64, 256).double(), nn.Linear(256, 64).double()
    x = torch.randn(32, 64, dtype=torch.float64, requires_grad=True)
    with phase("forward"):
        y = mlp(x, up.weight, up.bias, down.weight, down.bias)
    with phase("backward"):
        (gradient,) = torch.autograd.grad(y.square().sum(), x)
    serial = down(gelu(up(x)))
    (wanted,) = torch.autograd.grad(serial.square().sum(), x)
    return max(_largest_difference(y, serial), _largest_difference(gradient, wanted))


def small_block(dropout: float = 0.0) -> Block:
    """A block in float64, equal on all ranks; norms and biases have values of their own."""
    torch.manual_seed(3)
    block = Block(WIDTH, HEADS, dropout, torch.Generator().manual_seed(5)).double()
    with torch.no_grad():
        for parameter in block.parameters():
            parameter += 0.1 * torch.randn_like(parameter)
    return block


def small_batch() -> tuple[torch.Tensor, torch.Tensor]:
    """An input for it, and what its output is multiplied with to give a loss: (batch, length, width), float64."""
    torch.manual_seed(4)
    x, weights = torch.randn(2, BATCH, LENGTH, WIDTH, dtype=torch.float64)
    return x.requires_grad_(), weights


def beside_serial(
    cut: Callable[[Block], None], dropout: float = 0.0, sequence: bool = False, passes: int = 2
) -> dict[str, float]:
    """The largest difference of everything to the serial block, on this rank, after passes forward and backward.

    Args:
        cut: cuts a block over the ranks, in place.
        sequence: it cuts the sequence too: x is split before the block and joined behind it.

    Returns:
        "output", "x" (its gradient), and each parameter's gradient by the parameter's name.
    """
    serial, parallel = small_block(dropout), small_block(dropout)
    cut(parallel)
    for _ in range(passes):
        (x, weights), (own, _) = small_batch(), small_batch()
        serial.zero_grad()
        wanted = serial(x)
        (wanted * weights).sum().backward()
        parallel.zero_grad()
        with phase("forward"):
            got = parallel(split_over_ranks(own, 1) if sequence else own)
            got = join_over_ranks(got, 1) if sequence else got
        with phase("backward"):
            (got * weights).sum().backward()
            if sequence:
                sum_sequence_gradients(parallel)
    found = {"output": _largest_difference(got, wanted), "x": _largest_difference(own.grad, x.grad)}
    theirs = dict(serial.named_parameters())
    for name, parameter in parallel.named_parameters():
        gradient = (
            parameter.grad.to_local() if hasattr(parameter.grad, "to_local") else parameter.grad
        )  # of a DTensor this rank's part
        found[name] = _largest_difference(gradient, _part_like(theirs[name].grad, gradient))
    return found


def _largest_difference(tensor: torch.Tensor, other: torch.Tensor) -> float:
    return (tensor - other).abs().max().item()


def _part_like(whole: torch.Tensor, part: torch.Tensor) -> torch.Tensor:
    """This rank's part of a tensor, cut along the dimension in which the part is shorter."""
    shorter = [dim for dim in range(whole.dim()) if whole.shape[dim] != part.shape[dim]]
    return own_part(whole, shorter[0]) if shorter else whole


OWN_SEEDS = ("nowhere", "inside", "everywhere")


def ranks_apart(own_seeds: str, steps: int = 8, rate: float = 0.1) -> list[float]:
    """Train a block cut over ranks, with dropout, and see how far the ranks' copies of its norms and biases are apart.

    Args:
        own_seeds: where a rank's dropout has a seed of its own: "nowhere"; "inside", between column and row, where the
            ranks hold different things; "everywhere", also after the sum, where they should hold the same.

    Returns:
        The largest difference between two ranks after each step.

    Raises:
        CourseError: no such place.
    """
    if own_seeds not in OWN_SEEDS:
        raise CourseError(f"Seeds of their own: {', '.join(OWN_SEEDS)}, not {own_seeds!r}.")
    block = small_block(dropout=0.1)
    parallelise_block(block)
    mine = torch.Generator().manual_seed(100 + dist.get_rank())
    inside, behind = [block.attention.dropout], [block.drop_1, block.drop_2]
    for dropout in {"nowhere": [], "inside": inside, "everywhere": inside + behind}[own_seeds]:
        dropout.generator, dropout.parts, dropout.part = mine, 1, 0
    optimizer = torch.optim.SGD(block.parameters(), rate)
    distances = []
    for _ in range(steps):
        x, target = small_batch()
        optimizer.zero_grad()
        nn.functional.mse_loss(block(x), target).backward()
        optimizer.step()
        copies = torch.cat([parameter.detach().flatten() for parameter in sequence_parameters(block)])
        every = all_gathered(copies[None], 0)
        distances.append((every.max(0).values - every.min(0).values).max().item())
    return distances


def step_memory(
    layers: nn.Sequential,
    batch: tuple[torch.Tensor, torch.Tensor],
    sequence: bool = False,
    checkpointing: bool = False,
) -> Memory:
    """Do one step of Adam with a character model cut over the ranks, and count what this rank keeps.

    Args:
        layers: the whole model, equal on all ranks; this rank's copy of it is cut.
        batch: characters and those that follow them, equal on all ranks.
        sequence, checkpointing: as for `parallelise_model`, and `activation_checkpointing.checkpointed`.
    """
    layers = parallelise_model(layers, sequence=sequence)
    blocks = [layer for layer in layers if isinstance(layer, Block)]
    layers = checkpointed(layers) if checkpointing else layers
    optimizer = torch.optim.Adam(layers.parameters())
    x, target = batch

    def step() -> None:
        with phase("forward"):
            loss = nn.functional.cross_entropy(layers(x).flatten(0, 1), target.flatten())
        with phase("backward"):
            loss.backward()
        with phase("step"):
            for block in blocks if sequence else []:
                sum_sequence_gradients(block)
            optimizer.step()

    return measured_memory(layers, optimizer, step)
