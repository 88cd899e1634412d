"""As the library: zero_memory of one part at a time."""

from course_utils.memory import ONE_RANK, Memory
from course_utils.memory.activations import saved_at_most
from course_utils.memory.parts import NUMBER_BYTES, bytes_for_each_parameter
from course_utils.memory.training import layer_parameters
from course_utils.sharded import zero_memory


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
