"""A server and its workers, in step and out of step; weights averaged now and then; clinics with unlike data."""

import numpy as np
import pytest

import course_utils as course
from course_utils.lessons.parameter_server.digits_trainings import (
    Pace,
    first_weights,
    flat_gradient,
    own_batches,
    train_asynchronously,
    train_locally,
    train_synchronously,
    unflat,
)
from course_utils.lessons.parameter_server.local_sgd import federated_average, local_sgd_round, skewed_shards
from course_utils.lessons.parameter_server.server import (
    measure_staleness,
    parameter_server_step,
    staleness_scaled_lr,
    step_seconds,
)
from course_utils.lessons.sgd.digits_network import Arrays, accuracy, loss_and_gradients

QUICK = Pace(seconds=0.001)


@pytest.fixture(scope="module")
def data() -> Arrays:
    return course.data.digits_arrays()


def server_step(comm, gradients: np.ndarray) -> np.ndarray:
    parameters = np.arange(5, dtype=gradients.dtype) + 9 * comm.rank  # the workers' weights are out of date
    parameter_server_step(comm, parameters, gradients[comm.rank], rate=0.5)
    return parameters


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("world_size", [1, 2, 3, 4])
def test_a_step_of_the_server_is_a_step_against_the_mean_of_the_workers(four_ranks, world_size, dtype, seed) -> None:
    gradients = np.random.default_rng(seed).normal(size=(4, 5)).astype(dtype)
    run = four_ranks.run(server_step, gradients, ranks=world_size)
    mean = gradients[1:world_size].mean(axis=0) if world_size > 1 else 0.0
    for parameters in run.results:
        np.testing.assert_allclose(parameters, np.arange(5.0) - 0.5 * mean, rtol=1e-5 if dtype == "float32" else 1e-13)
        assert parameters.dtype == dtype and parameters.tobytes() == run.results[0].tobytes()
    assert run.messages == 2 * (world_size - 1) and run.collectives == 0
    sent = gradients[0].nbytes * np.array([world_size - 1, 1, 1, 1][:world_size])
    assert run.bytes_per_rank == sent.tolist(), "all vectors pass the server's link"


def test_staleness_by_hand() -> None:
    log = [("fetch", 1), ("fetch", 2), ("push", 1), ("fetch", 1), ("push", 1), ("push", 2), ("push", 2)]
    assert measure_staleness(log) == [0, 0, 2, 3] and measure_staleness([]) == []


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_who_takes_turns_is_never_stale_and_who_does_not_wait_is_as_stale_as_there_are_others(workers) -> None:
    ranks = range(1, workers + 1)
    in_turn = [(what, worker) for _ in range(3) for worker in ranks for what in ("fetch", "push")]
    assert measure_staleness(in_turn) == [0] * 3 * workers
    nobody_waits = [("fetch", worker) for worker in ranks]
    nobody_waits += [(what, worker) for _ in range(3) for worker in ranks for what in ("push", "fetch")]
    assert measure_staleness(nobody_waits) == [*range(workers), *[workers - 1] * 2 * workers]


def test_the_rate_for_an_old_gradient() -> None:
    assert [staleness_scaled_lr(0.6, age) for age in (0, 1, 2, 3)] == pytest.approx([0.6, 0.6, 0.3, 0.2])
    with pytest.raises(ValueError, match="from the future"):
        staleness_scaled_lr(0.1, -1)


def test_synchronous_training_is_that_of_one_process(four_ranks, data) -> None:
    curve = four_ranks.run(train_synchronously, data, 6, batch_size=16, rate=0.3, pace=QUICK, every=1).results[0]
    batches = [own_batches(data, worker, 3, 16, seed=worker + 1) for worker in range(3)]
    weights, accuracies = first_weights(0), []
    for _ in range(6):
        accuracies.append(accuracy(unflat(weights), *data[2:]))
        weights -= 0.3 * np.mean([flat_gradient(weights, *next(own)) for own in batches], axis=0)
    assert curve.accuracies == [*accuracies, accuracy(unflat(weights), *data[2:])] and not curve.staleness
    assert curve.epochs == pytest.approx([update * 3 * 16 / len(data[0]) for update in range(7)])


