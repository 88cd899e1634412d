"""What each collective of torch.distributed moves between virtual ranks, under the names of a process group's methods.

A function below takes the arguments of the method after the group itself, and says what this rank brings, what the
collective costs, and what it writes once all have come. Sums are made in the order of ranks.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from course_utils.ranks.virtual.virtual_time import Gathering


class CollectivePlan(NamedTuple):
    """A collective on one rank, before it begins.

    Attributes:
        part: copies of what this rank brings.
        cost: a way of `collective_costs`, and its n in bytes.
        take: writes the results, once all have come.
        result: the tensors that hold them then.
    """

    part: list[Tensor]
    cost: tuple[str, float]
    take: Callable[[Gathering], None]
    result: list[Tensor]


def _copies(tensors: Sequence[Tensor]) -> list[Tensor]:
    return [tensor.detach().clone() for tensor in tensors]


def write(places: Sequence[Tensor], values: Sequence[Tensor]) -> None:
    """Copy values into their places. Autograd does not see it: `.data` leaves a tensor's version, as gloo does.

    Raises:
        RuntimeError: a value has more or fewer numbers than its place.
    """
    for place, value in zip(places, values, strict=True):
        if place.numel() != value.numel():
            raise RuntimeError(  # as torch
                f"{value.numel()} numbers came for a tensor of {place.numel()}. Is the shape the same on both sides?"
            )
        place.data.copy_(value.reshape(place.shape))


def _bytes(tensors: Sequence[Tensor]) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


_OPERATIONS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "SUM": torch.add, "PRODUCT": torch.mul, "MIN": torch.minimum, "MAX": torch.maximum,
    "BAND": torch.bitwise_and, "BOR": torch.bitwise_or, "BXOR": torch.bitwise_xor,
}  # fmt: skip


def _combined(opts: Any, tensors: Sequence[Tensor]) -> Tensor:
    """The tensors of all ranks, combined element by element in the order of ranks."""
    name = opts.reduceOp.op.name
    if name == "AVG":
        total = functools.reduce(torch.add, tensors)
        return torch.div(total, len(tensors), rounding_mode=None if total.is_floating_point() else "trunc")
    return functools.reduce(_OPERATIONS[name], tensors)


def _check_operation(opts: Any) -> None:
    name = opts.reduceOp.op.name
    if name not in _OPERATIONS and name != "AVG":
        raise ValueError(f"ReduceOp.{name} is not for gloo, nor for virtual ranks")


def _for_all(opts: Any) -> Callable[[list[list[Tensor]]], list[Tensor]]:
    """What combines, for each tensor, those of all ranks."""
    _check_operation(opts)
    return lambda parts: [_combined(opts, tensors) for tensors in zip(*parts, strict=True)]


def allreduce(rank: int, size: int, tensors: list[Tensor], opts: Any) -> CollectivePlan:
    """Each tensor: the same on all ranks, combined over all."""
    combine = _for_all(opts)
    cost = "allreduce", _bytes(tensors)
    return CollectivePlan(_copies(tensors), cost, lambda met: write(tensors, met.shared(combine)), tensors)


allreduce_coalesced = allreduce


def reduce(rank: int, size: int, tensors: list[Tensor], opts: Any) -> CollectivePlan:
    """As `allreduce`, on the root alone."""
    combine = _for_all(opts)

    def take(met: Gathering) -> None:
        if rank == opts.rootRank:
            write(tensors, met.shared(combine))

    return CollectivePlan(_copies(tensors), ("reduce", _bytes(tensors)), take, tensors)


def broadcast(rank: int, size: int, tensors: list[Tensor], opts: Any) -> CollectivePlan:
    """The root's tensors, on all ranks."""
    root = opts.rootRank

    def take(met: Gathering) -> None:
        if rank != root:
            write(tensors, met.parts[root])

    return CollectivePlan(_copies(tensors) if rank == root else [], ("tree", _bytes(tensors)), take, tensors)


def gather(rank: int, size: int, places: list[list[Tensor]], tensors: list[Tensor], opts: Any) -> CollectivePlan:
    """Each rank's tensor, in its place on the root."""

    def take(met: Gathering) -> None:
        if rank == opts.rootRank:
            write(places[0], [met.parts[other][0] for other in range(size)])

    return CollectivePlan(_copies(tensors), ("parts", _bytes(tensors)), take, places[0] if places else [])


def scatter(rank: int, size: int, tensors: list[Tensor], parts: list[list[Tensor]], opts: Any) -> CollectivePlan:
    """For each rank one of the root's tensors."""
    own = _copies(parts[0]) if rank == opts.rootRank else []
    return CollectivePlan(
        own, ("parts", _bytes(tensors)), lambda met: write(tensors, [met.parts[opts.rootRank][rank]]), tensors
    )


