"""What the planner says of latency, HSDP, prefetch, ZB-V, NCCL's buffers and offload, and when each decides."""

from dataclasses import replace

import pytest

from course_utils.lessons.hybrid_and_sharded.planner.collective_times import (
    BUFFER,
    CHANNELS,
    allreduce_seconds,
    buffer_bytes,
    nodes_of,
    ring_latency,
    ring_seconds,
    tree_latency,
)
from course_utils.lessons.hybrid_and_sharded.planner.gpu_clusters import A100, FITTED, H100
from course_utils.lessons.hybrid_and_sharded.planner.gpu_memory import gpu_memory, in_one_block, layer_activations
from course_utils.lessons.hybrid_and_sharded.planner.language_models import MODELS, WITH_EXPERTS
from course_utils.lessons.hybrid_and_sharded.planner.layout_search import best, judge, layouts, plan
from course_utils.lessons.hybrid_and_sharded.planner.plan_report import decides, overfull
from course_utils.lessons.hybrid_and_sharded.planner.step_estimate import (
    BUBBLE,
    COMPUTE,
    DATA,
    OPTIMIZER,
    bubble_seconds,
    data_seconds,
    exposed_seconds,
    optimizer_seconds,
)
from course_utils.lessons.hybrid_and_sharded.planner.training_layout import (
    EVERY_OTHER,
    FULL,
    MODERN,
    NOTHING,
    PLAIN,
    Layout,
)
from course_utils.lessons.pipeline.schedules import bubble_fraction
from course_utils.lessons.pipeline.timing import simulate_schedule
from course_utils.lessons.pipeline.v_shape import zb_v_schedule

SEVEN, SEVENTY = MODELS["Llama 7B"], MODELS["Llama 3 70B"]


def test_a_ring_has_a_hop_for_each_member_and_one_out_of_each_node() -> None:
    cluster = H100(2048)
    assert (nodes_of(cluster, 1, 8), nodes_of(cluster, 1, 64), nodes_of(cluster, 8, 4)) == (1, 8, 4)
    assert ring_latency(cluster, 1, 8) == pytest.approx(7 * cluster.hop)
    assert ring_latency(cluster, 1, 64) == pytest.approx(56 * cluster.hop + 7 * cluster.latency)
    assert ring_latency(cluster, 8, 4) == pytest.approx(3 * cluster.latency)
    assert ring_seconds(cluster, 1, 1, 1e9, 5) == allreduce_seconds(cluster, 1, 1, 1e9) == 0


def test_for_small_messages_on_many_gpus_a_tree_is_quicker_and_for_large_ones_a_ring() -> None:
    cluster = H100(2048)
    assert tree_latency(cluster, 1, 2048) < ring_latency(cluster, 1, 2048) / 5
    assert allreduce_seconds(cluster, 1, 2048, 1e6) < ring_latency(cluster, 1, 2048)
    large = allreduce_seconds(cluster, 1, 64, 1e10)
    assert large == pytest.approx(2 * ring_seconds(cluster, 1, 64, 1e10))


@pytest.mark.parametrize("zero", range(4))
def test_latency_is_in_the_gradients_time_and_grows_with_the_ranks(zero) -> None:
    few, many = ((H100(gpus), Layout(gpus, 1, 1, zero, NOTHING, 1, 1)) for gpus in (64, 2048))
    late = [
        data_seconds(SEVEN, cluster, layout) - data_seconds(SEVEN, replace(cluster, hop=0, latency=0), layout)
        for cluster, layout in (few, many)
    ]
    assert 0 < late[0] < late[1]
    if zero == 3:
        assert late[1] == pytest.approx(3 * 33 * ring_latency(many[0], 1, 2048))
        assert late[1] > judge(SEVEN, *many, 2048).seconds[COMPUTE], "a step of so small a batch waits for latency"


def test_copies_send_between_nodes_only_parts_of_gradients_and_keep_more() -> None:
    """HSDP: gathers stay inside a node; an all-reduce of an eighth goes over the other links."""
    cluster, whole = H100(512), Layout(512, 1, 1, 3, NOTHING, 1, 1, program=MODERN)
    copies = replace(whole, copies=64)
    numbers = 32 * SEVEN.shared_parameters + 2 * SEVEN.token_parameters
    inside = 3 * ring_seconds(cluster, 1, 8, 2 * numbers, 33)
    between = allreduce_seconds(cluster, 8, 64, 2 * numbers / 8, 33)
    assert data_seconds(SEVEN, cluster, copies) == pytest.approx(inside + between)
    assert data_seconds(SEVEN, cluster, copies) < data_seconds(SEVEN, cluster, whole)
    kept = [gpu_memory(SEVEN, layout, 2048).optimizer_state for layout in (whole, copies)]
    assert kept[1] == pytest.approx(64 * kept[0])
    assert optimizer_seconds(SEVEN, cluster, copies) == pytest.approx(64 * optimizer_seconds(SEVEN, cluster, whole))
    tried = {one.copies for one in layouts(SEVEN, cluster, 2048, 2048, MODERN) if one.data == 512 and one.zero == 3}
    assert tried == {1, 8, 64}
    assert {one.copies for one in layouts(SEVEN, cluster, 2048, 2048, PLAIN)} == {1}
    said = decides(SEVEN, H100, [judge(SEVEN, cluster, copies, 2048)], 2048)
    assert said[0].startswith("HSDP decides: with ZeRO over all GPUs")


