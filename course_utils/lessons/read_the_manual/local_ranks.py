"""PyTorch's own simulated ranks: one process that holds the parts of all ranks, and does every operation on each part.

`LocalTensor` is a private part of PyTorch, for debugging programs with DTensors. A program runs once, and whenever it
makes a collective, the parts are combined as the collective would do it. No message is sent, and no clock is kept.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch.distributed._local_tensor import LocalTensor, LocalTensorMode
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.testing._internal.distributed.fake_pg import FakeStore

from course_utils.errors import CourseError


@contextmanager
def local_ranks(number: int) -> Iterator[DeviceMesh]:
    """Yield a mesh of so many ranks in one row, whose parts of a DTensor are all in this process.

    While it is open, this process is rank 0 of a group of torch.distributed that sends nothing.

    Raises:
        CourseError: this process has a group already.
    """
    if dist.is_initialized():
        raise CourseError(
            "This process has a group of torch.distributed already. Use local ranks in the notebook itself."
        )
    dist.init_process_group("fake", rank=0, world_size=number, store=FakeStore())
    try:
        with LocalTensorMode(number):
            yield init_device_mesh("cpu", (number,))
    finally:
        dist.destroy_process_group()


def parts_of(tensor: torch.Tensor) -> list[torch.Tensor]:
    """Return what each rank holds, in the order of the ranks.

    Raises:
        CourseError: it is an ordinary tensor.
    """
    if not isinstance(tensor, LocalTensor):
        raise CourseError(
            "This tensor has no parts. Make it in `with local_ranks(4) as mesh:`, and call its to_local()."
        )
    return [tensor._local_tensors[rank] for rank in sorted(tensor._local_tensors)]
