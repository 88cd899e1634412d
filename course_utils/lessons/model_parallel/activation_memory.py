r"""What each layer of the character model saves for its backward pass, in bytes.

With s the length of the text, b the examples, h the width, a the heads and t the tensor-parallel ranks, Korthikanti et
al. count for a block in 16 bits, with dropout

    s b h (34 + 5 a s / h)               on one rank, equation 1
    s b h (10 + 24/t + 5 a s / (h t))    tensor-parallel, equation 2
    s b h / t (34 + 5 a s / h)           with the sequence cut too, equation 4

Of the 34 bytes 32 are 16 numbers, and 2 are the masks of two dropouts: 4 numbers and the masks lie where tensor
parallelism cuts nothing, 12 where it does. Of the 5, a softmax and its output after dropout are 2 numbers each of two
bytes, and the mask is one byte. Our block saves the same 16 + 2 numbers. So in 16 bits its constants are theirs; what
differs, and why:

- a number has 4 bytes in float32, not 2: 66 and 9 in place of 34 and 5;
- without dropout there are no masks, and the softmax's output is saved once: 64 and 4 in float32;
- our ranks all draw the whole mask of a dropout, so that they equal one process to the last digit, and PyTorch keeps
  the whole one where a part is saved: masks are never divided by t;
- with the sequence cut, Megatron keeps its part of the input of qkv and up, and gathers it again in the backward pass;
  our `ColumnParallelLinear` keeps the gathered input: 2 of the 16 numbers stay whole;
- they leave out what is small: mean and deviation of each token in a layer norm, and the mask of the future (s², one
  byte), which each block makes for itself.

Source: Korthikanti et al. 2022, "Reducing Activation Recomputation in Large Transformer Models", §4.
"""

from torch import nn

from course_utils.errors import CourseError
from course_utils.lessons.model_parallel.memory_parts import ONE_RANK, Parallelism
from course_utils.lessons.model_parallel.transformer import Block, Embedding, Head

INDEX_BYTES = 8
"""Of a character's number, int64."""


def block_activations(
    block: Block, batch: int, length: int, number_bytes: int, tensor: int = 1, sequence: bool = False
) -> float:
    """What a block saves on each of `tensor` ranks; `block` is the whole one, before it is cut.

    Args:
        batch: examples that pass together.
        length: of their text.
        number_bytes: of an activation.
        sequence: what tensor parallelism leaves whole is cut along the sequence.
    """
    tokens, width = batch * length, block.norm_1.normalized_shape[0]
    scores = block.attention.heads * length * tokens
    dropout = block.drop_1.share > 0
    cut = tensor if sequence else 1
    inputs = 2 * tokens * (width + 2) / cut  # of both layer norms, with their means and deviations
    projected = 2 * tokens * width  # what goes into qkv and up
    inside = 12 * tokens * width / tensor  # q, k, v; what goes into out; 4 h before gelu and behind it
    softmax = (2 if dropout else 1) * scores / tensor
    masks = length**2 + dropout * (scores + 2 * tokens * width)
    return number_bytes * (inputs + projected + inside + softmax) + masks


def embedding_activations(batch: int, length: int) -> float:
    """The characters' numbers."""
    return INDEX_BYTES * batch * length


def head_activations(head: Head, batch: int, length: int, number_bytes: int) -> float:
    """The inputs of norm and last layer; for the loss the targets, and the logarithms of all probabilities."""
    characters, width = head.out.weight.shape
    return batch * length * (number_bytes * (2 * width + 2 + characters) + INDEX_BYTES)


def layer_activations(layer: nn.Module, batch: int, length: int, number_bytes: int, parallelism: Parallelism) -> float:
    """What any layer of a character model saves. Embedding and head are on every tensor-parallel rank whole.

    Raises:
        CourseError: a layer of another kind.
    """
    if isinstance(layer, Block):
        return block_activations(layer, batch, length, number_bytes, parallelism.tensor, parallelism.sequence)
    if isinstance(layer, Embedding):
        return embedding_activations(batch, length)
    if isinstance(layer, Head):
        return head_activations(layer, batch, length, number_bytes)
    raise CourseError(f"A {type(layer).__name__} is not a layer of the character model. Give the model as it was made.")


def layer_input(layer: nn.Module, batch: int, length: int, number_bytes: int, parallelism: Parallelism) -> float:
    """What a layer keeps where blocks are checkpointed: a block its input, the others all that they save."""
    if not isinstance(layer, Block):
        return layer_activations(layer, batch, length, number_bytes, parallelism)
    cut = parallelism.tensor if parallelism.sequence else 1
    return number_bytes * batch * length * layer.norm_1.normalized_shape[0] / cut


def saved_at_most(
    model: nn.Sequential,
    batch: int,
    length: int,
    number_bytes: int,
    parallelism: Parallelism = ONE_RANK,
    checkpointing: bool = False,
    in_flight: int = 1,
) -> float:
    """Bytes that are saved for the backward pass at the moment when that is most, on each rank.

    Without checkpointing that is after the forward pass of the last micro-batch in flight. With it, it is then, or when
    the backward pass has computed the largest block again: what the head had saved for this micro-batch is free by
    then.

    Source: Korthikanti et al. 2022, §5; Chen et al. 2016, "Training Deep Nets with Sublinear Memory Cost", §4.
    """
    sizes = (batch, length, number_bytes, parallelism)
    everything = [layer_activations(layer, *sizes) for layer in model]
    if not checkpointing:
        return in_flight * sum(everything)
    inputs = [layer_input(layer, *sizes) for layer in model]
    again = max(whole - left for whole, left in zip(everything, inputs, strict=True))
    head = sum(saved for layer, saved in zip(model, everything, strict=True) if isinstance(layer, Head))
    return in_flight * sum(inputs) + max(0.0, again - head)
