"""Seconds of one training step, part by part, on paper.

What is left out: the optimizer's own arithmetic, layers that are not matrix products, starting kernels, slow GPUs. What
is assumed: matrix products reach `cluster.efficiency` of the peak however they are cut; messages of tensor and pipeline
parallelism hide behind nothing; those of data parallelism hide behind the backward pass, as in lesson 7.
"""

from course_utils.lessons.allreduce.cost_model import allreduce_time
from course_utils.lessons.hybrid_and_sharded.planner.gpu_clusters import Cluster
from course_utils.lessons.hybrid_and_sharded.planner.gpu_memory import layers_on_stage
from course_utils.lessons.hybrid_and_sharded.planner.language_models import LanguageModel
from course_utils.lessons.hybrid_and_sharded.planner.training_layout import FULL, SELECTIVE, Layout
from course_utils.lessons.hybrid_and_sharded.zero_formulas import zero_traffic
from course_utils.lessons.pipeline.schedules import bubble_fraction

COMPUTE, AGAIN, TENSOR, BUBBLE, PIPELINE, DATA = (
    "compute",
    "computed again",
    "tensor messages",
    "bubble",
    "pipeline messages",
    "data messages",
)
NUMBER_BYTES = 2
BACKWARD_SHARE = 2 / 3
"""Of a forward and a backward pass: the latter has twice the products."""


def step_seconds(model: LanguageModel, cluster: Cluster, layout: Layout, length: int) -> dict[str, float]:
    """Seconds of each part; their sum is the step."""
    compute = compute_seconds(model, cluster, layout, length)
    again = compute * again_share(model, layout, length)
    tensor = tensor_seconds(model, cluster, layout, length)
    lost = bubble_fraction(layout.pipeline, layout.micro_batches, layout.chunks)
    return {
        COMPUTE: compute,
        AGAIN: again,
        TENSOR: tensor,
        BUBBLE: (compute + again + tensor) * lost / (1 - lost),
        PIPELINE: pipeline_seconds(model, cluster, layout, length),
        DATA: max(0.0, data_seconds(model, cluster, layout) - hidden_seconds(compute + again, layout)),
    }


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
    size = NUMBER_BYTES * layout.micro_batch * length * model.width
    each = allreduce_time("ring", layout.tensor, size, cluster.network(1, layout.tensor))
    number = (6 if layout.again == FULL else 4) * layers_on_stage(model, layout.pipeline) * layout.micro_batches
    return number * each


def pipeline_seconds(model: LanguageModel, cluster: Cluster, layout: Layout, length: int) -> float:
    """A message there and one back for each micro-batch, and for each stage on the way of the first; t GPUs share one.

    Source: Narayanan et al. 2021, §3.2 (b s h numbers) and §4.1 (each tensor-parallel GPU sends a part).
    """
    if layout.pipeline == 1:
        return 0.0
    size = NUMBER_BYTES * layout.micro_batch * length * model.width / layout.tensor
    near = layout.gpus <= cluster.node
    seconds = cluster.latency + size / (cluster.inside if near else cluster.between)
    return 2 * (layout.chunks * layout.micro_batches + layout.pipeline - 1) * seconds


def data_seconds(model: LanguageModel, cluster: Cluster, layout: Layout) -> float:
    """ZeRO's messages for a GPU's part of the parameters.

    Stages 0 and 1 add up the gradients of all micro-batches, and send once. Stage 2 has no room for whole gradients:
    it sends them after each micro-batch, and gathers parameters once. Stage 3 gathers and sends for each.

    Source: Rajbhandari et al. 2020, §7.
    """
    numbers = layers_on_stage(model, layout.pipeline) * model.layer_parameters + model.token_parameters
    size = zero_traffic(numbers / layout.tensor, layout.data, layout.zero, NUMBER_BYTES)
    times = {2: (layout.micro_batches + 1) / 2, 3: layout.micro_batches}.get(layout.zero, 1)
    return times * size * cluster.network(layout.tensor, layout.data).beta


def hidden_seconds(working: float, layout: Layout) -> float:
    """Behind how much arithmetic these messages hide: the last micro-batch's backward pass, with stage 2 every one's,
    with stage 3 every forward pass too.
    """
    if layout.zero == 3:
        return working
    return working * BACKWARD_SHARE / (1 if layout.zero == 2 else layout.micro_batches)
