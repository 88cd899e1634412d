"""Muon, an optimizer that needs whole matrices, over ranks that keep a few rows of each.

A rank keeps its rows of the weights and of the momentum, as with FSDP. Before it can change its rows, the momentum of a
whole matrix has to be orthogonalised. There are three right ways: every rank gathers every matrix (`gathered`), each
matrix is orthogonalised by one rank (`owned`), or no rank has shards (`of_whole`). If each rank orthogonalises its
own rows (`by_shard`), the shapes fit and the loss falls, but it is a different optimizer.

Source: Jordan et al. 2024, "Muon: An optimizer for hidden layers in neural networks",
https://kellerjordan.github.io/posts/muon/; Liu et al. 2025, "Muon is Scalable for LLM Training".
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy

from course_utils.errors import CourseError
from course_utils.lessons.hybrid_and_sharded.hybrid_step import equal_shards
from course_utils.lessons.model_parallel.collective_counts import collectives_in, ring_bytes
from course_utils.trace.events import Event
from course_utils.trace.recorder import phase

COEFFICIENTS = 3.4445, -4.7750, 2.0315
"""Of the polynomial a x + b x³ + c x⁵ that is applied to the singular values in each round; they are Jordan's."""
MOMENTUM = 0.9
SIZE = 64
"""Rows and columns of each matrix: the digits have 64 pixels."""


def orthogonalised(matrix: torch.Tensor, rounds: int = 5) -> torch.Tensor:
    """Return a matrix with the same singular vectors, and nearly all singular values between 0.68 and 1.21.

    Args:
        matrix: (m, n). It keeps its values. A matrix of zeros stays as it is.
    """
    a, b, c = COEFFICIENTS
    x = matrix.T if len(matrix) > matrix.shape[1] else matrix
    x = x / x.norm().clamp(min=torch.finfo(x.dtype).tiny)
    for _ in range(rounds):
        square = x @ x.T
        x = a * x + (b * square + c * square @ square) @ x
    return x.T if len(matrix) > matrix.shape[1] else x


class Orthogonaliser:
    """Calls `orthogonalised`, in a phase "orthogonalise" each time.

    Attributes:
        given: the matrices that it was called with.
    """

    def __init__(self) -> None:
        self.given: list[torch.Tensor] = []

    def __call__(self, matrix: torch.Tensor) -> torch.Tensor:
        """Orthogonalise a matrix, or what this rank takes for one."""
        self.given.append(matrix)
        with phase("orthogonalise"):
            return orthogonalised(matrix)


Rows = Sequence[torch.Tensor]
"""This rank's rows of each matrix."""
Updates = Callable[[Rows, Orthogonaliser], list[torch.Tensor]]
"""From this rank's rows of each momentum to its rows of each update."""


def by_shard(momenta: Rows, orthogonalise: Orthogonaliser) -> list[torch.Tensor]:
    """Orthogonalise the rows that this rank has: nothing is sent, and the update is wrong."""
    return [orthogonalise(rows) for rows in momenta]


def gathered(momenta: Rows, orthogonalise: Orthogonaliser) -> list[torch.Tensor]:
    """Gather every matrix on every rank, orthogonalise all of them, and keep this rank's rows."""
    updates = [orthogonalise(whole_matrix(rows)) for rows in momenta]
    return [update.chunk(dist.get_world_size())[dist.get_rank()] for update in updates]


def owned(momenta: Rows, orthogonalise: Orthogonaliser) -> list[torch.Tensor]:
    """Let each rank orthogonalise some of the matrices: their rows travel to it, and the update's rows back.

    Of every P matrices, rank r owns the r-th. They need to have one shape.

    Raises:
        CourseError: the number of matrices is not a multiple of P.
    """
    ranks = dist.get_world_size()
    if len(momenta) % ranks:
        raise CourseError(f"{len(momenta)} matrices can't be dealt out evenly to {ranks} ranks.")
    updates: list[torch.Tensor] = []
    for first in range(0, len(momenta), ranks):
        # Rows of P matrices leave, and the rows of one matrix arrive from P ranks, in order.
        rows = torch.cat(list(momenta[first : first + ranks]))
        mine = torch.empty_like(rows)
        dist.all_to_all_single(mine, rows)
        # The same messages backwards.
        back = torch.empty_like(rows)
        dist.all_to_all_single(back, orthogonalise(mine))
        updates += back.chunk(ranks)
    return updates


