"""The KV cache: the keys and values of all tokens so far, kept so that the next token need not compute them again.

The next token needs a query of its own, and the keys and values of every token before it. Those do not change any more,
because causal attention never lets a token see a later one. So a program keeps them, layer by layer.
"""

from collections.abc import Sequence

import torch
from torch import nn

from course_utils.errors import CourseError
from course_utils.lessons.model_parallel.transformer import Block


def kv_cache_bytes(
    texts: Sequence[int],
    layers: int,
    kv_heads: int,
    head_size: int,
    itemsize: int = 2,
    world_size: int = 1,
) -> int:
    """Return the bytes of the keys and values of several texts on one rank.

    Every layer keeps a key and a value for each token and each KV head. With tensor parallelism
    the KV heads are divided among the ranks. If there are more ranks than KV heads, each rank
    holds one head, and several ranks hold the same one.

    Args:
        texts: how many tokens each text has so far; there may be no text.
        layers: of the model.
        kv_heads: heads of keys and values in a layer. Several heads of queries may share one.
        head_size: numbers in a key, and in a value.
        itemsize: bytes of a number.
        world_size: ranks that share the model's heads.

    Raises:
        CourseError: neither number, of ranks and of KV heads, is a multiple of the other.

    Source: Shazeer 2019, "Fast Transformer Decoding: One Write-Head is All You Need", §2.4.1;
    Ainslie et al. 2023, "GQA" (heads that share keys and values).
    """
    if kv_heads % world_size and world_size % kv_heads:
        raise CourseError(f"{kv_heads} KV heads cannot be divided among {world_size} ranks, nor the other way round.")
    own_heads = max(1, kv_heads // world_size)
    return 2 * layers * own_heads * head_size * itemsize * sum(texts)


class LayerCache:
    """The keys and values of one text in one layer.

    Attributes:
        keys, values: (heads, tokens, size), of the heads that this rank computes; None before the first token.
    """

    def __init__(self) -> None:
        self.keys: torch.Tensor | None = None
        self.values: torch.Tensor | None = None

    def append(self, keys: torch.Tensor, values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Add the keys and values (heads, new tokens, size) of new tokens; return those of all tokens so far."""
        if self.keys is None or self.values is None:
            self.keys, self.values = keys.clone(), values.clone()
        else:
            self.keys = torch.cat([self.keys, keys], dim=1)
            self.values = torch.cat([self.values, values], dim=1)
        return self.keys, self.values

    @property
    def tokens(self) -> int:
        """How many tokens it holds."""
        return 0 if self.keys is None else self.keys.shape[1]

    @property
    def nbytes(self) -> int:
        """Bytes of its keys and values, counted."""
        return sum(kept.nbytes for kept in (self.keys, self.values) if kept is not None)

    def drop_after(self, tokens: int) -> None:
        """Forget all but the first `tokens` tokens."""
        if self.keys is not None and self.values is not None:
            self.keys, self.values = self.keys[:, :tokens].clone(), self.values[:, :tokens].clone()


class KVCache:
    """The keys and values of one text in all layers of a model.

    Attributes:
        layers: the cache of each layer.
    """

    def __init__(self, layers: int) -> None:
        self.layers = [LayerCache() for _ in range(layers)]

    @classmethod
    def of(cls, model: nn.Sequential) -> "KVCache":
        """An empty cache for a text that this model is to read."""
        return cls(sum(isinstance(layer, Block) for layer in model))

    @property
    def tokens(self) -> int:
        """How many tokens of the text it holds."""
        return self.layers[0].tokens if self.layers else 0

    @property
    def nbytes(self) -> int:
        """Bytes of all keys and values, counted."""
        return sum(layer.nbytes for layer in self.layers)

    def drop_after(self, tokens: int) -> None:
        """Forget all but the first `tokens` tokens, in every layer."""
        for layer in self.layers:
            layer.drop_after(tokens)

    def stacked(self) -> torch.Tensor:
        """All keys and values in one tensor, (layers, 2, heads, tokens, size): what one rank sends to another.

        Raises:
            CourseError: the cache is empty.
        """
        if not self.tokens:
            raise CourseError("This cache is empty, so there is nothing to send. Let the model read a text first.")
        return torch.stack([torch.stack([layer.keys, layer.values]) for layer in self.layers])

    @classmethod
    def unstacked(cls, kept: torch.Tensor) -> "KVCache":
        """The cache that `stacked` made this tensor of."""
        cache = cls(len(kept))
        for layer, (keys, values) in zip(cache.layers, kept, strict=True):
            layer.append(keys, values)
        return cache
