"""Lesson 1's library: steps, noise and stable rates are what theory says, and the digits are read."""

import math

import numpy as np
import pytest

from course_utils.data import digits_arrays
from course_utils.errors import CourseError
from course_utils.lessons.sgd import digits_network, gradient_descent, logistic
from course_utils.lessons.sgd.pictures import distances, noise_line, trajectories, two_classes

BATCHES = (1, 2, 5, 10, 20, 50, 100, 200)


@pytest.fixture(scope="module")
def task():
    """The images of two digits, the weights of the smallest loss, and the gradient as a function of the weights."""
    x, y = logistic.two_digits()
    return x, y, logistic.best_weights(x, y), lambda w: logistic.gradient(w, x, y)


@pytest.mark.parametrize(("n", "batch_size"), [(0, 4), (1, 1), (5, 8), (10, 4), (12, 4), (359, 32)])
def test_an_epoch_holds_each_example_once(n, batch_size, seed):
    batches = list(gradient_descent.minibatches(n, batch_size, np.random.default_rng(seed)))
    assert [len(batch) for batch in batches] == [min(batch_size, n - at) for at in range(0, n, batch_size)]
    assert sorted(index for batch in batches for index in batch) == list(range(n))


def test_steps_are_those_of_torch(seed):
    import torch

    rng = np.random.default_rng(seed)
    ours = [rng.standard_normal((4, 3)), rng.standard_normal(5)]
    theirs = [torch.tensor(w, requires_grad=True) for w in ours]
    velocities = [np.zeros_like(w) for w in ours]
    optimizer = torch.optim.SGD(theirs, lr=0.2, momentum=0.7)
    for _ in range(5):
        gradients = [rng.standard_normal(w.shape) for w in ours]
        for weights, gradient in zip(theirs, gradients, strict=True):
            weights.grad = torch.tensor(gradient)
        optimizer.step()
        gradient_descent.momentum_step(ours, gradients, velocities, 0.2, 0.7)
    for w, other in zip(ours, theirs, strict=True):
        assert np.allclose(w, other.detach().numpy(), rtol=0, atol=1e-12)


def test_gradient_and_hessian_are_the_derivatives_of_the_loss(task, seed):
    x, y, _, gradient = task
    w, tiny = np.random.default_rng(seed).standard_normal(2), 1e-5
    slopes = [(logistic.loss(w + d, x, y) - logistic.loss(w - d, x, y)) / (2 * tiny) for d in tiny * np.eye(2)]
    curves = [(gradient(w + d) - gradient(w - d)) / (2 * tiny) for d in tiny * np.eye(2)]
    assert np.allclose(gradient(w), slopes, rtol=0, atol=1e-8)
    assert np.allclose(logistic.hessian(w, x), curves, rtol=0, atol=1e-8)


def test_the_best_weights_are_a_minimum(task):
    x, _, best, gradient = task
    assert np.abs(gradient(best)).max() < 1e-12
    assert np.linalg.eigvalsh(logistic.hessian(best, x)).min() > 0


@pytest.mark.parametrize("replace", [True, False])
def test_noise_follows_one_over_root_b_over_two_decades(task, replace, seed):
    x, y, _, _ = task
    gradients, rng = logistic.gradients(np.zeros(2), x, y), np.random.default_rng(seed)
    for size in BATCHES:
        measured = gradient_descent.gradient_noise(gradients, size, rng, draws=4000, replace=replace)
        assert measured == pytest.approx(gradient_descent.predicted_noise(gradients, size, replace), rel=0.1)
    one, hundred = (gradient_descent.predicted_noise(gradients, size, replace=True) for size in (1, 100))
    assert one / hundred == pytest.approx(10)
    assert gradient_descent.gradient_noise(gradients, len(x), rng, draws=2) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.9])
def test_the_largest_stable_rate_is_where_descent_leaves_the_minimum(task, momentum):
    x, _, best, gradient = task
    predicted = gradient_descent.largest_stable_lr(logistic.hessian(best, x), momentum)

    def comes_nearer(rate):
        path = gradient_descent.descend(gradient, best + 0.001, rate, 500, momentum)
        return np.linalg.norm(path[-1] - best) < np.linalg.norm(path[0] - best)

    assert gradient_descent.bisect(comes_nearer, 0.1 * predicted, 10 * predicted) == pytest.approx(predicted, rel=0.05)


@pytest.mark.parametrize("momentum", [0.0, 0.6])
def test_on_a_parabola_the_bound_is_exact(momentum, seed):
    rng = np.random.default_rng(seed)
    root = rng.standard_normal((4, 4))
    hessian = root @ root.T + 0.1 * np.eye(4)
    bound = gradient_descent.largest_stable_lr(hessian, momentum)
    start = np.linalg.eigh(hessian)[1][:, -1]
    below, above = (
        gradient_descent.descend(lambda w: hessian @ w, start, r * bound, 3000, momentum) for r in (0.99, 1.01)
    )
    assert np.linalg.norm(below[-1]) < 1e-3 and np.linalg.norm(above[-1]) > 1e3


