"""What training a character model keeps for each token of a text, and for each pair of tokens, in bytes.

This is lesson 9's count for a block, with attention as in this lesson. The weights of all pairs and the mask are gone,
and a log-sum-exp for each token and head is added. Attention's output is there twice, once as attention made it, and
once with its heads joined, as `out` needs it.
"""

from dataclasses import dataclass

from torch import nn

from course_utils.lessons.long_texts.longest_text import longest_text
from course_utils.lessons.model_parallel.activation_memory import saved_at_most
from course_utils.lessons.model_parallel.memory_parts import NUMBER_BYTES, ONE_RANK
from course_utils.lessons.model_parallel.training_memory import training_memory
from course_utils.lessons.model_parallel.transformer import Block


@dataclass(frozen=True)
class TextMemory:
    """Bytes that training one text takes on each of P ranks: fixed + (per_token · n + per_pair · n²) / P.

    Attributes:
        fixed: parameters, gradients, optimizer state. A table of positions counts as it is, and does not grow with n.
        per_token, per_pair: activations of all layers.
    """

    fixed: float
    per_token: float
    per_pair: float = 0.0

    def on_each(self, length: int, world_size: int = 1) -> float:
        """Return the bytes on each rank with a text of so many tokens."""
        return self.fixed + (self.per_token * length + self.per_pair * length**2) / world_size

    def longest(self, memory: float, world_size: int = 1) -> int:
        """Return the longest text that fits into so many bytes on each rank; see `longest_text`."""
        return longest_text(memory, self.fixed, self.per_token, self.per_pair, world_size)


def ordinary_memory(model: nn.Sequential, optimizer: str = "adam", precision: str = "float32") -> TextMemory:
    """Return lesson 9's formula, sorted by powers of the length, for one text without dropout.

    Source: `course_utils.lessons.model_parallel.training_memory`.
    """
    number = NUMBER_BYTES[precision]
    of_one, of_two = (saved_at_most(model, 1, length, number, ONE_RANK) for length in (1, 2))
    per_pair = (of_two - 2 * of_one) / 2  # of_one = a + b, of_two = 2 a + 4 b
    kept = training_memory(model, 1, 1, optimizer, precision)
    return TextMemory(kept.total - kept.activations, of_one - per_pair, per_pair)


def memory_in_blocks(model: nn.Sequential) -> TextMemory:
    """Return the same for attention in blocks: no pairs, but the output once more and a log-sum-exp for each token."""
    ordinary, number = ordinary_memory(model), NUMBER_BYTES["float32"]
    more = sum(block_extra(layer, number) for layer in model if isinstance(layer, Block))
    return TextMemory(ordinary.fixed, ordinary.per_token + more)


def block_extra(block: Block, number_bytes: int) -> float:
    """Return the extra bytes per token of a block: attention's own output, and a log-sum-exp for each head."""
    width, heads = block.norm_1.normalized_shape[0], block.attention.heads
    return number_bytes * width + max(4, number_bytes) * heads
