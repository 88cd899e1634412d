"""Refused with: What of a block has each tensor-parallel rank?"""

from course_utils.lessons.model_parallel.activation_memory import saved_at_most
from course_utils.lessons.model_parallel.memory_parts import (
    NUMBER_BYTES,
    ONE_RANK,
    Memory,
    bytes_for_each_parameter,
    check_stage,
)


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
    numbers = sum(one.numel() for one in model.parameters())
    parameter, gradient, state = bytes_for_each_parameter(optimizer, precision)
    ranks = parallelism.data
    parameters = numbers * parameter / (ranks if parallelism.zero >= 3 else 1)
    gradients = numbers * gradient / (ranks if parallelism.zero >= 2 else 1)
    state = numbers * state / (ranks if parallelism.zero >= 1 else 1)
    number = NUMBER_BYTES[precision]
    activations = saved_at_most(model, batch, length, number, parallelism, checkpointing, in_flight)
    return Memory(parameters, gradients, state, activations)
