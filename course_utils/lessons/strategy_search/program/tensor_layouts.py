"""How what a configuration makes and reads lies on the ranks, and the name of the move from one to the other.

What a strategy says of operators becomes what a program says of tensors.
"""

from collections.abc import Iterable
from itertools import product
from typing import NamedTuple

from course_utils.lessons.strategy_search.graph.configurations import CUTS, Box, Config, input_box
from course_utils.lessons.strategy_search.graph.operator_graph import Operator, Shape
from course_utils.lessons.strategy_search.program.tensor_moves import Spread


class LayoutMove(NamedTuple):
    """A call of a function of `tensor_moves` for a tensor, without the tensor and its shape.

    Attributes:
        name: "all_gather", "halo_exchange", "exchange", …
        arguments: by their names, in the order in which they are given.
    """

    name: str
    arguments: dict[str, object]


def output_spread(operator: Operator, config: Config) -> Spread:
    """How the output of an operator lies on the ranks: no rank has what another one has."""
    return _spread(operator, config, operator.shape, set(CUTS))


def input_spread(operator: Operator, config: Config, shape: Shape) -> Spread:
    """How an input of this shape must lie on the ranks: what `input_box` says, for all ranks at once."""
    if config.row_cut:
        channels = operator.dimension("parameter")
        parts = tuple(len(config.devices) if axis == channels else 1 for axis in range(len(shape)))
        return Spread(parts, config.devices)
    along = {"sample"}
    if len(shape) == len(operator.shape) and operator.kind != "loss":
        along |= set() if operator.mixes else {"parameter"}
        along |= {"attribute"} if "attribute" in operator.cuts else set()
    plain = _spread(operator, config, shape, along)
    wanted = {rank: input_box(operator, config, index, shape) for index, rank in enumerate(config.devices)}
    if plain.boxes(shape) == wanted:
        return plain
    haloed = Spread(plain.parts, plain.ranks, operator.window)
    assert haloed.boxes(shape) == wanted, f"{operator.name}: {config} reads {wanted} of {shape}"
    return haloed


def _spread(operator: Operator, config: Config, shape: Shape, along: set[str]) -> Spread:
    """A tensor cut along some of a configuration's cuts; ranks that differ in the others have the same of it."""
    places = {cut: operator.dimension(cut) for cut in CUTS if cut in along and operator.dimension(cut) < len(shape)}
    parts = [1] * len(shape)
    for cut, number in zip(CUTS, config.parts, strict=True):
        if cut in places and number > 1:
            parts[places[cut]] = number
    owners: dict[tuple[int, ...], list[int]] = {where: [] for where in product(*map(range, parts))}
    for index, rank in enumerate(config.devices):
        where = [0] * len(shape)
        for cut, number, part in zip(CUTS, config.parts, config.coordinates(index), strict=True):
            if cut in places and number > 1:
                where[places[cut]] = part
        owners[tuple(where)].append(rank)
    return Spread(
        tuple(parts), tuple(holders[0] if len(holders) == 1 else tuple(holders) for holders in owners.values())
    )


def move_between(shape: Shape, have: Spread, need: Spread, world_size: int) -> LayoutMove | None:
    """The move that brings a tensor of this shape from one spread to another; None where every rank has what it needs.

    A rank may have rows below that no window reaches, if none are above: they change nothing.
    """
    had, needed = have.boxes(shape), need.boxes(shape)
    if all(_will_do(had.get(rank), box) for rank, box in needed.items()) and had.keys() == needed.keys():
        return None
    if all(isinstance(holder, int) for holder in have.ranks):
        named = _named(have, need, world_size)
        if named:
            return named
    return LayoutMove("exchange", {"have": have, "need": need})


def _will_do(had: Box | None, needed: Box) -> bool:
    if had is None or len(had) != 4:
        return had == needed
    (_, _, (first, last), _), (_, _, (begin, end), _) = had, needed
    others = had[:2] + had[3:] == needed[:2] + needed[3:]
    return others and (had == needed or (first == begin == 0 and end <= last))


def _named(have: Spread, need: Spread, world_size: int) -> LayoutMove | None:
    """The move by the name that the field has for it, if it has one."""
    if any(sum(parts > 1 for parts in spread.parts) > 1 for spread in (have, need)):
        return None
    owners = _all(have.ranks)
    readers, along, into = _all(need.ranks), _cut(have), _cut(need)
    ranks = {} if owners == tuple(range(world_size)) else {"ranks": owners}
    if need.window and not (along == into == 2 and owners == readers):
        return None
    if len(owners) == 1 and into is None:
        if len(readers) == 1:
            return LayoutMove("send", {"source": owners[0], "to": readers[0]})
        ranks = {} if readers == tuple(range(world_size)) else {"ranks": readers}
        return LayoutMove("broadcast", {"source": owners[0], **ranks}) if owners[0] in readers else None
    if len(owners) == 1 and into is not None and len(need.ranks) == len(readers):
        ranks = {} if readers == tuple(range(world_size)) else {"ranks": readers}
        return LayoutMove("scatter", {"dim": into, "source": owners[0], **ranks}) if owners[0] in readers else None
    if along is None:
        return None
    if into is None and readers == owners:
        return LayoutMove("all_gather", {"dim": along, **ranks})
    if into is None and len(readers) == 1 and readers[0] in owners:
        return LayoutMove("gather", {"dim": along, "to": readers[0], **ranks})
    if into is not None and need.ranks == have.ranks:
        if need.window:
            return LayoutMove("halo_exchange", {"window": need.window, **ranks})
        return LayoutMove("all_to_all", {"dim": along, "into": into, **ranks})
    return None


def _all(ranks: Iterable[int | tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(rank for holder in ranks for rank in ((holder,) if isinstance(holder, int) else holder))


def _cut(spread: Spread) -> int | None:
    """The one dimension along which a tensor is cut; None where there is none."""
    return next((dimension for dimension, parts in enumerate(spread.parts) if parts > 1), None)