def test_asynchronous_training_learns_and_counts_its_staleness(four_ranks, data) -> None:
    curve = four_ranks.run(train_asynchronously, data, 300, pace=QUICK).results[0]
    assert curve.accuracies[-1] > 0.9 and len(curve.staleness) == 300
    assert 1.0 <= np.mean(curve.staleness) <= 2.5, "with three workers about two others come between"


def test_a_straggler_s_gradients_are_the_oldest(four_ranks, data) -> None:
    slow = Pace(seconds=0.004, straggler=2, factor=8)
    curve = four_ranks.run(train_asynchronously, data, 120, pace=slow).results[0]
    assert max(curve.staleness) > 4


def local_round(comm, batches: list[list[float]]) -> np.ndarray:
    parameters = np.zeros(3)
    local_sgd_round(comm, parameters, lambda weights, batch: weights + batch, batches[comm.rank], rate=0.1)
    return parameters


def test_a_local_round_is_the_mean_of_steps_of_ones_own(four_ranks) -> None:
    batches = [[1.0, 2.0], [], [3.0], [4.0, 5.0, 6.0]]
    run = four_ranks.run(local_round, batches)
    ends = []
    for own in batches:
        weights = 0.0
        for batch in own:
            weights -= 0.1 * (weights + batch)
        ends.append(weights)
    for parameters in run.results:
        np.testing.assert_allclose(parameters, np.full(3, np.mean(ends)), rtol=1e-13)
    assert run.collectives == 1


def averaged(comm, examples: list[int]) -> np.ndarray:
    parameters = np.full(2, comm.rank, dtype=np.float32)
    federated_average(comm, parameters, examples[comm.rank])
    return parameters


def one_local_step(comm, gradients: np.ndarray) -> np.ndarray:
    parameters = np.zeros(4)
    local_sgd_round(comm, parameters, lambda weights, batch: batch, iter([gradients[comm.rank]]), rate=0.5)
    return parameters


def test_a_local_round_of_one_step_is_a_step_against_the_mean_gradient(four_ranks, seed) -> None:
    gradients = np.random.default_rng(seed).normal(size=(4, 4))
    for parameters in four_ranks.run(one_local_step, gradients).results:
        np.testing.assert_allclose(parameters, -0.5 * gradients.mean(axis=0), rtol=1e-13)


@pytest.mark.parametrize(("examples", "mean"), [([1, 1, 1, 1], 1.5), ([0, 3, 0, 1], 1.5), ([8, 0, 0, 1], 1 / 3)])
def test_clinics_count_by_their_examples(four_ranks, examples, mean) -> None:
    run = four_ranks.run(averaged, examples)
    assert all(np.allclose(parameters, mean) and parameters.dtype == np.float32 for parameters in run.results)
    assert run.collectives == 1 and run.bytes_per_rank == [8 * (2 + 1)] * 4


def test_without_examples_the_weights_stay(four_ranks) -> None:
    assert [list(weights) for weights in four_ranks.run(averaged, [0] * 4).results] == [[r, r] for r in range(4)]


@pytest.mark.parametrize("skew", [0.1, 1.0, 100.0])
def test_every_example_goes_to_one_clinic(skew, seed) -> None:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 10, 500)
    shards = skewed_shards(labels, 4, skew, rng)
    assert sorted(np.concatenate(shards)) == list(range(500))


def test_local_training_learns(four_ranks, data) -> None:
    assert four_ranks.run(train_locally, data, 12, pace=QUICK, rate=0.2).results[0].accuracies[-1] > 0.85


def test_the_flat_gradient_is_the_gradient(data, seed) -> None:
    weights, rng = first_weights(0), np.random.default_rng(seed)
    x, y = data[0][:20], data[1][:20]
    direction = rng.normal(size=weights.shape)

    def loss(t: float) -> float:
        return loss_and_gradients(unflat(weights + t * direction), x, y)[0]

    assert (loss(1e-6) - loss(-1e-6)) / 2e-6 == pytest.approx(flat_gradient(weights, x, y) @ direction, rel=1e-4)


def test_the_server_s_link_carries_everybody_s_vector_both_ways() -> None:
    assert step_seconds(3, 1e6, 1e6) == 6.0 and step_seconds(3, 1e6, 1e6, latency=0.5) == 7.0
