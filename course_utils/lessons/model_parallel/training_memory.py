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
"""Biases that are added after the sum over tensor-parallel ranks: each of them has these whole. So it has the norms."""


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
    """Bytes that each rank needs to train a character model, or a stage of it.

    What ZeRO divides is divided exactly, so a rank may have a fraction of a byte.

    Args:
        model: layers of a character model, before tensor parallelism cuts them.
        batch: examples that pass through it together on this rank: a micro-batch.
        length: characters of each.
        optimizer: "sgd", "momentum" or "adam".
        precision: "float32", "float64" or "mixed".
        parallelism: replicas with their stage of ZeRO, and ranks that share the blocks.
        checkpointing: each block saves its input only; one at a time is computed again.
        in_flight: micro-batches whose activations are kept at once: 1 without a pipeline. (With one
            of P stages, lesson 10, min(P - r, m) on rank r with 1F1B, m with GPipe.)

    Raises:
        CourseError: no such optimizer, precision or stage of ZeRO.

    Source: Rajbhandari et al. 2020, "ZeRO", §3.1 (what is kept for each parameter);
    `course_utils.lessons.model_parallel.activation_memory`; Narayanan et al. 2021, §2.2.1 (in
    flight).
    """
    check_stage(parallelism.zero, parallelism.data)
    # What is kept for each parameter, however long the text is …
    numbers = sum(layer_parameters(layer, parallelism.tensor) for layer in model)
    kept = []
    for stage, size in zip((3, 2, 1), bytes_for_each_parameter(optimizer, precision), strict=True):
        # stage 1 divides the state, 2 the gradients too, 3 also the parameters
        sharers = parallelism.data if parallelism.zero >= stage else 1
        kept.append(numbers * size / sharers)
    # … and what the backward pass needs, which grows with the batch.
    sizes = batch, length, NUMBER_BYTES[precision]
    return Memory(*kept, saved_at_most(model, *sizes, parallelism, checkpointing, in_flight))


def layer_parameters(layer: nn.Module, tensor: int = 1) -> float:
    """How many numbers of a layer's parameters each tensor-parallel rank has.

    Of a block the matrices are cut, and the biases of their outputs where these are cut. Of other layers nothing is.
    """
    whole = cut = 0
    for name, parameter in layer.named_parameters():
        if isinstance(layer, Block) and not name.startswith("norm") and name not in UNCUT:
            cut += parameter.numel()
        else:
            whole += parameter.numel()
    return whole + cut / tensor
