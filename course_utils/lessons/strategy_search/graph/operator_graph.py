"""The operator graph: what a model computes, operator by operator, each with the operators that it reads from."""

from dataclasses import dataclass, field

from torch import nn

Shape = tuple[int, ...]
"""Of a whole batch: (samples, channels, height, width), (samples, positions, features) or (samples, features)."""


@dataclass(frozen=True)
class Window:
    """Which rows of its input an output row of a convolution or a pool is made from."""

    size: int
    stride: int
    padding: int


@dataclass(frozen=True)
class Operator:
    """One operator with the elementwise ones that follow it: a convolution with its norm and ReLU, say.

    Attributes:
        name: a Python name, unique in the graph: conv1, pool1, fc3, add2.
        kind: "input", "conv", "pool", "linear", "norm", "add", "elementwise", "embedding", "attention", "loss" or
            "other".
        inputs: the numbers of the operators that it reads from.
        shape: of its output, for the whole batch.
        cuts: along which kinds of dimension its output may be cut, out of "sample", "attribute", "parameter";
            "row" if it may also be cut by its input channels.
        mixes: whether an output channel is made from all input channels, as in a convolution or a linear layer. If not,
            it is made from the channel of its number, or from as many times more as the input has more channels.
        window: for a convolution or a pool, along the height. None where a row is made from the same row.
        parameters: how many numbers it learns; equally many for each output channel.
        averages: numbers per channel that its norm averages over the batch forward, and again backward: they are summed
            over all devices that share the batch. 0 without batch norm.
        modules: what it runs, in this order, as names in the graph's `layers`: ("features.0", "features.1"). The sum
            of an "add", and what "input" and "loss" do, is not a module.
        heads: of attention, whose channels are cut between heads only, into parts of equally many. 0: no heads.
    """

    name: str
    kind: str
    inputs: tuple[int, ...]
    shape: Shape
    cuts: tuple[str, ...] = ("sample",)
    mixes: bool = False
    window: Window | None = None
    parameters: int = 0
    averages: int = 0
    modules: tuple[str, ...] = ()
    heads: int = 0

    def dimension(self, cut: str) -> int:
        """Which dimension of the output "sample", "attribute" or "parameter" is: height is an image's attribute."""
        if cut == "sample":
            return 0
        channels_last = len(self.shape) == 3
        if cut == "attribute":
            return 1 if channels_last else 2
        return 2 if channels_last else 1


@dataclass(frozen=True)
class OperatorGraph:
    """A model's operators, each after those that it reads from; the first is the input, the last the loss.

    The loss is the mean of the cross entropy over the whole batch, with the model's channels as classes.

    Attributes:
        layers: the model's modules by their path ("features.0"), and a module for each function that it calls
            ("relu_1").
        notes: a line on each operator that stays on one device because nothing is known of it, and on each whose result
            on several devices equals that on one only on average.
    """

    name: str
    operators: tuple[Operator, ...]
    layers: dict[str, nn.Module] = field(default_factory=dict, compare=False, repr=False)
    notes: tuple[str, ...] = ()

    def readers(self, number: int) -> tuple[int, ...]:
        """The operators that read what operator `number` computes."""
        return tuple(n for n, operator in enumerate(self.operators) if number in operator.inputs)

    def __len__(self) -> int:
        return len(self.operators)
