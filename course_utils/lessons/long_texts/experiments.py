"""What lesson 17 runs on the ranks: attention compared with one process, timed rings, a model on a mesh."""

import time
from collections.abc import Callable, Mapping, Sequence

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy

from course_utils.lessons.long_texts.allocated import Allocated
from course_utils.lessons.long_texts.block_attention import block_attention, ordinary_attention
from course_utils.lessons.long_texts.merge import merge_attention
from course_utils.lessons.long_texts.mesh_model import in_one_process, mesh_gradients
from course_utils.lessons.model_parallel.memory_counter import counting_saved, measured_memory
from course_utils.lessons.model_parallel.memory_parts import Memory
from course_utils.lessons.model_parallel.transformer import character_model
from course_utils.trace.events import Event
from course_utils.trace.recorder import phase

Positions = Sequence[torch.Tensor]
Attend = Callable[..., torch.Tensor]
"""q, k, v of this rank's tokens, and `positions` → its output."""


def drawn_text(
    tokens: int, heads: int = 4, size: int = 16, kv_heads: int = 0, dtype: torch.dtype = torch.float64, batch: int = 1
) -> tuple[torch.Tensor, ...]:
    """Draw q, k, v and a gradient of the output, (batch, heads, tokens, size), the same on every rank."""
    generator = torch.Generator().manual_seed(17)
    shapes = [(batch, some, tokens, size) for some in (heads, kv_heads or heads, kv_heads or heads, heads)]
    return tuple(torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype) for shape in shapes)


def attention_memory(attend: Attend, tokens: int) -> tuple[int, int]:
    """Return the bytes that autograd keeps of attention in float32, and the most that exist while it is computed."""
    q, k, v = (tensor.requires_grad_() for tensor in drawn_text(tokens, dtype=torch.float32)[:3])
    with counting_saved(torch.nn.Identity()) as saved, Allocated() as allocated:
        attend(q, k, v)
    return saved.most, allocated.most


def beside_one_process(attend: Attend, positions: Positions, **shape: int) -> dict[str, float]:
    """Compare attention on all ranks with one process: the largest differences on this rank, of output and gradients.

    The phases "forward" and "backward" say what moves.

    Args:
        attend: called with this rank's q, k, v and `positions`.
        shape: `heads`, `size`, `kv_heads`, `batch` as for `drawn_text`.
    """
    own = positions[dist.get_rank()]
    whole = drawn_text(sum(map(len, positions)), **shape)
    q, k, v, gradient = (tensor[:, :, own].clone() for tensor in whole)
    inputs = [tensor.requires_grad_() for tensor in (q, k, v)]
    with phase("forward"):
        out = attend(*inputs, positions)
    with phase("backward"):
        gradients = torch.autograd.grad(out, inputs, gradient)
    serial = [tensor.requires_grad_() for tensor in whole[:3]]
    wanted = ordinary_attention(*serial)
    theirs = torch.autograd.grad(wanted, serial, whole[3])
    pairs = zip(("output", "q", "k", "v"), (out, *gradients), (wanted, *theirs), strict=True)
    return {name: (found - other[:, :, own]).abs().max().item() for name, found, other in pairs}


def output_beside_one_process(attend: Attend, positions: Positions, **shape: int) -> float:
    """Return how far the output of all ranks is from that of one process: the largest difference on this rank.

    Args:
        attend, shape: as for `beside_one_process`; here the backward pass is not needed.
    """
    own = positions[dist.get_rank()]
    q, k, v, _ = drawn_text(sum(map(len, positions)), **shape)
    out = attend(q[:, :, own], k[:, :, own], v[:, :, own], positions)
    return (out - ordinary_attention(q, k, v)[:, :, own]).abs().max().item()


