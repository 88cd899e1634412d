"""Tracing a model with torch.fx, and finding the shapes in it without computing a number.

Source: Reed et al. 2022, "torch.fx: Practical Program Capture and Transformation for Deep Learning in Python".
"""

import traceback
from itertools import chain
from typing import Any

import torch
from torch import fx, nn
from torch.func import functional_call

from course_utils.errors import CourseError
from course_utils.lessons.model_parallel.transformer import CoreAttention
from course_utils.lessons.strategy_search.graph.operator_graph import Shape
from course_utils.lessons.strategy_search.graph.operator_kinds import DROPOUTS, LEAVES
from course_utils.trace.recorder import is_learner_code, line_text


def traced(model: nn.Module) -> fx.GraphModule:
    """The model as a list of calls, one after the other.

    Raises:
        CourseError: it chooses its way by its numbers; the line that does. It does not take just one tensor.
    """
    try:
        found = fx.GraphModule(model, _Tracer().trace(model), type(model).__name__)
    except Exception as error:
        raise CourseError(
            f"The model cannot be read: {_line_of(error)} needs numbers that are not there before it runs "
            f"({_reason(error)}). Write it so that every batch takes the same way."
        ) from error
    found.graph.eliminate_dead_code()  # tensors that are made and never used
    if len([node for node in found.graph.find_nodes(op="placeholder") if not node.args]) != 1:
        raise CourseError("The model must take one tensor. Wrap it in a module that does, and fills in the rest.")
    return found


def values(model: fx.GraphModule, shape: Shape, dtype: torch.dtype) -> dict[fx.Node, Any]:
    """What each call of a traced model makes of a batch of this shape: tensors on "meta", numbers, shapes.

    Raises:
        CourseError: it cannot take such a batch; which call.
    """
    running = _Shapes(model)
    running.run(torch.empty(shape, dtype=dtype, device="meta"))
    return running.made


def _reason(error: Exception) -> str:
    """The first line of what an error says."""
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")


def _line_of(error: BaseException) -> str:
    """The learner's own line that an error comes from: "line 12 of model.py, `if x.sum() > 0:`"."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename != __file__]
    theirs = [frame for frame in frames if is_learner_code(frame.filename)] or frames
    line = line_text(theirs[-1].filename, theirs[-1].lineno or 0)
    return f"{line}, `{theirs[-1].line}`," if theirs[-1].line else line


class _Tracer(fx.Tracer):
    def is_leaf_module(self, module: nn.Module, qualified: str) -> bool:
        return isinstance(module, LEAVES) or super().is_leaf_module(module, qualified)


class _Shapes(fx.Interpreter):
    """Runs a traced model on meta tensors and keeps what each node makes."""

    def __init__(self, traced: fx.GraphModule) -> None:
        super().__init__(traced)
        self.extra_traceback = False  # it would be added to our message
        self.made: dict[fx.Node, Any] = {}

    def run_node(self, node: fx.Node) -> Any:
        try:
            self.made[node] = super().run_node(node)
        except CourseError:
            raise
        except Exception as error:
            given = [tuple(self.made[source].shape) for source in node.all_input_nodes if is_tensor(self.made[source])]
            raise CourseError(
                f"The model cannot take such a batch: {node.target} gets {' and '.join(map(str, given))} "
                f"({_reason(error)}). Is `shape` that of the whole batch, and the dtype right?"
            ) from error
        return self.made[node]

    def call_module(self, target: str, args: tuple, kwargs: dict) -> Any:
        module = self.fetch_attr(target)
        if isinstance(module, DROPOUTS):  # a mask would be drawn by a generator that knows no meta tensors
            return args[0]
        if isinstance(module, CoreAttention):  # its dropout would draw a mask, too
            return args[0].chunk(3, dim=-1)[0]
        weights = chain(module.named_parameters(), module.named_buffers())
        return functional_call(module, {name: _on_meta(tensor) for name, tensor in weights}, args, kwargs)

    def get_attr(self, target: str, args: tuple, kwargs: dict) -> Any:
        found = super().get_attr(target, args, kwargs)
        return _on_meta(found) if is_tensor(found) else found


def _on_meta(tensor: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(tensor, device="meta")


def is_tensor(value: Any) -> bool:
    """Whether a call made one tensor, and not a number, a shape or several tensors."""
    return isinstance(value, torch.Tensor)
