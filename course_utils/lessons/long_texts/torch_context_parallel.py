"""torch's own context parallelism, tried: `torch.distributed.tensor.experimental.context_parallel`.

It replaces torch.nn.functional.scaled_dot_product_attention by a ring, under this name alone: who has imported the
function itself goes on with a text of his own, and hears nothing of it. How a kernel of attention is cut is registered
for CUDA's kernels only (torch 2.13: flash, memory-efficient, cuDNN), so on processors it raises.
"""

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

BACKENDS = {"flash": SDPBackend.FLASH_ATTENTION, "math": SDPBackend.MATH}
"""The kernels of scaled_dot_product_attention that torch has for processors."""


def torch_context_parallel(backend: str, device: str = "cpu") -> str:
    """Do causal attention over all ranks with torch's tool, and say what came of it.

    Args:
        backend: one of `BACKENDS`.
        device: "cpu" or "cuda".

    Returns:
        "runs, … away from one process", or the error's name and text.
    """
    from torch.distributed.tensor.experimental import context_parallel  # experimental: it may have moved

    torch.manual_seed(0)
    whole = torch.randn(3, 1, 4, 32, 8, device=device)
    wanted = functional.scaled_dot_product_attention(*whole, is_causal=True)
    mesh = init_device_mesh(device, (dist.get_world_size(),))
    q, k, v = (one.clone() for one in whole)
    places = torch.arange(32, device=device)
    try:
        buffers = {"buffers": [q, k, v, places], "buffer_seq_dims": [2, 2, 2, 0]}
        with sdpa_kernel(BACKENDS[backend]), context_parallel(mesh, **buffers):
            out = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            apart = (out - wanted[:, :, places]).abs().max().item()
    except (NotImplementedError, RuntimeError) as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return f"runs, {apart:.0e} away from one process"
