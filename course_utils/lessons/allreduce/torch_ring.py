"""The ring once more, over torch.distributed: the same blocks and neighbours, with tensors."""

import torch
import torch.distributed as dist


def torch_ring_allreduce(tensor: torch.Tensor) -> None:
    """Add the tensors of all ranks up, in place, round a ring of the default group.

    P − 1 rounds of adding and P − 1 of passing on, as in `ring_allreduce`; in each, a rank sends one block to the
    right and receives one from the left, both at once. Each sends 2 (P − 1)/P of the tensor, up to rounding.

    Args:
        tensor: contiguous, any shape, shape and dtype equal on all ranks; overwritten with the sum.

    Raises:
        ValueError: the tensor is not contiguous.

    Source: Patarasuk and Yuan 2009, "Bandwidth optimal all-reduce algorithms for clusters of workstations";
    `torch.distributed.batch_isend_irecv`.
    """
    if not tensor.is_contiguous():
        raise ValueError("an all-reduce needs a contiguous tensor; tensor.contiguous() makes one")
    rank, world_size = dist.get_rank(), dist.get_world_size()
    left, right = (rank - 1) % world_size, (rank + 1) % world_size
    blocks = torch.tensor_split(tensor.detach().view(-1), world_size)
    incoming = torch.empty_like(blocks[0])
    for step in range(2 * (world_size - 1)):
        outgoing, arriving = blocks[(rank - step - 1) % world_size], blocks[(rank - step - 2) % world_size]
        adding = step < world_size - 1
        place = incoming[: len(arriving)] if adding else arriving
        both = [dist.P2POp(dist.isend, outgoing, right), dist.P2POp(dist.irecv, place, left)]
        for work in dist.batch_isend_irecv(both):
            work.wait()
        if adding:
            arriving += place