def ring_without_messages(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, positions: Positions) -> torch.Tensor:
    """Compute the same blocks as `ring_attention` in the same rounds, but send nothing; the result is wrong.

    Each round has the positions of the real one, and this rank's own keys and values in place of those that would have
    arrived.
    """
    rank, world_size, total = dist.get_rank(), dist.get_world_size(), None
    for step in range(world_size):
        part = block_attention(q, k, v, positions[rank], positions[(rank - step) % world_size])
        total = merge_attention(*total, *part) if total else part
    return total[0]


def timed(ways: Mapping[str, Attend], positions: Positions, rounds: int = 3, **shape: int) -> dict[str, list[float]]:
    """Return the seconds of each version of attention in float32, by turns; on this rank, from a common start.

    Args:
        ways: called with this rank's q, k, v and `positions`.
        shape: as for `drawn_text`.
    """
    own = positions[dist.get_rank()]
    q, k, v = (tensor[:, :, own] for tensor in drawn_text(sum(map(len, positions)), dtype=torch.float32, **shape)[:3])
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(-1, rounds):  # the first one finds memory and connections
        for name, attend in ways.items():
            dist.barrier()
            began = time.perf_counter()
            attend(q, k, v, positions)
            if turn >= 0:
                seconds[name].append(time.perf_counter() - began)
    return seconds


def computing(attend: Attend, positions: Positions, **shape: int) -> int:
    """Count the floating-point operations of the matrix products that this rank does for its attention."""
    own = positions[dist.get_rank()]
    q, k, v = (tensor[:, :, own] for tensor in drawn_text(sum(map(len, positions)), dtype=torch.float32, **shape)[:3])
    with Allocated() as counted:
        attend(q, k, v, positions)
    return counted.multiplied


def text_step_memory(length: int, blocks: bool, **model: int) -> Memory:
    """Count the bytes of a step of Adam on a text, in one process, with attention in blocks or not, as in lesson 9.

    Args:
        model: as for `character_model`, but for `context`.
    """
    layers = character_model(context=length, **model)
    layers = in_one_process(layers, length) if blocks else layers
    adam = torch.optim.Adam(layers.parameters())
    x, y = torch.randint(model["characters"], (2, 1, length))

    def step() -> None:
        cross_entropy(layers(x).flatten(0, 1), y.flatten()).backward()
        adam.step()

    return measured_memory(layers, adam, step)


def mesh_beside_one_process(sizes: Mapping[str, int], tokens: int = 24, texts: int = 4) -> dict[str, float]:
    """Return how far a mesh is from one process, in float64: the loss, and the worst of this rank's gradients."""
    model = {"characters": 20, "width": 16, "heads": 4, "depth": 2, "context": tokens}
    torch.manual_seed(3)
    x, y = torch.randint(20, (2, texts, tokens))
    serial = character_model(**model).double()
    wanted = cross_entropy(serial(x).flatten(0, 1), y.flatten())
    wanted.backward()
    loss, gradients = mesh_gradients(character_model(**model).double(), x, y, sizes)
    tensor = dist.get_rank() % sizes["tensor"]  # the last axis is counted first
    differences = [
        (part_like(parameter.grad, gradients[name], sizes["tensor"], tensor) - gradients[name]).abs().max().item()
        for name, parameter in serial.named_parameters()
    ]
    return {"loss": abs(loss - wanted.item()), "gradients": max(differences)}


def part_like(whole: torch.Tensor, part: torch.Tensor, parts: int, mine: int) -> torch.Tensor:
    """Return one of `parts` parts of a tensor, cut along the dimension in which `part` is shorter."""
    for dim in range(whole.dim()):
        if whole.shape[dim] != part.shape[dim]:
            return whole.chunk(parts, dim=dim)[mine]
    return whole


def bytes_in(events: Sequence[Event], name: str, rank: int) -> int:
    """Count the bytes that a rank sent, or put into collectives, in its phase of this name."""
    mine = [event for event in events if event.rank == rank]
    spans = [(event.start, event.end) for event in mine if event.kind == "phase" and event.name == name]
    sent = [event for event in mine if event.kind in ("send", "collective")]
    return sum(event.bytes for event in sent if any(start <= event.start <= end for start, end in spans))
