"""Lesson 6's library: P ranks train as one process would, whatever P is, and what spoils it spoils it."""

import ast
import difflib
import functools
import inspect

import numpy as np
import pytest
import torch
import torch.distributed as dist

import course_utils as course
from course_utils.lessons.data_parallel import gradients, training
from course_utils.lessons.data_parallel.batch_norm import SyncBatchNorm
from course_utils.lessons.data_parallel.differentiable import all_reduce_sum
from course_utils.lessons.data_parallel.shards import shard_indices, shard_of_batch
from course_utils.lessons.data_parallel.training_loop import train_data_parallel
from course_utils.trace.events import phase_seconds

BATCH = 48  # divides by 1, 2, 3 and 4


@pytest.fixture(scope="module")
def data():
    """A third of the digits, in float64: 9 batches of 48."""
    train_x, train_y, test_x, test_y = course.data.digits("float64")
    return train_x[:450], train_y[:450], test_x, test_y


def mean_losses(run) -> np.ndarray:
    return np.array(training.mean_losses(run.results))


def body(function) -> list[str]:
    """The statements of a function, a line each, without its docstring."""
    (definition,) = ast.parse(inspect.getsource(function)).body
    return "\n".join(ast.unparse(statement) for statement in definition.body[1:]).splitlines()


def test_three_lines_make_the_serial_training_parallel() -> None:
    compared = difflib.ndiff(body(training.train_serial), body(training.train_parallel))
    changed = [line.split(maxsplit=1) for line in compared if line[0] in "+-"]
    new = [text for sign, text in changed if sign == "+"]
    assert [text.partition("(")[0] for text in new] == ["broadcast", "batch, weight = shard_of_batch", "losses.append"]
    assert "partial(synchronise, model)" in new[2]
    assert [text.partition("(")[0] for sign, text in changed if sign == "-"] == ["losses.append"]


@pytest.mark.parametrize("world_size", [1, 2, 3, 4])
def test_any_number_of_ranks_trains_as_one_process(four_ranks, data, world_size):
    options = {"epochs": 2, "batch_size": BATCH, "rate": 0.2}
    serial = training.train_serial(data, **options)
    run = four_ranks.run(
        training.train_parallel, data, training.own_weights, ranks=world_size, backend="gloo", **options
    )
    assert len(serial.losses) == 18
    assert np.abs(mean_losses(run) - serial.losses).max() <= 1e-6
    for history in run.results:
        assert torch.allclose(history.parameters, serial.parameters, rtol=0, atol=1e-9)
        assert history.test_accuracy == serial.test_accuracy


def test_adamw_trains_as_one_process_too(four_ranks, data):
    options = {"epochs": 2, "batch_size": BATCH, "rate": 0.01, "optimizer": torch.optim.AdamW}
    serial = training.train_serial(data, **options)
    run = four_ranks.run(training.train_parallel, data, training.own_weights, backend="gloo", **options)
    assert np.abs(mean_losses(run) - serial.losses).max() <= 1e-6
    assert min(serial.losses) != min(training.train_serial(data, epochs=2, batch_size=BATCH, rate=0.01).losses)


def test_both_ways_reach_95_percent_step_for_step(four_ranks):
    digits = course.data.digits("float64")
    options = {"epochs": 6, "batch_size": 64, "rate": 0.4}
    serial = training.train_serial(digits, **options)
    for way in (gradients.average_gradients, gradients.gather_scatter_gradients):
        run = four_ranks.run(training.train_parallel, digits, training.own_weights, way, backend="gloo", **options)
        assert np.abs(mean_losses(run) - serial.losses).max() <= 1e-6
        assert min(history.test_accuracy for history in run.results) >= 0.95


