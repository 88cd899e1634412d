"""What each rank's blocks hold after each round: a function is run again with numbers that tell whose they are.

Every rank's vector is filled with a number of its own, 2^(w·r) for rank r, with as many bits w for each rank as the
vector's type has room for. A sum then says of each rank how many times it was added: w bits count up to 2^w − 1. A
second run, in which every block holds its own number, tells where a block came from.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from course_utils.draw.blocks import Block, BlockFrames, Frame, Piece
from course_utils.errors import CourseError
from course_utils.trace.events import Event, message_rounds

MOST_RANKS = 16
"""More rows than this nobody can read."""
_BITS = {"float64": 52, "float32": 24, "int64": 62, "int32": 30, "uint64": 62, "uint32": 31}
_LETTERS = "abcdefghijklmnop"
_NO_VECTOR = (
    "blocks() gives every rank a vector with numbers of its own, so the function must take the vector as an argument: "
    "ranks.run(my_allreduce, course.per_rank([np.full(8, float(rank)) for rank in range(4)]))."
)

Arguments = tuple[tuple, dict]


@dataclass(frozen=True)
class Item:
    """An object that tells whose it is, in place of an item that a function sends.

    Attributes:
        counts: for each rank, how many times its items were added up in this one.
        position: in its rank's list; None if it was no list.
    """

    counts: tuple[int, ...]
    position: int | None = None

    def __add__(self, other: "Item") -> "Item":
        if not isinstance(other, Item):
            return NotImplemented
        position = self.position if self.position == other.position else None
        return Item(tuple(a + b for a, b in zip(self.counts, other.counts, strict=True)), position)

    def __radd__(self, other: object) -> "Item":
        return self if other == 0 else NotImplemented


@dataclass
class Observed:
    """What was seen of one run.

    Attributes:
        snapshots: for each rank, its vector at each moment at which it began or ended something.
        finals: what each rank holds in the end: what it returned, else its argument.
        events: of all ranks.
        ended: whether all ranks returned.
        error: what a rank raised, in words.
    """

    snapshots: list[list[tuple[float, np.ndarray]]] = field(default_factory=list)
    finals: list[Any] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    ended: bool = True
    error: str = ""


Observe = Callable[[Callable, list[Arguments], Callable[[Arguments], Any]], Observed]
"""Runs a function on virtual ranks; the third argument finds the vector among a rank's arguments."""


def block_frames(function: Callable, each: list[Arguments], observe: Observe) -> BlockFrames:
    """Run the function again on virtual ranks with marked numbers, and say what is where after each round.

    Args:
        function: as it was run.
        each: for each rank its arguments and keyword arguments.

    Raises:
        CourseError: no argument can be marked, there are too many ranks, or the function cannot run like this.
    """
    size = len(each)
    if size > MOST_RANKS:
        raise CourseError(f"blocks() draws up to {MOST_RANKS} ranks, and this run had {size}: run it on fewer.")
    find = _finder(each)
    bits = _bits_for(each, find, size)
    marked = [
        _marked(arguments, find, partial(_own, rank=rank, size=size, bits=bits)) for rank, arguments in enumerate(each)
    ]
    seen = observe(function, marked, find)
    if seen.error:
        raise CourseError(f"blocks() ran the function again with numbers of its own, and {seen.error}.")
    numbered = [_marked(arguments, find, partial(_block_numbers, size=size)) for arguments in each]
    where = observe(function, numbered, find)
    return _Reader(seen, where, [find(arguments) for arguments in marked], size, bits).frames()


# --- marking the arguments ----------------------------------------------------------------------------------------


