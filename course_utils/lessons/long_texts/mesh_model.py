"""A character model for a text that several ranks share.

Norms, MLPs and linear layers work on each token alone and stay as they are. Attention goes around the ring, and the
embedding has to know the positions of this rank's tokens.
"""

from collections.abc import Callable, Mapping, Sequence

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy

from course_utils.errors import CourseError
from course_utils.lessons.data_parallel.differentiable import Group
from course_utils.lessons.hybrid_and_sharded.device_mesh import mesh_groups, place_of
from course_utils.lessons.long_texts.long_attention import attention_in_blocks, attention_round_the_ring
from course_utils.lessons.long_texts.zigzag import zigzag
from course_utils.lessons.model_parallel.parallel_block import parallelise_block
from course_utils.lessons.model_parallel.transformer import Attention, Block, Embedding

Attend = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
"""q, k, v, each (batch, heads, tokens, size) → attention's output, shaped as q."""


class LongAttention(nn.Module):
    """Lesson 9's attention, cut by heads or not, with a different function between `qkv` and `out`."""

    def __init__(self, attention: Attention, attend: Attend) -> None:
        super().__init__()
        if attention.dropout.share:
            raise CourseError("Attention in blocks has no dropout here. Make the model with dropout=0.")
        self.heads, self.size = attention.heads, attention.size
        self.qkv, self.out, self.attend = attention.qkv, attention.out, attend

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, tokens, width) → the same shape."""
        made = self.qkv(x)
        batch, tokens, _ = made.shape
        q, k, v = made.view(batch, tokens, self.heads, 3 * self.size).transpose(1, 2).chunk(3, dim=-1)
        return self.out(self.attend(q, k, v).transpose(1, 2).reshape(batch, tokens, self.heads * self.size))


class PlacedEmbedding(nn.Module):
    """Lesson 9's embedding, for tokens at certain positions of the text."""

    def __init__(self, embedding: Embedding, positions: torch.Tensor) -> None:
        super().__init__()
        self.character, self.position, self.positions = embedding.character, embedding.position, positions

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, tokens) of int64 → (batch, tokens, width)."""
        return self.character(x) + self.position.weight[self.positions]


def for_long_texts(model: nn.Sequential, positions: torch.Tensor, attend: Attend) -> nn.Sequential:
    """Give a character model a different attention, in place, for tokens at these positions.

    Raises:
        CourseError: the model has dropout in its attention.
    """
    model[0] = PlacedEmbedding(model[0], positions)
    for block in model:
        if isinstance(block, Block):
            block.attention = LongAttention(block.attention, attend)
    return model


def in_one_process(model: nn.Sequential, length: int, block: int = 128) -> nn.Sequential:
    """Return the model with attention in blocks, for a whole text."""
    positions = torch.arange(length)
    return for_long_texts(model, positions, lambda q, k, v: attention_in_blocks(q, k, v, positions, block))


def round_the_ring(
    model: nn.Sequential, positions: Sequence[torch.Tensor], context: Group = None, tensor: Group = None
) -> nn.Sequential:
    """Return the model for this rank's tokens, with attention around the ring of `context`.

    Args:
        model: whole, equal on all ranks.
        positions: for each rank of `context` the positions of its tokens.
        tensor: ranks that share each block's matrices, as in lesson 9; None for none.
    """
    for block in model:
        if tensor is not None and isinstance(block, Block):
            parallelise_block(block, tensor)
    own = positions[dist.get_rank(context)]
    return for_long_texts(model, own, lambda q, k, v: attention_round_the_ring(q, k, v, positions, context))


def groups_of(sizes: Mapping[str, int]) -> dict[str, Group]:
    """Return this rank's group along each axis of a mesh; all ranks make all groups, in the same order.

    Raises:
        CourseError: the mesh doesn't have as many ranks as take part.
    """
    every = mesh_groups(sizes)
    ranks = sum(len(group) for group in next(iter(every.values())))
    if ranks != dist.get_world_size():
        raise CourseError(f"A mesh of {dict(sizes)} has {ranks} ranks, and {dist.get_world_size()} take part.")
    own = {}
    for axis, groups in every.items():
        for group in groups:
            made = dist.new_group(group)
            if dist.get_rank() in group:
                own[axis] = made
    return own


def mesh_gradients(
    model: nn.Sequential, x: torch.Tensor, y: torch.Tensor, sizes: Mapping[str, int]
) -> tuple[float, dict[str, torch.Tensor]]:
    """Return the loss of a whole batch of whole texts, and this rank's part of its gradients.

    Texts are distributed along `data`, their tokens along `context` in a zig-zag, heads and matrices along `tensor`.
    Each rank's loss is its tokens' part of the mean, so gradients are summed along `context` and `data` (lesson 6).

    Args:
        model: whole, equal on all ranks; it is changed.
        x, y: (texts, tokens) of int64, equal on all ranks.
        sizes: {"data": 2, "context": 2, "tensor": 2}, the last axis between neighbours.

    Returns:
        The loss, and gradients by the names of parameters; those that `tensor` cuts are this rank's part.
    """
    groups, coordinates = groups_of(sizes), place_of(dist.get_rank(), sizes)
    positions = zigzag(x.shape[1], sizes["context"])
    own = positions[coordinates["context"]]
    tokens = y.numel()
    x, y = (tensor.chunk(sizes["data"])[coordinates["data"]][:, own] for tensor in (x, y))
    model = round_the_ring(model, positions, groups["context"], groups["tensor"] if sizes["tensor"] > 1 else None)
    loss = cross_entropy(model(x).flatten(0, 1), y.flatten(), reduction="sum") / tokens
    loss.backward()
    summed = [loss.detach(), *(parameter.grad for parameter in model.parameters())]
    for axis in ("context", "data"):
        for tensor in summed:
            dist.all_reduce(tensor, group=groups[axis])
    return summed[0].item(), {name: parameter.grad for name, parameter in model.named_parameters()}
