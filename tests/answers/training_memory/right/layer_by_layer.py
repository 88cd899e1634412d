"""Parameters and activations in one loop over the layers."""

from course_utils.lessons.model_parallel.activation_memory import layer_activations, layer_input
from course_utils.lessons.model_parallel.memory_parts import (
    NUMBER_BYTES,
    ONE_RANK,
    Memory,
    bytes_for_each_parameter,
    check_stage,
)
from course_utils.lessons.model_parallel.transformer import Block, Head

WHOLE = ("norm_1.weight", "norm_1.bias", "norm_2.weight", "norm_2.bias", "attention.out.bias", "mlp.down.bias")


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
    bytes_each = bytes_for_each_parameter(optimizer, precision)
    sizes = (batch, length, NUMBER_BYTES[precision], parallelism)
    numbers = saved = again = head = 0
    for layer in model:
        for name, parameter in layer.named_parameters():
            cut = isinstance(layer, Block) and name not in WHOLE
            numbers += parameter.numel() / (parallelism.tensor if cut else 1)
        everything = layer_activations(layer, *sizes)
        left = layer_input(layer, *sizes) if checkpointing else everything
        saved += left
        again = max(again, everything - left)
        head += everything if isinstance(layer, Head) else 0
    kept = [numbers * size for size in bytes_each]
    for place in (2, 1, 0)[: parallelism.zero]:
        kept[place] /= parallelism.data
    return Memory(*kept, in_flight * saved + (max(0, again - head) if checkpointing else 0))
