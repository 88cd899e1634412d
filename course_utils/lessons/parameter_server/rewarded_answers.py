"""Answers that a network draws, and the step that makes those more probable which earned a reward above the mean.

A language model that learns from its own answers does this with texts. Here an answer is a digit for an image, and the
reward is 1 if it is the right one. The weights are those of lesson 1's small network, as one flat vector.
"""

import numpy as np

from course_utils.lessons.parameter_server.flat_network import unflat
from course_utils.lessons.sgd.digits_network import Arrays

BATCH_SIZE = 32


def probabilities(weights: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return how probable each of the ten answers is, (images, 10), for `x`, (images, 64)."""
    weights_1, bias_1, weights_2, bias_2 = unflat(weights)
    scores = np.maximum(x @ weights_1 + bias_1, 0) @ weights_2 + bias_2
    exponentials = np.exp(scores - scores.max(axis=1, keepdims=True))
    return exponentials / exponentials.sum(axis=1, keepdims=True)


def draw_answers(weights: np.ndarray, images: Arrays, rng: np.random.Generator) -> np.ndarray:
    """Draw an answer for each of 32 random training images.

    Returns:
        (4, 32): the numbers of the images, the answers, how probable each answer was, and its reward, 0 or 1.
    """
    train_x, train_y, *_ = images
    chosen = rng.choice(len(train_x), BATCH_SIZE)
    probable = probabilities(weights, train_x[chosen])
    answers = (probable.cumsum(axis=1) < rng.random((BATCH_SIZE, 1))).sum(axis=1).clip(max=9)
    rewards = answers == train_y[chosen]
    return np.array([chosen, answers, probable[np.arange(BATCH_SIZE), answers], rewards], dtype=float)


def answers_gradient(weights: np.ndarray, drawn: np.ndarray, images: Arrays, most: float | None = None) -> np.ndarray:
    """Return the gradient of a batch of answers.

    The loss is the mean of (reward − mean reward) · (−log of the answer's probability), so a step against the gradient
    makes answers with a reward above the mean more probable and the others less.

    Args:
        drawn: what `draw_answers` returned, for these or for older weights.
        most: if it is given, every answer counts by the ratio of how probable it is now and how probable it was when
            it was drawn, but at most this often. Without old weights the ratio is 1.

    Source: Williams 1992, "Simple statistical gradient-following algorithms for connectionist reinforcement learning";
    the ratio with a limit: Espeholt et al. 2018, "IMPALA", §4.
    """
    chosen, answers = drawn[:2].astype(int)
    was_probable, rewards = drawn[2:]
    x, rows = images[0][chosen], np.arange(drawn.shape[1])
    weights_1, bias_1, weights_2, _ = unflat(weights)
    hidden, probable = np.maximum(x @ weights_1 + bias_1, 0), probabilities(weights, x)
    counts = rewards - rewards.mean()
    if most is not None:
        counts = counts * np.minimum(probable[rows, answers] / was_probable, most)
    of_scores = probable
    of_scores[rows, answers] -= 1
    of_scores *= counts[:, np.newaxis] / len(rows)
    of_hidden = (of_scores @ weights_2.T) * (hidden > 0)
    parts = x.T @ of_hidden, of_hidden.sum(axis=0), hidden.T @ of_scores, of_scores.sum(axis=0)
    return np.concatenate([part.ravel() for part in parts])
