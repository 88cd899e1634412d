"""Seconds of one training step, part by part, on paper.

What is left out: starting kernels, slow GPUs; where a cluster has no fitted rates, also the optimizer's own arithmetic,
layers that are not matrix products, and how much more the last stage has to do than the others. What is assumed:
without fitted rates matrix products reach `cluster.efficiency` of the peak however they are cut; messages of tensor and
pipeline parallelism, and those to experts and back, hide behind nothing; keys and values on their way round a ring hide
behind attention; messages of data parallelism hide behind the backward pass, as in lesson 7, and FSDP's gathers behind
the layer before.
"""

from course_utils.lessons.allreduce.cost_model import allreduce_time
from course_utils.lessons.hybrid_and_sharded.planner.collective_times import allreduce_seconds, ring_seconds
from course_utils.lessons.hybrid_and_sharded.planner.gpu_clusters import Cluster, Rates
from course_utils.lessons.hybrid_and_sharded.planner.gpu_memory import (
    NUMBER_BYTES,
    layer_activations,
    layers_on_stage,
    matrices_of_tokens,
)
from course_utils.lessons.hybrid_and_sharded.planner.language_models import LanguageModel
from course_utils.lessons.hybrid_and_sharded.planner.training_layout import (
    EVERY_OTHER,
    FULL,
    NOTHING,
    SELECTIVE,
    Layout,
    TrainingProgram,
)
from course_utils.lessons.pipeline.schedules import bubble_fraction

COMPUTE, AGAIN, TENSOR, BUBBLE, PIPELINE, DATA, EXPERT, CONTEXT, OPTIMIZER = (
    "compute",
    "computed again",
    "tensor messages",
    "bubble",
    "pipeline messages",
    "data messages",
    "expert messages",
    "context messages",
    "optimizer",
)
BACKWARD_SHARE = 2 / 3
"""Of a forward and a backward pass: the latter has twice the products."""
LOGIT, FUSED_LOGIT = 28, 6
"""Bytes that a logit moves from the last product forward to the first one backward. Operation by operation these are a
copy in float32 (2 + 4), the logarithm of softmax (4 + 4), its gradient (4 + 4), and that in bfloat16 (4 + 2). Fused, a
logit is read forward, read again backward, and its gradient written."""
BUCKET = 25 << 20
"""Bytes of gradients in one message, where ZeRO divides nothing: DDP's `bucket_cap_mb`."""
PART_NUMBERS = 40_000_000
"""Numbers in one message of ZeRO's stages 1 and 2, but a million for each GPU at least: Megatron-LM's `bucket_size`."""


def step_seconds(model: LanguageModel, cluster: Cluster, layout: Layout, length: int) -> dict[str, float]:
    """Seconds of each part; their sum is the step. Parts that only some layouts have are there when they take time."""
    compute = compute_seconds(model, cluster, layout, length)
    again = again_seconds(model, cluster, layout, length)
    paid = cluster.rates.messages if cluster.rates else 0.0
    there = paid if layout.program.hidden and cluster.rates else 1.0
    tensor = there * tensor_seconds(model, cluster, layout, length)
    data = data_seconds(model, cluster, layout)
    expert = expert_seconds(model, cluster, layout, length)
    context = max(0.0, context_seconds(model, cluster, layout, length) - _attention(model, cluster, layout, length))
    more = {name: seconds for name, seconds in ((EXPERT, expert), (CONTEXT, context)) if seconds}
    if cluster.rates or layout.offload:
        more[OPTIMIZER] = optimizer_seconds(model, cluster, layout)
    parts = (compute, again, tensor, expert, context)
    return {
        COMPUTE: compute,
        AGAIN: again,
        TENSOR: tensor,
        BUBBLE: bubble_seconds(layout, *parts, attention=_attention_share(model, length)),
        PIPELINE: there * pipeline_seconds(model, cluster, layout, length),
        DATA: exposed_seconds(data, compute, again, layout, model.layers, paid),
    } | more


