"""Messages of a pipeline through a process group of torch's, for `run_schedule`, where other groups are torch's too."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import torch.distributed as dist


class GroupMessages:
    """What `run_schedule` needs of a communicator, in a group whose messages all have one shape.

    Attributes:
        rank, size: in the group.

    Args:
        group: the stages, in their order.
        shape, dtype: of the activations of a micro-batch, and so of their gradients.
    """

    def __init__(self, group: dist.ProcessGroup, shape: Sequence[int], dtype: torch.dtype) -> None:
        self.group, self.shape, self.dtype = group, tuple(shape), dtype
        self.rank, self.size = dist.get_rank(group), dist.get_world_size(group)

    def isend(self, array: np.ndarray, dest: int, tag: int) -> Any:
        """Send to a rank of the group, without waiting; what comes back can be waited for."""
        message = torch.from_numpy(np.ascontiguousarray(array))
        return dist.isend(message, dist.get_global_rank(self.group, dest), group=self.group, tag=tag)

    def recv(self, source: int, tag: int) -> np.ndarray:
        """What a rank of the group has sent."""
        message = torch.empty(self.shape, dtype=self.dtype)
        dist.recv(message, dist.get_global_rank(self.group, source), group=self.group, tag=tag)
        return message.numpy()
