"""Python as ruff would format it: what a program is put together from."""

import operator as python_operator
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from course_utils.errors import CourseError
from course_utils.lessons.strategy_search.graph.opaque_call import Call, TensorPlace
from course_utils.lessons.strategy_search.graph.operator_graph import Window
from course_utils.lessons.strategy_search.program.tensor_moves import Spread

LENGTH = 120
"""Characters that a line may have."""


def called(depth: int, before: str, function: str, arguments: list[str], length: int = LENGTH) -> Iterator[str]:
    """A call behind `before`, on one line; or its arguments on a line of their own, or on one each.

    Args:
        depth: how far in, in steps of four spaces.
        arguments: as they are written.
    """
    space, inner = "    " * depth, "    " * (depth + 1)
    line = f"{space}{before}{function}({', '.join(arguments)})"
    if len(line) <= length:
        yield line
        return
    yield f"{space}{before}{function}("
    together = f"{inner}{', '.join(arguments)}"
    if len(together) <= length:
        yield together
    else:
        yield from (f"{inner}{argument}," for argument in arguments)
    yield f"{space})"


def imported(module: str, names: set[str]) -> Iterator[str]:
    """`from module import names`, in isort's order; one name on a line where they do not fit on one."""
    order = sorted(names, key=lambda name: (not name.isupper(), name[0].islower(), name))
    line = f"from {module} import {', '.join(order)}"
    if len(line) <= LENGTH:
        yield line
        return
    yield f"from {module} import ("
    yield from (f"    {name}," for name in order)
    yield ")"


def literal(value: Any) -> str:
    """How a value is written, windows and spreads with as few words as will do."""
    if isinstance(value, Window):
        return f"Window({value.size}, {value.stride}, {value.padding})"
    if isinstance(value, Spread):
        window = f", {literal(value.window)}" if value.window else ""
        return f"Spread({value.parts}, {value.ranks}{window})"
    return repr(value).replace("'", '"')


def layer(module: nn.Module, path: str, model: nn.Module) -> str:
    """How a script gets a layer: out of the model, or a new one where the model calls a function.

    Raises:
        CourseError: it is a function whose call cannot be written down.
    """
    if path in dict(model.named_modules()):
        return "model" + "".join(f"[{part}]" if part.isdigit() else f".{part}" for part in path.split("."))
    if isinstance(module, Call):
        return _function(module)
    name = f"nn.{type(module).__name__}"
    try:
        usual = repr(type(module)()) == repr(module)
    except TypeError:
        usual = False
    return f"{name}()" if usual else f"nn.{module!r}".replace("'", '"')


def _function(call: Call) -> str:
    """A function of the tensors that a call takes, as a lambda."""
    name = getattr(call.function, "__name__", "")
    places: set[int] = set()

    def written(value: Any) -> str:
        if isinstance(value, TensorPlace):
            places.add(value.number)
            return tensor_name(value.number)
        if isinstance(value, (tuple, list)):
            inner = ", ".join(map(written, value))
            return f"[{inner}]" if isinstance(value, list) else f"({inner}{',' * (len(value) == 1)})"
        if isinstance(value, (torch.Tensor, nn.Module)):
            raise CourseError(f"{name} uses weights of its own, which a program cannot write down. Make it a module.")
        return repr(value)

    arguments = [*map(written, call.arguments), *(f"{key}={written(value)}" for key, value in call.named.items())]
    if getattr(torch.Tensor, name, None) is call.function:
        text = f"{arguments[0]}.{name}({', '.join(arguments[1:])})"
    else:
        owners = {"torch": torch, "nn.functional": nn.functional, "operator": python_operator}
        owner = next((module for module, has in owners.items() if getattr(has, name, None) is call.function), None)
        if owner is None:
            raise CourseError(
                f"{name or call.function} cannot be written into a program. Make it a module of the model."
            )
        text = f"{owner}.{name}({', '.join(arguments)})"
    tensors = ", ".join(tensor_name(index) for index in range(max(places, default=0) + 1))
    return f"lambda {tensors}: {text}{'[0]' * call.first}"


def tensor_name(number: int) -> str:
    """What the tensor of this number is called where it has no name of its own: x, y, z, u, v, w, x7, x8, …"""
    return "xyzuvw"[number] if number < 6 else f"x{number + 1}"
