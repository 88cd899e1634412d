"""One token through one layer, cut over ranks: two all-reduces, and a cache that never moves.

`cached_model` does the same with lesson 9's modules, which hide the all-reduces. Here they are written out.
"""

import math
from typing import NamedTuple

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import gelu

from course_utils.errors import CourseError
from course_utils.lessons.data_parallel.differentiable import Group
from course_utils.lessons.inference.kv_cache import LayerCache
from course_utils.lessons.model_parallel.transformer import Block


class LayerPart(NamedTuple):
    """A rank's part of a layer of the transformer.

    Attributes:
        norm_1, norm_2: the norms, whole on every rank.
        qkv: (width) → (heads / P · 3 · size), of this rank's heads.
        out: (heads / P · size) → (width), without a bias: it gives a term of a sum.
        out_bias: (width,), to be added once to the sum.
        up: (width) → (4 · width / P).
        down: (4 · width / P) → (width), without a bias.
        down_bias: (width,).
        size: of a head.
    """

    norm_1: nn.LayerNorm
    norm_2: nn.LayerNorm
    qkv: nn.Linear
    out: nn.Linear
    out_bias: torch.Tensor
    up: nn.Linear
    down: nn.Linear
    down_bias: torch.Tensor
    size: int


def linear_of(weight: torch.Tensor, bias: torch.Tensor | None = None) -> nn.Linear:
    """A linear layer with these numbers, which are copied."""
    layer = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None, dtype=weight.dtype)
    layer.weight = nn.Parameter(weight.detach().clone(), requires_grad=False)
    if bias is not None:
        layer.bias = nn.Parameter(bias.detach().clone(), requires_grad=False)
    return layer


def layer_part(block: Block, rank: int, world_size: int) -> LayerPart:
    """Return a rank's part of a block of lesson 9: some heads, and some columns of the perceptron's wide layer.

    Raises:
        CourseError: the heads cannot be divided among the ranks.
    """
    attention, mlp = block.attention, block.mlp
    if attention.heads % world_size:
        raise CourseError(f"{attention.heads} heads cannot be divided among {world_size} ranks. Choose a multiple.")

    def part(tensor: torch.Tensor, dim: int) -> torch.Tensor:
        return tensor.chunk(world_size, dim=dim)[rank]

    return LayerPart(
        norm_1=block.norm_1,
        norm_2=block.norm_2,
        qkv=linear_of(part(attention.qkv.weight, 0), part(attention.qkv.bias, 0)),
        out=linear_of(part(attention.out.weight, 1)),
        out_bias=attention.out.bias.detach(),
        up=linear_of(part(mlp.up.weight, 0), part(mlp.up.bias, 0)),
        down=linear_of(part(mlp.down.weight, 1)),
        down_bias=mlp.down.bias.detach(),
        size=attention.size,
    )


def decode_step(
    layer: LayerPart,
    x: torch.Tensor,
    kept: LayerCache,
    group: Group = None,
) -> torch.Tensor:
    """Return what a layer makes of one more token, with its parts on several ranks.

    The token's key and value are added to the cache. There are two all-reduces of as many numbers
    as x has. The cache is never sent.

    Args:
        layer: this rank's part of the layer.
        x: (width,), the token's vector, equal on all ranks; not changed.
        kept: the keys and values of the tokens before, (heads / P, tokens, size), of this rank's
            heads. `kept.append` adds new ones, (heads / P, 1, size), and returns all of them.
        group: the ranks that share the layer; None for all.

    Returns:
        (width,), equal on all ranks.

    Source: Shoeybi et al. 2019, "Megatron-LM", §3 (the cut); Pope et al. 2023, "Efficiently
    Scaling Transformer Inference", §3.
    """
    # The queries, keys and values of a head lie side by side: (heads, 1, size) each.
    q, k, v = layer.qkv(layer.norm_1(x)).view(-1, 1, 3 * layer.size).chunk(3, dim=-1)
    keys, values = kept.append(k, v)
    # No mask: every token so far comes before this one.
    weights = (q @ keys.mT / math.sqrt(layer.size)).softmax(dim=-1)
    term = layer.out((weights @ values).flatten())
    dist.all_reduce(term, group=group)
    x = x + term + layer.out_bias
    term = layer.down(gelu(layer.up(layer.norm_2(x))))
    dist.all_reduce(term, group=group)
    return x + term + layer.down_bias
