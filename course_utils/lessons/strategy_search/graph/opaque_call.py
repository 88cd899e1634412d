"""A call of a function that the search knows nothing of, as a module: it takes tensors and returns one."""

from typing import Any

import torch
from torch import fx, nn


class Call(nn.Module):
    """Calls a function, a method or a module with the arguments that it has in the model.

    Attributes:
        arguments, named: as in the model, with a `TensorPlace` where a tensor is filled in.
        weights: of the model, which the call names; they are filled in behind the tensors.
        first: the function returns several tensors, and the first is meant.
    """

    def __init__(
        self, function: Any, arguments: tuple, named: dict, weights: list[nn.Parameter], first: bool = False
    ) -> None:
        super().__init__()
        self.function, self.arguments, self.named, self.first = function, arguments, named, first
        self.weights = nn.ParameterList(weights)

    @classmethod
    def of(cls, node: fx.Node, model: nn.Module, made: dict[fx.Node, Any]) -> "Call":
        """What a traced node does, with all that is known before the model runs filled in."""
        tensors = [
            source
            for source in node.all_input_nodes
            if source.op != "get_attr" and isinstance(made[source], torch.Tensor)
        ]

        weights: list[nn.Parameter] = []

        def fill(source: fx.Node) -> Any:
            if source in tensors:
                return TensorPlace(tensors.index(source))
            if source.op != "get_attr":
                return made[source]
            owner, _, name = source.target.rpartition(".")
            found = getattr(model.get_submodule(owner), name)
            if not isinstance(found, nn.Parameter):
                return found
            weights.append(found)
            return TensorPlace(len(tensors) + len(weights) - 1)

        arguments, named = fx.node.map_arg((node.args, node.kwargs), fill)
        function = node.target
        if node.op == "call_module":
            function = model.get_submodule(node.target)
        elif node.op == "call_method":
            function = getattr(torch.Tensor, node.target)
        return cls(function, tuple(arguments), dict(named), weights, not isinstance(made[node], torch.Tensor))

    def forward(self, *tensors: torch.Tensor) -> torch.Tensor:
        """The tensors in the order in which the call names them."""

        filling = (*tensors, *self.weights)

        def fill(argument: Any) -> Any:
            if isinstance(argument, TensorPlace):
                return filling[argument.number]
            return type(argument)(map(fill, argument)) if isinstance(argument, (tuple, list)) else argument

        arguments, named = fill(self.arguments), {name: fill(argument) for name, argument in self.named.items()}
        made = self.function(*arguments, **named)
        return made[0] if self.first else made


class TensorPlace:
    """Where a tensor is filled in."""

    def __init__(self, number: int) -> None:
        self.number = number
