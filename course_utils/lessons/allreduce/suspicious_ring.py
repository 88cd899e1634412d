"""A ring with something wrong in it, and the training run that it spoils: lesson 5's detective story.

The report behind this lesson averaged weights over ranks, as `train_digits` does, and found its rings 7 to 10% less
accurate than MPI's own all-reduce. What was wrong there nobody knows; what is wrong here can be found.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from course_utils.lessons.allreduce.blocks import blocks_of
from course_utils.lessons.sgd.digits_network import Arrays, accuracy, flat, loss_and_gradients, new_network, unflat

if TYPE_CHECKING:
    from mpi4py import MPI

HIDDEN = 48
WEIGHTS = 64 * HIDDEN + HIDDEN + HIDDEN * 10 + 10
"""Numbers in the network's one vector of weights."""
BATCH, RATE = 64, 0.1  # images in a step of all ranks together
SEGMENT = 512


def suspicious_ring(comm: "MPI.Intracomm", vector: np.ndarray) -> None:
    """Add up the vectors of all ranks, in place, round a ring. It passes the test on 4,096 numbers."""
    rank, world_size = comm.rank, comm.size
    left, right = (rank - 1) % world_size, (rank + 1) % world_size
    blocks = blocks_of(vector, world_size)
    incoming = np.empty(SEGMENT, vector.dtype)

    def segments(block: np.ndarray) -> list[np.ndarray]:
        return [block[k * SEGMENT : (k + 1) * SEGMENT] for k in range(len(block) // SEGMENT)]

    for step in range(2 * (world_size - 1)):
        outgoing = blocks[(rank - step - 1) % world_size]
        arriving = blocks[(rank - step - 2) % world_size]
        sending = [comm.Isend(part, dest=right) for part in segments(outgoing)]
        for part in segments(arriving):
            comm.Recv(incoming, source=left)
            part[:] = part + incoming if step < world_size - 1 else incoming
        for request in sending:
            request.Wait()


def train_digits(
    comm: "MPI.Intracomm",
    data: Arrays,
    allreduce: Callable[["MPI.Intracomm", np.ndarray], None],
    epochs: int = 5,
    hidden: int = HIDDEN,
    steps: int | None = None,
) -> tuple[float, np.ndarray]:
    """Train lesson 1's network on all ranks; after each step the ranks average their weights with `allreduce`.

    Every rank steps on its share of the batch, then adds up the vectors of weights and divides by P. A batch is
    dealt out like cards.

    Args:
        hidden: neurons of the hidden layer.
        steps: at most this many in an epoch; None for all.

    Returns:
        the share of test images that this rank's network recognises at the end, and its weights.
    """
    train_x, train_y, test_x, test_y = data
    weights = flat(new_network(np.random.default_rng(0), hidden)).astype(np.float32)
    for epoch in range(epochs):
        order = np.random.default_rng(epoch).permutation(len(train_x))
        for begin in range(0, len(order) - BATCH + 1, BATCH)[:steps]:
            mine = order[begin : begin + BATCH][comm.rank :: comm.size]
            weights -= RATE * flat(loss_and_gradients(unflat(weights), train_x[mine], train_y[mine])[1])
            allreduce(comm, weights)
            weights /= comm.size
    return accuracy(unflat(weights), test_x, test_y), weights
