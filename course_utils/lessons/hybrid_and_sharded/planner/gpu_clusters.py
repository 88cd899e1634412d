"""GPUs, and the links inside their nodes and between them: assumed, from data sheets."""

from dataclasses import dataclass, replace

from course_utils.errors import CourseError
from course_utils.lessons.allreduce.cost_model import Network
from course_utils.lessons.hardware import data_sheets
from course_utils.lessons.hardware.data_sheets import INFINIBAND_200, INFINIBAND_400


@dataclass(frozen=True)
class Rates:
    """What shares of the data sheet programs reach, and what else they keep: fitted to real runs.

    Attributes:
        products: of the peak, large matrix products in bfloat16.
        float8: of twice the peak, with casts.
        attention: of the peak, fused attention. Only the causal half of the square is computed, and counted here.
        hopper: the same for a kernel that is written for the H100's generation.
        eager, compiled: how often the bytes that a block saves go through memory for what is no product, forward and
            backward together; with one kernel for each operation, and with fused ones.
        messages: of messages that hide behind arithmetic, the share that is paid all the same: they take processors and
            memory from it, and the first and the last hide behind nothing.
        links: of a link's data sheet.
        capped: how fast GPUs are under a limit of 500 W, as a share of their speed at 700 W.
        logit: bytes kept for each logit at the peak: it, its copy in float32, and its gradient.
        reserve: what the allocator holds, as a multiple of what activations need: fragments.
    """

    products: float
    float8: float
    attention: float
    hopper: float
    eager: float
    compiled: float
    messages: float
    links: float
    capped: float
    logit: float
    reserve: float


FITTED = Rates(
    products=0.673,
    float8=0.564,
    attention=0.19,
    hopper=0.489,
    eager=15.382,
    compiled=9.53,
    messages=0.822,
    links=1.0,
    capped=0.909,
    logit=13.4,
    reserve=1.11,
)
"""Fitted to the odd rows of `h100_runs.csv` and `h200_steps.csv`, by `workshop.planner_rates`. `links` is at its bound:
its rows tell it hardly from `messages`."""


@dataclass(frozen=True)
class Cluster:
    """Nodes of equal GPUs.

    Attributes:
        gpus: all of them.
        node: GPUs on one node.
        memory: bytes of one GPU.
        usable: the share of it for what the formulas count. The rest is for what they leave out: the driver, tensors
            that live for one operation, gaps.
        flops: of one GPU in a second at most, in bfloat16.
        efficiency: the share of these that large matrix products reach. Assumed; the smaller the matrices, the lower.
        inside, between: bytes in a second, each way, of one GPU's link inside its node, and of its link to other nodes.
        latency: seconds of a message without content, from node to node.
        hop: the same inside a node.
        bandwidth: bytes in a second between a GPU and its memory; without limit where only products are counted.
        clock: how fast the GPUs are, as a share of what their data sheet promises.
        rates: fitted shares in the place of `efficiency`; None where there are none.
        host_link: bytes in a second, each way, between a GPU and host memory.
        host_bandwidth: bytes in a second between a node's processors and their memory, a GPU's share.
        host_memory: bytes of host memory, a GPU's share.

    Source: `latency` and `hop` NCCL, src/graph/tuning.cc (hwLat, rings, "Simple"); the host of a DGX A100: PCIe 4, 16
    channels of DDR4-3200, 1 TB.
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
    hop: float = 3.4e-6
    bandwidth: float = float("inf")
    clock: float = 1.0
    rates: Rates | None = None
    host_link: float = 32e9
    host_bandwidth: float = 410e9 / 8
    host_memory: float = 1e12 / 8

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
        reached = self.rates.links if self.rates else 1.0
        if neighbours * members <= self.node:
            return Network(self.hop, 1 / (reached * self.inside))
        together = max(1, self.node // neighbours)
        return Network(self.latency, 1 / (reached * min(self.inside, together * self.between)))

    def sending(self, neighbours: int, members: int) -> float:
        """Bytes in a second that each member of a group sends to one other member by its own link.

        Not many links at once, as in `network`: round a ring of keys and values, or in an all-to-all, what a GPU has
        for a GPU of another node leaves through its own link to other nodes.
        """
        reached = self.rates.links if self.rates else 1.0
        return reached * (self.inside if neighbours * members <= self.node else self.between)


def A100(gpus: int) -> Cluster:  # noqa: N802
    """Nodes of eight: 80 GB, 312 TFLOP/s, NVLink 300 GB/s each way, InfiniBand 200 Gbit/s for each GPU.

    Source: NVIDIA, A100 and DGX A100 data sheets; the cluster of Narayanan et al. 2021, §5.
    """
    sheet = data_sheets.A100
    return Cluster(gpus, 8, sheet.memory, sheet.flops, sheet.link, INFINIBAND_200)


def H100(gpus: int) -> Cluster:  # noqa: N802
    """Nodes of eight: 80 GB at 3.35 TB/s, 989 TFLOP/s (dense), NVLink 450 GB/s each way, 400 Gbit/s for each GPU.

    Such fast GPUs wait more for their memory. What they reach is fitted to published runs. The host: PCIe 5, 16
    channels of DDR5-4800, 2 TB.

    Source: NVIDIA, H100 and DGX H100 data sheets; the cluster of Grattafiori et al. 2024, §3.3; `FITTED`.
    """
    host = {"host_link": 64e9, "host_bandwidth": 614e9 / 8, "host_memory": 2e12 / 8}
    sheet = data_sheets.H100
    reached = {"efficiency": 0.5, "bandwidth": sheet.bandwidth, "rates": FITTED}
    return Cluster(gpus, 8, sheet.memory, sheet.flops, sheet.link, INFINIBAND_400, **reached, **host)


def H100_500W(gpus: int) -> Cluster:  # noqa: N802
    """H100 GPUs as torchtitan's tables have them: 96 GB at 2.4 TB/s, and no more than 500 W.

    Source: torchtitan, benchmarks/llama3_h100_202412_torchtitan.md, "Hardware".
    """
    return replace(H100(gpus), memory=102e9, bandwidth=2.4e12, clock=FITTED.capped)


def H200(gpus: int) -> Cluster:  # noqa: N802
    """As H100, with 141 GB at 4.8 TB/s. Source: NVIDIA, H200 data sheet."""
    return replace(H100(gpus), memory=data_sheets.H200.memory, bandwidth=data_sheets.H200.bandwidth)


CLUSTERS = {"a100": A100, "h100": H100, "h100-500w": H100_500W, "h200": H200}
"""By name."""