def test_a_step_leaves_its_phases_and_one_all_reduce_for_each_parameter(four_ranks, data):
    run = four_ranks.run(training.train_parallel, data, batch_size=400, backend="gloo")
    assert set(phase_seconds(run.events)) == {
        (rank, name) for rank in range(4) for name in ("forward", "backward", "communication", "step")
    }
    names = [event.name for event in run.events if event.rank == 0 and event.kind == "collective"]
    assert names == ["broadcast"] * 6 + ["all_reduce"] * 6
    parameters = sum(weights.numel() for weights in training.digits_mlp(0).parameters())
    assert run.bytes_per_rank == [2 * 8 * parameters] * 4


def trained_by_hand(data, batches, rate):
    """The losses and the weights of `train_data_parallel`, from weights of this rank's own."""
    model = training.own_weights(0).double()
    losses = train_data_parallel(model, data.train_x, data.train_y, batches, rate)
    return losses, training.flat_parameters(model)


@pytest.mark.parametrize("world_size", [1, 3, 4])
def test_the_loop_by_hand_trains_as_one_process(four_ranks, world_size):
    digits = course.data.digits("float64")
    serial = training.train_serial(digits, batch_size=BATCH, rate=0.2)
    order = shard_indices(len(digits.train_x), 0, 1)
    run = four_ranks.run(
        trained_by_hand, digits, list(training.batches(order, BATCH)), 0.2, ranks=world_size, backend="gloo"
    )
    for losses, parameters in run.results:
        assert np.allclose(losses, serial.losses, rtol=0, atol=1e-12)
        assert torch.allclose(parameters, serial.parameters, rtol=0, atol=1e-12)


def test_group_norm_needs_no_collective_to_train_as_one_process(four_ranks, data):
    build = functools.partial(training.digits_mlp, norm=functools.partial(torch.nn.GroupNorm, 8))
    serial = training.train_serial(data, build, batch_size=BATCH, rate=0.2)
    run = four_ranks.run(training.train_parallel, data, build, batch_size=BATCH, rate=0.2, backend="gloo")
    assert np.abs(mean_losses(run) - serial.losses).max() <= 1e-12
    collectives = [event.name for event in run.events if event.rank == 0 and event.kind == "collective"]
    assert collectives.count("all_reduce") == 10 * len(serial.losses)  # ten parameters, two of each group norm


def leave_alone(model):
    """Send nothing."""


def test_without_broadcast_the_replicas_keep_their_distance(four_ranks, data):
    run = four_ranks.run(
        training.train_parallel, data, training.own_weights, batch_size=BATCH, broadcast=leave_alone, backend="gloo"
    )
    starts = [training.flat_parameters(training.digits_mlp(rank).double()) for rank in range(4)]
    for start, history in zip(starts, run.results, strict=True):
        before = start - starts[0]
        after = history.parameters - run.results[0].parameters
        assert torch.allclose(before, after, rtol=0, atol=1e-9)


def sum_gradients(model):
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)


def test_a_sum_is_a_mean_with_a_larger_rate(four_ranks, data):
    summed = four_ranks.run(
        training.train_parallel, data, synchronise=sum_gradients, batch_size=BATCH, rate=0.05, backend="gloo"
    )
    mean = four_ranks.run(training.train_parallel, data, batch_size=BATCH, rate=0.2, backend="gloo")
    assert np.allclose(mean_losses(summed), mean_losses(mean), rtol=0, atol=1e-9)


def test_only_synchronised_batch_norm_is_that_of_one_process(four_ranks, data):
    serial = training.train_serial(data, training.local_norm_mlp, batch_size=BATCH)
    local, sync = (
        functools.partial(training.own_weights, build=build)
        for build in (training.local_norm_mlp, training.sync_norm_mlp)
    )
    own = four_ranks.run(training.train_parallel, data, local, batch_size=BATCH, backend="gloo")
    all_ = four_ranks.run(training.train_parallel, data, sync, batch_size=BATCH, backend="gloo")
    assert np.abs(mean_losses(all_) - serial.losses).max() <= 1e-6
    assert np.abs(mean_losses(own) - serial.losses).max() > 1e-3
    steps, layers, tensors = 9, 2, 10
    assert all_.collectives - own.collectives == steps * 2 * layers
    assert own.collectives == steps * tensors + tensors + 3 * layers  # and the broadcast, with three buffers a layer