def test_a_flat_loss_allows_any_rate():
    assert gradient_descent.largest_stable_lr(np.zeros((2, 2))) == math.inf


def test_what_the_page_says_of_its_walks(task):
    x, y, best, gradient = task
    assert gradient_descent.largest_stable_lr(
        logistic.hessian(np.zeros(2), x)
    ) < 0.5 * gradient_descent.largest_stable_lr(logistic.hessian(best, x))
    losses = [logistic.loss(w, x, y) for w in gradient_descent.descend(gradient, np.zeros(2), 10.0, 400)]
    assert max(np.diff(losses)) > 0.05 and losses[-1] - logistic.loss(best, x, y) < 1e-9


def loss_after_five_epochs(x, y, batch_size, rate):
    """Run SGD as the pages do."""
    rng, w = np.random.default_rng(0), np.zeros(2)
    for _ in range(5):
        for batch in gradient_descent.minibatches(len(x), batch_size, rng):
            gradient_descent.sgd_step([w], [logistic.gradient(w, x[batch], y[batch])], rate)
    return logistic.loss(w, x, y)


def test_few_examples_a_step_and_many_steps_go_farthest(task):
    x, y, _, _ = task
    ends = {size: loss_after_five_epochs(x, y, size, 1.0) for size in (1, 8, 64, 359)}
    assert ends[8] < min(ends[1], ends[64]) and ends[64] < ends[359]


def test_a_larger_batch_needs_a_larger_rate(task):
    x, y, _, _ = task
    rates = 10 ** np.arange(-1.5, 1.01, 0.25)  # those of the page's slider
    best = {size: min(rates, key=lambda rate: loss_after_five_epochs(x, y, size, rate)) for size in (1, 8, 64)}
    assert [round(rate, 2) for rate in best.values()] == [0.18, 1.78, 5.62]


def test_bisection_finds_the_edge():
    assert gradient_descent.bisect(lambda value: value < math.pi, 0.0, 10.0, tries=40) == pytest.approx(
        math.pi, abs=1e-9
    )


def test_the_network_has_the_gradients_of_torch(seed):
    import torch

    rng = np.random.default_rng(seed)
    parameters, x, y = digits_network.new_network(rng, 5), rng.standard_normal((7, 64)), rng.integers(0, 10, 7)
    loss, gradients = digits_network.loss_and_gradients(parameters, x, y)
    first, first_bias, second, second_bias = tensors = [torch.tensor(p, requires_grad=True) for p in parameters]
    scores = torch.relu(torch.tensor(x) @ first + first_bias) @ second + second_bias
    expected = torch.nn.functional.cross_entropy(scores, torch.tensor(y))
    expected.backward()
    assert loss == pytest.approx(expected.item(), abs=1e-12)
    for gradient, tensor in zip(gradients, tensors, strict=True):
        assert np.allclose(gradient, tensor.grad.numpy(), rtol=0, atol=1e-12)
    assert np.allclose(digits_network.scores(parameters, x), scores.detach().numpy())


@pytest.mark.parametrize("start", range(4))
def test_the_digits_are_read(start):
    run = digits_network.train_digits(digits_arrays(), epochs=15, seed=start)
    assert run.test_accuracy >= 0.95
    assert len(run.losses) == 15 * 45 and np.mean(run.losses[-45:]) < 0.1 * run.losses[0]


@pytest.mark.parametrize("together", [True, False])
def test_paths_on_a_map(task, together):
    x, y, best, gradient = task
    paths = {f"rate {rate}": gradient_descent.descend(gradient, np.zeros(2), rate, 20) for rate in (1, 4, 8)}
    picture = trajectories(lambda w: logistic.loss(w, x, y), paths, best, "Three rates", together=together)
    maps = [ax for ax in picture.axes if ax.lines]
    assert len(maps) == (1 if together else 3)
    assert "rate 8 goes from (0, 0)" in picture.alt_text and "above the lowest" in picture.alt_text


def test_a_path_of_three_weights_is_rejected():
    with pytest.raises(CourseError, match="two weights"):
        trajectories(np.sum, {"path": np.zeros((4, 3))})
    with pytest.raises(CourseError, match="at least one"):
        trajectories(np.sum, {})


def test_noise_beside_its_line_says_how_far_apart_they_are():
    picture = noise_line([1, 4, 16], {"drawn": [1.0, 0.45, 0.0]}, {"drawn": [1.0, 0.5, 0.0]})
    assert "within 10% of its line" in picture.alt_text


def test_distances_say_what_shrinks_and_what_grows():
    picture = distances({"slow": [1.0, 0.5, 0.1], "fast": [1.0, 2.0, math.inf]})
    assert "slow gets closer; fast moves away" in picture.alt_text


def test_points_of_two_classes(task):
    x, y, best, _ = task
    plain, line = (two_classes(x, y, ("a 2", "a 5"), weights=w) for w in (None, best))
    assert "a 2: 177 points; a 5: 182 points" in plain.alt_text
    assert "88% of the points are on the correct side" in line.alt_text
    with pytest.raises(CourseError, match="a class for each"):
        two_classes(x, y[1:], ("a 2", "a 5"))
