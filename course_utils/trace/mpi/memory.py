"""Where the arrays lie that MPI is given: in the processor's memory, or in a GPU's, which not every MPI can read.

An MPI that cannot takes the address for one of the processor's memory, and its process dies.
"""

import ctypes
import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from mpi4py import MPI

from course_utils.errors import CourseError
from course_utils.trace.mpi.call_errors import name_errors, note_call

_NO_GPU = frozenset({int, np.ndarray})
"""A rank, a tag, or an array that no GPU has: nearly always."""


@functools.cache
def cuda_aware() -> bool:
    """Can this MPI read and write a GPU's memory?

    Source: MPICH and Open MPI, `MPIX_Query_cuda_support`; an MPI without this function is taken for one that cannot.
    """
    try:
        return bool(ctypes.CDLL(MPI.__file__).MPIX_Query_cuda_support())
    except (OSError, AttributeError):
        return False


def device_of(buf: Any) -> str:
    """ "cpu", or the device on which an array lies: of torch, NumPy or CuPy, or the first of mpi4py's lists."""
    array = buf[0] if isinstance(buf, (list, tuple)) and buf else buf
    device = getattr(array, "device", None)
    return "cpu" if device is None or getattr(device, "type", device) == "cpu" else str(device)


def check_memory(call: str, *buffers: Any) -> None:
    """Reject arrays that this MPI cannot reach, and let the GPU finish those that it can.

    MPI knows nothing of a GPU's queue: it would send what lies there before the kernels that compute it are done.

    Source: mpi4py, "GPU-aware MPI + Python GPU arrays": the caller synchronizes.

    Raises:
        CourseError: one lies on a GPU, and the MPI is not CUDA-aware.
    """
    devices = {device for buf in buffers if (device := device_of(buf)) != "cpu"}
    for device in devices:
        if not (device.startswith("cuda") and cuda_aware()):
            raise CourseError(
                f"{call}: the array lies on {device}, and this MPI reads and writes the processor's memory only. "
                "Give it `tensor.cpu().numpy()`, or let torch.distributed send the tensor over NCCL."
            )
        synchronize(device)


def synchronize(device: str) -> None:
    """Return when a GPU has done all that was asked of it before, in the queue that torch uses now."""
    import torch

    torch.cuda.current_stream(device).synchronize()


def check_buffers(owner: type) -> type:
    """A class whose calls on buffers, those with a capital letter, look first where their arrays lie.

    Errors that leave any of MPI's calls know its name.
    """
    for name, call in list(vars(owner).items()):
        if callable(call) and hasattr(MPI.Intracomm, name) and not name.startswith("_"):
            setattr(owner, name, _with_buffer_check(name, call) if name[0].isupper() else name_errors(name, call))
    return owner


def _with_buffer_check(name: str, call: Callable) -> Callable:
    @functools.wraps(call)
    def checked(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            if kwargs or not _NO_GPU.issuperset(map(type, args)):
                check_memory(name, *args, *kwargs.values())
            return call(self, *args, **kwargs)
        except Exception as error:
            note_call(error, name)
            raise

    return checked
