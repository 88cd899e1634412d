"""Tensors that change the way in which they lie on the ranks, as functions that the backward pass goes through.

All are one exchange: each rank sends every other the pieces that it has and the other needs. Backward the gradients of
the pieces go the way back, and are added up where a piece went to several ranks.

| function | a rank has | and needs |
|---|---|---|
| `all_gather` | a part | all |
| `gather` | a part | all, on one rank |
| `scatter` | all, on one rank | a part |
| `broadcast` | all, on one rank | all |
| `all_to_all` | a part along one dimension | a part along another one |
| `halo_exchange` | rows | these, and the rows around them |
| `send` | all, on one rank | all, on another one |

Source: Jia, Zaharia & Aiken 2018, §5.1 (which pieces move); Dryden et al. 2019, "Improving Strong-Scaling of CNN
Training by Exploiting Finer-Grained Parallelism", §3 (halos).
"""

from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import NamedTuple

import torch
import torch.distributed as dist

from course_utils.lessons.allreduce.blocks import block_bounds
from course_utils.lessons.strategy_search.graph.configurations import Box, common, volume, window_rows
from course_utils.lessons.strategy_search.graph.operator_graph import Shape, Window

Slices = tuple[slice, ...]


@dataclass(frozen=True)
class Spread:
    """How a tensor lies on the ranks.

    Attributes:
        parts: how many, along each dimension; as equal as possible, the first ones longer.
        ranks: who has each part, the last dimension's parts varying fastest; several ranks have the same.
        window: the parts are what a convolution or a pool reads for its parts of the output rows (dimension 2).
    """

    parts: tuple[int, ...]
    ranks: tuple[int | tuple[int, ...], ...]
    window: Window | None = None

    def boxes(self, shape: Shape) -> dict[int, Box]:
        """What each rank has of a tensor of this shape; a rank that has nothing is left out."""
        return _boxes(self, shape)


def output_rows(window: Window, height: int) -> int:
    """How many rows a convolution or a pool makes from an input of `height` rows."""
    return (height + 2 * window.padding - window.size) // window.stride + 1


@cache
def _boxes(spread: Spread, shape: Shape) -> dict[int, Box]:
    along = []
    for dimension, (length, parts) in enumerate(zip(shape, spread.parts, strict=True)):
        window = spread.window if dimension == 2 else None
        bounds = block_bounds(length if window is None else output_rows(window, length), parts)
        made = list(zip(bounds, bounds[1:], strict=False))
        along.append([window_rows(window, rows, length) for rows in made])
    found = {}
    for owners, box in zip(spread.ranks, product(*along), strict=True):
        for rank in (owners,) if isinstance(owners, int) else owners:
            found[rank] = box
    return found


class Plan(NamedTuple):
    """What one rank does in an exchange; slices are those of its own tensors.

    Attributes:
        shape: of what it gets; of no examples where it needs nothing.
        kept: from where in what it has, to where in what it gets.
        sends: to whom, and what of what it has.
        receives: from whom, and where in what it gets.
    """

    shape: Shape
    kept: tuple[Slices, Slices] | None
    sends: tuple[tuple[int, Slices], ...]
    receives: tuple[tuple[int, Slices], ...]


@cache
def plan(shape: Shape, have: Spread, need: Spread, rank: int) -> Plan:
    """What `rank` sends and receives so that a tensor of this shape, spread like `have`, is spread like `need`."""
    had, needed = have.boxes(shape), need.boxes(shape)
    mine, wanted = had.get(rank), needed.get(rank)
    kept, sends, receives = None, [], []
    if mine is not None:
        for other, box in sorted(needed.items()):
            piece = common(mine, box)
            if other != rank and volume(piece):
                sends.append((other, _within(piece, mine)))
    if wanted is not None:
        for other, box in sorted(had.items()):
            piece = common(box, wanted)
            if other != rank and volume(piece):
                receives.append((other, _within(piece, wanted)))
    if mine is not None and wanted is not None and volume(common(mine, wanted)):
        piece = common(mine, wanted)
        kept = _within(piece, mine), _within(piece, wanted)
    size = [end - begin for begin, end in wanted or next(iter(needed.values()))]
    return Plan((size[0] if wanted else 0, *size[1:]), kept, tuple(sends), tuple(receives))


def _within(piece: Box, box: Box) -> Slices:
    """Where a piece lies in a box."""
    return tuple(slice(begin - first, end - first) for (begin, end), (first, _) in zip(piece, box, strict=True))


def _swap(outgoing: list[tuple[int, torch.Tensor]], incoming: list[tuple[int, torch.Tensor]]) -> None:
    """Send and receive all at once; returns when all has come and gone."""
    coming = [dist.irecv(tensor, other) for other, tensor in incoming]
    going = [dist.isend(tensor.contiguous(), other) for other, tensor in outgoing]
    for work in (*coming, *going):
        work.wait()


def _room(tensor: torch.Tensor) -> torch.Tensor:
    """Where to receive: the place itself where its numbers lie one after the other."""
    return tensor if tensor.is_contiguous() else torch.empty_like(tensor, memory_format=torch.contiguous_format)