def allgather(
    rank: int, size: int, places: list[list[Tensor]], tensors: list[Tensor], opts: Any = None
) -> CollectivePlan:
    """Each rank's tensor, in its place on every rank."""

    def take(met: Gathering) -> None:
        for number, own in enumerate(places):
            write(own, [met.parts[other][number] for other in range(size)])

    return CollectivePlan(
        _copies(tensors), ("parts", _bytes(tensors)), take, [place for own in places for place in own]
    )


def allgather_coalesced(rank: int, size: int, places: list, tensors: list[Tensor], opts: Any = None) -> CollectivePlan:
    """As `allgather` of several tensors; the places are ordered by rank first."""
    by_tensor = [list(own) for own in zip(*places, strict=True)]
    return allgather(rank, size, by_tensor, tensors, opts)


def all_gather_single(rank: int, size: int, place: Tensor, tensor: Tensor, opts: Any = None) -> CollectivePlan:
    """Each rank's tensor, one after the other in a single one."""
    return all_gather_single_coalesced(rank, size, [place], [tensor], opts)


def all_gather_single_coalesced(rank: int, size: int, places: list, tensors: list, opts: Any = None) -> CollectivePlan:
    """As `all_gather_single`, of several tensors."""

    def take(met: Gathering) -> None:
        for number, place in enumerate(places):
            write([place], [torch.cat([met.parts[other][number].reshape(-1) for other in range(size)])])

    return CollectivePlan(_copies(tensors), ("parts", _bytes(tensors)), take, places)


def reduce_scatter(rank: int, size: int, places: list[Tensor], parts: list[list[Tensor]], opts: Any) -> CollectivePlan:
    """Of each rank's list of tensors the one in this rank's place, combined over all ranks."""
    _check_operation(opts)

    def take(met: Gathering) -> None:
        for number, place in enumerate(places):
            own = [met.parts[other][number * size + rank] for other in range(size)]
            write([place], [_combined(opts, own)])

    flat = [part for own in parts for part in own]
    return CollectivePlan(_copies(flat), ("reduce_scatter", _bytes(places)), take, places)


def reduce_scatter_single(rank: int, size: int, place: Tensor, tensor: Tensor, opts: Any) -> CollectivePlan:
    """As `reduce_scatter`, of one tensor that is cut into as many parts as there are ranks."""
    return reduce_scatter_single_coalesced(rank, size, [place], [tensor], opts)


def reduce_scatter_single_coalesced(rank: int, size: int, places: list, tensors: list, opts: Any) -> CollectivePlan:
    """As `reduce_scatter_single`, of several tensors."""
    return reduce_scatter(rank, size, places, [_cut(tensor, None, size) for tensor in tensors], opts)


def _cut(tensor: Tensor, lengths: list[int] | None, size: int) -> list[Tensor]:
    """The parts for each rank along the first dimension: of these lengths, or all alike."""
    if not lengths:
        if tensor.numel() % size:
            raise ValueError(f"{tensor.numel()} numbers cannot be cut into {size} equal parts, one for each rank")
        return list(tensor.reshape(-1).chunk(size)) if tensor.numel() else [tensor] * size
    if len(lengths) != size or sum(lengths) != tensor.shape[0]:
        raise ValueError(f"parts of {lengths} are not one for each of {size} ranks, or not {tensor.shape[0]} together")
    return list(tensor.split(lengths))


def alltoall(rank: int, size: int, places: list[Tensor], parts: list[Tensor], opts: Any = None) -> CollectivePlan:
    """Of each rank's list the tensor in this rank's place."""

    def take(met: Gathering) -> None:
        write(places, [met.parts[other][rank] for other in range(size)])

    return CollectivePlan(_copies(parts), ("pairs", _bytes(parts) / size), take, places)


def all_to_all_single(
    rank: int, size: int, place: Tensor, tensor: Tensor, came: list[int], sent: list[int], opts: Any = None
) -> CollectivePlan:
    """As `alltoall`, of one tensor cut into parts of these lengths; equal ones where none are given."""
    places = [part.data for part in _cut(place.data, came, size)]
    plan = alltoall(rank, size, places, _cut(tensor, sent, size), opts)
    return plan._replace(result=[place])


def barrier(rank: int, size: int, opts: Any = None) -> CollectivePlan:
    """Nothing moves."""
    return CollectivePlan([], ("barrier", 0), lambda met: None, [])