def test_gathers_hide_only_with_prefetch_and_never_all_of_them() -> None:
    ahead = Layout(8, 1, 1, 3, NOTHING, 1, 1, program=MODERN)
    alone = replace(ahead, program=replace(MODERN, prefetch=False))
    assert exposed_seconds(3.0, 9.0, 0.0, ahead, layers=10) == pytest.approx(2 * 3 / 3 / 10), "first and last"
    assert exposed_seconds(3.0, 9.0, 0.0, alone, layers=10) == pytest.approx(2.0), "two gathers of three messages"
    assert exposed_seconds(12.0, 9.0, 0.0, ahead, layers=10) == pytest.approx(1 + 2), "forward 4 - 3, backward 8 - 6"
    layers = [gpu_memory(SEVEN, layout, 2048).parameters for layout in (ahead, alone)]
    assert layers[0] - layers[1] == pytest.approx(2 * SEVEN.layer_parameters), "the next layer is there, too"
    choice = judge(SEVEN, H100(8), ahead, 2048)
    assert any(line.startswith("Prefetch decides") for line in decides(SEVEN, H100, [choice], 2048))


@pytest.mark.parametrize(("stages", "micro_batches"), [(2, 4), (4, 8), (4, 16), (8, 16)])
@pytest.mark.parametrize(("again", "attention"), [(NOTHING, 0.0), (NOTHING, 0.2), (FULL, 0.1)])
def test_zb_v_waits_as_lesson_10_simulates_it(stages, micro_batches, again, attention) -> None:
    """F, I and W of a micro-batch on all of a GPU's layers; each of its two stages takes half of each."""
    layout = Layout(1, 1, stages, 0, again, 1, micro_batches, chunks=2, zero_bubble=True)
    compute, twice = 3.0 * micro_batches, (1.0 if again == FULL else 0.0) * micro_batches
    weights = 1 - attention
    inputs = 2 - weights + twice / micro_batches
    run = simulate_schedule(zb_v_schedule(stages, micro_batches), 1 / 2, inputs / 2, weights / 2)
    waited = bubble_seconds(layout, compute, twice, 0, 0, 0, attention=attention)
    assert waited == pytest.approx(run.seconds - micro_batches * (1 + inputs + weights))
    lost = bubble_fraction(stages, micro_batches)
    assert waited < (compute + twice) * lost / (1 - lost) / 2, "less than half of what 1F1B waits"


def test_zb_v_keeps_what_1f1b_keeps_and_is_tried() -> None:
    cluster, once = H100(64), Layout(2, 4, 8, 1, NOTHING, 1, 32, program=MODERN)
    in_a_v = replace(once, chunks=2, zero_bubble=True)
    memories = [gpu_memory(SEVENTY, layout, 8192) for layout in (once, in_a_v)]
    ends = 12 * 8192 * SEVENTY.vocabulary / 4  # the last layer's logits, too
    assert memories[1].activations == pytest.approx(memories[0].activations, abs=ends)
    seconds = [judge(SEVENTY, cluster, layout, 8192).seconds for layout in (once, in_a_v)]
    assert seconds[1][BUBBLE] < seconds[0][BUBBLE] / 2
    found = plan(SEVENTY, cluster, 64, 8192)
    assert found[0].layout.zero_bubble and "ZB-V" in str(found[0])
    assert any(line.startswith("ZB-V decides: as 1F1B") for line in decides(SEVENTY, H100, found, 8192))
    tried = [one for one in layouts(SEVENTY, cluster, 512, 8192, MODERN) if one.zero_bubble]
    assert tried and all(one.micro_batches >= 2 * one.pipeline - 1 for one in tried)


def test_nccls_buffers_take_room_and_can_decide() -> None:
    assert buffer_bytes(Layout(1, 1, 1, 0, FULL, 1, 1)) == 0
    assert buffer_bytes(Layout(4, 2, 1, 0, FULL, 1, 1)) == 2 * 2 * CHANNELS * BUFFER
    assert buffer_bytes(Layout(8, 1, 1, 0, FULL, 1, 1, expert=8)) > buffer_bytes(Layout(8, 1, 1, 0, FULL, 1, 1))
    layout = Layout(4, 2, 1, 3, NOTHING, 1, 1, program=MODERN)
    full = judge(SEVEN, H100(8), layout, 2048)
    assert full.needed == full.memory.total + buffer_bytes(layout)
    tight = replace(full, room=full.memory.total + 1)
    assert full.fits and not tight.fits
    slower = replace(judge(SEVEN, H100(8), replace(layout, again=FULL), 2048), room=1e12)
    assert any(line.startswith("NCCL's buffers decide") for line in decides(SEVEN, H100, [slower, tight], 2048))


