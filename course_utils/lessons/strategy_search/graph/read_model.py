"""From an ordinary PyTorch model to its operator graph: traced by torch.fx, with shapes and without numbers.

Nothing is allocated: weights and images are on torch's "meta" device here, where a tensor is only its shape.

Source: Reed et al. 2022, "torch.fx: Practical Program Capture and Transformation for Deep Learning in Python".
"""

import operator as python_operator
from collections import Counter
from dataclasses import dataclass, replace
from keyword import iskeyword
from math import prod
from typing import Any

import torch
from torch import fx, nn

from course_utils.errors import CourseError
from course_utils.lessons.strategy_search.graph.configurations import ROW
from course_utils.lessons.strategy_search.graph.opaque_call import Call
from course_utils.lessons.strategy_search.graph.operator_graph import Operator, OperatorGraph, Shape
from course_utils.lessons.strategy_search.graph.operator_kinds import (
    ADDITIONS,
    DROPOUTS,
    NORMS,
    OperatorKind,
    flattens,
    follows,
    idle,
    kind_of,
    module_for,
)
from course_utils.lessons.strategy_search.graph.torch_fx import is_tensor, traced, values

_NAMES = {"linear": "fc"}  # others are called as their kind


def read_model(
    model: nn.Module,
    shape: Shape,
    dtype: torch.dtype = torch.float32,
    name: str | None = None,
    row_cuts: bool = False,
) -> OperatorGraph:
    """The operator graph of a model as it is; weights and batch stay where they are, unread.

    Modules and functions that treat each number by itself follow the operator that they read from, and have no
    configuration of their own. Whatever is not known becomes an operator of kind "other", which stays on one device; a
    note says so.

    Args:
        model: takes one tensor, returns one of shape (batch, classes) or (batch, positions, classes).
        shape: of the whole batch, (images, channels, height, width) for example.
        dtype: of the batch; int64 where the model reads numbers of characters.
        name: of the graph; None: the model's class.
        row_cuts: linear layers that nothing follows may also be cut by their input channels, which SOAP does not have.

    Raises:
        CourseError: the model chooses its way by its numbers, and this line does; it cannot take such a batch; weights
            are used twice.
    """
    calls = traced(model)
    reading = _Reading(model, values(calls, shape, dtype))
    for node in calls.graph.nodes:
        reading.read(node)
    graph = reading.finished(name or type(model).__name__)
    return replace(graph, operators=tuple(map(_with_row_cut, graph.operators))) if row_cuts else graph


def _with_row_cut(operator: Operator) -> Operator:
    """The operator with one more way to cut, if it is a linear layer and no more: what follows needs the whole sum."""
    alone = operator.kind == "linear" and len(operator.modules) == 1
    return replace(operator, cuts=(*operator.cuts, ROW)) if alone else operator


@dataclass(frozen=True)
class _Value:
    """What a node makes: the output of an operator, after the modules that its readers must run first."""

    operator: int
    before: tuple[str, ...] = ()


