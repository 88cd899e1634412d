"""ZeRO: data parallelism in which no two ranks keep the same thing. What each stage saves and costs, and by hand.

`formulas` count on paper; `zero1` and `zero2` are by hand, `fsdp` is stage 3 through torch; `stages` trains the same
model with each of them and counts; `over_meshes` writes a checkpoint with some ranks and reads it with others.
"""

from course_utils.sharded.formulas import check_stage, fits, zero_memory, zero_traffic
from course_utils.sharded.zero1 import AdamShard, adam_shard, shard_length, zero1_step

__all__ = [
    "AdamShard",
    "adam_shard",
    "check_stage",
    "fits",
    "shard_length",
    "zero1_step",
    "zero_memory",
    "zero_traffic",
]