def test_offload_moves_the_state_to_the_nodes_memory_and_pays_for_the_way() -> None:
    here = Layout(2, 4, 1, 1, FULL, 1, 1, program=MODERN)
    there, cluster = replace(here, offload=True), H100(8)
    memories = [gpu_memory(SEVENTY, layout, 8192) for layout in (here, there)]
    assert memories[1].optimizer_state == 0 and memories[1].gradients == memories[0].gradients
    found = judge(SEVENTY, cluster, there, 8192)
    assert found.host == pytest.approx(memories[0].optimizer_state)
    owned = found.host / 12
    assert found.seconds[OPTIMIZER] == pytest.approx(
        owned * (28 / cluster.host_bandwidth + 4 / cluster.host_link), rel=0.02
    )
    assert OPTIMIZER in judge(SEVENTY, A100(8), there, 8192).seconds
    small = judge(SEVENTY, replace(cluster, host_memory=1e9), there, 8192)
    assert not small.fits and "of host memory" in overfull(small)


def test_what_fits_is_not_offloaded_and_what_does_not_is_tried_so() -> None:
    assert not best(plan("Llama 7B", H100(8))).layout.offload
    found = plan("Llama 3 70B", H100(8))
    assert found[0].layout.offload and "optimizer offloaded" in str(found[0])
    assert any(line.startswith("Offload decides") for line in decides(SEVENTY, H100, found, 8192))


def test_latency_decides_on_two_thousand_gpus_and_not_on_eight() -> None:
    assert any("Latency decides" in line for line in decides(SEVEN, H100, plan(SEVEN, H100(2048)), 2048))
    assert not any("Latency decides" in line for line in decides(SEVEN, H100, plan(SEVEN, H100(8)), 2048))
    assert judge(SEVEN, H100(8), Layout(8, 1, 1, 3, FULL, 1, 1), 2048).seconds[DATA] > 0


def test_experts_are_not_kept_in_copies() -> None:
    tried = layouts(WITH_EXPERTS["Mixtral 8x7B"], H100(128), 128, 4096, MODERN)
    assert all(one.expert == 1 or one.copies == 1 for one in tried)


def test_a_fused_loss_has_its_logits_twice_and_no_copies() -> None:
    layout = Layout(8, 1, 1, 3, EVERY_OTHER, 2, 1, program=replace(MODERN, kept=(4, 4, 8)))
    fused = replace(layout, program=replace(layout.program, fused_loss=True))
    memories = [gpu_memory(SEVEN, one, 8192, FITTED) for one in (layout, fused)]
    logits = 2 * 8192 * (SEVEN.vocabulary + SEVEN.width)
    assert memories[0].activations - memories[1].activations == pytest.approx(
        FITTED.reserve * (FITTED.logit * logits - max(4 * logits, in_one_block(SEVEN, fused, 8192)))
    )


def test_the_two_peaks_of_a_backward_pass_never_coincide() -> None:
    """At the loss every logit is there, in a block what it computes again and its gradient: the larger one counts."""
    layout = Layout(8, 1, 1, 3, FULL, 1, 1, program=MODERN)
    layer = SEVEN.layer_parameters
    block = layer_activations(SEVEN, 1, 2048, 1, attention=False)
    assert in_one_block(SEVEN, layout, 2048) == pytest.approx(block + (2 + 2) * layer)
    assert in_one_block(SEVEN, replace(layout, zero=1), 2048) == pytest.approx(block)
    kept = 32 * 2 * 2048 * SEVEN.width
    logits = FITTED.logit * 2048 * (SEVEN.vocabulary + SEVEN.width)
    found = gpu_memory(SEVEN, layout, 2048, FITTED).activations
    assert found == pytest.approx(FITTED.reserve * (kept + max(block + 4 * layer, logits)))


def test_torchs_own_stages_have_buffers_for_all_micro_batches() -> None:
    layout = Layout(1, 4, 8, 1, FULL, 1, 16, program=MODERN)
    by_torch = replace(layout, program=replace(MODERN, dtensor=True))
    short = replace(SEVENTY, vocabulary=1024)  # the first stage is the fullest
    few, many = (
        gpu_memory(short, replace(by_torch, micro_batches=m), 8192, FITTED).activations
        - gpu_memory(short, replace(layout, micro_batches=m), 8192, FITTED).activations
        for m in (16, 64)
    )
    message = 2 * 8192 * SEVENTY.width / 4
    assert many - few == pytest.approx(FITTED.reserve * (64 - 16) * message)
    assert few == pytest.approx(FITTED.reserve * ((16 + 8) * message + 2 * 2 * 8192 * SEVENTY.width * 3 / 4))
    long = [gpu_memory(SEVENTY, replace(by_torch, micro_batches=m), 8192, FITTED).activations for m in (128, 256)]
    logits = 2 * 8192 * SEVENTY.vocabulary / 4
    assert long[1] - long[0] == pytest.approx(FITTED.reserve * 128 * (logits + message)), "the last stage keeps logits"
