"""Real machines in numbers: how fast they compute and move bytes, how much they remember, and where it says so.

The figures are peaks from makers' data sheets, each with its source. Programs reach a part of them. Lesson 11's planner
takes its GPUs from here.
"""

from dataclasses import dataclass, replace

from course_utils.machine import memory_bytes


@dataclass(frozen=True)
class Machine:
    """What a machine can do at most.

    Attributes:
        name: of the machine.
        flops: floating-point operations per second, in dense matrix products.
        number_bytes: bytes of the numbers it multiplies: 4 for float32, 2 for bfloat16.
        bandwidth: bytes per second between its processors and their memory.
        memory: bytes.
        link: bytes per second, in each direction, from it to machines of its kind; None if it has no such link, or if
            the link is no part of the machine.
        source: the document that the figures are from, and `address`, where to find it.
        note: what was calculated from them, and how.
    """

    name: str
    flops: float
    bandwidth: float
    memory: float
    link: float | None = None
    number_bytes: int = 2
    source: str = ""
    address: str = ""
    note: str = ""

    @property
    def ridge(self) -> float:
        """Operations per byte moved at which computing and moving take equally long."""
        return self.flops / self.bandwidth

    @property
    def balance(self) -> float:
        """Operations in the time that it takes to move one number."""
        return self.number_bytes * self.ridge

    def times(self, count: int) -> "Machine":
        """Return so many of it together: their operations, bytes per second and memory add up."""
        return replace(
            self, flops=count * self.flops, bandwidth=count * self.bandwidth, memory=count * self.memory, link=None
        )


def this_machine(flops: float, bandwidth: float) -> Machine:
    """Return the machine that this process runs on, with two measured rates in float32, and the memory it may use."""
    return Machine("this machine", flops, bandwidth, memory_bytes(), number_bytes=4, source="measured")


INFINIBAND_200, INFINIBAND_400 = 200e9 / 8, 400e9 / 8
"""Bytes per second, in each direction, of a network card with 200 or 400 Gbit/s."""

CORES, CLOCK, PER_TICK = 128, 2.7e9, 2 * 16 * 2
"""Of an EPYC 9755: cores, base clock, and each core's operations in a tick of the clock. It starts two instructions,
each of which multiplies and adds 16 pairs of float32."""
CHANNELS, TRANSFERS = 12, 6.0e9
"""Of its memory: channels of 8 bytes, and transfers per second of DDR5-6000."""

SERVER = Machine(
    name="server: AMD EPYC 9755",
    flops=CORES * CLOCK * PER_TICK,
    number_bytes=4,
    bandwidth=CHANNELS * 8 * TRANSFERS,
    memory=CHANNELS * 64e9,
    source="AMD, EPYC 9755",
    address="https://www.amd.com/en/products/processors/server/epyc/9005-series/amd-epyc-9755.html",
    note="With 12 modules of 64 GB. Operations per tick: Yee 2024, Zen5's AVX512 teardown, numberworld.org.",
)
A100 = Machine(
    name="GPU: NVIDIA A100",
    flops=312e12,
    bandwidth=2.039e12,
    memory=80e9,
    link=300e9,
    source="NVIDIA, A100",
    address="https://www.nvidia.com/en-us/data-center/a100/",
    note="SXM with 80 GB, without sparsity. NVLink has 600 GB/s in both directions together.",
)
H100 = Machine(
    name="GPU: NVIDIA H100",
    flops=989e12,
    bandwidth=3.35e12,
    memory=80e9,
    link=450e9,
    source="NVIDIA, H100",
    address="https://www.nvidia.com/en-us/data-center/h100/",
    note="SXM, without sparsity, which halves the data sheet's rate. NVLink has 900 GB/s in both directions together.",
)
H200 = replace(
    H100,
    name="GPU: NVIDIA H200",
    bandwidth=4.8e12,
    memory=141e9,
    source="NVIDIA, H200",
    address="https://www.nvidia.com/en-us/data-center/h200/",
)
NODE = replace(
    H100.times(8),
    name="node: DGX with 8 H100",
    link=8 * INFINIBAND_400,
    source="NVIDIA, DGX H100",
    address="https://docs.nvidia.com/dgx/dgxh100-user-guide/introduction-to-dgxh100.html",
    note="8 H100s, each with a network card of 400 Gbit/s.",
)
TPU = Machine(
    name="TPU v5p",
    flops=459e12,
    bandwidth=2765e9,
    memory=95 * 2**30,
    link=600e9,
    source="Google, TPU v5p",
    address="https://docs.cloud.google.com/tpu/docs/v5p-training",
    note="A chip has 1,200 GB/s to its neighbours in both directions together. A single job gets at most 6,144 chips.",
)
POD = replace(TPU.times(8960), name="pod: 8,960 TPU v5p")
CLUSTER = replace(
    H100.times(16_384),
    name="cluster: 16,384 H100",
    source="Grattafiori and others 2024",
    address="https://arxiv.org/abs/2407.21783",
    note="The GPUs that trained Llama 3 405B, in nodes of eight, each with 400 Gbit/s (section 3.3).",
)

MACHINES = (SERVER, H100, NODE, POD, CLUSTER)
"""From the smallest to the largest, as lesson 3 shows them."""


def with_prefix(amount: float, unit: str) -> str:
    """Return an amount with three digits and the prefix that suits it: 9.89e14 with "FLOP/s" is "989 TFLOP/s"."""
    prefixes = {1e18: "E", 1e15: "P", 1e12: "T"}
    factor = next((factor for factor in prefixes if amount >= factor), 1e9)
    return f"{amount / factor:.3g} {prefixes.get(factor, 'G')}{unit}"
