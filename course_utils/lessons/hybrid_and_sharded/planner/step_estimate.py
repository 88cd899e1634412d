"""Seconds of one training step, part by part, on paper.

What is left out: the optimizer's own arithmetic, layers that are no matrix products, starting kernels, slow GPUs. What
is assumed: matrix products reach `cluster.efficiency` of the peak however they are cut; messages of tensor and pipeline
parallelism, and those to experts and back, hide behind nothing; keys and values on their way round a ring hide behind
attention; messages of data parallelism hide behind the backward pass, as in lesson 7.
"""

from course_utils.lessons.allreduce.cost_model import allreduce_time
from course_utils.lessons.hybrid_and_sharded.planner.gpu_clusters import Cluster
from course_utils.lessons.hybrid_and_sharded.planner.gpu_memory import layers_on_stage
from course_utils.lessons.hybrid_and_sharded.planner.language_models import LanguageModel
from course_utils.lessons.hybrid_and_sharded.planner.training_layout import FULL, NOTHING, SELECTIVE, Layout
from course_utils.lessons.hybrid_and_sharded.zero_formulas import zero_traffic
from course_utils.lessons.pipeline.schedules import bubble_fraction

COMPUTE, AGAIN, TENSOR, BUBBLE, PIPELINE, DATA, EXPERT, CONTEXT = (
    "compute",
    "computed again",
    "tensor messages",
    "bubble",
    "pipeline messages",
    "data messages",
    "expert messages",
    "context messages",
)
NUMBER_BYTES = 2
BACKWARD_SHARE = 2 / 3
"""Of a forward and a backward pass: the latter has twice the products."""


def step_seconds(model: LanguageModel, cluster: Cluster, layout: Layout, length: int) -> dict[str, float]:
    """Seconds of each part; their sum is the step. Parts that only some layouts have are there when they take time."""
    compute = compute_seconds(model, cluster, layout, length)
    again = compute * again_share(model, layout, length)
    tensor = tensor_seconds(model, cluster, layout, length)
    expert = expert_seconds(model, cluster, layout, length)
    context = max(0.0, context_seconds(model, cluster, layout, length) - _attention(model, cluster, layout, length))
    more = {name: seconds for name, seconds in ((EXPERT, expert), (CONTEXT, context)) if seconds}
    lost = bubble_fraction(layout.pipeline, layout.micro_batches, layout.chunks)
    return {
        COMPUTE: compute,
        AGAIN: again,
        TENSOR: tensor,
        BUBBLE: (compute + again + tensor + expert + context) * lost / (1 - lost),
        PIPELINE: pipeline_seconds(model, cluster, layout, length),
        DATA: max(0.0, data_seconds(model, cluster, layout) - hidden_seconds(compute + again, layout)),
    } | more


def compute_seconds(model: LanguageModel, cluster: Cluster, layout: Layout, length: int) -> float:
    """Forward and backward pass of one GPU's share. Where stages are uneven, the fullest sets the pace.

    Source: `LanguageModel.flops`.
    """
    uneven = layers_on_stage(model, layout.pipeline) * layout.pipeline / model.layers
    flops = model.flops(layout.batch * length, length) / layout.gpus
    return uneven * flops / (cluster.flops * cluster.efficiency)


def again_share(model: LanguageModel, layout: Layout, length: int) -> float:
    """What is computed a second time, as a share of forward and backward pass: all of the forward pass, a third; or
    the attention's, a third of its part.

    Source: Korthikanti et al. 2022, §5 and appendix A.
    """
    if layout.again == SELECTIVE:
        return model.attention_flops(length) / model.flops(1, length) / 3
    return 1 / 3 if layout.again == FULL else 0.0


def tensor_seconds(model: LanguageModel, cluster: Cluster, layout: Layout, length: int) -> float:
    """Four all-reduces of b s h numbers for each layer and micro-batch, six where the forward pass is done again.

    With the sequence cut each is a reduce-scatter and an all-gather, which move as much.

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
    seconds = (layout.expert - 1) * cluster.latency
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
    step = cluster.latency + size / cluster.sending(layout.tensor, layout.context)
    rounds = (3 if layout.again == NOTHING else 4) * (layout.context - 1)
    return rounds * layers_on_stage(model, layout.pipeline) * layout.micro_batches * step


def _attention(model: LanguageModel, cluster: Cluster, layout: Layout, length: int) -> float:
    """Seconds of attention's products, behind which the ring hides."""
    share = model.attention_flops(length) / model.flops(1, length)
    return compute_seconds(model, cluster, layout, length) * share


def pipeline_seconds(model: LanguageModel, cluster: Cluster, layout: Layout, length: int) -> float:
    """A message there and one back for each micro-batch, and for each stage on the way of the first; t GPUs share one.

    Source: Narayanan et al. 2021, §3.2 (b s h numbers) and §4.1 (each tensor-parallel GPU sends a part).
    """
    if layout.pipeline == 1:
        return 0.0
    size = NUMBER_BYTES * layout.micro_batch * length / layout.context * model.width / layout.tensor
    near = layout.gpus <= cluster.node
    seconds = cluster.latency + size / (cluster.inside if near else cluster.between)
    return 2 * (layout.chunks * layout.micro_batches + layout.pipeline - 1) * seconds


def data_seconds(model: LanguageModel, cluster: Cluster, layout: Layout) -> float:
    """ZeRO's messages for a GPU's part of the parameters.

    Stages 0 and 1 add up the gradients of all micro-batches, and send once. Stage 2 has no room for whole gradients:
    it sends them after each micro-batch, and gathers parameters once. Stage 3 gathers and sends for each.

    GPUs that share a text have gradients of their own, too: what all keep is added up over data × context. An expert's
    gradient is added up over those that keep this expert.

    Source: Rajbhandari et al. 2020, §7; Rajbhandari et al. 2022, "DeepSpeed-MoE".
    """
    layers, same = layers_on_stage(model, layout.pipeline), layout.replicas // layout.expert
    shared = (layers * model.shared_parameters + model.token_parameters) / layout.tensor
    experts = layers * model.expert_parameters / layout.tensor / layout.expert
    times = {2: (layout.micro_batches + 1) / 2, 3: layout.micro_batches}.get(layout.zero, 1)
    far = cluster.network(layout.tensor, layout.replicas).beta
    seconds = zero_traffic(shared, layout.replicas, layout.zero, NUMBER_BYTES) * far
    if experts:
        far = cluster.network(layout.tensor * layout.expert, same).beta
        seconds += zero_traffic(experts, same, layout.zero, NUMBER_BYTES) * far
    return times * seconds


def hidden_seconds(working: float, layout: Layout) -> float:
    """Behind how much arithmetic these messages hide: the last micro-batch's backward pass, with stage 2 every one's,
    with stage 3 every forward pass too.
    """
    if layout.zero == 3:
        return working
    return working * BACKWARD_SHARE / (1 if layout.zero == 2 else layout.micro_batches)
