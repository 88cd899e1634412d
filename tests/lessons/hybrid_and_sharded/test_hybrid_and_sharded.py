"""Lesson 11's pictures, sentences and experiments: a mesh, replicas that drift, ZeRO's stages, checkpoints."""

import numpy as np
import pytest
import torch
from matplotlib.patches import Circle

from course_utils import draw
from course_utils.draw.bars import FORMULA
from course_utils.errors import CourseError
from course_utils.lessons.hybrid_and_sharded.experiments import (
    MESHES,
    count_meshes,
    count_stages,
    most_saved,
    ring_sent,
    small_batches,
    small_model,
)
from course_utils.lessons.hybrid_and_sharded.mesh_parts import MeshPart, find_part, find_parts, holding_the_same
from course_utils.lessons.hybrid_and_sharded.pictures import mesh, mesh_parts
from course_utils.lessons.hybrid_and_sharded.report_network import RankTraining, enlarged, train_network
from course_utils.lessons.hybrid_and_sharded.sentences import (
    distances,
    drift_text,
    held_text,
    largest_difference,
    mixtures_text,
    same_text,
    saved_text,
    stages_text,
    symptom,
)
from course_utils.lessons.model_parallel.activation_checkpointing import checkpointed


def circles(ax) -> dict[str, tuple]:
    """The colour of every rank in one panel of a mesh."""
    discs = [patch for patch in ax.patches if isinstance(patch, Circle)]
    names = [text.get_text() for text in ax.texts]
    return {name: disc.get_facecolor() for name, disc in zip(names, discs, strict=True)}


def test_ranks_of_one_group_have_one_colour() -> None:
    picture = mesh({"data": 2, "pipeline": 2, "tensor": 2})
    data, pipeline, tensor = map(circles, picture.axes)
    for panel, group, stranger in ((data, "15", "0"), (pipeline, "57", "4"), (tensor, "45", "6")):
        assert len({panel[rank] for rank in group}) == 1
        assert panel[stranger] != panel[group[0]]
    assert "[1, 5]" in picture.alt_text and "2 × 2 × 2 = 8 ranks" in picture.alt_text


@pytest.mark.parametrize("sizes", [{"a": 2, "b": 2, "c": 2, "d": 2}, {"a": 33}, {}])
def test_meshes_that_cannot_be_drawn_are_rejected(sizes) -> None:
    with pytest.raises(CourseError):
        mesh(sizes)


WHOLE = {"batch": torch.arange(8.0).view(4, 2), "up": torch.arange(24.0).view(6, 4), "norm": torch.ones(3)}


def held_on_a_square() -> list[dict[str, torch.Tensor]]:
    """What four ranks of 2 data × 2 tensor hold."""
    return [
        {"batch": WHOLE["batch"].chunk(2)[data], "up": WHOLE["up"].chunk(2, dim=1)[tensor], "norm": WHOLE["norm"]}
        for data in range(2)
        for tensor in range(2)
    ]


def test_a_part_is_found_by_its_numbers() -> None:
    whole = WHOLE["up"]
    assert find_part(whole[2:5], whole) == MeshPart(range(2, 5), range(4), (6, 4))
    assert find_part(whole[:, 2:], whole) == MeshPart(range(6), range(2, 4), (6, 4))
    assert find_part(whole, whole).is_whole and not find_part(whole[1:], whole).is_whole
    assert find_part(WHOLE["norm"], WHOLE["norm"]) == MeshPart(range(3), range(1), (3, 1))
    with pytest.raises(CourseError, match="3 × 4 numbers is nowhere in the whole of 6 × 4"):
        find_part(whole[2:5] + 0.5, whole)


def test_ranks_that_hold_the_same_are_found_and_named() -> None:
    parts = find_parts(held_on_a_square(), WHOLE)
    assert holding_the_same(parts, ["up", "norm"]) == [(0, 2), (1, 3)]
    assert holding_the_same(parts, ["batch"]) == [(0, 1), (2, 3)]
    assert held_text(parts, "batch") == (
        "Ranks 0 and 2 hold the same weights, and so do 1 and 3; "
        "ranks 0 and 1 read the same examples, and so do 2 and 3"
    )
    assert held_text(parts[:2], "batch").startswith("No two ranks hold the same weights; ranks 0 and 1 read")


