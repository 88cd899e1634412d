"""Refused with: Must a rank's share, on average, be a whole number of bytes?"""

from course_utils.lessons.model_parallel.activation_memory import saved_at_most
from course_utils.lessons.model_parallel.memory_parts import (
    NUMBER_BYTES,
    ONE_RANK,
    Memory,
    bytes_for_each_parameter,
    check_stage,
)
from course_utils.lessons.model_parallel.training_memory import layer_parameters


def training_memory(
    model,
    batch,
    length,
    optimizer="adam",
    precision="float32",
    parallelism=ONE_RANK,
    checkpointing=False,
    in_flight=1,
):
    check_stage(parallelism.zero, parallelism.data)
    numbers = sum(layer_parameters(layer, parallelism.tensor) for layer in model)
    parts = []
    for stage, size in zip((3, 2, 1), bytes_for_each_parameter(optimizer, precision), strict=True):
        replicas = parallelism.data if parallelism.zero >= stage else 1
        parts.append(numbers * size // replicas)
    sizes = batch, length, NUMBER_BYTES[precision], parallelism
    return Memory(*parts, saved_at_most(model, *sizes, checkpointing, in_flight))
