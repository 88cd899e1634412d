"""A small transformer that reads characters: the model that later lessons cut into pieces.

Its linear layers are modules of their own, and each block knows how many heads it computes. So a parallel version is
the same block with other linear layers in it, and fewer heads.
"""

import math

import torch
from torch import nn
from torch.nn.functional import gelu


class Dropout(nn.Module):
    """Dropout whose mask comes from a generator of its own, so that ranks can draw the same one.

    A rank that holds only some of the heads draws the whole mask and takes its part: the result is that of one process,
    to the last digit. Megatron-LM gives each rank a seed of its own instead: cheaper, and equal only on average.

    Attributes:
        parts, part: into how many parts dimension 1 is cut over ranks, and which of them is this rank's.
    """

    def __init__(self, share: float, generator: torch.Generator) -> None:
        super().__init__()
        self.share, self.generator = share, generator
        self.parts, self.part = 1, 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Zero a share of the entries, and scale the others up."""
        if not self.training or self.share == 0:
            return x
        whole = [x.shape[0], x.shape[1] * self.parts, *x.shape[2:]]
        drawn = torch.rand(whole, generator=self.generator, dtype=x.dtype, device=self.generator.device)
        keep = (drawn >= self.share).to(x.device)
        return x * keep.chunk(self.parts, dim=1)[self.part] / (1 - self.share)


class CoreAttention(nn.Module):
    """What attention computes between its two linear layers: each head by itself, and without weights.

    The name is Megatron-LM's.

    Attributes:
        size: of a head; how many heads there are follows from the length of the vectors.
    """

    def __init__(self, size: int, dropout: Dropout) -> None:
        super().__init__()
        self.size, self.dropout = size, dropout

    def forward(self, made: torch.Tensor) -> torch.Tensor:
        """(batch, length, heads · 3 · size) → (batch, length, heads · size)."""
        batch, length, numbers = made.shape
        heads = numbers // (3 * self.size)
        q, k, v = made.view(batch, length, heads, 3 * self.size).transpose(1, 2).chunk(3, dim=-1)
        scores = q @ k.transpose(-1, -2) / math.sqrt(self.size)
        future = torch.ones(length, length, dtype=torch.bool, device=made.device).triu(1)
        weights = self.dropout(scores.masked_fill(future, -torch.inf).softmax(dim=-1))
        return (weights @ v).transpose(1, 2).reshape(batch, length, heads * self.size)

    def extra_repr(self) -> str:
        """What distinguishes it from others."""
        return f"size={self.size}"


class Attention(nn.Module):
    """Causal self-attention with several heads.

    Attributes:
        heads: how many this module computes.
        qkv: (…, width) → (…, heads · 3 · size): queries, keys and values of one head lie side by side, so that cutting
            the columns cuts between heads.
        core_attention: (…, heads · 3 · size) → (…, heads · size).
        out: (…, heads · size) → (…, width).
    """

    def __init__(self, width: int, heads: int, dropout: Dropout) -> None:
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.qkv: nn.Module = nn.Linear(width, 3 * width)
        self.core_attention = CoreAttention(self.size, dropout)
        self.out: nn.Module = nn.Linear(width, width)

    @property
    def dropout(self) -> Dropout:
        """Of the weights with which values are added."""
        return self.core_attention.dropout

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, length, width) → the same shape."""
        return self.out(self.core_attention(self.qkv(x)))


class Mlp(nn.Module):
    """Two linear layers, the first four times as wide as the second."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.up: nn.Module = nn.Linear(width, 4 * width)
        self.down: nn.Module = nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(…, width) → the same shape."""
        return self.down(gelu(self.up(x)))


class Block(nn.Module):
    """One layer of the transformer: attention, then a multilayer perceptron, each added to what came in."""

    def __init__(self, width: int, heads: int, share: float, generator: torch.Generator) -> None:
        super().__init__()
        self.norm_1, self.norm_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, Dropout(share, generator))
        self.mlp = Mlp(width)
        self.drop_1, self.drop_2 = Dropout(share, generator), Dropout(share, generator)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, length, width) → the same shape."""
        x = x + self.drop_1(self.attention(self.norm_1(x)))
        return x + self.drop_2(self.mlp(self.norm_2(x)))


class Embedding(nn.Module):
    """Characters and their places as vectors."""

    def __init__(self, characters: int, width: int, context: int) -> None:
        super().__init__()
        self.character, self.position = nn.Embedding(characters, width), nn.Embedding(context, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, length) of int64 → (batch, length, width)."""
        return self.character(x) + self.position.weight[: x.shape[1]]


class Head(nn.Module):
    """From vectors back to characters."""

    def __init__(self, width: int, characters: int) -> None:
        super().__init__()
        self.norm, self.out = nn.LayerNorm(width), nn.Linear(width, characters, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, length, width) → (batch, length, characters), logits."""
        return self.out(self.norm(x))


def character_model(
    characters: int,
    width: int = 64,
    heads: int = 4,
    depth: int = 4,
    context: int = 64,
    dropout: float = 0.0,
    seed: int = 0,
) -> nn.Sequential:
    """A transformer that predicts the next character: an embedding, `depth` blocks, a head; a list of layers, to cut.

    Args:
        characters: how many there are to choose from.
        width: of the vectors, a multiple of `heads`.
        context: the longest text that it reads.
        dropout: share of the entries.
        seed: fixes the first weights and the masks of the dropout.

    Source: Radford et al. 2019, "Language Models are Unsupervised Multitask Learners", §2.3 (GPT-2), made small.
    """
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    blocks = [Block(width, heads, dropout, generator) for _ in range(depth)]
    return nn.Sequential(Embedding(characters, width, context), *blocks, Head(width, characters))
