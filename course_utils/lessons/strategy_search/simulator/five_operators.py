"""A network of five operators with costs in whole milliseconds: small enough to time a strategy on paper."""

from dataclasses import dataclass, field
from math import prod

from course_utils.lessons.strategy_search.graph.configurations import Config, output_box, volume
from course_utils.lessons.strategy_search.graph.operator_graph import Operator, OperatorGraph, Window

MILLISECOND = 1_000_000  # in nanoseconds
EVERY_CUT = ("sample", "attribute", "parameter")
COMPUTE = {"conv1": (8, 16), "pool1": (2, 2), "fc1": (4, 8)}
"""Milliseconds of each whole operator on one device: forward, backward. What is not named takes no time."""
NUMBERS = 512
"""That pass the link in a millisecond, each way."""
_BYTES = 4  # of a number


def five_operators() -> OperatorGraph:
    """Input, convolution, pool, a fully connected layer and the loss, for batches of 8 images."""
    operators = (
        Operator("input", "input", (), (8, 2, 8, 8)),
        Operator("conv1", "conv", (0,), (8, 16, 8, 8), EVERY_CUT, True, Window(3, 1, 1), parameters=512),
        Operator("pool1", "pool", (1,), (8, 16, 4, 4), EVERY_CUT, False, Window(2, 2, 0)),
        Operator("fc1", "linear", (2,), (8, 24), ("sample", "parameter"), True, parameters=24 * 256),
        Operator("loss", "loss", (3,), (8,)),
    )
    return OperatorGraph("five operators", operators)


def two_convolutions() -> tuple[Operator, Operator]:
    """Two convolutions with windows of 3 × 3, one after the other, for 8 images of 12 × 12 with 16 channels."""
    shape, window = (8, 16, 12, 12), Window(3, 1, 1)
    first = Operator("conv1", "conv", (0,), shape, EVERY_CUT, True, window, parameters=16 * (3 * 9 + 1))
    return first, Operator("conv2", "conv", (1,), shape, EVERY_CUT, True, window, parameters=16 * (16 * 9 + 1))


@dataclass(frozen=True)
class HandCosts:
    """Costs that one can work out on paper: half of an operator takes half of its time, and a message no start.

    Attributes:
        milliseconds: of each whole operator, forward and backward.
        numbers: that pass a device's link in a millisecond, each way.
        limits: of memory; none.
    """

    milliseconds: dict[str, tuple[int, int]] = field(default_factory=lambda: dict(COMPUTE))
    numbers: int = NUMBERS
    limits: tuple[int, ...] = ()

    def memory(self, operator: Operator, config: Config, part: int) -> int:
        """Nothing: on paper there is room."""
        return 0

    def compute(self, operator: Operator, config: Config, part: int, direction: str) -> int:
        """Nanoseconds of the part with the number `part`, "forward" or "backward"."""
        whole = self.milliseconds.get(operator.name, (0, 0))[direction == "backward"]
        return whole * MILLISECOND * volume(output_box(operator, config, part)) // prod(operator.shape)

    def exchange(self, sent: int, received: int, messages: int, devices: tuple[int, ...] = ()) -> int:
        """Nanoseconds in which a device sends and receives this many bytes, both at once."""
        return max(sent, received) * MILLISECOND // (_BYTES * self.numbers)

    def all_reduce(self, nbytes: int, ranks: int, devices: tuple[int, ...] = ()) -> int:
        """Nanoseconds of a ring all-reduce of this many bytes: 2 (P − 1)/P of them pass each link."""
        return 2 * (ranks - 1) * nbytes * MILLISECOND // (ranks * _BYTES * self.numbers)
