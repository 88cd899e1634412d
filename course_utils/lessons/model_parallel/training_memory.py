"""The memory of each rank in training, before anything runs: parameters, gradients, optimizer state, activations."""

from torch import nn

from course_utils.lessons.model_parallel.activation_memory import saved_at_most
from course_utils.lessons.model_parallel.memory_parts import (
    NUMBER_BYTES,
    ONE_RANK,
    Memory,
    Parallelism,
    bytes_for_each_parameter,
    check_stage,
)
from course_utils.lessons.model_parallel.transformer import Block

UNCUT = ("attention.out.bias", "mlp.down.bias")
"""Biases that are added after the sum over tensor-parallel ranks. Each rank has these whole, like the norms."""


def training_memory(
    model: nn.Sequential,
    batch: int,
    length: int,
    optimizer: str = "adam",
    precision: str = "float32",
    parallelism: Parallelism = ONE_RANK,
    checkpointing: bool = False,
    in_flight: int = 1,
) -> Memory:
    """Return the bytes that each rank keeps while it trains a character model or some layers of it.

    The parts need not be whole numbers of bytes.

    Args:
        model: layers of a character model, before tensor parallelism cuts them.
        batch: the number of texts that this rank works on together.
        length: the number of characters of each text.
        optimizer: "sgd", "momentum" or "adam".
        precision: "float32", "float64" or "mixed".
        parallelism: `data` replicas, which divide what `zero` says (0 to 3), and `tensor` ranks
            that share each block.
        checkpointing: whether each block saves only its input and is recomputed.
        in_flight: the number of batches whose activations are kept at the same time.

    Raises:
        CourseError: there is no such optimizer, precision or `zero`.

    Source: Rajbhandari et al. 2020, "ZeRO", §3.1 (what is kept for each parameter);
    `course_utils.lessons.model_parallel.activation_memory`; Narayanan et al. 2021, §2.2.1 (in
    flight).
    """
    check_stage(parallelism.zero, parallelism.data)
    # What is kept for each parameter doesn't depend on the text …
    numbers = sum(layer_parameters(layer, parallelism.tensor) for layer in model)
    kept = []
    for stage, size in zip((3, 2, 1), bytes_for_each_parameter(optimizer, precision), strict=True):
        # stage 1 divides the state, 2 also the gradients, 3 also the parameters
        sharers = parallelism.data if parallelism.zero >= stage else 1
        kept.append(numbers * size / sharers)
    # … and what the backward pass needs grows with the batch.
    sizes = batch, length, NUMBER_BYTES[precision]
    return Memory(*kept, saved_at_most(model, *sizes, parallelism, checkpointing, in_flight))


def layer_parameters(layer: nn.Module, tensor: int = 1) -> float:
    """Return how many parameters of a layer each tensor-parallel rank has.

    In a block the matrices are cut, and the biases of those outputs that are cut. Other layers are not cut.
    """
    whole = cut = 0
    for name, parameter in layer.named_parameters():
        if isinstance(layer, Block) and not name.startswith("norm") and name not in UNCUT:
            cut += parameter.numel()
        else:
            whole += parameter.numel()
    return whole + cut / tensor
