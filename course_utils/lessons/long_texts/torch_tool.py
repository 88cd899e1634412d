"""Make torch's own context parallelism run on processors.

`torch.distributed.tensor.experimental.context_parallel` replaces `scaled_dot_product_attention` with torch's ring. It
calls a kernel for each part. torch 2.13 knows three kernels there, and all of them are for GPUs. Here we register the
kernel that torch itself uses on processors, with the same ring. On GPUs none of this is needed.
"""

import torch

aten = torch.ops.aten
FORWARD = aten._scaled_dot_product_flash_attention_for_cpu.default
BACKWARD = aten._scaled_dot_product_flash_attention_for_cpu_backward.default


def add_processor_kernel() -> None:
    """Register torch's attention kernel for processors with `context_parallel`, in this process."""
    from torch.distributed.tensor.experimental._context_parallel import _attention

    _attention.custom_ops.update({FORWARD: _handle, BACKWARD: _handle})


def _handle(operator, given, options):
    """Run torch's ring on this rank's shards, and call the results shards of the whole text's."""
    from torch.distributed.tensor import DTensor, Shard

    call = DTensor._op_dispatcher.unwrap_to_op_info(operator, given, options)
    ring = _forward if operator is FORWARD else _backward
    made = ring(call.compute_mesh.get_group(), *call.local_args, **call.local_kwargs)
    return tuple(DTensor.from_local(part, call.compute_mesh, [Shard(2)], run_check=False) for part in made)


def _forward(group, q, k, v, dropout_p=0.0, is_causal=False, *, attn_mask=None, scale=None):
    from torch.distributed.tensor.experimental._context_parallel._attention import _templated_ring_attention as ring

    return ring(group, 2, FORWARD, q, k, v, is_causal, dropout_p=dropout_p, scale=scale)


def _backward(group, gradient, q, k, v, out, lse, dropout_p, is_causal, *, attn_mask=None, scale=None):
    from torch.distributed.tensor.experimental._context_parallel import _attention

    ring = _attention._templated_ring_attention_backward
    options = {"dropout_p": dropout_p, "scale": scale}
    return ring(group, 2, BACKWARD, gradient, "grad_out", q, k, v, out, lse, is_causal, **options)
