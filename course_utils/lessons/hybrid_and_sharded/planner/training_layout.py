"""One way to train a model on a cluster: how many ranks along each axis, and what is kept or computed again."""

from dataclasses import dataclass

from course_utils.errors import CourseError

NOTHING, SELECTIVE, FULL = "nothing", "attention", "everything"
"""What the backward pass computes again: nothing; softmax and what stands around it; every block from its input."""


@dataclass(frozen=True)
class Layout:
    """How a training is cut over data × pipeline × tensor GPUs.

    GPUs of one tensor-parallel group lie side by side, then those of a data-parallel group; the stages of the pipeline
    are farthest apart. With tensor parallelism the sequence is cut too.

    Attributes:
        data, tensor, pipeline: GPUs along each axis.
        zero: the stage of ZeRO.
        again: what the backward pass computes again: `NOTHING`, `SELECTIVE` or `FULL`.
        micro_batch: texts of one micro-batch, b.
        micro_batches: of one replica in a step, m.
        chunks: stages on each GPU; above 1 with the interleaved schedule.

    Source: the order of the axes Narayanan et al. 2021, §3.1 and §3.2.
    """

    data: int
    tensor: int
    pipeline: int
    zero: int
    again: str
    micro_batch: int
    micro_batches: int
    chunks: int = 1

    def __post_init__(self) -> None:
        if self.again not in (NOTHING, SELECTIVE, FULL):
            raise CourseError(f"{self.again!r} cannot be computed again: {NOTHING!r}, {SELECTIVE!r} or {FULL!r} can.")

    @property
    def gpus(self) -> int:
        """All of them."""
        return self.data * self.tensor * self.pipeline

    @property
    def batch(self) -> int:
        """Texts of all replicas in one step."""
        return self.data * self.micro_batch * self.micro_batches
