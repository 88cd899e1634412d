"""What is known of the modules and functions of a model: of what kind an operator is, and how it may be cut."""

import operator as python_operator
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import torch
from torch import fx, nn
from torch.nn import functional

from course_utils.lessons.model_parallel.transformer import CoreAttention, Dropout, Embedding
from course_utils.lessons.strategy_search.graph.operator_graph import Shape, Window

NORMS = (nn.BatchNorm1d, nn.BatchNorm2d)
DROPOUTS = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, Dropout)
FOLLOWERS = (
    *(nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.ELU, nn.GELU, nn.SiLU, nn.Hardswish, nn.Hardsigmoid),
    *(nn.Sigmoid, nn.Tanh, nn.Softplus),
    *DROPOUTS,
)
"""Modules without weights that treat every number by itself."""
LEAVES = (CoreAttention, Dropout, Embedding)
"""Modules of the course that are one operator, or a part of one: nobody looks into them."""
ADDITIONS = (python_operator.add, python_operator.iadd, torch.add, "add", "add_")
SHAPERS = (torch.flatten, torch.reshape, "flatten", "view", "reshape")

_FUNCTIONS: dict[Any, Callable[..., nn.Module]] = {
    **dict.fromkeys((torch.relu, torch.relu_, "relu", "relu_"), nn.ReLU),
    **dict.fromkeys((torch.tanh, functional.tanh, "tanh"), nn.Tanh),
    **dict.fromkeys((torch.sigmoid, functional.sigmoid, "sigmoid"), nn.Sigmoid),
    functional.relu: nn.ReLU,
    functional.gelu: nn.GELU,
    functional.silu: nn.SiLU,
    functional.dropout: lambda p=0.5, training=True, inplace=False: nn.Dropout(p if training else 0.0),
    functional.max_pool2d: nn.MaxPool2d,
    functional.avg_pool2d: nn.AvgPool2d,
    functional.adaptive_avg_pool2d: nn.AdaptiveAvgPool2d,
    functional.log_softmax: lambda dim=None, _stacklevel=3, dtype=None: _without_dtype(nn.LogSoftmax, dim, dtype),
    functional.softmax: lambda dim=None, _stacklevel=3, dtype=None: _without_dtype(nn.Softmax, dim, dtype),
}


def _without_dtype(make: Callable[[int | None], nn.Module], dim: int | None, dtype: torch.dtype | None) -> nn.Module:
    """A softmax as a module, which has no dtype of its own."""
    if dtype is not None:
        raise ValueError("its module computes in the dtype of what it gets")
    return make(dim)


@dataclass(frozen=True)
class OperatorKind:
    """What is known of an operator before it stands in a graph; the fields are those of `Operator`."""

    kind: str
    cuts: tuple[str, ...] = ()
    mixes: bool = True
    window: Window | None = None
    heads: int = 0


def module_for(node: fx.Node, shape: Shape, given: Shape) -> nn.Module | None:
    """A module that does what a call of a function does; None where there is none.

    Args:
        shape, given: of what it returns and of what it gets.
    """
    if node.target in SHAPERS:
        return nn.Flatten() if flattens(given, shape) else None
    make = _FUNCTIONS.get(node.target)
    arguments = [*node.args[1:], *node.kwargs.values()]
    if make is None or any(isinstance(argument, fx.Node) for argument in arguments):
        return None
    try:
        return make(*node.args[1:], **{name: value for name, value in node.kwargs.items() if name != "input"})
    except (TypeError, ValueError):  # an argument that the module does not have
        return None


def flattens(given: Shape, shape: Shape) -> bool:
    """Whether a tensor of shape `given` becomes one row for each example."""
    return len(given) > 2 and shape == (given[0], prod(given[1:]))


def idle(module: nn.Module, shape: Shape, given: Shape) -> bool:
    """Whether a module changes nothing: an identity, a dropout of nothing, a pool that keeps the size."""
    if isinstance(module, DROPOUTS):
        return not module.training or _share(module) == 0
    kept = isinstance(module, (nn.AdaptiveAvgPool2d, nn.AdaptiveMaxPool2d)) and shape == given
    return kept or isinstance(module, nn.Identity)