def bubble_seconds(
    layout: Layout, compute: float, again: float, tensor: float, expert: float, context: float, attention: float
) -> float:
    """Seconds that a GPU waits for others of its pipeline, where a step works as long as is given here.

    1F1B loses P - 1 passes of a micro-batch, interleaved stages a v-th of it. ZB-V loses (P - 1)/2 times the longest
    of a forward pass, the first half of a backward pass, and twice what this half has more than the second. Only the
    weights' gradients can wait for the second half; attention has none.

    Args:
        attention: its share of the arithmetic.

    Source: Narayanan et al. 2021, §2.2; for ZB-V lesson 10's simulation of torch's order, where F ≤ I and m ≥ 2P - 1.
    """
    whole = compute + again + tensor + expert + context
    if not layout.zero_bubble:
        lost = bubble_fraction(layout.pipeline, layout.micro_batches, layout.chunks)
        return whole * lost / (1 - lost)
    messages = (tensor + expert + context) / (3 if layout.again == FULL else 2)
    forward = compute * (1 - BACKWARD_SHARE) + messages
    weights = compute * (1 - BACKWARD_SHARE) * (1 - attention)
    inputs = whole - forward - weights
    longest = max(forward, inputs, 2 * (inputs - weights))
    return (layout.pipeline - 1) / 2 * longest / layout.micro_batches


def compute_seconds(model: LanguageModel, cluster: Cluster, layout: Layout, length: int) -> float:
    """Forward and backward pass of one GPU's share."""
    return sum(stage_seconds(model, cluster, layout, length))


def stage_seconds(model: LanguageModel, cluster: Cluster, layout: Layout, length: int) -> tuple[float, float]:
    """Forward and backward pass of the slowest stage: of its blocks, and of the last layer and the loss if it has them.

    Where stages are uneven, the last has fewer blocks. In a V the first GPU has both ends. Without fitted rates the
    last layer counts as if each stage had a part of it.
    """
    tokens, most = layout.batch * length / layout.replicas / layout.tensor, layers_on_stage(model, layout.pipeline)
    if cluster.rates is None:
        rough = most * tokens / (cluster.flops * cluster.efficiency)
        return rough * block_flops(model, length), rough * last_layer_flops(model) / model.layers
    block = tokens * _block_seconds(model, cluster, cluster.rates, layout.program, length)
    last = tokens * _last_layer_seconds(model, cluster, cluster.rates, layout.program)
    rest = most if layout.zero_bubble else max(0, model.layers - (layout.pipeline - 1) * most)
    return max((most * block, 0.0), (rest * block, last), key=sum)


def _block_seconds(
    model: LanguageModel, cluster: Cluster, rates: Rates, program: TrainingProgram, length: int
) -> float:
    """Forward and backward pass of a block for a token: matrix products, attention and what is neither, one after the
    other. Of attention's square a causal kernel computes half. What is neither reads and writes what a block saves
    several times, at the speed of the GPU's memory.

    Source: `LanguageModel.flops`; "Data movement is all you need", Ivanov et al. 2021, §3 (what is no product waits for
    memory).
    """
    attention = model.attention_flops(length) / model.layers
    products = block_flops(model, length) - attention
    seconds = products / (2 * rates.float8 if program.float8 else rates.products)
    seconds += attention / 2 / (rates.hopper if program.hopper else rates.attention)
    passes = rates.compiled if program.compiled else rates.eager
    moved = passes * layer_activations(model, 1, 1, 1, attention=False)
    return seconds / (cluster.clock * cluster.flops) + moved / cluster.bandwidth


def _last_layer_seconds(model: LanguageModel, cluster: Cluster, rates: Rates, program: TrainingProgram) -> float:
    """Forward and backward pass of the last layer, in bfloat16 in any case, and of the loss, for a token."""
    seconds = last_layer_flops(model) / rates.products / (cluster.clock * cluster.flops)
    return seconds + (FUSED_LOGIT if program.fused_loss else LOGIT) * model.vocabulary / cluster.bandwidth


def block_flops(model: LanguageModel, length: int) -> float:
    """Of a forward and a backward pass of a block, for a token."""
    return (model.flops(1, length) - last_layer_flops(model)) / model.layers


def last_layer_flops(model: LanguageModel) -> float:
    """Of its forward and backward pass, for a token."""
    return 6 * model.token_parameters


def again_seconds(model: LanguageModel, cluster: Cluster, layout: Layout, length: int) -> float:
    """What is computed a second time, of the blocks alone: all of the forward pass, a third; or the attention's, a
    third of its part.

    Source: Korthikanti et al. 2022, §5 and appendix A.
    """
    blocks, _ = stage_seconds(model, cluster, layout, length)
    if layout.again == SELECTIVE:
        return blocks * model.attention_flops(length) / model.layers / block_flops(model, length) / 3
    if layout.again == EVERY_OTHER:
        products = model.width * (model.key_width + model.width + model.inner)
        return blocks * 2 * products / block_flops(model, length)
    return blocks / 3 if layout.again == FULL else 0.0


