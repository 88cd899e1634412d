"""A part of an operator as modules that run here, with weights of the right shape and no meaning: for its time."""

import copy
from itertools import chain

import torch
from torch import nn

from course_utils.lessons.strategy_search.costs.part_shapes import PartShape
from course_utils.lessons.strategy_search.graph.operator_kinds import NORMS
from course_utils.lessons.strategy_search.program.batch_norm_over_ranks import BatchNormOverRanks


class LocalPart(nn.Module):
    """What a device computes of an operator: the sum of its inputs, if there are several, then its modules in turn."""

    def __init__(self, modules: list[nn.Module], whole: bool) -> None:
        super().__init__()
        self.layers, self.whole = nn.ModuleList(modules), whole

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        """The part's output from its parts of the inputs."""
        layers = iter(self.layers)
        x = next(layers)(*inputs) if self.whole else inputs[0] if len(inputs) == 1 else inputs[0] + inputs[1]
        for layer in layers:
            x = layer(x)
        return x


class Loss(nn.Module):
    """The sum of the cross entropy over a part of the batch, with made-up classes, divided by the whole batch."""

    def __init__(self, batch: int) -> None:
        super().__init__()
        self.batch = batch

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(examples, …, classes) → one number."""
        rows = x.flatten(0, -2)
        labels = torch.arange(len(rows)) % x.shape[-1]
        return nn.functional.cross_entropy(rows, labels, reduction="sum") / self.batch


def local_modules(part: PartShape) -> LocalPart:
    """The part's modules, their weights on "meta": `to_empty` and a filling make them run.

    What is cut along the channels has that many of them; what is cut along the height is padded by hand, above and
    below unlike.
    """
    operator, made = part.operator, part.channels[1] - part.channels[0]
    found: list[nn.Module] = []
    for module in part.modules:
        if operator.kind == "conv" and isinstance(module, nn.Conv2d):
            found += [*_rows(part, 0.0), _convolution(module, part, made)]
        elif operator.kind == "linear" and isinstance(module, nn.Linear):
            read = part.reads[0][-1] if part.row_cut else module.in_features
            bias = part.has_bias() if part.row_cut else module.bias is not None
            found.append(nn.Linear(read, made, bias, device="meta"))
        elif isinstance(module, NORMS):
            norm = type(module)(made, device="meta").train(module.training)
            found.append(BatchNormOverRanks(norm, None) if part.shared else norm)
        elif operator.kind == "pool" and isinstance(module, (nn.MaxPool2d, nn.AvgPool2d)):
            found += [*_rows(part, -torch.inf if isinstance(module, nn.MaxPool2d) else 0.0), _pool(module, part)]
        else:
            found.append(_on_meta(module))
    if operator.kind == "elementwise" and getattr(found[0], "inplace", False):
        found[0].inplace = False  # it would write into what its neighbours read
    if operator.kind == "loss":
        found.append(Loss(operator.shape[0]))
    return LocalPart(found, whole=operator.kind == "other")


def _rows(part: PartShape, value: float) -> list[nn.Module]:
    """Padding above and below, where the part is cut along the height."""
    if part.padding is None or not any(part.padding):
        return []
    return [nn.ConstantPad2d((0, 0, *part.padding), value)]


def _convolution(module: nn.Conv2d, part: PartShape, made: int) -> nn.Conv2d:
    padding = module.padding if part.padding is None else (0, module.padding[1])
    rest = (module.dilation, module.groups, module.bias is not None, module.padding_mode)
    return nn.Conv2d(module.in_channels, made, module.kernel_size, module.stride, padding, *rest, device="meta")


def _pool(module: nn.Module, part: PartShape) -> nn.Module:
    pool = copy.copy(module)
    if part.padding is not None:
        both = module.padding if isinstance(module.padding, tuple) else (module.padding, module.padding)
        pool.padding = (0, both[1])
    return pool


def _on_meta(module: nn.Module) -> nn.Module:
    """A copy without weights; a generator of random numbers cannot be copied, and is shared."""
    weights = chain(module.parameters(), module.buffers())
    known = {id(tensor): torch.empty_like(tensor, device="meta") for tensor in weights}
    for parameter in module.parameters():
        known[id(parameter)] = nn.Parameter(known[id(parameter)], parameter.requires_grad)
    known |= {
        id(value): value
        for layer in module.modules()
        for value in vars(layer).values()
        if isinstance(value, torch.Generator)
    }
    return copy.deepcopy(module, known)


def fill(part: LocalPart) -> LocalPart:
    """The same part with weights here: small numbers, so that nothing overflows on its way."""
    weighted = any(tensor.is_meta for tensor in chain(part.parameters(), part.buffers()))
    if weighted:
        part = part.to_empty(device="cpu")
    with torch.no_grad():
        for parameter in part.parameters():
            parameter.normal_(0, 0.02)
        for name, buffer in part.named_buffers():
            buffer.fill_(1 if "var" in name else 0)
    return part
