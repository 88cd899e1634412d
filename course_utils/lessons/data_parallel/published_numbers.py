"""What the CS744 report says in numbers, and what they must be by arithmetic.

Ng, Chen, Blakely 2020, "Assignment 2" of CS744 (Wisconsin), group 11: VGG-11 on CIFAR-10, batches of 256 images among
1 to 4 virtual machines of 5 cores each. Its figures 4 to 11 come without numbers; its tables and its text give these.
"""

from course_utils.lessons.hardware.step_shares import EPOCH_IMAGES, REPORT

__all__ = ["CPU", "EPOCH_SECONDS", "FORWARD_TIMES", "GRADIENT_BYTES", "IMAGES", "REPORT", "SENT_PER_SECOND"]

IMAGES = 256
GRADIENT_BYTES = 4 * 9_231_114  # of VGG-11 at this size, with batch norm
EPOCH_SECONDS = {1: [437], 2: [228, 228], 3: [169, 169, 170], 4: [153, 153, 153, 153]}
"""Table 1: workers → seconds of an epoch on each node, task 3."""
CPU = {
    1: [(56.3, 10.8)],
    2: [(57.6, 9.0), (56.7, 5.3)],
    3: [(52.7, 3.2), (51.3, 3.2), (50.0, 3.2)],
    4: [(53.8, 2.9), (53.8, 3.2), (53.6, 3.0), (53.5, 3.1)],
}
"""Table 2: workers → percent of each node's CPU, user and system, task 3."""
SENT_PER_SECOND = {2: [31.8, 31.8], 3: [64.7, 64.4, 64.8], 4: [70.1, 70.6, 70.6, 70.6]}
"""Table 3: workers → MB/s that each node sends, task 3."""
FORWARD_TIMES = 3.0
"""By its text the forward pass of a batch is this many times as fast on 4 nodes as on one."""


def gradients_per_step(workers: int) -> float:
    """How many times the gradient's bytes a node of the report sent in a step, by its tables 1 and 3."""
    mean = sum(SENT_PER_SECOND[workers]) / workers
    return mean * 1e6 * max(EPOCH_SECONDS[workers]) / (EPOCH_IMAGES / IMAGES) / GRADIENT_BYTES
