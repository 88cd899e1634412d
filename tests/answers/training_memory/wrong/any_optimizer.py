"""Refused with: What does the docstring promise for a name or a stage that does not exist?"""

from course_utils.lessons.model_parallel.activation_memory import saved_at_most
from course_utils.lessons.model_parallel.memory_parts import NUMBER_BYTES, ONE_RANK, Memory, check_stage
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
    moments = {"sgd": 0, "momentum": 1, "adam": 2}.get(optimizer, 2)
    parameter = gradient = NUMBER_BYTES[precision]
    state = 4 + 4 * moments if precision == "mixed" else moments * parameter
    ranks = parallelism.data
    parameters = numbers * parameter / (ranks if parallelism.zero >= 3 else 1)
    gradients = numbers * gradient / (ranks if parallelism.zero >= 2 else 1)
    state = numbers * state / (ranks if parallelism.zero >= 1 else 1)
    number = NUMBER_BYTES[precision]
    activations = saved_at_most(model, batch, length, number, parallelism, checkpointing, in_flight)
    return Memory(parameters, gradients, state, activations)
