"""Bytes on the fullest GPU, in mixed precision with Adam, on paper."""

from course_utils.lessons.hybrid_and_sharded.planner.gpu_clusters import Rates
from course_utils.lessons.hybrid_and_sharded.planner.language_models import LanguageModel
from course_utils.lessons.hybrid_and_sharded.planner.training_layout import EVERY_OTHER, FULL, SELECTIVE, Layout
from course_utils.lessons.hybrid_and_sharded.zero_formulas import zero_memory
from course_utils.lessons.model_parallel.memory_parts import Memory

NUMBER_BYTES = 2
"""Of a number that computes or travels: bfloat16."""
EXPONENTIAL = 4
"""Bytes of a logit more where torch computes the loss of cut logits: its exponential in float32, beside all others."""
GATHERED = 2
"""Layers whose parameters stage 3 has gathered at a time: the one that computes, and with prefetch the next."""


def layer_activations(
    model: LanguageModel, batch: int, length: int, tensor: int, attention: bool, context: int = 1
) -> float:
    """What a block saves on each of `tensor` GPUs, with the sequence cut too: as GPT s b h / t (34 + 5 a s / h).

    For Llama the same sum over other layers: fewer keys and values, three wide vectors in the perceptron instead of
    two. Without dropout softmax's output is saved once, and nothing has a mask.

    With experts a token's row is there k times, on its way in and on its way out, and so is the perceptron's inside.
    All experts are taken to be equally busy.

    Args:
        attention: count what stands around the softmax, 5 a s / h. Without, it is computed again or never written.
        context: GPUs that share each text. Each has its own queries, and every key.

    Source: Korthikanti et al. 2022, equations 4 and 6; `context` Liu et al. 2023, "Ring Attention", §3.
    """
    stream, inner = model.width, (3 if model.gated else 2) * model.inner
    if model.experts:
        inner = model.chosen * (inner + 2 * stream)
    numbers = 6 * stream + 2 * model.key_width + inner  # two norms, into qkv, q, into out, into up; k and v; perceptron
    masks = 2 * stream if model.dropout else 0
    softmax = (5 if model.dropout else 2) * model.heads * length if attention else 0
    return batch * length * (2 * numbers + masks + softmax) / tensor / context


def saved_activations(model: LanguageModel, layout: Layout, length: int, layers: int, in_flight: float) -> float:
    """What the blocks of a stage save for all micro-batches in flight.

    Computed again from their inputs, each keeps 2 s b h / t. With every other product
    again it keeps its input, q, v, attention's result, one wide vector of the perceptron and its result.

    Source: Korthikanti et al. 2022, §4.2.3 and §5; torchtitan, parallelize_llama.py, "selective op".
    """
    return in_flight * layers * _saved_by_block(model, layout, length)


def _saved_by_block(model: LanguageModel, layout: Layout, length: int) -> float:
    tokens = layout.micro_batch * length / layout.tensor / layout.context
    if layout.again == FULL:
        return 2 * tokens * model.width
    if layout.again == EVERY_OTHER:
        wide = model.inner * (model.chosen if model.experts else 1)
        return 2 * tokens * (4 * model.width + model.key_width + wide)
    return _everything(model, layout, length)


def _one_block(model: LanguageModel, layout: Layout, length: int) -> float:
    """What one block has while the backward pass goes through it and computes again."""
    return _everything(model, layout, length) if layout.again in (EVERY_OTHER, FULL) else 0.0


def in_one_block(model: LanguageModel, layout: Layout, length: int) -> float:
    """What lives while the backward pass goes through one block: what it computes again, inputs gathered from the
    tensor-parallel GPUs, and with ZeRO's stages 2 and 3 the block's whole gradient and its copy that travels.

    Source: Zhao et al. 2023, "PyTorch FSDP", §3.2.1.
    """
    gathered = 0.0
    if layout.program.dtensor:
        tokens = layout.micro_batch * length / layout.context
        bytes_of = 1 if layout.program.float8 else NUMBER_BYTES
        gathered = 2 * bytes_of * tokens * model.width * (1 - 1 / layout.tensor)
    gradient = NUMBER_BYTES + layout.program.kept[1] if layout.zero >= 2 else 0
    layer = (model.shared_parameters + model.expert_parameters / layout.expert) / layout.tensor
    return _one_block(model, layout, length) + gathered + gradient * layer


def _at_the_loss(model: LanguageModel, layout: Layout, length: int, rates: Rates | None) -> float:
    """What the last layer and the loss have of one micro-batch: its input, and each logit several times."""
    each = rates.logit if rates else 4
    if rates and layout.program.fused_loss:
        each = 2 * NUMBER_BYTES
    elif rates and layout.program.dtensor and layout.tensor > 1:
        each += EXPONENTIAL
    tokens = layout.micro_batch * length / layout.context
    return each * tokens * (model.vocabulary + model.width) / layout.tensor


