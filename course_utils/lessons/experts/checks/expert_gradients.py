"""The check of `expert_gradients`: sums on several meshes of data × expert, some with gradients of None."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from course_utils.checks.cases import in_a_row
from course_utils.checks.exercise import Case, Cost, Exercise
from course_utils.checks.torch_cases import drawn
from course_utils.lessons.experts.checks.common import TOLERANCE
from course_utils.words import ranks

if TYPE_CHECKING:
    from torch import Tensor

SHARED, OWN = "the gradient of shared", "the gradient of own"
Gradients = Sequence["Tensor | None"]


def summed(
    function: Callable, shapes: tuple, shared: Gradients, own: Gradients, data: int, dtype: str, give: Callable
) -> dict:
    """Call the learner's function with parameters that have these gradients; return what they are afterwards.

    If all ranks have the same experts, no group is given.

    Args:
        give: turns a list of parameters into the argument.
    """
    import torch
    import torch.distributed as dist

    kind = getattr(torch, dtype)

    def parameters(shapes: Sequence, gradients: Gradients) -> list:
        made = [torch.nn.Parameter(torch.zeros(shape, dtype=kind)) for shape in shapes]
        for parameter, gradient in zip(made, gradients, strict=True):
            parameter.grad = None if gradient is None else gradient.clone()
        return made

    size, rank, group = dist.get_world_size() // data, dist.get_rank(), None
    for first in range(size):
        members = dist.new_group(list(range(first, dist.get_world_size(), size)))
        group = members if rank % size == first else group
    all_have, only_here = (parameters(*both) for both in zip(shapes, (shared, own), strict=True))
    function(give(all_have), give(only_here), *(() if size == 1 else (group,)))
    return {SHARED: [parameter.grad for parameter in all_have], OWN: [parameter.grad for parameter in only_here]}


def in_one(every: Sequence[Gradients], members: Sequence[int], shapes: Sequence, dtype: str) -> list["Tensor"]:
    """Return the sum over these ranks, divided by the number of all."""
    import torch

    sums = []
    for index, shape in enumerate(shapes):
        total = torch.zeros(shape, dtype=torch.float64)
        for rank in members:
            if every[rank][index] is not None:
                total += every[rank][index].double()
        sums.append((total / len(every)).to(getattr(torch, dtype)))
    return sums


def _cases(rng: np.random.Generator, world_size: int) -> Iterator[Case]:
    import torch

    def case(
        data: int,
        expert: int,
        shapes: tuple,
        dtype: str = "float64",
        nothing: Sequence[tuple] = (),
        give: Callable = list,
        costs: bool = False,
    ) -> Case:
        size, kind = data * expert, getattr(torch, dtype)
        shared, own = ([[drawn(rng, *shape).to(kind) for shape in some] for _ in range(size)] for some in shapes)
        for rank, index in nothing:
            own[rank][index] = None
        given = [(shapes, shared[rank], own[rank], data, dtype, give) for rank in range(size)]
        expected = [
            {
                SHARED: in_one(shared, range(size), shapes[0], dtype),
                OWN: in_one(own, range(rank % expert, size, expert), shapes[1], dtype),
            }
            for rank in range(size)
        ]
        label = f"{ranks(size)}, data × expert = {data} × {expert}, {dtype}"
        label += ", an expert that got nothing" if nothing else ""
        label += "" if give is list else ", parameters that are given once, as by `model.parameters()`"
        nbytes = (
            sum(gradient.nbytes for gradient in shared[0])
            + sum(int(np.prod(shape)) for shape in shapes[1]) * kind.itemsize
        )
        cost = Cost(bytes_per_rank=nbytes) if costs else None
        more = {"backend": "gloo", "harness": summed, "cost": cost, "may_change": (1, 2)}
        key = "given-once" if give is iter else "nothing-here" if nothing else ""
        return Case(label, given, expected, tolerance=TOLERANCE[dtype], key=key, **more)

    few, more = (((3,),), ((2, 2),)), (((3,), (2, 3)), ((4, 2), (4,), (1,)))
    yield case(2, 2, few)
    yield case(2, 2, few, nothing=[(0, 0)])
    yield case(1, min(2, world_size), few)
    yield case(min(2, world_size), 1, few)
    yield case(2, 2, more)
    yield case(1, world_size, more)
    yield case(world_size, 1, more)
    yield case(1, 1, few)
    yield case(2, 2, more, nothing=[(0, 0), (0, 1), (3, 2)])
    yield case(1, min(3, world_size), few, nothing=[(0, 0)])
    yield case(2, 2, few, "float16")
    yield case(2, 2, few, "bfloat16")
    yield case(2, 2, ((), ((2,),)))
    yield case(2, 2, (((3,),), ()))
    yield case(2, 2, more, give=iter)
    yield case(2, 2, more, costs=True)
    yield case(2, 2, (((200,), (40, 5)), ((30, 30),)), "float32", costs=True)
    yield in_a_row(case(2, 2, more), case(2, 2, more))
    yield in_a_row(case(2, 2, few), case(2, 2, more))


EXERCISE = Exercise(
    library="expert_gradients",
    number=5,
    minutes=15,
    difficulty=2,
    turn="over which ranks to sum, by what to divide",
    title="which gradients belong together",
    cases=_cases,
    needs_torch=True,
    hints=(
        "Rank 0's expert has processed tokens of ranks 0 and 1, and its copy on rank 2 those of ranks 2 and 3. Which "
        "ranks' losses are in its gradient before you add anything, and over how many ranks' tokens is the mean?",
        "Write two loops, one for `shared` with `dist.all_reduce(parameter.grad)` over all ranks, and one for `own` "
        "with `group=data`. Divide both by `dist.get_world_size()`. Before that, replace a gradient of None by zeros, "
        "because other ranks of the group may have one, and they all have to make the same call.",
    ),
    praise=lambda outcome: (
        f"shared parameters are summed over all {ranks(outcome.world_size)}, experts over those that have them"
    ),
)
