"""Tables of its own, and errors of its own."""

from course_utils.errors import CourseError
from course_utils.lessons.model_parallel.activation_memory import saved_at_most
from course_utils.lessons.model_parallel.memory_parts import ONE_RANK, Memory
from course_utils.lessons.model_parallel.training_memory import layer_parameters

NUMBER = {"float32": 4, "float64": 8, "mixed": 2}
KEPT = {"sgd": 0, "momentum": 1, "adam": 2}


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
    if optimizer not in KEPT or precision not in NUMBER or parallelism.zero not in range(4):
        raise CourseError("That is not known here.")
    number = NUMBER[precision]
    state = KEPT[optimizer] * number if precision != "mixed" else 4 + 4 * KEPT[optimizer]
    numbers = sum([layer_parameters(layer, parallelism.tensor) for layer in model])
    divided = {3: [state, number, number], 2: [state, number], 1: [state], 0: []}[parallelism.zero]
    bytes_each = [number, number, state]
    first = 3 - len(divided)
    kept = [numbers * size / (parallelism.data if place >= first else 1) for place, size in enumerate(bytes_each)]
    activations = saved_at_most(model, batch, length, number, parallelism, checkpointing, in_flight)
    return Memory(*kept, activations=activations)