def optimizer_seconds(model: LanguageModel, cluster: Cluster, layout: Layout) -> float:
    """Adam reads the gradient, the parameter and its averages of each number that this GPU owns, and writes all but the
    gradient: 28 bytes in float32. If there is a copy in float32, it is read instead of the parameter.

    Where its state lies in host memory, its processors do that; gradients travel there and parameters back.

    Source: Kingma and Ba 2015, algorithm 1; Ren et al. 2021, "ZeRO-Offload", §4.
    """
    layers, matrices = layers_on_stage(model, layout.pipeline), matrices_of_tokens(model, layout)
    numbers = layers * model.shared_parameters + matrices * model.token_parameters
    experts = layers * model.expert_parameters / layout.expert
    whole = layout.replicas // layout.copies
    owners = (whole, layout.replicas // layout.expert) if layout.zero else (1, 1)
    owned = (numbers / owners[0] + experts / owners[1]) / layout.tensor
    parameter, gradient, state = layout.program.kept
    has_copy = state > 2 * parameter
    moved = gradient + 2 * state + (1 if has_copy else 2) * parameter
    if layout.offload:
        return owned * (moved / cluster.host_bandwidth + (gradient + NUMBER_BYTES) / cluster.host_link)
    return moved * owned / cluster.bandwidth


def tensor_seconds(model: LanguageModel, cluster: Cluster, layout: Layout, length: int) -> float:
    """Four all-reduces of b s h numbers for each layer and micro-batch, six where the forward pass is done again.

    With the sequence cut each is a reduce-scatter and an all-gather, which move as much. One more all-gather, in the
    backward pass, is not counted: it hides behind the gradient of the weights.

    Source: Narayanan et al. 2021, §3.2; Korthikanti et al. 2022, §4.2.2.
    """
    if layout.tensor == 1:
        return 0.0
    size = NUMBER_BYTES * layout.micro_batch * length / layout.context * model.width
    each = allreduce_time("ring", layout.tensor, size, cluster.network(1, layout.tensor))
    number = (6 if layout.again == FULL else 4) * layers_on_stage(model, layout.pipeline) * layout.micro_batches
    return number * each


def expert_seconds(model: LanguageModel, cluster: Cluster, layout: Layout, length: int) -> float:
    """Four all-to-alls for each layer and micro-batch: to the experts and back, forward and backward; six where the
    forward pass is done again.

    In each a GPU sends its tokens k times, but for those of its own experts: k · tokens · width · (P − 1)/P numbers.
    Of P GPUs on several nodes those on other nodes are reached by the GPU's own link.

    Source: Lepikhin et al. 2020, "GShard", §3.1 (two all-to-alls forward); Rajbhandari et al. 2022, "DeepSpeed-MoE".
    """
    if layout.expert == 1:
        return 0.0
    tokens = layout.micro_batch * length / layout.context / layout.tensor
    each = NUMBER_BYTES * model.chosen * tokens * model.width / layout.expert  # to each of the others
    near = min(layout.expert, max(1, cluster.node // layout.tensor))
    seconds = (near - 1) * cluster.hop + (layout.expert - near) * cluster.latency
    seconds += each * ((near - 1) / cluster.inside + (layout.expert - near) / cluster.between)
    number = (6 if layout.again == FULL else 4) * layers_on_stage(model, layout.pipeline) * layout.micro_batches
    return number * seconds


def context_seconds(model: LanguageModel, cluster: Cluster, layout: Layout, length: int) -> float:
    """Keys and values of each layer and micro-batch go round the ring, P − 1 steps; on the way back with their
    gradients, twice as much. Once more where the forward pass is done again.

    Source: Liu et al. 2023, "Ring Attention", §3.
    """
    if layout.context == 1:
        return 0.0
    size = NUMBER_BYTES * 2 * layout.micro_batch * length / layout.context * model.key_width / layout.tensor
    step = cluster.network(layout.tensor, layout.context).alpha + size / cluster.sending(layout.tensor, layout.context)
    rounds = (3 if layout.again == NOTHING else 4) * (layout.context - 1)
    return rounds * layers_on_stage(model, layout.pipeline) * layout.micro_batches * step


def _attention(model: LanguageModel, cluster: Cluster, layout: Layout, length: int) -> float:
    """Seconds of attention's products, behind which the ring hides."""
    return compute_seconds(model, cluster, layout, length) * _attention_share(model, length)


def _attention_share(model: LanguageModel, length: int) -> float:
    return model.attention_flops(length) / model.flops(1, length)


def pipeline_seconds(model: LanguageModel, cluster: Cluster, layout: Layout, length: int) -> float:
    """A message there and one back for each micro-batch, and for each stage on the way of the first; t GPUs share one.

    Source: Narayanan et al. 2021, §3.2 (b s h numbers) and §4.1 (each tensor-parallel GPU sends a part).
    """
    if layout.pipeline == 1:
        return 0.0
    size = NUMBER_BYTES * layout.micro_batch * length / layout.context * model.width / layout.tensor
    near = layout.gpus <= cluster.node
    seconds = cluster.hop + size / cluster.inside if near else cluster.latency + size / cluster.between
    return 2 * (layout.chunks * layout.micro_batches + layout.pipeline - 1) * seconds


def data_seconds(model: LanguageModel, cluster: Cluster, layout: Layout) -> float:
    """ZeRO's messages for a GPU's part of the parameters.

    Stages 0 and 1 add up the gradients of all micro-batches, and send once. Stage 2 has no room for whole gradients:
    it sends them after each micro-batch, and gathers parameters once. Stage 3 gathers and sends for each.

    GPUs that share a text have gradients of their own, too: what all keep is added up over data × context. An expert's
    gradient is added up over those that keep this expert. With several copies, parts of gradients are added up over
    them, too.

    Each message has its latency: one for each bucket of gradients, with stage 3 for each layer.

    Source: Rajbhandari et al. 2020, §7; Rajbhandari et al. 2022, "DeepSpeed-MoE"; Zhao et al. 2023, "PyTorch FSDP",
    §3.2.2 (copies).
    """
    layers, same = layers_on_stage(model, layout.pipeline), layout.replicas // layout.expert
    matrices = matrices_of_tokens(model, layout)
    shared = (layers * model.shared_parameters + matrices * model.token_parameters) / layout.tensor
    experts = layers * model.expert_parameters / layout.tensor / layout.expert
    times = {2: (layout.micro_batches + 1) / 2, 3: layout.micro_batches}.get(layout.zero, 1)
    if layout.gathered:
        times = 1
    seconds = _group_seconds(cluster, layout, shared, layout.tensor, layout.replicas, layers + 1)
    if experts:
        seconds += _group_seconds(cluster, layout, experts, layout.tensor * layout.expert, same, layers)
    return times * seconds


def _group_seconds(
    cluster: Cluster, layout: Layout, numbers: float, neighbours: int, members: int, layers: int
) -> float:
    """ZeRO's messages among the members of one group, each of which has a gradient for all these numbers."""
    nbytes, parts = NUMBER_BYTES * numbers, members // layout.copies
    if layout.zero == 0:
        return allreduce_seconds(cluster, neighbours, members, nbytes, -int(-nbytes // BUCKET))
    pieces = layers if layout.zero == 3 else -int(-numbers // max(PART_NUMBERS, 1_000_000 * members))
    halves = 3 if layout.zero == 3 else 2
    seconds = halves * ring_seconds(cluster, neighbours, parts, nbytes, pieces)
    return seconds + allreduce_seconds(cluster, neighbours * parts, layout.copies, nbytes / parts, pieces)


def exposed_seconds(data: float, compute: float, again: float, layout: Layout, layers: int, paid: float = 0.0) -> float:
    """What a step waits for of ZeRO's messages.

    With stage 3 two gathers and a reduce-scatter hide behind the forward and the backward pass, but the first gather
    and the last reduce-scatter behind nothing. Without prefetch no gather hides.

    Args:
        paid: of messages that hide, the share that is paid all the same.

    Source: Zhao et al. 2023, "PyTorch FSDP", §3.3 (prefetch).
    """
    forward, backward = compute * (1 - BACKWARD_SHARE), compute * BACKWARD_SHARE + again
    if layout.zero < 3:
        passes = [(data, hidden_seconds(compute + again, layout))]
    elif layout.program.prefetch:
        passes = [(data / 3, forward), (2 * data / 3, backward)]
    else:
        passes = [(data / 3, 0.0), (data / 3, 0.0), (data / 3, backward)]
    waits = sum(max(0.0, sent - working) + paid * min(sent, working) for sent, working in passes)
    ends = 2 * data / 3 / layers / layout.micro_batches if layout.zero == 3 else 0.0
    return max(waits, ends)


def hidden_seconds(working: float, layout: Layout) -> float:
    """Behind how much arithmetic these messages hide: the last micro-batch's backward pass, with stage 2 every one's,
    with stage 3 every forward pass too.
    """
    if layout.zero == 3:
        return working
    return working * BACKWARD_SHARE / (1 if layout.zero == 2 else layout.micro_batches)