class _Reading:
    """Operators as they are found, node by node."""

    def __init__(self, model: nn.Module, made: dict[fx.Node, Any]) -> None:
        self.model, self.made = model, made
        self.operators: list[Operator] = []
        self.layers: dict[str, nn.Module] = {}
        self.notes: list[str] = []
        self.values: dict[fx.Node, _Value] = {}
        self.counts: Counter[str] = Counter()
        self.names = Counter(path.rpartition(".")[2] for path, _ in model.named_modules())

    def read(self, node: fx.Node) -> None:
        """Add what a node does to the graph."""
        if node.op == "output":
            self._loss(node)
        elif node.op == "placeholder":
            if not self.operators:
                self._add(node, OperatorKind("input", mixes=False), ())
        elif _is_first(node) and is_tensor(self.made[node]) and node.args[0] in self.values:
            self.values[node] = self.values[node.args[0]]
        elif node.op != "get_attr" and is_tensor(self.made[node]):
            self._tensor(node)
        elif isinstance(self.made[node], (tuple, list)) and any(map(is_tensor, self.made[node])):
            if not all(_is_first(user) for user in node.users):
                raise CourseError(f"{node.name} makes several tensors that are used; the graph has room for one.")
            self._other(node, self._inputs(node))

    def _tensor(self, node: fx.Node) -> None:
        inputs, shape = self._inputs(node), self._shape(node)
        module = self._module(node, shape)
        if node.target in ADDITIONS and len(inputs) == 2 and self._same_shapes(inputs, shape):
            self._add(node, OperatorKind("add", _all_cuts(shape), mixes=False), inputs)
        elif module is None or len(self._tensors(node)) != 1 or len(inputs) != 1:
            self._other(node, inputs)
        elif idle(module, shape, self._shape(self._tensors(node)[0])):
            self.values[node] = inputs[0]
        elif isinstance(module, nn.Flatten) or follows(module, shape):
            self._follow(node, module, inputs[0], shape)
        elif (kind := kind_of(module, shape)).kind == "other":
            self._other(node, inputs)
        else:
            self._add(node, kind, inputs, module)

    def _module(self, node: fx.Node, shape: Shape) -> nn.Module | None:
        """A module that does what the node does, with nothing but one tensor as its input."""
        tensors = self._tensors(node)
        if node.op != "call_module":
            return module_for(node, shape, self._shape(tensors[0])) if tensors else None
        module = self.model.get_submodule(node.target)
        if isinstance(module, nn.Flatten) and not flattens(self._shape(tensors[0]), shape):
            return None
        return module if len(node.args) == 1 and not node.kwargs else None

    def _follow(self, node: fx.Node, module: nn.Module, value: _Value, shape: Shape) -> None:
        """A module that has no configuration of its own: it belongs to what it reads from, or to its reader."""
        producer = self.operators[value.operator]
        weights = any(True for _ in module.parameters())
        if isinstance(module, nn.Flatten) or (value.before and not weights):
            self.values[node] = _Value(value.operator, (*value.before, self._keep(node, module)))
        elif value.before or producer.kind == "input" or len(self._tensors(node)[0].users) > 1:
            self._add(node, OperatorKind("elementwise", _all_cuts(shape), mixes=False), (value,), module)
        else:
            self.operators[value.operator] = replace(
                producer,
                parameters=producer.parameters + self._parameters(module),
                averages=producer.averages + _averages(module),
                modules=(*producer.modules, self._keep(node, module)),
            )
            self.values[node] = value
        if isinstance(module, DROPOUTS):
            self.notes.append(f"{node.name}: cut over devices, each draws a mask of its own, unlike one process.")

    def _other(self, node: fx.Node, inputs: tuple[_Value, ...]) -> None:
        known = node.op == "call_module" and [*node.args] == node.all_input_nodes and not node.kwargs
        known = known and is_tensor(self.made[node])
        module = self.model.get_submodule(node.target) if known else Call.of(node, self.model, self.made)
        number = self._add(node, OperatorKind("other"), inputs, module)
        what = type(module).__name__ if known else getattr(node.target, "__name__", node.target)
        self.notes.append(f"{self.operators[number].name} ({what}): unknown to the search, it stays on one device.")

    def _add(
        self,
        node: fx.Node,
        kind: OperatorKind,
        inputs: tuple[_Value, ...],
        module: nn.Module | None = None,
    ) -> int:
        before = tuple(key for value in inputs for key in value.before)
        if before and len(inputs) > 1:
            raise CourseError(f"{node.name} reads from several operators after a flatten, which the graph cannot say.")
        operator = Operator(
            name=self._name(node, kind.kind),
            kind=kind.kind,
            inputs=tuple(value.operator for value in inputs),
            shape=self._shape(node),
            cuts=kind.cuts,
            mixes=kind.mixes,
            window=kind.window,
            heads=kind.heads,
            parameters=self._parameters(module),
            averages=_averages(module),
            modules=before if module is None else (*before, self._keep(node, module)),
        )
        self.operators.append(operator)
        self.values[node] = _Value(len(self.operators) - 1)
        return len(self.operators) - 1

    def _name(self, node: fx.Node, kind: str) -> str:
        """The module's own name where it has one that can stand in a program, otherwise its kind and a number.

        "attention.qkv" is called qkv if no other module of the model is.
        """
        taken = {operator.name for operator in self.operators} | {"loss"}
        own = str(node.target).rpartition(".")[2] if node.op == "call_module" else ""
        if "." in str(node.target) and self.names[own] > 1:
            own = ""
        if kind == "input" or (own.isidentifier() and own not in taken and not iskeyword(own)):
            return own or kind
        while True:
            self.counts[kind] += 1
            name = f"{_NAMES.get(kind, kind)}{self.counts[kind]}"
            if name not in taken:
                return name

    def _loss(self, node: fx.Node) -> None:
        result = node.args[0]
        if not isinstance(result, fx.Node) or result not in self.values or len(self._shape(result)) not in (2, 3):
            raise CourseError(
                "The model must return one tensor of shape (batch, classes) or (batch, positions, classes)."
            )
        value, batch = self.values[result], self.operators[0].shape[0]
        if self._shape(result)[0] != batch:
            raise CourseError(f"The model returns {self._shape(result)[0]} rows for a batch of {batch}.")
        inputs = (value.operator,)
        self.operators.append(Operator("loss", "loss", inputs, (batch, 1), ("sample",), True, modules=value.before))

    def _keep(self, node: fx.Node, module: nn.Module) -> str:
        key = str(node.target) if node.op == "call_module" else node.name
        self.layers[key] = module
        return key

    def _tensors(self, node: fx.Node) -> list[fx.Node]:
        return [source for source in node.all_input_nodes if is_tensor(self.made[source])]

    def _inputs(self, node: fx.Node) -> tuple[_Value, ...]:
        return tuple(self.values[source] for source in node.all_input_nodes if source in self.values)

    def _same_shapes(self, inputs: tuple[_Value, ...], shape: Shape) -> bool:
        return all(self.operators[value.operator].shape == shape and not value.before for value in inputs)

    def _shape(self, node: fx.Node) -> Shape:
        made = self.made[node]
        return tuple((made if is_tensor(made) else made[0]).shape)

    def _parameters(self, module: nn.Module | None) -> int:
        """How many numbers it learns; none of them may belong to an operator that stands already."""
        mine = list(module.parameters()) if module else []
        taken = {id(parameter) for layer in self.layers.values() for parameter in layer.parameters()}
        if any(id(parameter) in taken for parameter in mine):
            raise CourseError("Two operators share their weights, which this search cannot spread. Give each its own.")
        return sum(prod(parameter.shape) for parameter in mine)

    def finished(self, name: str) -> OperatorGraph:
        """The whole graph."""
        return OperatorGraph(name, tuple(self.operators), self.layers, tuple(self.notes))


def _is_first(node: fx.Node) -> bool:
    """Whether a node takes the first of several tensors."""
    return node.target is python_operator.getitem and node.args[1] == 0


def _averages(module: nn.Module | None) -> int:
    """Sums and sums of squares, where a batch norm uses those of the batch."""
    return 2 if isinstance(module, NORMS) and (module.training or module.running_mean is None) else 0


def _all_cuts(shape: Shape) -> tuple[str, ...]:
    return ("sample", "parameter") if len(shape) == 2 else ("sample", "attribute", "parameter")
