"""What the checks of lesson 6 share. torch is imported where it is used: a list of exercises must not wait for it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from course_utils.checks import recognisers
from course_utils.checks.exercise import Outcome

if TYPE_CHECKING:
    from torch import Tensor, nn


def tensor(array: Any) -> "Tensor":
    """A tensor of its own with the array's numbers and dtype."""
    import torch

    return torch.tensor(array)


def model_of(parameters: Sequence["Tensor"], buffers: Sequence["Tensor"] = ()) -> "nn.Module":
    """A model that holds these parameters and buffers."""
    from torch import nn

    model = nn.Module()
    model.weights = nn.ParameterList(nn.Parameter(values.clone()) for values in parameters)
    model.statistics = nn.Module()
    for index, values in enumerate(buffers):
        model.statistics.register_buffer(f"buffer_{index}", values.clone())
    return model


def entries(result: Any) -> Any:
    """What a harness's dict holds, as a list in its order; anything else as it is."""
    return list(result.values()) if type(result) is dict else result


def same(got: Any, wanted: Any, tolerance: float | None = None) -> bool:
    """Whether two results are equal, whatever their entries are called; never asks a learner's object."""
    return recognisers.same(entries(got), entries(wanted), tolerance)


def all_same(outcome: Outcome, wanted: Sequence[Any]) -> bool:
    """Whether each rank returned what stands in `wanted`."""
    return all(same(got, wanted[rank], outcome.case.tolerance) for rank, got in enumerate(outcome.results))
