"""Bytes on the fullest GPU, in mixed precision with Adam, on paper."""

from course_utils.lessons.hybrid_and_sharded.planner.language_models import LanguageModel
from course_utils.lessons.hybrid_and_sharded.planner.training_layout import FULL, SELECTIVE, Layout
from course_utils.lessons.hybrid_and_sharded.zero_formulas import zero_memory
from course_utils.lessons.model_parallel.memory_parts import Memory, bytes_for_each_parameter

GATHERED = 2
"""Layers whose parameters stage 3 has gathered at a time: the one that computes, and the next."""


def layer_activations(model: LanguageModel, batch: int, length: int, tensor: int, attention: bool) -> float:
    """What a block saves on each of `tensor` GPUs, with the sequence cut too: as GPT s b h / t (34 + 5 a s / h).

    For Llama the same sum over other layers: fewer keys and values, three wide vectors in the perceptron instead of
    two, and no dropout, so that softmax's output is saved once and nothing has a mask.

    Args:
        attention: count what stands around the softmax, 5 a s / h. Without, it is computed again or never written.

    Source: Korthikanti et al. 2022, equations 4 and 6.
    """
    stream, inner = model.width, (3 if model.gated else 2) * model.inner
    numbers = 6 * stream + 2 * model.key_width + inner  # two norms, into qkv, q, into out, into up; k and v; perceptron
    masks = 0 if model.gated else 2 * stream
    softmax = (2 if model.gated else 5) * model.heads * length if attention else 0
    return batch * length * (2 * numbers + masks + softmax) / tensor


def saved_activations(model: LanguageModel, layout: Layout, length: int, layers: int, in_flight: float) -> float:
    """What the blocks of a stage save for all micro-batches in flight.

    Computed again from their inputs, each keeps 2 s b h / t, and one at a time everything.

    Source: Korthikanti et al. 2022, §4.2.3 and §5.
    """
    whole = layer_activations(model, layout.micro_batch, length, layout.tensor, layout.again != SELECTIVE)
    if layout.again != FULL:
        return in_flight * layers * whole
    entering = 2 * layout.micro_batch * length * model.width / layout.tensor
    return in_flight * layers * entering + whole


def layers_on_stage(model: LanguageModel, pipeline: int) -> int:
    """Of the fullest stage."""
    return -(-model.layers // pipeline)


def gpu_memory(model: LanguageModel, layout: Layout, length: int) -> Memory:
    """Bytes of each part on a GPU of the pipeline's first stage, or of its last if that has more.

    The first has the embedding and keeps min(P, m) micro-batches in flight; the last has the last layer, one
    micro-batch, and its logits in float32. Matrices, embedding and logits are cut over the tensor-parallel GPUs.

    Source: Rajbhandari et al. 2020, §3.1 (2 + 2 + 12 bytes) and §5 (what is divided); Narayanan et al. 2021, §2.2
    (in flight, interleaved too); Korthikanti et al. 2022, §4.3 (logits).
    """
    layers, stages = layers_on_stage(model, layout.pipeline), layout.pipeline
    in_flight = float(min(stages, layout.micro_batches))
    if layout.chunks > 1:
        in_flight *= 1 + (stages - 1) / (stages * layout.chunks)
    logits = 4 * layout.micro_batch * length * (model.vocabulary + model.width) / layout.tensor
    if stages == 1:
        ends = [(2 if model.gated else 1, 1.0, logits)]
    else:
        ends = [(1, in_flight, 0.0), (1, 1.0, logits)]
    found = []
    for embeddings, flight, more in ends:
        numbers = (layers * model.layer_parameters + embeddings * model.token_parameters) / layout.tensor
        activations = saved_activations(model, layout, length, layers, flight) + more
        found.append(_with_activations(model, layout, numbers, activations))
    return max(found, key=lambda one: one.total)


def _with_activations(model: LanguageModel, layout: Layout, numbers: float, activations: float) -> Memory:
    parameter, gradient, state = bytes_for_each_parameter("adam", "mixed")
    gathered = parameter * GATHERED * model.layer_parameters / layout.tensor if layout.zero == 3 else 0
    return Memory(
        zero_memory(numbers, layout.data, layout.zero, parameter, 0, 0) + gathered,
        zero_memory(numbers, layout.data, layout.zero, 0, gradient, 0),
        zero_memory(numbers, layout.data, layout.zero, 0, 0, state),
        activations,
    )
