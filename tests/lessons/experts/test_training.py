"""Lesson 16's training runs: on any mesh of data × expert the same as in one process, step by step; mistakes show."""

from functools import partial

import pytest
import torch
import torch.distributed as dist

from course_utils.errors import CourseError
from course_utils.lessons.experts.character_experts import character_experts, flops_per_token
from course_utils.lessons.experts.expert_training import (
    BALANCED,
    Recipe,
    train_experts,
    train_in_one,
    whole_parameters,
)
from course_utils.lessons.model_parallel.text import character_text, text_batches

BATCHES = text_batches(character_text().training, 8, 16, 3)
build = partial(character_experts, 4, width=16, depth=2)


def same(run, serial, sizes, number: int = 4) -> float:
    """The largest difference between a training on a mesh and that in one process: losses and parameters."""
    gaps = [abs(a - b) for result in run.results for a, b in zip(result.losses, serial.losses, strict=True)]
    whole = whole_parameters(run.results, sizes, number)
    assert whole.keys() == serial.parameters.keys()
    return max(gaps + [float((whole[name] - values).abs().max()) for name, values in serial.parameters.items()])


@pytest.mark.parametrize("sizes", [{"data": 1, "expert": 4}, {"data": 2, "expert": 2}, {"data": 4, "expert": 1}])
@pytest.mark.parametrize("balance", BALANCED)
def test_every_mesh_trains_as_one_process_does(four_ranks, sizes, balance) -> None:
    recipe = Recipe(balance=balance)
    serial = train_in_one(build, BATCHES, recipe, BATCHES[0])
    run = four_ranks.run(train_experts, sizes, build, BATCHES, recipe, BATCHES[0], backend="gloo")
    assert same(run, serial, sizes) <= 1e-10
    assert all(result.loads == serial.loads for result in run.results)
    assert run.results[0].held_out == pytest.approx(serial.held_out, abs=1e-10)


def test_top_two_of_eight_on_four_ranks(four_ranks) -> None:
    two = partial(character_experts, 8, 2, width=16)
    serial = train_in_one(two, BATCHES, Recipe())
    sizes = {"data": 1, "expert": 4}
    run = four_ranks.run(train_experts, sizes, two, BATCHES, Recipe(), backend="gloo")
    assert same(run, serial, sizes, 8) <= 1e-10


def normalised_sigmoid(scores, k, bias):
    """The gate of DeepSeek-V3."""
    values = scores.sigmoid()
    experts = (values + bias).sort(dim=1, descending=True, stable=True).indices[:, :k]
    weights = values.gather(1, experts)
    return experts, weights / weights.sum(dim=1, keepdim=True)


@pytest.mark.parametrize("sizes", [{"data": 1, "expert": 4}, {"data": 2, "expert": 2}])
def test_small_experts_and_a_shared_one_train_as_in_one_process(four_ranks, sizes) -> None:
    small = partial(character_experts, 8, 3, width=16, hidden=16, shared=True, choose=normalised_sigmoid)
    recipe = Recipe(balance="bias")
    serial = train_in_one(small, BATCHES, recipe)
    run = four_ranks.run(train_experts, sizes, small, BATCHES, recipe, backend="gloo")
    assert same(run, serial, sizes, 8) <= 1e-10
    assert flops_per_token(small()) == flops_per_token(character_experts(8, 4, width=16)) - 2 * 2 * 4 * 2 * 16 * (
        64 - 16
    )


def test_the_dense_model_trains_by_data_parallelism(four_ranks) -> None:
    dense = partial(character_experts, 0, width=16)
    serial = train_in_one(dense, BATCHES, Recipe())
    sizes = {"data": 4, "expert": 1}
    run = four_ranks.run(train_experts, sizes, dense, BATCHES, Recipe(), backend="gloo")
    assert same(run, serial, sizes) <= 1e-10


def test_capacity_drops_tokens_and_the_training_goes_on(four_ranks) -> None:
    tight = partial(character_experts, 4, 1, 0.5, width=16)
    run = four_ranks.run(train_experts, {"data": 1, "expert": 4}, tight, BATCHES, Recipe(), backend="gloo")
    assert all(share >= 0.4 for share in run.results[0].dropped)
    assert run.results[0].losses == run.results[3].losses


def over_all(shared, own, data) -> None:
    """The quiet mistake: experts' gradients are summed over all ranks, as if all had the same experts."""
    for parameter in (*shared, *own):
        dist.all_reduce(parameter.grad)
        parameter.grad /= dist.get_world_size()


def by_the_group(shared, own, data) -> None:
    """The other: experts' gradients are divided by the number of ranks that have them."""
    for parameters, group in ((shared, None), (own, data)):
        for parameter in parameters:
            dist.all_reduce(parameter.grad, group=group)
            parameter.grad /= dist.get_world_size(group)


@pytest.mark.parametrize("mistake", [over_all, by_the_group])
def test_quiet_mistakes_train_something_else(four_ranks, mistake) -> None:
    recipe, sizes = Recipe(), {"data": 2, "expert": 2}
    serial = train_in_one(build, BATCHES, recipe)
    run = four_ranks.run(train_experts, sizes, build, BATCHES, recipe, None, mistake, backend="gloo")
    assert same(run, serial, sizes) > 1e-6
    assert run.results[0].losses[0] == pytest.approx(serial.losses[0], abs=1e-12)  # nothing shows in the first step


def test_equal_flops_but_for_the_gate() -> None:
    dense, sparse = (flops_per_token(character_experts(number, 1, width=16)) for number in (0, 4))
    assert sparse - dense == 2 * 2 * 16 * 4  # in two layers a gate from 16 to 4
    assert flops_per_token(character_experts(8, 2, width=16)) > sparse


@pytest.mark.parametrize(
    ("sizes", "batch", "words"),
    [
        ({"data": 3, "expert": 1}, 8, "A mesh of data × expert for 4 ranks"),
        ({"tensor": 4}, 8, "A mesh of data × expert"),
        ({"data": 1, "expert": 4}, 6, "6 examples cannot be dealt out evenly to 4 ranks"),
    ],
)
def test_what_cannot_be_dealt_out_is_rejected(four_ranks, sizes, batch, words) -> None:
    batches = [tuple(one[:batch] for one in pair) for pair in BATCHES]
    with pytest.raises(CourseError, match=words):
        four_ranks.run(train_experts, sizes, build, batches, Recipe(), backend="gloo")


def test_a_balance_has_a_name() -> None:
    with pytest.raises(CourseError, match="balance is one of"):
        Recipe(balance="los")
    assert torch.tensor(train_in_one(build, BATCHES[:1], Recipe()).loads).sum() == 8 * 16
