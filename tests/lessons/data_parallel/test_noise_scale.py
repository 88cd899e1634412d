"""The noise scale: right on average for gradients whose noise is known, measured in training, and what it predicts."""

import math

import numpy as np
import pytest
import torch

import course_utils as course
from course_utils.lessons.data_parallel import noise_scale
from course_utils.lessons.data_parallel.noise_scale import SquaredNorms, signal_and_noise, simple_noise_scale
from course_utils.lessons.data_parallel.sentences import critical_text
from course_utils.lessons.data_parallel.training import digits_mlp, flat_parameters


def test_the_estimates_are_right_on_average_for_gaussian_gradients() -> None:
    rng, n, small, large = np.random.default_rng(0), 20, 4, 16
    true, spread = rng.normal(size=n), rng.uniform(0.5, 2, size=n)
    examples = true + spread * rng.normal(size=(20_000, large, n))
    of_small, of_large = examples[:, :small].mean(axis=1), examples.mean(axis=1)
    lengths = [(one**2).sum(axis=1).mean() for one in (of_small, of_large)]
    signal, noise = signal_and_noise(*lengths, small, large)
    assert signal == pytest.approx((true**2).sum(), rel=0.02)
    assert noise == pytest.approx((spread**2).sum(), rel=0.02)
    scale = simple_noise_scale([SquaredNorms(*lengths)], small, large)
    assert scale == pytest.approx((spread**2).sum() / (true**2).sum(), rel=0.04)


def test_expected_lengths_give_signal_and_noise_exactly_and_noise_alone_has_no_end() -> None:
    assert signal_and_noise(3 + 8 / 4, 3 + 8 / 32, 4, 32) == pytest.approx((3, 8))
    assert simple_noise_scale([SquaredNorms(8 / 4, 8 / 32)], 4, 32) == math.inf
    assert noise_scale.predicted_steps(32, 32, 10) == 20  # the critical batch: twice the fewest
    with pytest.raises(ValueError, match="not 16 to 16"):
        signal_and_noise(1, 1, 16, 16)


def test_what_ranks_measure_is_what_one_process_finds(four_ranks: course.Ranks) -> None:
    data = tuple(part[:64] for part in course.data.digits("float64"))
    results = four_ranks.run(noise_scale.train_and_measure, data, batch_size=64, rate=0.2, backend="gloo").results
    assert all(norms == results[0][1] for _, norms in results) and len(results[0][1]) == 1
    model = digits_mlp(seed=0).double()
    start = flat_parameters(model)
    step = (results[0][0].parameters - start) / 0.2  # the mean gradient, backwards
    assert results[0][1][0].large == pytest.approx(step.square().sum().item(), rel=1e-10)
    own = []
    for rank in range(4):
        mine = noise_scale.shard_indices(64, rank, 4)
        model.zero_grad()
        torch.nn.functional.cross_entropy(model(data[0][mine]), data[1][mine]).backward()
        own.append(noise_scale.squared_norm(model).item())
    assert results[0][1][0].small == pytest.approx(np.mean(own), rel=1e-10)


def test_steps_are_counted_until_the_loss_is_reached() -> None:
    data = tuple(part[:128] for part in course.data.digits("float64"))
    assert noise_scale.steps_to_loss(data, 32, 0.2, target=100.0) == 1
    assert noise_scale.steps_to_loss(data, 32, 0.2, target=0.0, most=4) is None
    each = [noise_scale.steps_to_loss(data, 32, rate, 1.5) for rate in (0.1, 0.3)]
    assert noise_scale.fewest_steps(data, 32, (0.1, 0.3), 1.5) == min(each)


def test_the_sentence_says_what_both_ends_save() -> None:
    told = "Noise scale: 32 images. From 8 to 32 images: 2 times fewer steps; from 128 to 512: 1.2 times"
    assert critical_text([8, 32, 128, 512], [40, 20, 12, 10], 32.2) == told
