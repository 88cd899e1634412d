"""The transformer of the page: its size and operations are the planner's, and a step of it trains."""

import math
from dataclasses import replace

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from course_utils.lessons.gpu_nodes import sentences, transformer_step
from course_utils.lessons.gpu_nodes.ladder import Rung
from course_utils.lessons.gpu_nodes.llama import Llama, rotated
from course_utils.lessons.gpu_nodes.product_rate import shares_of_peak
from course_utils.lessons.gpu_nodes.transformer_step import (
    BY_MEMORY,
    SLICE,
    NetworkRates,
    TransformerTrainer,
    TransformerWork,
    network_rates,
    recorded_networks,
    slice_of,
)

SMALL = slice_of("Llama 3 8B", 2, width=64, hidden=96, heads=4, key_heads=2, vocabulary=50)
WORK = TransformerWork("small", SMALL, 2, 16, compiled=False)


def small_model(again: bool = False) -> Llama:
    torch.manual_seed(1)
    return Llama(SMALL, again)


def texts() -> tuple[torch.Tensor, torch.Tensor]:
    tokens = torch.randint(50, (2, 17), generator=torch.Generator().manual_seed(2))
    return tokens[:, :-1], tokens[:, 1:]


@pytest.mark.parametrize("work", [WORK, *BY_MEMORY.values()], ids=lambda work: work.name)
def test_it_has_the_parameters_of_the_planners_model(work: TransformerWork) -> None:
    with torch.device("meta"):
        model = Llama(work.shape)
    assert sum(parameter.numel() for parameter in model.parameters()) == work.shape.parameters


def test_its_operations_are_those_that_torch_counts() -> None:
    model = small_model()
    with FlopCounterMode(display=False) as counter:
        model(*texts()).backward()
    counted = {str(name): flops for name, flops in counter.get_flop_counts()["Global"].items()}
    products = sum(flops for name, flops in counted.items() if "attention" not in name)
    attention = 2 * 16 * SMALL.attention_flops(16)
    small = 2 * 16 * 6 * 2 * 2 * 64  # the weights of the norms, which are no products
    assert products == WORK.flops - attention - small
    assert WORK.flops - WORK.causal_flops == attention / 2


def test_a_token_sees_nothing_of_those_after_it() -> None:
    model = small_model()
    x = torch.randn(1, 8, 64)
    changed = x.clone()
    changed[:, 5:] += 1
    before, after = (model.blocks[0](each) for each in (x, changed))
    assert torch.allclose(before[:, :5], after[:, :5]) and not torch.allclose(before[:, 5:], after[:, 5:])


def test_a_rotation_keeps_lengths_and_depends_on_the_distance_alone() -> None:
    q, k = torch.randn(2, 1, 1, 1, 8).double()
    many = [x.expand(1, 1, 6, 8) for x in (q, k)]
    turned = [rotated(x) for x in many]
    assert torch.allclose(turned[0].norm(dim=-1), many[0].norm(dim=-1), atol=1e-5)
    scores = (turned[0] @ turned[1].transpose(-1, -2))[0, 0]
    assert torch.allclose(scores[1:, 1:], scores[:-1, :-1], atol=1e-5)


def test_done_again_or_compiled_it_computes_the_same() -> None:
    losses, gradients = [], []
    for again, compiled in ((False, False), (True, False), (False, True)):
        model = small_model(again)
        if compiled:
            model.compile_parts("eager")
        loss = model(*texts())
        loss.backward()
        losses.append(loss.item())
        gradients.append(torch.cat([parameter.grad.flatten() for parameter in model.parameters()]))
    assert losses[0] == pytest.approx(math.log(50), abs=0.1)
    assert losses[1:] == pytest.approx([losses[0]] * 2)
    assert all(torch.allclose(gradients[0], other, atol=1e-6) for other in gradients[1:])


def test_steps_on_the_same_tokens_lower_the_loss() -> None:
    trainer = TransformerTrainer(WORK, "cpu")
    trainer.optimizer.param_groups[0]["lr"] = 0.01
    for _ in range(40):
        trainer.step()
    losses = torch.stack(trainer.losses)
    assert losses[-4:].mean() < 0.8 * losses[:4].mean()


def test_both_networks_are_measured_by_turns_with_the_product(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(transformer_step, "SIDE_ON_PROCESSORS", 64)
    found = network_rates(Rung(kept=True), WORK, "cpu", batch=2, rounds=3, steps=1)
    assert found.flops["small"] == WORK.flops and len(found.peaks) == 3
    assert all(len(share.values) == 3 and share.low > 0 for share in found.product_shares().values())
    found.write(tmp_path / "rates.json")
    assert NetworkRates.read(tmp_path / "rates.json") == found


def test_a_single_value_counts_for_all_rounds() -> None:
    assert shares_of_peak(8.0, [1.0], [16.0, 32.0]).values == (0.5, 0.25)
    assert shares_of_peak(8.0, [1.0, 2.0], [16.0]).values == (0.5, 0.25)


def test_shares_in_words() -> None:
    rates = NetworkRates("a GPU", "today", {"VGG-11": 3e11, "Llama": 6e11}, {"VGG-11": [1.0], "Llama": [1.0]}, [1e12])
    title, below = sentences.networks_text(rates)
    assert title == "Llama reaches 60% of a product's rate, VGG-11 only 30%"
    assert below.startswith("All measured by turns in 1 round: VGG-11 30% and Llama 60%. 100% is 1 TFLOP/s")
    tie = replace(rates, flops={"VGG-11": 6e11, "Llama": 6e11})
    assert "about the same share" in sentences.networks_text(tie)[0]
    other = replace(rates, flops={"VGG-11": 9e11, "Llama": 6e11})
    assert sentences.networks_text(other)[0] == "VGG-11 reaches 90% of a product's rate, Llama only 60%"


def test_the_recorded_slice_is_the_one_that_the_page_measures() -> None:
    assert SLICE.flops in recorded_networks().flops.values()
