"""Lesson 17, What if the text does not fit? Read `merge` first, then `block_attention`.

Attention in one process, block by block (`merge`, `block_attention`), and its backward pass (`block_gradients`). A text
on several ranks: who has which tokens (`zigzag`, `work`), keys and values that go around a ring (`ring_attention`,
forward and backward in `long_attention`), or an exchange of heads (`ulysses`), and what each of them sends
(`bytes_sent`). torch's own tool on processors (`torch_tool`). How long a text fits (`longest_text`, `text_memory`). A
whole model on a mesh: `mesh_model`.
"""

from typing import TYPE_CHECKING

from course_utils.lazy import attach

if TYPE_CHECKING:
    from . import pictures, sentences
    from .block_attention import accumulator, block_attention, blocks_seen, for_heads, masked_scores, ordinary_attention
    from .bytes_sent import Shape, ring_bytes, ulysses_bytes
    from .experiments import (
        attention_memory,
        beside_one_process,
        bytes_in,
        computing,
        drawn_text,
        mesh_beside_one_process,
        output_beside_one_process,
        ring_without_messages,
        text_step_memory,
        timed,
    )
    from .long_attention import attention_in_blocks, attention_round_the_ring
    from .merge import merge_attention
    from .ring_attention import check_positions, pass_on
    from .sentences import difference_text, growth_text
    from .text_memory import memory_in_blocks, ordinary_memory
    from .torch_tool import add_processor_kernel
    from .ulysses import heads_for_tokens, tokens_for_heads, ulysses_attention
    from .work import imbalance, keys_needed, pairs_computed, pairs_seen
    from .zigzag import check_length, in_order, zigzag

__getattr__, __dir__, __all__ = attach(__name__, __file__)
