"""What training keeps in memory: computed for each rank before anything runs, and counted while it runs.

`parts` names what is kept; `activations` says how much each layer saves for its backward pass; `training` puts both
together; `measured` counts the tensors themselves; `checkpointing` saves a block's input instead of everything in it;
`mixed` is Adam in two precisions.
"""

from course_utils.memory.checkpointing import checkpointed
from course_utils.memory.measured import counting_saved, measured_memory
from course_utils.memory.parts import ONE_RANK, Memory, Parallelism
from course_utils.memory.training import pipeline_memory, training_memory

__all__ = [
    "ONE_RANK",
    "Memory",
    "Parallelism",
    "checkpointed",
    "counting_saved",
    "measured_memory",
    "pipeline_memory",
    "training_memory",
]
