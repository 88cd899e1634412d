"""As the library: zero_memory of one part at a time."""

from course_utils.lessons.hybrid_and_sharded.zero_formulas import zero_memory
from course_utils.lessons.model_parallel.activation_memory import saved_at_most
from course_utils.lessons.model_parallel.memory_parts import NUMBER_BYTES, ONE_RANK, Memory, bytes_for_each_parameter
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
    parameter, gradient, state = bytes_for_each_parameter(optimizer, precision)
    numbers = 0
    for layer in model:
        numbers += layer_parameters(layer, parallelism.tensor)

    def kept(**bytes_each):
        none = {"parameter_bytes": 0, "gradient_bytes": 0, "state_bytes": 0}
        return zero_memory(numbers, parallelism.data, parallelism.zero, **(none | bytes_each))

    return Memory(
        kept(parameter_bytes=parameter),
        kept(gradient_bytes=gradient),
        kept(state_bytes=state),
        saved_at_most(model, batch, length, NUMBER_BYTES[precision], parallelism, checkpointing, in_flight),
    )
