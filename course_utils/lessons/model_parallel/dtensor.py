"""The same cut through torch's own tools: a device mesh, `parallelize_module`, and DTensors in place of the weights.

A DTensor is a tensor that knows on which mesh it lies and how: whole on every rank (`Replicate`), cut along a dimension
(`Shard`), or as terms of a sum (`Partial`). The collectives follow from
the styles of a plan, which also say how inputs and outputs lie.
"""

from collections import Counter

import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

from course_utils.errors import CourseError
from course_utils.lessons.model_parallel.transformer import Block

PLAN = {
    "attention.qkv": ColwiseParallel,
    "attention.out": RowwiseParallel,
    "mlp.up": ColwiseParallel,
    "mlp.down": RowwiseParallel,
}
"""Which linear layer of a block is cut which way: Megatron's pair, twice. The rows of `qkv` must lie head by head."""


def tensor_mesh() -> DeviceMesh:
    """All ranks of the default group in one row, under the name "tensor"."""
    return init_device_mesh(mesh_device(), (dist.get_world_size(),), mesh_dim_names=("tensor",))


def parallelize_block(block: Block, mesh: DeviceMesh) -> None:
    """Cut a block over the mesh, in place, by `PLAN`; the linear layers' parameters become DTensors.

    As with `parallel_block.parallelise_block`: one all-reduce forward and one backward in each half of the block.

    Args:
        block: equal on all ranks.

    Raises:
        CourseError: the heads cannot be divided by the number of ranks.
    """
    ranks, attention = mesh.size(), block.attention
    if attention.heads % ranks:
        raise CourseError(f"{attention.heads} heads cannot be divided among {ranks} ranks. Choose a multiple.")
    attention.heads //= ranks  # the layers hand on plain tensors, so that attention sees its own heads only
    attention.dropout.parts, attention.dropout.part = ranks, mesh.get_local_rank()
    parallelize_module(block, mesh, {name: style() for name, style in PLAN.items()})


def counted(work) -> tuple[object, dict[str, int]]:
    """Call `work()` and count the collectives that DTensors made in it, by name ("all_reduce", "reduce_scatter", …).

    Args:
        work: a function without arguments.

    Returns:
        What it returned, and how many of each.
    """
    from torch.distributed.tensor.debug import CommDebugMode  # brings numpy, and takes a while

    with CommDebugMode() as mode:
        result = work()
    names: Counter[str] = Counter()
    for operation, number in mode.get_comm_counts().items():
        names[str(operation).rpartition(".")[2]] += number
    return result, dict(names)


def mesh_device() -> str:
    """Where torch's meshes of the default group lie: "cuda" where the group talks over NCCL, "cpu" otherwise."""
    import torch.distributed as dist

    return "cuda" if dist.get_backend() == "nccl" else "cpu"
