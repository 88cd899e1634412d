"""Networks that learn from their own answers: the gradient, its ratio for old answers, and what is drawn."""

import numpy as np
import pytest

from course_utils.lessons.parameter_server import sentences
from course_utils.lessons.parameter_server.flat_network import first_weights, flat_gradient
from course_utils.lessons.parameter_server.rewarded_answers import answers_gradient, draw_answers, probabilities

GENERATOR = np.random.default_rng(8)
IMAGES = GENERATOR.random((40, 64)), GENERATOR.integers(10, size=40), np.empty((0, 64)), np.empty(0, int)


def test_answers_are_drawn_as_often_as_they_are_probable() -> None:
    weights = first_weights(seed=0)
    rng = np.random.default_rng(0)
    batches = [draw_answers(weights, IMAGES, rng) for _ in range(400)]
    chosen, answers, probable, rewards = np.concatenate(batches, axis=1)
    expected = probabilities(weights, IMAGES[0])
    np.testing.assert_allclose(expected.sum(axis=1), 1)
    np.testing.assert_allclose(probable, expected[chosen.astype(int), answers.astype(int)])
    assert set(rewards) == {0, 1} and ((IMAGES[1][chosen.astype(int)] == answers) == rewards).all()
    mean = expected[chosen.astype(int)].mean(axis=0)
    assert np.abs(np.bincount(answers.astype(int), minlength=10) / len(answers) - mean).max() < 0.02


@pytest.mark.parametrize("most", [None, 100.0])
def test_the_gradient_is_that_of_the_loss(most: float | None) -> None:
    weights, old = first_weights(seed=0), first_weights(seed=1)
    drawn = draw_answers(old, IMAGES, np.random.default_rng(1))
    rows, (chosen, answers), rewards = np.arange(32), drawn[:2].astype(int), drawn[3]
    # The gradient of a ratio is the ratio times that of its logarithm.
    ratios = 1 if most is None else probabilities(weights, IMAGES[0][chosen])[rows, answers] / drawn[2]

    def loss(values: np.ndarray) -> float:
        logarithms = np.log(probabilities(values, IMAGES[0][chosen])[rows, answers])
        return float(-((rewards - rewards.mean()) * ratios * logarithms).mean())

    gradient = answers_gradient(weights, drawn, IMAGES, most)
    direction = np.random.default_rng(2).standard_normal(len(weights))
    slope = (loss(weights + 1e-6 * direction) - loss(weights - 1e-6 * direction)) / 2e-6
    assert gradient @ direction == pytest.approx(slope, rel=1e-5)


def test_fresh_answers_have_a_ratio_of_one_and_a_limit_binds() -> None:
    weights = first_weights(seed=0)
    drawn = draw_answers(weights, IMAGES, np.random.default_rng(3))
    plain = answers_gradient(weights, drawn, IMAGES)
    np.testing.assert_allclose(answers_gradient(weights, drawn, IMAGES, 2.0), plain)
    np.testing.assert_allclose(answers_gradient(weights, drawn, IMAGES, 0.5), plain / 2)


def test_if_all_rewards_are_alike_nothing_is_learnt_and_one_right_answer_counts_like_a_label() -> None:
    weights = first_weights(seed=0)
    drawn = draw_answers(weights, IMAGES, np.random.default_rng(4))
    drawn[3] = 1
    assert not answers_gradient(weights, drawn, IMAGES).any()
    two = drawn[:, :2].copy()
    two[3] = 1, 0
    gradients = [
        flat_gradient(weights, IMAGES[0][[int(image)]], np.array([int(answer)])) for image, answer in two[:2].T
    ]
    np.testing.assert_allclose(answers_gradient(weights, two, IMAGES), (gradients[0] - gradients[1]) / 4)


def test_titles_say_how_old_the_answers_were_and_what_was_learnt() -> None:
    assert sentences.ages_text({"S = 0": 0, "S = 1": 1}) == (
        "The oldest answer that was used: 0 updates (S = 0) and 1 update (S = 1)"
    )
    text = sentences.lag_text([0, 8], {"as they are": [0.71, 0.1], "by the ratio": [0.71, 0.59]})
    assert text == (
        "With answers 8 updates old, 10% (as they are) and 59% (by the ratio) of the test images are recognised, "
        "with fresh ones 71%"
    )
