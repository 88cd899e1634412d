"""What lesson 18 runs: replicas beside one process, checkpoints in pieces on the ranks, and flipped bits."""

import numpy as np
import torch
import torch.distributed as dist

from course_utils.lessons.failures.find_the_liar import flip_bit
from course_utils.lessons.failures.replica_processes import ReplicaRun
from course_utils.lessons.failures.replica_state import gradient_and_loss, new_state, train_serially


def beside_one_process(run: ReplicaRun) -> float:
    """Return the largest difference of any state or loss of any replica, after any step, from the serial training."""
    serial = train_serially(run.members)
    gaps = [0.0]
    for done in run.completed:
        state, loss = serial[done.step - 1]
        gaps += [float(np.abs(done.state - state.numpy()).max()), abs(done.loss - loss)]
    return max(gaps)


def steps_compared(run: ReplicaRun) -> set[tuple[int, int]]:
    """Return (replica, step) of all states that `beside_one_process` has compared."""
    return {(done.replica, done.step) for done in run.completed}


def save_with_torch(folder: str, piece: np.ndarray) -> None:
    """On a rank: write a vector that all ranks share with `torch.distributed.checkpoint`, each its own piece."""
    import torch.distributed.checkpoint as checkpoint

    checkpoint.save({"vector": _shared_vector(piece)}, checkpoint_id=folder)


def load_with_torch(folder: str, length: int) -> np.ndarray:
    """On a rank: read this rank's piece of such a vector, whatever the number of ranks that wrote it."""
    import torch.distributed.checkpoint as checkpoint

    size, rank = dist.get_world_size(), dist.get_rank()
    vector = _shared_vector(np.zeros(len(np.array_split(np.empty(length), size)[rank])))
    checkpoint.load({"vector": vector}, checkpoint_id=folder)
    return vector.to_local().numpy()


def _shared_vector(piece: np.ndarray):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor import DTensor, Shard

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    return DTensor.from_local(torch.from_numpy(piece), mesh, [Shard(0)])


def loss_after_flips(steps: int, index: int) -> tuple[float, list[float]]:
    """Return the loss on a batch after some steps of training, and the loss with each of a weight's 64 bits flipped.

    Args:
        steps: of the training, before the flip.
        index: of the weight.
    """
    state = train_serially([range(4)] * steps)[-1][0] if steps else new_state()
    losses = []
    for bit in range(64):
        flipped = state.clone()
        flip_bit(flipped[0].numpy(), index, bit)
        with np.errstate(all="ignore"):
            losses.append(float(gradient_and_loss(flipped, steps, 0)[-1]))
    return float(gradient_and_loss(state, steps, 0)[-1]), losses