def test_parts_of_one_colour_are_held_by_the_same_ranks() -> None:
    parts = find_parts(held_on_a_square(), WHOLE)
    picture = mesh_parts(parts, {"data": 2, "tensor": 2}, "who holds what")
    boxes = [patch.get_facecolor() for patch in picture.axes[0].patches][1::2]  # behind each, the whole matrix
    batch, up, norm = boxes[0::3], boxes[1::3], boxes[2::3]
    assert up[0] == up[2] != up[1] == up[3] and batch[0] == batch[1] != batch[2] == batch[3]
    assert len(set(norm)) == 1 and len({*batch, *up, *norm}) == 5
    assert "rank 3 (1, 1) holds batch rows 2 to 3, up columns 2 to 3 and norm whole" in picture.alt_text
    with pytest.raises(CourseError):
        mesh_parts([], {"data": 1}, "nothing")


def test_bars_of_shares_have_the_formulas_mark() -> None:
    panel = draw.SharesPanel("kept", {"stage 0": {"parameters": 2.0, "state": 4.0}, "stage 1": {"state": 1.0}}, {})
    marked = draw.SharesPanel("sent", {"stage 0": {"sent": 3.0}, "stage 1": {"sent": 3.0}}, {"stage 1": 4.0})
    picture = draw.shares([panel, marked], "Title")
    assert [sum(bar.get_width() for bar in ax.patches) for ax in picture.axes] == [7.0, 6.0]
    assert f"{FORMULA} 4 B" in picture.alt_text
    with pytest.raises(CourseError):
        draw.shares([panel, draw.SharesPanel("sent", {"stage 0": {"sent": 3.0}})], "Title")


def trained(dense: list[float], losses: list[float] | None = None, accuracy: float = 0.9) -> RankTraining:
    """A training of one weight in each part."""
    steps = torch.tensor(dense).reshape(-1, 1)
    return RankTraining(losses or [2.0, 1.0, 0.5], torch.zeros(len(dense), 1), steps, accuracy)


def test_drift_is_told_as_a_share_of_the_way() -> None:
    assert drift_text([trained([0.0, 1.0, 2.0]), trained([0.0, 1.0, 3.0])]).endswith(
        "layers end up to 1 away from rank 0's, 50% of the distance that rank 0's layers moved"
    )
    assert "so do the fully connected" in drift_text([trained([0.0, 1.0])] * 2)
    assert distances([trained([0.0, 1.0]), trained([0.5, 3.0])]) == {"rank 1": [0.5, 2.0]}


def test_what_drifting_replicas_show() -> None:
    assert symptom([trained([0.0]), trained([0.0], [2.0, 2.0, 2.5])]) == "a"
    assert symptom([trained([0.0]), trained([0.0], accuracy=0.2)]) == "b"
    assert symptom([trained([0.0]), trained([0.0])]) == "c"


def test_sentences_follow_the_numbers() -> None:
    stays, fewer = {"parameters": 4e6, "state": 4e6}, {"parameters": 1e6, "state": 1e6}
    kept = {"stage 0": stays, "stage 3": fewer}
    assert stages_text(kept, {"stage 0": {"sent": 2.0}, "stage 3": {"sent": 3.0}}) == (
        "Stage 3 keeps 2 MB instead of the 8 MB of stage 0, and sends 1.5 times as many bytes"
    )
    assert stages_text(kept, {"stage 0": {"sent": 2.0}, "stage 3": {"sent": 2.0}}).endswith(" the same bytes")
    assert mixtures_text({"a": {"data": 3.0}, "b": {"data": 1.0, "tensor": 5.0}}).startswith(
        "a sends the least, and b sends"
    )
    assert mixtures_text({"a": {"data": 3.0}, "b": {"tensor": 3.0}}) == "All these meshes send the same"
    bars = {"as it is": 8.0, "few": 2.0, "again": 4.0, "both": 1.0}
    said = saved_text({name: {"activations": nbytes} for name, nbytes in bars.items()})
    assert said == "With few 25% of the activations are kept, with both 12%"


