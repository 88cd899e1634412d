"""What each replica of this lesson trains: a small network on handwritten digits, with Adam, all in float64.

The whole training state is one tensor (3, n): the n weights, and Adam's two averages for each of them. Which images
belong to a step depends only on the number of the step, and which of them a replica takes only on its own number. So a
step that is repeated has the same images again.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

import numpy as np
import torch

from course_utils.data import digits_arrays
from course_utils.lessons.autodiff_and_optimizers.optimizers import adam_step
from course_utils.lessons.sgd.digits_network import flat, loss_and_gradients, new_network, unflat
from course_utils.own_files import whole_file

BATCH = 32
"""Images of each replica in a step."""
RATE = 0.01
"""Of Adam."""


def new_state(seed: int = 0) -> torch.Tensor:
    """Return the state before the first step, (3, n): random weights, and averages of 0."""
    weights = flat(new_network(np.random.default_rng(seed), hidden=16))
    return torch.from_numpy(np.stack([weights, np.zeros_like(weights), np.zeros_like(weights)]))


@cache
def _images() -> tuple[np.ndarray, np.ndarray]:
    x, y, _, _ = digits_arrays()
    return x, y


def shard(step: int, replica: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the images (32, 64) and digits (32,) of a replica in the step after `step` steps."""
    x, y = _images()
    order = np.random.default_rng([18, step]).permutation(len(y))
    own = order[replica * BATCH : (replica + 1) * BATCH]
    return x[own], y[own]


def gradient_and_loss(state: torch.Tensor, step: int, replica: int) -> torch.Tensor:
    """Return the gradient on a replica's images with the loss appended, (n + 1,).

    Both are means over the images, so the mean of several replicas' vectors is that of all their images.
    """
    loss, gradients = loss_and_gradients(unflat(state[0].numpy()), *shard(step, replica))
    return torch.from_numpy(np.append(flat(gradients), loss))


def update(state: torch.Tensor, gradient: torch.Tensor, step: int) -> None:
    """Take a step of Adam in place, after `step` steps.

    Args:
        gradient: (n,), the mean over all replicas that take part.
    """
    weights, means, squares = state.numpy()
    adam_step([weights], [gradient.numpy()], [means], [squares], step + 1, RATE)


def save_state(folder: Path, state: torch.Tensor, step: int) -> None:
    """Write a checkpoint into the folder; the previous one stays until the new one is complete."""
    with whole_file(folder / "checkpoint.npy") as stream:
        np.save(stream, np.append(state.numpy(), step))


def load_state(folder: Path) -> tuple[torch.Tensor, int]:
    """Return the state of the last checkpoint and its number of steps, or a new state if there is no checkpoint."""
    file = folder / "checkpoint.npy"
    if not file.exists():
        return new_state(), 0
    saved = np.load(file)
    return torch.from_numpy(saved[:-1].reshape(3, -1)), int(saved[-1])


def train_serially(members: Iterable[Sequence[int]]) -> list[tuple[torch.Tensor, float]]:
    """Return the state and the loss after each step of the same training in one process.

    Args:
        members: for each step, the replicas whose images it uses.
    """
    state, found = new_state(), []
    for step, replicas in enumerate(members):
        mean = torch.stack([gradient_and_loss(state, step, replica) for replica in replicas]).mean(0)
        update(state, mean[:-1], step)
        found.append((state.clone(), mean[-1].item()))
    return found