def _is_vector(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in "fiu"


def _finder(each: list[Arguments]) -> "_Finder":
    """What finds the rank's vector, list or item among its arguments; its `slot` says where."""
    for wanted in (_is_vector, lambda value: isinstance(value, list) and value, _is_item):
        for slot in [*range(len(each[0][0])), *each[0][1]]:
            if any(wanted(_at(arguments, slot)) for arguments in each):
                return _Finder(slot)
    raise CourseError(_NO_VECTOR)


def _is_item(value: Any) -> bool:
    return isinstance(value, (str, int, float)) and not isinstance(value, bool)


class _Finder:
    def __init__(self, slot: int | str) -> None:
        self.slot = slot

    def __call__(self, arguments: Arguments) -> Any:
        return _at(arguments, self.slot)


def _at(arguments: Arguments, slot: int | str) -> Any:
    positional, keywords = arguments
    return keywords.get(slot) if isinstance(slot, str) else positional[slot]


def _marked(arguments: Arguments, find: "_Finder", mark: Callable[[Any], Any]) -> Arguments:
    """The arguments with the vector marked; a rank without one keeps what it has."""
    positional, keywords = arguments
    value = find(arguments)
    if value is None:
        return arguments
    if isinstance(find.slot, str):
        return positional, {**keywords, find.slot: mark(value)}
    return (*positional[: find.slot], mark(value), *positional[find.slot + 1 :]), keywords


def _bits_for(each: list[Arguments], find: Callable, size: int) -> int:
    """Bits for each rank in the type of the vectors, at least one."""
    types = {value.dtype.name for arguments in each if _is_vector(value := find(arguments))}
    return max(1, min((_BITS.get(name, 52) for name in types), default=52) // size)


def _own(value: Any, rank: int, size: int, bits: int) -> Any:
    counts = tuple(int(other == rank) for other in range(size))
    if isinstance(value, list):
        return [Item(counts, position) for position in range(len(value))]
    if not _is_vector(value):
        return Item(counts)
    return np.full(len(value), 2 ** (bits * rank), _type_of(value, size))


def _block_numbers(value: Any, size: int) -> Any:
    """Every element is the number of its block, from 1; lists need no numbers."""
    if not _is_vector(value):
        return value
    return np.repeat(np.arange(1, size + 1), [len(part) for part in np.array_split(value, size)]).astype(
        _type_of(value, size)
    )


def _type_of(value: np.ndarray, size: int) -> np.dtype:
    enough = _BITS.get(value.dtype.name, 0) >= size
    return value.dtype if enough else np.dtype(np.float64)


# --- reading what was held ----------------------------------------------------------------------------------------


class _Reader:
    """Turns snapshots into frames."""

    def __init__(self, seen: Observed, where: Observed, marked: list, size: int, bits: int) -> None:
        self.seen, self.where, self.marked, self.size, self.bits = seen, where, marked, size, bits
        lengths = [len(value) for value in [*marked, *seen.finals] if isinstance(value, (np.ndarray, list, tuple))]
        self.length = max(lengths, default=1)
        held_as_items = any(isinstance(value, (list, Item)) for value in marked)
        self.columns = self.length if held_as_items else size

    def frames(self) -> BlockFrames:
        rounds = message_rounds(self.seen.events)
        last = max((number for _, _, number in rounds), default=0)
        ends = self._ends_of_receives(rounds)
        names = ["before", "after"] if not last else ["start", *(f"round {k}" for k in range(1, last + 1))]
        frames = []
        for number, name in enumerate(names):
            is_last = number == len(names) - 1
            held = [self._row(rank, *self._state(rank, number, ends, is_last)) for rank in range(self.size)]
            frames.append(Frame(name, tuple(held)))
        return BlockFrames(tuple(frames), self.seen.ended)

    def _ends_of_receives(self, rounds: Sequence[tuple[Event, Event, int]]) -> list[list[tuple[int, float]]]:
        """For each rank the rounds of the messages it received, and when each receive ended."""
        ends: list[list[tuple[int, float]]] = [[] for _ in range(self.size)]
        for _, got, number in rounds:
            ends[got.rank].append((number, got.end))
        return ends

    def _state(self, rank: int, number: int, ends: list, is_last: bool) -> tuple[Any, Any]:
        """What a rank holds after a round, and the same of the run with blocks' numbers."""
        if number == 0:
            return self.marked[rank], None
        if is_last:
            return self.seen.finals[rank], self.where.finals[rank] if self.where.finals else None
        later = min((end for round_, end in ends[rank] if round_ > number), default=math.inf)
        taken = [index for index, (at, _) in enumerate(self.seen.snapshots[rank]) if at < later]
        if later == math.inf or not taken:
            return self._state(rank, number, ends, is_last=True)
        return self.seen.snapshots[rank][taken[-1]][1], None

    def _row(self, rank: int, value: Any, numbers: Any) -> tuple[Block, ...]:
        row: list[Block] = [()] * self.columns
        if isinstance(value, np.ndarray) and value.ndim == 1:
            if len(value) == self.length:
                bounds = np.cumsum([0, *(len(part) for part in np.array_split(value, self.columns))])
                for column in range(self.columns):
                    row[column] = self._block(value[bounds[column] : bounds[column + 1]])
            elif len(value):
                row[self._origin(value, numbers, rank)] = self._block(value)
        elif isinstance(value, Item):
            row[self._column_of(value, rank)] = (self._piece_of(value),)
        elif isinstance(value, (list, tuple)):
            for column, item in enumerate(value[: self.columns]):
                if isinstance(item, Item):
                    row[column] = (self._piece_of(item),)
        return tuple(row)

    def _block(self, part: np.ndarray) -> Block:
        """The pieces of equal values in a block."""
        if not len(part):
            return (Piece(1.0, (0,) * self.size),)
        starts = [0, *(np.flatnonzero(np.diff(part)) + 1).tolist(), len(part)]
        return tuple(
            Piece((end - begin) / len(part), self._counts(part[begin]))
            for begin, end in zip(starts, starts[1:], strict=False)
        )

    def _counts(self, number: Any) -> tuple[int, ...]:
        whole = int(number) if np.isfinite(number) else 0
        return tuple(max(whole, 0) >> (self.bits * rank) & ((1 << self.bits) - 1) for rank in range(self.size))

    def _origin(self, value: np.ndarray, numbers: Any, rank: int) -> int:
        """The block that a shorter vector came from; the rank's own where that cannot be told."""
        times = sum(self._counts(value[0]))
        if isinstance(numbers, np.ndarray) and len(numbers) == len(value) and times:
            found = float(numbers[0]) / times
            if found == int(found) and 1 <= found <= self.columns:
                return int(found) - 1
        return min(rank, self.columns - 1)

    def _column_of(self, item: Item, rank: int) -> int:
        wanted = rank if item.position is None else item.position
        return wanted if wanted < self.columns else 0

    def _piece_of(self, item: Item) -> Piece:
        sources = [rank for rank, times in enumerate(item.counts) if times]
        letter = "" if item.position is None or len(sources) > 1 else _LETTERS[item.position % len(_LETTERS)]
        return Piece(1.0, item.counts, f"{sources[0]}{letter}" if letter else "")