def test_what_is_another_training_is_not_called_the_same() -> None:
    assert "as in one process, digit for digit" in same_text({"mesh": [1.0, 2.0]}, [1.0, 2.0])
    assert largest_difference([1.0, 1 + 2**-52], [1.0, 1.0]) == 2**-52
    assert "within 2e-16" in same_text({"mesh": [1.0, 1 + 2**-52]}, [1.0, 1.0])
    for other in ([1.0, 2.1], [1.0, float("nan")]):
        with pytest.raises(AssertionError, match="not the training run of one process"):
            same_text({"mesh": other}, [1.0, 2.0])
    assert largest_difference([1.0], [3.0]) == 2.0


def test_rings_send_two_shares_of_what_is_handed_over() -> None:
    sent = ring_sent({"data": 8.0, "pipeline": 5.0, "tensor": 8.0}, {"data": 4, "pipeline": 2})
    assert sent == {"data": 12.0, "pipeline": 5.0, "tensor": 0.0}


def digits(count: int = 32) -> tuple[torch.Tensor, ...]:
    """A few images of noise."""
    rng = np.random.default_rng(0)
    images, labels = torch.tensor(rng.normal(size=(count, 64))), torch.tensor(rng.integers(0, 10, count))
    return images, labels, images[:8], labels[:8]


def test_the_reports_network_sees_images_of_its_size() -> None:
    assert enlarged(digits()[0]).shape == (32, 1, 28, 28)


def test_the_hybrid_is_the_serial_training_and_the_reports_is_not(four_ranks) -> None:
    data, options = digits(), {"steps": 3, "batch_size": 16, "backend": "gloo"}
    serial = four_ranks.run(train_network, data, "serial", ranks=1, **options).results[0]
    hybrid = four_ranks.run(train_network, data, "hybrid", ranks=2, **options).results
    assert largest_difference(hybrid[0].losses, serial.losses) <= 1e-10
    assert largest_difference(hybrid[0].dense, serial.dense) <= 1e-10
    assert all(largest_difference(one.convolutions, serial.convolutions) <= 1e-10 for one in hybrid)
    first, second = four_ranks.run(train_network, data, "report", ranks=2, **options).results
    assert (
        largest_difference(first.convolutions, second.convolutions) == 0 < largest_difference(first.dense, second.dense)
    )


def test_stages_keep_and_send_what_the_formulas_say(four_ranks) -> None:
    batches = small_batches(2)
    counted = count_stages(four_ranks, batches)
    for name, parts in counted.kept.items():
        assert sum(parts.values()) == pytest.approx(counted.kept_on_paper[name], rel=0.02)
        assert counted.sent[name]["sent"] == pytest.approx(counted.sent_on_paper[name], rel=0.02)
        assert largest_difference(counted.losses[name], counted.losses["stage 0"]) <= 1e-10


def test_meshes_train_the_same_and_send_along_their_own_axes(four_ranks) -> None:
    counted = count_meshes(
        four_ranks, small_batches(1), {name: MESHES[name] for name in ("4 data", "2 data × 2 stages")}
    )
    assert largest_difference(*counted.losses.values()) <= 1e-10
    assert counted.sent["4 data"]["tensor"] == counted.sent["4 data"]["pipeline"] == 0 < counted.sent["4 data"]["data"]
    assert counted.sent["2 data × 2 stages"]["pipeline"] > 0


def test_micro_batches_and_checkpointing_keep_less() -> None:
    batches = small_batches(1)
    whole = most_saved(small_model(), batches, 1)["activations"]
    assert most_saved(small_model(), batches, 4)["activations"] == pytest.approx(whole / 4, rel=0.05)
    assert most_saved(checkpointed(small_model()), batches, 1)["activations"] < 0.6 * whole