def evaluate(x):
    norm = SyncBatchNorm(3).double().eval()
    plain = torch.nn.BatchNorm1d(3).double().eval()
    return torch.equal(norm(x), plain(x))


def test_batch_norm_needs_nobody_in_evaluation(four_ranks):
    run = four_ranks.run(evaluate, torch.randn(5, 3, dtype=torch.float64), backend="gloo")
    assert run.results == [True] * 4 and run.collectives == 0


def squares_of_the_total(x):
    x = x.clone().requires_grad_()
    total = all_reduce_sum(x)
    (total.square() * (dist.get_rank() + 1)).sum().backward()
    return total.detach(), x.grad


def test_the_sum_over_ranks_has_the_gradient_of_all_losses(four_ranks):
    shares = [torch.randn(4, dtype=torch.float64) for _ in range(4)]
    run = four_ranks.run(squares_of_the_total, course.per_rank(shares), backend="gloo")
    total = torch.stack(shares).sum(dim=0)
    for got, gradient in run.results:
        assert torch.allclose(got, total)
        assert torch.allclose(gradient, 2 * total * (1 + 2 + 3 + 4))
    assert run.collectives == 2


@pytest.mark.parametrize("n", [0, 1, 3, 4, 10, 57])
@pytest.mark.parametrize("world_size", [1, 2, 4, 7])
def test_shards_have_one_length_and_leave_nobody_out(n, world_size):
    shards = [shard_indices(n, rank, world_size, epoch=3, seed=5) for rank in range(world_size)]
    assert {len(shard) for shard in shards} == {-(-n // world_size)}
    together = torch.stack(shards, dim=1).flatten()
    assert torch.equal(together[:n], shard_indices(n, 0, 1, epoch=3, seed=5))
    assert set(together.tolist()) == set(range(n))


def shares_of_batches(indices: torch.Tensor, size: int) -> list[tuple[list[int], float]]:
    shares = [shard_of_batch(batch, size) for batch in training.batches(indices, size, keep_last=True)]
    return [(share.tolist(), weight) for share, weight in shares]


def test_the_shares_of_a_batch_are_what_shard_indices_deals(four_ranks):
    order = shard_indices(30, 0, 1)
    results = four_ranks.run(shares_of_batches, order, 12, backend="gloo").results
    for rank, shares in enumerate(results):
        own = len(range(rank, 6, 4))  # of the six that are left over
        dealt = shard_indices(30, rank, 4).tolist()
        assert shares == [(dealt[:3], 1), (dealt[3:6], 1), (dealt[6 : 6 + own], own * 4 / 6)]


@pytest.mark.parametrize(
    ("n", "size", "words"), [(30, 10, "10 does not divide among 4"), (26, 12, "has 2 for 4 ranks")]
)
def test_a_batch_that_cannot_be_shared_is_rejected(four_ranks, n, size, words):
    with pytest.raises(course.RankError, match=words):
        four_ranks.run(shares_of_batches, torch.arange(n), size, backend="gloo")


def test_batches_are_full():
    assert [batch.tolist() for batch in training.batches(torch.arange(7), 3)] == [[0, 1, 2], [3, 4, 5]]
    assert list(training.batches(torch.arange(2), 3)) == []


def test_the_rate_may_be_a_function_of_the_step(data):
    constant = training.train_serial(data, batch_size=BATCH, rate=0.2)
    same = training.train_serial(data, batch_size=BATCH, rate=lambda step: 0.2)
    none = training.train_serial(data, batch_size=BATCH, rate=lambda step: 0.0)
    assert constant.losses == same.losses
    assert torch.equal(none.parameters, training.flat_parameters(training.digits_mlp(0).double()))


def test_an_unknown_rule_is_rejected():
    with pytest.raises(ValueError, match="linear"):
        gradients.scaled_learning_rate(0.1, 0, 4, rule="cubic")
