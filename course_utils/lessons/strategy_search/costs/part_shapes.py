"""What a device has of an operator: the shapes of its part, and how much arithmetic and memory traffic that is."""

from dataclasses import dataclass
from math import prod

from torch import nn

from course_utils.lessons.model_parallel.transformer import CoreAttention
from course_utils.lessons.strategy_search.graph.configurations import Box, Config, configurations, input_box, output_box
from course_utils.lessons.strategy_search.graph.operator_graph import Operator, OperatorGraph, Shape
from course_utils.lessons.strategy_search.graph.operator_kinds import NORMS

NUMBER = 4
"""Bytes of a number: float32."""
Key = tuple[str, tuple[int, ...], int]
"""Operator's name, the kind of its configuration, which part; the device that has it does not matter."""


@dataclass(frozen=True)
class PartShape:
    """A part of an operator.

    Attributes:
        modules: of the operator.
        reads: shape of its part of each input.
        first: that input is the network's, which needs no gradient.
        makes: shape of its part of the output; of a row cut, of its partial sum.
        channels: which output channels, so which rows of the weights.
        padding: rows of padding above and below, where it is cut along the height; None: as the module itself pads.
        shared: others have the same channels, so that a batch norm takes averages over all of them.
        row_cut: which input channels of a linear layer it has, so which columns of `weight`; the first part has the
            bias. None: all.
    """

    operator: Operator
    modules: tuple[nn.Module, ...]
    reads: tuple[Shape, ...]
    first: bool
    makes: Shape
    channels: tuple[int, int]
    padding: tuple[int, int] | None = None
    shared: bool = False
    row_cut: tuple[int, int] | None = None

    def parameters(self) -> int:
        """How many numbers it learns."""
        begin, end = self.channels
        if self.row_cut:
            return self.makes[-1] * (self.row_cut[1] - self.row_cut[0] + self.has_bias())
        return self.operator.parameters * (end - begin) // self.operator.shape[self.operator.dimension("parameter")]

    def has_bias(self) -> bool:
        """Whether a linear layer of this part adds a bias."""
        first = self.row_cut is None or self.row_cut[0] == 0
        return first and self.modules[-1].bias is not None

    def memory(self) -> int:
        """Bytes that stay from the forward to the backward pass, at most, with parameters and their gradients.

        Counted are the inputs that came from elsewhere and the output, once more behind each norm, GELU and the like;
        not what lives for one operation. Attention keeps its scores behind the softmax. Optimizer: SGD, which keeps
        nothing.
        """
        output = prod(self.makes)
        kept = sum(not getattr(module, "inplace", True) or isinstance(module, NORMS) for module in self.modules)
        kept_scores = sum(self._scores(module) for module in self.modules)
        index = 2 if isinstance(self.modules[-1] if self.modules else None, nn.MaxPool2d) else 0  # int64
        return NUMBER * (2 * self.parameters() + sum(map(prod, self.reads)) + output * (1 + kept + index) + kept_scores)

    def _scores(self, module: nn.Module) -> int:
        """How many scores attention makes: one for each head and each two positions; 0 for other modules."""
        if not isinstance(module, CoreAttention):
            return 0
        batch, positions, numbers = self.makes
        return batch * positions**2 * (numbers // module.size)

    def work(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """(FLOPs, bytes) of the forward and of the backward pass, followers and the update of the weights included.

        A multiplication and an addition are two FLOPs. Backward, a product is computed twice, for the weights and for
        the input, and once where the input needs no gradient.
        """
        output, read = prod(self.makes), sum(map(prod, self.reads))
        flops = nbytes = products = 0
        for module in self.modules:
            weight = getattr(module, "weight", None)
            if weight is not None and weight.ndim > 1:
                products += 2 * output * (self.reads[0][-1] if self.row_cut else prod(weight.shape[1:]))
                nbytes += NUMBER * (read + output)
            elif scores := self._scores(module):
                products += 2 * 2 * scores * module.size  # queries by keys, and what becomes of them by values
                nbytes += NUMBER * (read + output + 4 * scores)  # the softmax reads and writes them once more
            elif isinstance(module, (nn.MaxPool2d, nn.AvgPool2d)):
                flops += output * (self.operator.window.size**2 if self.operator.window else 4)
                nbytes += NUMBER * (read + output)
            elif len(weights := list(module.parameters())) > 1 and not isinstance(module, (*NORMS, nn.LayerNorm)):
                products += (
                    2 * output * sum(prod(weight.shape) for weight in weights if weight.ndim > 1) // self.makes[-1]
                )
                nbytes += NUMBER * (read + output)
            else:
                flops += output * (7 if weight is not None else 1)
                nbytes += 2 * NUMBER * output
        if not self.modules:
            flops, nbytes = output * len(self.reads), NUMBER * (read + output)
        update = NUMBER * self.parameters()
        again = 1 if self.first else 2
        return (flops + products, nbytes + update), (flops + again * products, again * nbytes + 4 * update)


def part_shape(graph: OperatorGraph, operator: Operator, config: Config, part: int) -> PartShape:
    """The part of an operator of the graph with the number `part`."""
    inputs = [graph.operators[number] for number in operator.inputs]
    whole = tuple((0, length) for length in operator.shape)
    made = whole if config.row_cut else output_box(operator, config, part)
    boxes = [input_box(operator, config, part, source.shape) for source in inputs]
    return PartShape(
        operator,
        tuple(graph.layers[key] for key in operator.modules),
        tuple(_lengths(box) for box in boxes),
        all(source.kind == "input" for source in inputs),
        _lengths(made),
        made[operator.dimension("parameter")],
        _padding(operator, made, inputs[0].shape) if config.attribute > 1 and operator.window else None,
        config.sample * config.attribute > 1,
        boxes[0][-1] if config.row_cut else None,
    )


def part_shapes(graph: OperatorGraph, devices: int) -> dict[Key, PartShape]:
    """Every part that a device can have of an operator when there are this many devices."""
    found: dict[Key, PartShape] = {}
    for operator in graph.operators:
        if operator.kind != "input":
            for config in configurations(operator, devices):
                for part in range(len(config.devices)):
                    if (key := (operator.name, config.kind, part)) not in found:
                        found[key] = part_shape(graph, operator, config, part)
    return found


def _lengths(box: Box) -> Shape:
    return tuple(end - begin for begin, end in box)


def _padding(operator: Operator, made: Box, shape: Shape) -> tuple[int, int]:
    """Rows that a part's window reaches beyond the image, above and below."""
    window, rows = operator.window, operator.dimension("attribute")
    first = made[rows][0] * window.stride - window.padding
    last = (made[rows][1] - 1) * window.stride - window.padding + window.size
    return max(0, -first), max(0, last - shape[rows])
