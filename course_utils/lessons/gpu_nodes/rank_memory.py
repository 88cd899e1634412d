"""What a rank keeps in memory while Adam trains a model whole (DDP) or in parts (FSDP2): counted, and by the formula.

The tensors themselves are counted (lesson 9), on processors as on GPUs. On a GPU, torch's allocator also says how many
bytes it has given out at most. What lives for one operation only is in that too, such as the weights that FSDP2 gathers
for a layer.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

from course_utils.lessons.gpu_nodes.launch import Group, process_group
from course_utils.lessons.hybrid_and_sharded.fsdp import shard_fully
from course_utils.lessons.model_parallel.memory_counter import measured_memory
from course_utils.lessons.model_parallel.memory_parts import Memory, Parallelism
from course_utils.lessons.model_parallel.training_memory import training_memory
from course_utils.lessons.model_parallel.transformer import character_model

if TYPE_CHECKING:
    from course_utils.ranks.ranks import Ranks

WAYS = {"DDP": 0, "FSDP2": 3}
"""Way to train → the stage of ZeRO that it is."""
RECORDED = Path(__file__).parent / "recorded" / "rank_memory.json"


@dataclass(frozen=True)
class TextModel:
    """A transformer for characters, and the texts that pass through it together on each rank."""

    characters: int = 40
    width: int = 64
    depth: int = 4
    heads: int = 4
    length: int = 32
    batch: int = 2

    def build(self) -> nn.Sequential:
        """The same on every rank."""
        return character_model(
            self.characters, width=self.width, depth=self.depth, heads=self.heads, context=self.length
        )


@dataclass(frozen=True)
class RankMemory:
    """Bytes of one rank.

    Attributes:
        counted: of the tensors that are kept.
        formula: the same by `training_memory`, before anything runs.
        given_out: by the GPU's allocator, at most; 0 on processors, which have no such counter.
    """

    counted: Memory
    formula: Memory
    given_out: int = 0


def rank_memory(method: str, sizes: TextModel) -> RankMemory:
    """Train two steps on all processes; for `ranks.run(rank_memory, method, sizes, backend="gloo")`.

    DDP all-reduces gradients. FSDP2 all-gathers a layer's weights before it computes, and reduce-scatters gradients.

    Args:
        method: one of `WAYS`.

    Source: Rajbhandari et al. 2020, "ZeRO", §5; docs.pytorch.org, `fully_shard`, `torch.cuda.max_memory_allocated`.
    """
    with process_group() as group:
        on_gpu = group.device.type == "cuda"
        before = torch.cuda.memory_allocated() if on_gpu else 0
        whole = sizes.build()
        cut = Parallelism(data=group.world_size, zero=WAYS[method])
        formula = training_memory(whole, sizes.batch, sizes.length, "adam", parallelism=cut)
        model = (
            _divided(whole.to(group.device), group) if method == "FSDP2" else _replica(whole.to(group.device), group)
        )
        optimizer = torch.optim.Adam(model.parameters(), 1e-3)
        text = torch.randint(sizes.characters, (sizes.batch, sizes.length + 1), device=group.device)

        def step() -> None:
            optimizer.zero_grad()
            cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten()).backward()
            optimizer.step()

        step()
        counted = measured_memory(model, optimizer, step)
        return RankMemory(counted, formula, torch.cuda.max_memory_allocated() - before if on_gpu else 0)


def _replica(model: nn.Module, group: Group) -> nn.Module:
    """DDP, whose buckets are the gradients; by itself it would keep them twice."""
    if group.world_size == 1:
        return model
    return DistributedDataParallel(model, process_group=group.gradients, gradient_as_bucket_view=True)


def _divided(model: nn.Sequential, group: Group) -> nn.Module:
    return shard_fully(model, DeviceMesh.from_group(group.gradients or dist.group.WORLD, group.device.type))


@dataclass(frozen=True)
class RecordedMemory:
    """What a GPU's allocator had given out at most, beside the formula, in bytes, by the way to train.

    Attributes:
        machine, date: where and when.
        sizes: of the model, as in `TextModel`.
        ranks: on how many it was trained.
        given_out, formula: of "whole" (gradients averaged by one all-reduce for each) and "FSDP2".
    """

    machine: str
    date: str
    sizes: dict[str, int]
    ranks: int
    given_out: dict[str, float]
    formula: dict[str, float]


def recorded_memory() -> RecordedMemory:
    """Of two ranks that shared one GPU: each has memory of its own in it, so the bytes mean what they say."""
    return RecordedMemory(**json.loads(RECORDED.read_text()))


def memory_by_way(ranks: "Ranks", sizes: TextModel) -> dict[str, RankMemory]:
    """What rank 0 keeps, by each of the `WAYS`."""
    return {method: ranks.run(rank_memory, method, sizes, backend="gloo").results[0] for method in WAYS}