def _share(dropout: nn.Module) -> float:
    return dropout.share if isinstance(dropout, Dropout) else dropout.p


def follows(module: nn.Module, shape: Shape) -> bool:
    """Whether a module does the same to every number, or to every channel, so that any part of a tensor will do."""
    images = isinstance(module, NORMS) and len(shape) in (2, 4)
    return images or isinstance(module, FOLLOWERS)


def kind_of(module: nn.Module, shape: Shape) -> OperatorKind:
    """How an operator whose output has this shape may be cut; kind "other" and not at all where nothing is known."""
    if isinstance(module, nn.Conv2d) and len(shape) == 4:
        return _convolution(module)
    if isinstance(module, (nn.MaxPool2d, nn.AvgPool2d)) and len(shape) == 4:
        return _pool(module)
    if isinstance(module, nn.AdaptiveAvgPool2d) and len(shape) == 4:
        return OperatorKind("pool", ("sample", "parameter"), mixes=False)
    if isinstance(module, nn.Linear) and len(shape) in (2, 3):
        return OperatorKind("linear", _without_channels(shape) + ("parameter",))
    if isinstance(module, (nn.LayerNorm, nn.Softmax, nn.LogSoftmax)) and _in_a_row(module, shape):
        return OperatorKind("norm", _without_channels(shape))
    if isinstance(module, nn.LocalResponseNorm) and len(shape) == 4:
        return OperatorKind("norm", ("sample", "attribute"))
    if isinstance(module, CoreAttention):
        return _attention(module, shape)
    if isinstance(module, (nn.Embedding, Embedding)) and len(shape) == 3:
        return OperatorKind("embedding", ("sample",))
    return OperatorKind("other")


def _without_channels(shape: Shape) -> tuple[str, ...]:
    return ("sample", "attribute") if len(shape) == 3 else ("sample",)


def _in_a_row(module: nn.Module, shape: Shape) -> bool:
    """Whether a norm or a softmax looks at one row of numbers at a time: the channels of one place."""
    if len(shape) not in (2, 3):
        return False
    if isinstance(module, nn.LayerNorm):
        return module.normalized_shape == shape[-1:]
    return module.dim in (-1, len(shape) - 1)


def _attention(module: CoreAttention, shape: Shape) -> OperatorKind:
    """By heads, as each looks at its own third of queries, keys and values; where there is dropout, by example only.

    Not by position, which would need the keys and values of all earlier ones.
    """
    masks = not idle(module.dropout, shape, shape)
    cuts = ("sample",) if masks else ("sample", "parameter")
    return OperatorKind("attention", cuts, mixes=False, heads=shape[-1] // module.size)


def _convolution(module: nn.Conv2d) -> OperatorKind:
    """Along the height where the padding is zeros and counted; along the channels where there are no groups of them."""
    cuts = ["sample"]
    if module.padding_mode == "zeros" and not isinstance(module.padding, str) and module.dilation == (1, 1):
        cuts.append("attribute")
    if module.groups == 1:
        cuts.append("parameter")
    window = Window(module.kernel_size[0], module.stride[0], module.padding[0]) if "attribute" in cuts else None
    return OperatorKind("conv", tuple(cuts), window=window)


def _pool(module: nn.MaxPool2d | nn.AvgPool2d) -> OperatorKind:
    """Along the height where no padding is left out of an average, and the last row is not half a window."""
    if getattr(module, "return_indices", False):
        return OperatorKind("other")
    size, stride, padding = (_rows(setting) for setting in (module.kernel_size, module.stride, module.padding))
    left_out = padding and not getattr(module, "count_include_pad", True)
    if left_out or module.ceil_mode or getattr(module, "dilation", 1) not in (1, (1, 1)):
        return OperatorKind("pool", ("sample", "parameter"), mixes=False)
    return OperatorKind("pool", ("sample", "attribute", "parameter"), mixes=False, window=Window(size, stride, padding))


def _rows(value: int | tuple[int, int]) -> int:
    """Of a pair (height, width), or of one number for both, that of the height."""
    return value if isinstance(value, int) else value[0]