def _stage_messages(model: LanguageModel, layout: Layout, length: int, in_flight: float) -> float:
    """Buffers of torch's stages: one for each micro-batch and message that comes in, and results that are in flight.

    The first and the last stage of all have messages from one side only.
    """
    if not layout.program.dtensor or layout.pipeline == 1:
        return 0.0
    message = NUMBER_BYTES * layout.micro_batch * length / layout.context * model.width / layout.tensor
    return message * ((2 * layout.chunks - 1) * layout.micro_batches + in_flight)


def _logits_kept(model: LanguageModel, layout: Layout, length: int) -> float:
    """torch's stages hand out the results of all micro-batches at the end of a step."""
    if not layout.program.dtensor:
        return 0.0
    tokens = layout.micro_batches * layout.micro_batch * length / layout.context
    return NUMBER_BYTES * tokens * model.vocabulary / layout.tensor


def _everything(model: LanguageModel, layout: Layout, length: int) -> float:
    softmax = layout.again != SELECTIVE and not layout.program.fused
    return layer_activations(model, layout.micro_batch, length, layout.tensor, softmax, layout.context)


def layers_on_stage(model: LanguageModel, pipeline: int) -> int:
    """Of the fullest stage."""
    return -(-model.layers // pipeline)


def matrices_of_tokens(model: LanguageModel, layout: Layout) -> int:
    """Of embedding and last layer, how many the fullest GPU has: two where both ends of the model meet on it, unless
    the last layer is the embedding.
    """
    return 2 if model.gated and (layout.pipeline == 1 or layout.zero_bubble) else 1


def gpu_memory(model: LanguageModel, layout: Layout, length: int, rates: Rates | None = None) -> Memory:
    """Bytes of each part on a GPU of the pipeline's first stage, or of its last if that has more.

    The first has the embedding and keeps min(P, m) micro-batches in flight; the last has the last layer, one
    micro-batch, and its logits in float32. Matrices, embedding and logits are cut over the tensor-parallel GPUs.

    A text's tokens are divided over `context` GPUs, and so are activations and logits; ZeRO divides over data ×
    context.
    Experts are divided over `expert` GPUs first, and by ZeRO over those that keep the same ones.

    In a V the first GPU has both ends, and no more in flight than without chunks: 2 P halves of a stage.

    Args:
        rates: count also what is fitted. Each logit is there several times, but not while a block computes again: of
            the two peaks the higher one counts. And the allocator holds more than it gives out.

    Source: Rajbhandari et al. 2020, §3.1 (2 + 2 + 12 bytes) and §5 (what is divided); Narayanan et al. 2021, §2.2
    (in flight, interleaved too); Korthikanti et al. 2022, §4.3 (logits); Rajbhandari et al. 2022,
    "DeepSpeed-MoE" (experts).
    """
    layers, stages = layers_on_stage(model, layout.pipeline), layout.pipeline
    in_flight = float(min(stages, layout.micro_batches))
    if layout.chunks > 1 and not layout.zero_bubble:
        in_flight *= 1 + (stages - 1) / (stages * layout.chunks)
    logits = _at_the_loss(model, layout, length, rates)
    outputs = _logits_kept(model, layout, length)
    if stages == 1:
        ends = [(1.0, logits, 0.0)]
    elif layout.zero_bubble:
        ends = [(in_flight, logits, outputs)]
    else:
        ends = [(in_flight, 0.0, 0.0), (1.0, logits, outputs)]
    found = []
    matrices = matrices_of_tokens(model, layout)
    for flight, loss, results in ends:
        shared = (layers * model.shared_parameters + matrices * model.token_parameters) / layout.tensor
        experts = layers * model.expert_parameters / layout.tensor / layout.expert
        activations = saved_activations(model, layout, length, layers, flight)
        if rates:
            most = max(in_one_block(model, layout, length), loss)
            messages = _stage_messages(model, layout, length, flight)
            activations = rates.reserve * (activations + most + results + messages)
        else:
            activations += _one_block(model, layout, length) + loss
        found.append(_with_activations(model, layout, shared, experts, activations))
    return max(found, key=lambda memory: memory.total)


def _with_activations(
    model: LanguageModel, layout: Layout, shared: float, experts: float, activations: float
) -> Memory:
    def kept(*bytes_of: float) -> float:
        dense = zero_memory(shared, layout.replicas // layout.copies, layout.zero, *bytes_of)
        return dense + zero_memory(experts, layout.replicas // layout.expert, layout.zero, *bytes_of)

    parameter, gradient, state = layout.program.kept
    state = 0 if layout.offload else state
    layer = (model.shared_parameters + model.expert_parameters / layout.expert) / layout.tensor
    if layout.zero < 3:
        return Memory(kept(parameter, 0, 0), kept(0, gradient, 0), kept(0, 0, state), activations)
    whole = shared + experts if layout.gathered else (GATHERED if layout.program.prefetch else 1) * layer
    gradients = gradient * whole if layout.gathered else kept(0, gradient, 0)
    return Memory(kept(parameter, 0, 0) + NUMBER_BYTES * whole, gradients, kept(0, 0, state), activations)
