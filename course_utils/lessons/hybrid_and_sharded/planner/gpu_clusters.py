"""GPUs, and the links inside their nodes and between them: assumed, from data sheets."""

from dataclasses import dataclass

from course_utils.errors import CourseError
from course_utils.lessons.allreduce.cost_model import Network


@dataclass(frozen=True)
class Cluster:
    """Nodes of equal GPUs.

    Attributes:
        gpus: all of them.
        node: GPUs on one node.
        memory: bytes of one GPU.
        usable: the share of it for what the formulas count. The rest is for what they leave out: buffers of messages,
            tensors that live for one operation, gaps.
        flops: of one GPU in a second at most, in bfloat16.
        efficiency: the share of these that large matrix products reach. Assumed; the smaller the matrices, the lower.
        inside, between: bytes in a second, each way, of one GPU's link inside its node, and of its link to other nodes.
        latency: seconds of a message without content.
    """

    gpus: int
    node: int
    memory: float
    flops: float
    inside: float
    between: float
    usable: float = 0.9
    efficiency: float = 0.6
    latency: float = 1e-5

    def __post_init__(self) -> None:
        if self.gpus < 1 or self.node < 1 or (self.gpus > self.node and self.gpus % self.node):
            raise CourseError(f"{self.gpus} GPUs do not fill nodes of {self.node}. Take a multiple.")

    def network(self, neighbours: int, members: int) -> Network:
        """What a message costs among the members of a group.

        Inside a node it takes the fast links. Of a group that reaches over several nodes, each member brings its own
        link to other nodes, and rings go over all of them at once: as many times the bandwidth as members on a node.

        Args:
            neighbours: how far apart in rank the members are, 1 for those that lie side by side.
            members: of the group.

        Source: NCCL's rings; "bus bandwidth" in nccl-tests, doc/PERFORMANCE.md.
        """
        if neighbours * members <= self.node:
            return Network(self.latency, 1 / self.inside)
        together = max(1, self.node // neighbours)
        return Network(self.latency, 1 / min(self.inside, together * self.between))

    def sending(self, neighbours: int, members: int) -> float:
        """Bytes in a second that each member of a group sends to one other member by its own link.

        Not many links at once, as in `network`: round a ring of keys and values, or in an all-to-all, what a GPU has
        for a GPU of another node leaves through its own link to other nodes.
        """
        return self.inside if neighbours * members <= self.node else self.between


def A100(gpus: int) -> Cluster:  # noqa: N802
    """Nodes of eight: 80 GB, 312 TFLOP/s, NVLink 300 GB/s each way, InfiniBand 200 Gbit/s for each GPU.

    Source: NVIDIA, A100 and DGX A100 data sheets; the cluster of Narayanan et al. 2021, §5.
    """
    return Cluster(gpus, 8, 80e9, 312e12, 300e9, 25e9)


def H100(gpus: int) -> Cluster:  # noqa: N802
    """Nodes of eight: 80 GB, 989 TFLOP/s (dense), NVLink 450 GB/s each way, 400 Gbit/s for each GPU.

    Such fast GPUs wait more for their memory: half of the arithmetic is assumed.

    Source: NVIDIA, H100 and DGX H100 data sheets; the cluster of Grattafiori et al. 2024, §3.3.
    """
    return Cluster(gpus, 8, 80e9, 989e12, 450e9, 50e9, efficiency=0.5)
