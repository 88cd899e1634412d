"""NVTX ranges: names that NVIDIA's profilers show beside what a GPU did, Nsight Systems above all.

A range belongs to the thread that opens it. So a backward pass shows on the row of the program's thread, while the
thread of torch's autograd orders its kernels.

Source: docs.pytorch.org, `torch.cuda.nvtx`; NVIDIA, "NVTX", push and pop ranges.
"""

import sys
from contextlib import AbstractContextManager, nullcontext


def nvtx_range(name: str) -> AbstractContextManager[object]:
    """What happens inside has this name for NVIDIA's profilers; nothing at all where this process uses no CUDA.

    It never loads torch nor initialises CUDA, which would take memory on a GPU.
    """
    cuda = sys.modules.get("torch.cuda")
    initialized = getattr(cuda, "is_initialized", None)  # missing while another thread imports torch
    if cuda is None or initialized is None or not initialized():
        return nullcontext()
    return cuda.nvtx.range("{}", name)  # a name with braces in it is no format