def of_whole(momenta: Rows, orthogonalise: Orthogonaliser) -> list[torch.Tensor]:
    """Orthogonalise matrices that every rank has whole."""
    return [orthogonalise(momentum) for momentum in momenta]


@dataclass(frozen=True)
class MuonRun:
    """What one rank brings back.

    Attributes:
        losses: of each step, on this rank's share of the batch.
        weights: after each step, (matrices, SIZE, SIZE), whole.
        updates: of each matrix in the last step, whole.
        momenta: of each matrix in the last step, whole.
        rows: of each matrix, what this rank had of the weights before the last step.
        given: what this rank has orthogonalised in the last step.
        kept: bytes of weights and momentum that this rank keeps between two steps.
    """

    losses: list[float]
    weights: list[torch.Tensor]
    updates: torch.Tensor
    momenta: torch.Tensor
    rows: list[torch.Tensor]
    given: list[torch.Tensor]
    kept: int


def first_matrices(number: int = 4) -> list[torch.Tensor]:
    """Square matrices in double precision, the same on every rank."""
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(SIZE, SIZE, dtype=torch.float64, generator=generator) / SIZE**0.5 for _ in range(number)]


def loss_of(matrices: Sequence[torch.Tensor], x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The loss of a chain of layers with a tanh between two of them; the first ten outputs stand for the digits."""
    *hidden, last = matrices
    for matrix in hidden:
        x = torch.tanh(x @ matrix.T)
    return cross_entropy(x @ last.T, y)


def loss_and_gradients(
    matrices: Sequence[torch.Tensor], x: torch.Tensor, y: torch.Tensor
) -> tuple[float, list[torch.Tensor]]:
    """The loss, and the gradient of each matrix."""
    leaves = [matrix.detach().requires_grad_() for matrix in matrices]
    loss = loss_of(leaves, x, y)
    return loss.item(), list(torch.autograd.grad(loss, leaves))


def matrix_gradients(matrices: Sequence[torch.Tensor], x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
    """The gradient of each matrix, for the whole batch."""
    return loss_and_gradients(matrices, x, y)[1]


Batches = Iterable[tuple[torch.Tensor, torch.Tensor]]


def train_muon_serially(batches: Batches, rate: float = 0.05, matrices: int = 4) -> MuonRun:
    """Train with Muon in one process."""
    weights = first_matrices(matrices)
    momenta = [torch.zeros_like(matrix) for matrix in weights]
    losses, history, updates, before, orthogonalise = [], [], momenta, weights, Orthogonaliser()
    for x, y in batches:
        loss, gradients = loss_and_gradients(weights, x, y)
        momenta = [MOMENTUM * momentum + gradient for momentum, gradient in zip(momenta, gradients, strict=True)]
        orthogonalise = Orthogonaliser()
        updates = of_whole(momenta, orthogonalise)
        before = weights
        weights = [matrix - rate * update for matrix, update in zip(weights, updates, strict=True)]
        losses.append(loss)
        history.append(torch.stack(weights))
    kept, stacks = _bytes(weights) + _bytes(momenta), (torch.stack(updates), torch.stack(momenta))
    return MuonRun(losses, history, *stacks, before, orthogonalise.given, kept)


def train_muon(
    updates_of: Updates, batches: Batches, is_sharded: bool = True, rate: float = 0.05, matrices: int = 4
) -> MuonRun:
    """Train with Muon on all ranks, each with its share of every batch.

    Messages of the forward and the backward pass are in phases "weights" and "gradients", and those that only Muon
    needs are in "Muon".

    Args:
        updates_of: `gathered`, `owned`, or `by_shard`, which is wrong; `of_whole` if nothing is sharded.
        is_sharded: whether a rank keeps its rows of weights and momentum only.
        matrices: their number.

    Raises:
        CourseError: a batch that can't be cut evenly.
    """
    ranks, rank = dist.get_world_size(), dist.get_rank()
    mine = [matrix.chunk(ranks)[rank] if is_sharded else matrix for matrix in first_matrices(matrices)]
    momenta = [torch.zeros_like(rows) for rows in mine]
    losses, history, updates, before, orthogonalise = [], [], momenta, mine, Orthogonaliser()
    for x, y in batches:
        equal_shards(len(x), ranks)
        with phase("weights"):
            whole = [whole_matrix(rows) for rows in mine] if is_sharded else mine
        loss, gradients = loss_and_gradients(whole, x.chunk(ranks)[rank], y.chunk(ranks)[rank])
        with phase("gradients"):
            means = [mean_rows(gradient) if is_sharded else mean(gradient) for gradient in gradients]
        momenta = [MOMENTUM * momentum + gradient for momentum, gradient in zip(momenta, means, strict=True)]
        orthogonalise = Orthogonaliser()
        with phase("Muon"):
            updates = updates_of(momenta, orthogonalise)
        before = mine
        mine = [rows - rate * update for rows, update in zip(mine, updates, strict=True)]
        losses.append(loss)
        history.append(_whole(mine, is_sharded))
    kept, stacks = _bytes(mine) + _bytes(momenta), (_whole(updates, is_sharded), _whole(momenta, is_sharded))
    return MuonRun(losses, history, *stacks, before, orthogonalise.given, kept)


def torchs_muon(batches: Batches, rate: float = 0.05, matrices: int = 4) -> list[torch.Tensor]:
    """The weights after each step of `torch.optim.Muon` in one process, with the same settings."""
    weights = [torch.nn.Parameter(matrix) for matrix in first_matrices(matrices)]
    optimizer = torch.optim.Muon(weights, lr=rate, momentum=MOMENTUM, nesterov=False, weight_decay=0)
    history = []
    for x, y in batches:
        optimizer.zero_grad()
        loss_of(weights, x, y).backward()
        optimizer.step()
        history.append(torch.stack([matrix.detach() for matrix in weights]))
    return history


def whole_matrix(rows: torch.Tensor) -> torch.Tensor:
    """All-gather the rows of a matrix."""
    whole = rows.new_empty(dist.get_world_size() * len(rows), rows.shape[1])
    dist.all_gather_single(whole, rows.contiguous())
    return whole


def mean_rows(gradient: torch.Tensor) -> torch.Tensor:
    """Reduce-scatter a gradient, and return this rank's rows of the mean."""
    rows = gradient.new_empty(len(gradient) // dist.get_world_size(), gradient.shape[1])
    dist.reduce_scatter_single(rows, gradient.contiguous())
    return rows / dist.get_world_size()


def mean(gradient: torch.Tensor) -> torch.Tensor:
    """All-reduce a gradient, and return the whole mean."""
    total = gradient.clone()
    dist.all_reduce(total)
    return total / dist.get_world_size()


def sent_for(events: Iterable[Event], purpose: str, ranks: int, steps: int, rank: int = 0) -> float:
    """Bytes that a rank sends in a step for "weights", "gradients" or "Muon", were the collectives done by rings."""
    return sum(ring_bytes(event, ranks) for event in collectives_in(events, purpose, rank)) / steps


def times_orthogonalised(events: Iterable[Event], steps: int, rank: int = 0) -> float:
    """How many matrices a rank orthogonalises in a step."""
    return sum(event.rank == rank and event.name == "orthogonalise" for event in events) / steps


def _whole(parts: Sequence[torch.Tensor], is_sharded: bool) -> torch.Tensor:
    """All matrices, to be looked at; what that sends is outside of all phases."""
    return torch.stack([whole_matrix(rows) for rows in parts] if is_sharded else list(parts))


def _bytes(tensors: Sequence[torch.Tensor]) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)