class _Exchange(torch.autograd.Function):
    @staticmethod
    def forward(context, x: torch.Tensor, anchor: torch.Tensor, plan: Plan) -> torch.Tensor:
        context.plan, context.shape = plan, x.shape
        got = x.new_empty(plan.shape)
        if plan.kept:
            got[plan.kept[1]] = x[plan.kept[0]]
        places = [got[where] for _, where in plan.receives]
        rooms = [_room(target) for target in places]
        others = [other for other, _ in plan.receives]
        _swap([(other, x[what]) for other, what in plan.sends], list(zip(others, rooms, strict=True)))
        for target, room in zip(places, rooms, strict=True):
            if target is not room:
                target.copy_(room)
        return got

    @staticmethod
    def backward(context, gradient: torch.Tensor):
        plan = context.plan
        total = gradient.new_zeros(context.shape)
        if plan.kept:
            total[plan.kept[0]] = gradient[plan.kept[1]]
        rooms = [(other, total[what], torch.empty_like(total[what]).contiguous()) for other, what in plan.sends]
        _swap(
            [(other, gradient[where]) for other, where in plan.receives],
            [(other, room) for other, _, room in rooms],
        )
        for _, target, room in rooms:
            target += room
        return total, None, None


def exchange(x: torch.Tensor, shape: Shape, have: Spread, need: Spread) -> torch.Tensor:
    """The tensor whose parts are spread like `have`, spread like `need`; for all ranks at once, also those without.

    Forward: from each rank to each other one the piece that one has and the other needs, if any; what a rank has
    already does not travel. Backward: gradients of the pieces travel back, and are added up.

    Args:
        x: this rank's part; of no examples where it has none.
        shape: of the whole tensor.
        have: no two ranks have the same part.

    Returns:
        A new tensor, this rank's part; of no examples where it needs none.
    """
    anchor = torch.zeros(
        0, requires_grad=True
    )  # so that every rank's backward pass comes by here, and waits for no one
    return _Exchange.apply(x, anchor, plan(tuple(shape), have, need, dist.get_rank()))


def own(x: torch.Tensor, need: Spread) -> torch.Tensor:
    """This rank's part of what every rank has, or can read; of no examples where it needs none. Nothing moves."""
    box = need.boxes(tuple(x.shape)).get(dist.get_rank())
    return x[:0] if box is None else x[tuple(slice(begin, end) for begin, end in box)]


def _along(dim: int, shape: Shape, ranks: tuple[int, ...]) -> Spread:
    return Spread(tuple(len(ranks) if axis == dim else 1 for axis in range(len(shape))), ranks)


def _whole(shape: Shape, *ranks: int) -> Spread:
    return Spread((1,) * len(shape), (ranks,))


def _everybody(ranks: tuple[int, ...] | None) -> tuple[int, ...]:
    return tuple(range(dist.get_world_size())) if ranks is None else ranks


def all_gather(x: torch.Tensor, shape: Shape, dim: int, ranks: tuple[int, ...] | None = None) -> torch.Tensor:
    """All of a tensor of this shape on each of the ranks, of which each has a part along `dim`."""
    ranks = _everybody(ranks)
    return exchange(x, shape, _along(dim, shape, ranks), _whole(shape, *ranks))


def gather(x: torch.Tensor, shape: Shape, dim: int, to: int, ranks: tuple[int, ...] | None = None) -> torch.Tensor:
    """All of a tensor of this shape on rank `to`; each of the ranks has a part along `dim`."""
    return exchange(x, shape, _along(dim, shape, _everybody(ranks)), _whole(shape, to))


def scatter(x: torch.Tensor, shape: Shape, dim: int, source: int, ranks: tuple[int, ...] | None = None) -> torch.Tensor:
    """A part along `dim` on each of the ranks; rank `source` has all of the tensor."""
    return exchange(x, shape, _whole(shape, source), _along(dim, shape, _everybody(ranks)))


def broadcast(x: torch.Tensor, shape: Shape, source: int, ranks: tuple[int, ...] | None = None) -> torch.Tensor:
    """All of a tensor of this shape on each of the ranks; rank `source` has it."""
    return exchange(x, shape, _whole(shape, source), _whole(shape, *_everybody(ranks)))


def all_to_all(
    x: torch.Tensor, shape: Shape, dim: int, into: int, ranks: tuple[int, ...] | None = None
) -> torch.Tensor:
    """A part along the dimension `into` on each of the ranks, of which each has a part along `dim`."""
    ranks = _everybody(ranks)
    return exchange(x, shape, _along(dim, shape, ranks), _along(into, shape, ranks))


def halo_exchange(x: torch.Tensor, shape: Shape, window: Window, ranks: tuple[int, ...] | None = None) -> torch.Tensor:
    """On each of the ranks the rows that it reads for its part of the output; each has a part of the rows."""
    rows = _along(2, shape, _everybody(ranks))
    return exchange(x, shape, rows, Spread(rows.parts, rows.ranks, window))


def send(x: torch.Tensor, shape: Shape, source: int, to: int) -> torch.Tensor:
    """All of a tensor of this shape on rank `to`; rank `source` has it."""
    return exchange(x, shape, _whole(shape, source), _whole(shape, to))
