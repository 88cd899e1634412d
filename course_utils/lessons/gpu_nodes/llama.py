"""A transformer as Llama is built, for the time of its training step: attention by torch's own fused function.

Lesson 9's transformer writes attention out, so that each of its products can be seen and cut. It makes a matrix of
length × length numbers for each head, which a GPU spends more time moving than computing. Here
`scaled_dot_product_attention` computes the same without ever storing that matrix.

Source: Touvron et al. 2023, "LLaMA", §2.2; Grattafiori et al. 2024, "The Llama 3 Herd of Models", §3.2 (fewer heads for
keys and values); Dao et al. 2022, "FlashAttention".
"""

import torch
from torch import nn
from torch.nn.functional import cross_entropy, linear, rms_norm, scaled_dot_product_attention, silu
from torch.utils.checkpoint import checkpoint

from course_utils.lessons.hybrid_and_sharded.planner.language_models import LanguageModel

TURNS = 500_000.0
"""The slowest pair of numbers turns once in about 2π times so many tokens. (Grattafiori et al. 2024, §3.2.)"""


def rotated(x: torch.Tensor) -> torch.Tensor:
    """Queries or keys, turned by the place of their token: (batch, heads, length, size) → the same shape.

    Source: Su et al. 2021, "RoFormer", §3.2.2.
    """
    length, half = x.shape[-2], x.shape[-1] // 2
    speeds = TURNS ** (-torch.arange(half, device=x.device) / half)
    angles = torch.outer(torch.arange(length, device=x.device), speeds)
    left, right = x.float().chunk(2, dim=-1)
    turned = left * angles.cos() - right * angles.sin(), right * angles.cos() + left * angles.sin()
    return torch.cat(turned, dim=-1).type_as(x)


class ScaledNorm(nn.Module):
    """Divide each vector by the root of its mean square, then multiply it by a weight for each number."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(…, width) → the same shape and dtype."""
        return rms_norm(x, (x.shape[-1],), eps=1e-5) * self.weight.type_as(x)


class LlamaBlock(nn.Module):
    """Causal attention and a perceptron with a gate, each added to what came in; no layer has a bias."""

    def __init__(self, shape: LanguageModel) -> None:
        super().__init__()
        self.size = shape.width // shape.heads
        self.norm_1, self.norm_2 = ScaledNorm(shape.width), ScaledNorm(shape.width)
        keys = round(shape.key_width)
        self.query, self.out = (nn.Linear(shape.width, shape.width, bias=False) for _ in range(2))
        self.key, self.value = (nn.Linear(shape.width, keys, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(shape.width, shape.inner, bias=False) for _ in range(2))
        self.down = nn.Linear(shape.inner, shape.width, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, length, width) → the same shape."""
        x = x + self._attention(self.norm_1(x))
        y = self.norm_2(x)
        return x + self.down(silu(self.gate(y)) * self.up(y))

    def _attention(self, y: torch.Tensor) -> torch.Tensor:
        q, k, v = (
            layer(y).unflatten(-1, (-1, self.size)).transpose(1, 2) for layer in (self.query, self.key, self.value)
        )
        seen = scaled_dot_product_attention(rotated(q), rotated(k), v, is_causal=True, enable_gqa=True)
        return self.out(seen.transpose(1, 2).flatten(2))


class Llama(nn.Module):
    """The whole network, up to the loss of the next token.

    Attributes:
        again: the forward pass of each block is done again in the backward pass, so only its input is kept.
    """

    def __init__(self, shape: LanguageModel, again: bool = False) -> None:
        super().__init__()
        self.again = again
        self.embedding = nn.Embedding(shape.vocabulary, shape.width)
        self.blocks = nn.ModuleList(LlamaBlock(shape) for _ in range(shape.layers))
        self.norm = ScaledNorm(shape.width)
        self.head = nn.Linear(shape.width, shape.vocabulary, bias=False)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)
        self.head_loss = token_loss

    def compile_parts(self, backend: str) -> None:
        """Have torch.compile translate a block, which serves for all blocks, and the last layer with the loss."""
        for block in self.blocks:
            block.compile(backend=backend)
        self.head_loss = torch.compile(token_loss, backend=backend)

    def forward(self, tokens: torch.Tensor, following: torch.Tensor) -> torch.Tensor:
        """Return the mean loss of the tokens that follow: two arrays (batch, length) of int64."""
        x = self.embedding(tokens)
        if torch.is_autocast_enabled(x.device.type):  # what goes from block to block has 2 bytes a number, too
            x = x.to(torch.get_autocast_dtype(x.device.type))
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.again else block(x)
        return self.head_loss(self.norm(x), self.head.weight, following)


def token_loss(x: torch.Tensor, weight: torch.Tensor, following: torch.Tensor) -> torch.Tensor:
    """The last layer and the loss: (batch, length, width), (vocabulary, width), (batch, length) → a number."""
    return cross_entropy(linear(x, weight).flatten(0, 1).float(), following.flatten())
