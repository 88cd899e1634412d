"""How one operator can be spread over devices: into how many parts along which dimensions, and where each part goes.

FlexFlow calls its space SOAP: samples, operators (where each is placed), attributes, parameters. A part of an operator
is a box of its output; what it must read is a box of its input.

One way to cut is not in SOAP, as it cuts no output: the row cut, of which each part adds up its share of a long sum.
Unity (Unger et al. 2022) has it, as "reduction"; with it Megatron-LM's pair of cuts is a strategy.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import prod

from course_utils.lessons.allreduce.blocks import block_bounds
from course_utils.lessons.strategy_search.graph.operator_graph import Operator, Shape, Window

Box = tuple[tuple[int, int], ...]
"""For each dimension of a tensor, where the part begins and ends."""
CUTS = ("sample", "attribute", "parameter")
ROW = "row"
"""Among an operator's cuts: it may also be cut by its input channels."""


@dataclass(frozen=True)
class Config:
    """An operator in sample × attribute × parameter parts, one on each of `devices`.

    Place 0 is the part on the first device; the parameter's parts vary fastest, the samples' slowest.

    Attributes:
        sample: parts of the batch.
        attribute: parts of the height of an image, or of the positions of a text.
        parameter: parts of the output channels, and of the weights with them.
        devices: as many as parts, each once.
        row_cut: of a linear layer: each part has its share of the input channels and of the weights behind them, and
            computes a partial sum of the whole output. Then all get the sum of what is theirs, of samples or of
            attributes (a reduce-scatter; backward an all-gather).
    """

    sample: int = 1
    attribute: int = 1
    parameter: int = 1
    devices: tuple[int, ...] = (0,)
    row_cut: bool = False

    @property
    def kind(self) -> tuple[int, ...]:
        """What it has in common with those that differ in their devices only: `parts`, and how often rows are cut."""
        return (*self.parts, len(self.devices)) if self.row_cut else self.parts

    @property
    def parts(self) -> tuple[int, int, int]:
        """Into how many parts along each kind of dimension, in the order of `CUTS`."""
        return self.sample, self.attribute, self.parameter

    def coordinates(self, part: int) -> tuple[int, int, int]:
        """Which part along each kind of dimension the part with the number `part` is."""
        rest, parameter = divmod(part, self.parameter)
        sample, attribute = divmod(rest, self.attribute)
        return sample, attribute, parameter


Strategy = Sequence[Config]
"""One configuration per operator of a graph, in its order."""


def configurations(operator: Operator, devices: int) -> tuple[Config, ...]:
    """All ways to spread an operator over some of `devices` devices, fewest parts first.

    No part is empty, and the devices of a configuration are in ascending order: swapping two equal devices of one
    operator changes nothing but the way to its neighbours.
    """
    found = []
    for parts in product(*(part_numbers(operator, cut, devices) for cut in CUTS)):
        if prod(parts) <= devices:
            found += [Config(*parts, chosen) for chosen in combinations(range(devices), prod(parts))]
            if ROW in operator.cuts and prod(parts) > 1 and prod(parts) == max(parts[:2]):
                found += [Config(*parts, chosen, True) for chosen in combinations(range(devices), prod(parts))]
    return tuple(sorted(found, key=lambda config: len(config.devices)))


def part_numbers(operator: Operator, cut: str, devices: int) -> list[int]:
    """Into how many parts an operator may be cut along one kind of dimension, for this many devices; 1 among them.

    Attention's channels are cut between heads, into parts with equally many: only then do the parts of what it reads
    begin where a head does.
    """
    if cut not in operator.cuts:
        return [1]
    numbers = range(1, min(devices, operator.shape[operator.dimension(cut)]) + 1)
    heads = operator.heads if cut == "parameter" else 0
    return [parts for parts in numbers if heads % parts == 0]


def output_box(operator: Operator, config: Config, part: int) -> Box:
    """What the part with the number `part` computes."""
    box = [(0, length) for length in operator.shape]
    for cut, parts, coordinate in zip(CUTS, config.parts, config.coordinates(part), strict=True):
        if parts > 1:
            dimension = operator.dimension(cut)
            bounds = block_bounds(operator.shape[dimension], parts)
            box[dimension] = bounds[coordinate], bounds[coordinate + 1]
    return tuple(box)


def input_box(operator: Operator, config: Config, part: int, shape: Shape) -> Box:
    """What the part with the number `part` reads of an input of this `shape`: halo rows included, padding left out."""
    made, box = output_box(operator, config, part), [(0, length) for length in shape]
    if config.row_cut:
        channels = operator.dimension("parameter")
        bounds = block_bounds(shape[channels], len(config.devices))
        box[channels] = bounds[part], bounds[part + 1]
        return tuple(box)
    box[0] = made[0]
    if len(shape) != len(operator.shape):  # a flatten stands between: all of every example
        return tuple(box)
    if not operator.mixes:
        channels = operator.dimension("parameter")
        times = shape[channels] // operator.shape[channels]  # attention reads a query, a key and a value for each
        box[channels] = made[channels][0] * times, made[channels][1] * times
    if "attribute" in operator.cuts:
        rows = operator.dimension("attribute")
        box[rows] = window_rows(operator.window, made[rows], shape[rows])
    return tuple(box)


def window_rows(window: Window | None, made: tuple[int, int], height: int) -> tuple[int, int]:
    """The input rows, of `height`, from which output rows are made: halo rows included, padding left out."""
    if window is None:
        return made
    first = made[0] * window.stride - window.padding
    last = (made[1] - 1) * window.stride - window.padding + window.size
    return max(0, first), min(height, last)


def volume(box: Box) -> int:
    """How many numbers are in a box."""
    return prod(end - begin for begin, end in box)


def common(box: Box, other: Box) -> Box:
    """The numbers in both boxes; of volume 0 where there are none."""
    return tuple((max(b, d), max(max(b, d), min(e, f))) for (b, e), (d, f) in zip(box, other, strict=True))


def parameters_at(operator: Operator, config: Config, part: int) -> int:
    """How many of the operator's parameters the part with the number `part` has; of a row cut, the bias shared out."""
    if config.row_cut:
        parts = len(config.devices)
        return operator.parameters * (part + 1) // parts - operator.parameters * part // parts
    channels = operator.dimension("parameter")
    begin, end = output_box(operator, config, part)[channels]
    return operator.parameters * (end - begin) // operator.shape[channels]


def replicas(config: Config) -> tuple[tuple[int, ...], ...]:
    """Groups of devices that have the same parameters, so that their gradients must be summed."""
    if config.row_cut:
        return tuple((device,) for device in config.devices)
    return tuple(config.devices[part :: config.parameter] for part in range(config.parameter))
