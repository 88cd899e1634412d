"""Small operator graphs that nobody has seen, with their own costs: for exercises, and for tests of the simulators."""

from dataclasses import dataclass, field
from math import prod
from zlib import crc32

import numpy as np

from course_utils.lessons.strategy_search.graph.configurations import Config, output_box, volume
from course_utils.lessons.strategy_search.graph.operator_graph import Operator, OperatorGraph, Window
from course_utils.lessons.strategy_search.simulator.program_steps import Direction

EVERY_CUT = ("sample", "attribute", "parameter")


@dataclass(frozen=True)
class DrawnCosts:
    """Costs in proportion to the work, each part a little more or less, and dearer between some devices.

    Attributes:
        seed: of what each part takes more.
        whole: nanoseconds of each operator on one device, forward; backward takes twice as long.
        start, per_byte: nanoseconds of a message, and of a byte in it.
        limits: bytes of each device, if they are limited: what an operator computes and learns must fit.
    """

    seed: int
    whole: dict[str, int] = field(default_factory=dict)
    start: int = 500
    per_byte: int = 4
    limits: tuple[int, ...] = ()

    def compute(self, operator: Operator, config: Config, part: int, direction: Direction) -> int:
        """Nanoseconds of the part with the number `part`."""
        whole = self.whole.get(operator.name, 10_000) * (2 if direction == "backward" else 1)
        more = crc32(repr((self.seed, operator.name, config, part, direction)).encode()) % 200
        return whole * volume(output_box(operator, config, part)) // prod(operator.shape) + more

    def exchange(self, sent: int, received: int, messages: int, devices: tuple[int, ...] = ()) -> int:
        """Nanoseconds of one device's share of an exchange; to receive takes longer, so that directions differ."""
        return self.start * messages + self.per_byte * max(sent, received) + received + 7 * sum(devices)

    def all_reduce(self, nbytes: int, ranks: int, devices: tuple[int, ...] = ()) -> int:
        """Nanoseconds of a ring all-reduce."""
        return 2 * (ranks - 1) * (self.start + self.per_byte * nbytes // ranks) + 11 * sum(devices)

    def memory(self, operator: Operator, config: Config, part: int) -> int:
        """Bytes of the part with this number: what it computes, and its share of the parameters with gradients."""
        made = volume(output_box(operator, config, part))
        return 4 * made + 8 * operator.parameters * made // prod(operator.shape)


def random_graph(random: np.random.Generator, operators: int, skips: bool = True) -> OperatorGraph:
    """Convolutions (some with batch norm), pools and sums, then fully connected layers and the loss.

    Args:
        operators: all together, input and loss included; 3 at least.
        skips: whether some operators are read by later ones too.
    """
    shape = (int(random.integers(4, 9)), int(random.integers(4, 9)), 8, 8)
    made = [Operator("input", "input", (), shape)]
    flat = int(random.integers(1, operators - 1))  # from here on fully connected
    for number in range(1, operators - 1):
        before = made[-1]
        alike = [earlier for earlier in range(1, number - 1) if made[earlier].shape == before.shape]
        if skips and alike and random.random() < 0.4:
            sources = (number - 1, int(random.choice(alike)))
            cuts = EVERY_CUT if len(before.shape) == 4 else ("sample", "parameter")
            made.append(Operator(f"add{number}", "add", sources, before.shape, cuts))
        elif number >= flat:
            wide = int(random.choice([6, 9]))
            size = prod(before.shape[1:]) + 1
            shape, cuts = (shape[0], wide), ("sample", "parameter")
            made.append(Operator(f"fc{number}", "linear", (number - 1,), shape, cuts, True, parameters=size * wide))
        elif before.shape[2] > 4 and random.random() < 0.4:
            shape, window = (*shape[:2], before.shape[2] // 2, shape[3] // 2), Window(2, 2, 0)
            made.append(Operator(f"pool{number}", "pool", (number - 1,), shape, EVERY_CUT, False, window))
        else:
            more = {"parameters": 10 * shape[1] ** 2, "averages": int(random.choice([0, 2]))}
            made.append(
                Operator(f"conv{number}", "conv", (number - 1,), shape, EVERY_CUT, True, Window(3, 1, 1), **more)
            )
    made.append(Operator("loss", "loss", (operators - 2,), (shape[0],)))
    return OperatorGraph("drawn", tuple(made))


def random_costs(
    random: np.random.Generator, graph: OperatorGraph, limits: tuple[int, ...] = (), most: int = 200_000
) -> DrawnCosts:
    """Costs of a graph's operators and of messages, each drawn anew."""
    whole = {operator.name: int(random.integers(1000, most)) for operator in graph.operators}
    links = int(random.integers(100, 5000)), int(random.integers(1, 20))
    return DrawnCosts(int(random.integers(2**31)), whole, *links, limits)
