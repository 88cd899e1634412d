"""What each rank's blocks hold after each round: a function is run again with numbers that tell whose they are.

Every rank's vector is filled with a number of its own, 2^(w·r) for rank r, with as many bits w for each rank as the
vector's type has room for. A sum then says of each rank how many times it was added: w bits count up to 2^w − 1. With
8 ranks a float64 leaves 6 bits for each, so 63 additions are told apart. Values that are no such sum, a mean for
example, are not read but shown as unknown.

Before that, the function runs with vectors in which every block holds its own number. This tells where a block came
from, and at which moments the rounds end, so that the run that follows keeps only what its frames show.
"""

import bisect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from course_utils.draw.block_frames import Block, BlockFrames, BlockPiece, Frame
from course_utils.errors import CourseError
from course_utils.trace.events import Event, message_rounds

MOST_RANKS = 16
"""More rows than this nobody can read."""
MOST_NUMBERS = 1 << 26
"""Of all ranks together: the function runs again in the notebook's own memory."""
_LEAST_BITS = 3  # for each rank, or its number is kept in a longer type
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


@dataclass(frozen=True)
class Stretches:
    """A vector as its stretches of equal values, so that a snapshot of a long one stays small.

    Attributes:
        starts: where each stretch begins.
        values: what it holds.
        length: of the vector.
    """

    starts: np.ndarray
    values: np.ndarray
    length: int

    @classmethod
    def of(cls, vector: np.ndarray) -> "Stretches":
        """The stretches of a vector; a matrix is read row by row."""
        flat = np.ravel(vector)
        starts = np.flatnonzero(np.concatenate([[True], flat[1:] != flat[:-1]])) if len(flat) else np.empty(0, int)
        return cls(starts, flat[starts], len(flat))

    def cut(self, begin: int, end: int) -> "Stretches":
        """The stretches between two positions."""
        if begin >= end:
            return Stretches(self.starts[:0], self.values[:0], 0)
        first = int(np.searchsorted(self.starts, begin, side="right")) - 1
        last = int(np.searchsorted(self.starts, end, side="left"))
        return Stretches(np.maximum(self.starts[first:last] - begin, 0), self.values[first:last], end - begin)


@dataclass
class ObservedRun:
    """What was seen of one run.

    Attributes:
        moments: for each rank, when it began or ended something.
        snapshots: for each rank, its vector at those moments that were asked for.
        finals: what each rank holds in the end: what it returned, else its argument.
        events: of all ranks.
        ended: whether all ranks returned.
        error: what a rank raised, in words.
    """

    moments: list[list[float]] = field(default_factory=list)
    snapshots: list[list[tuple[float, Stretches]]] = field(default_factory=list)
    finals: list[Any] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    ended: bool = True
    error: str = ""


Observe = Callable[[Callable, list[Arguments], Callable[[Arguments], Any], list[set[float]]], ObservedRun]
"""Runs a function on virtual ranks; it is given what finds a rank's vector, and at which moments to keep it."""


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
    numbers = sum(value.size for arguments in each if _is_vector(value := find(arguments)))
    if numbers > MOST_NUMBERS:
        raise CourseError(
            f"blocks() runs the function once more in this notebook, and {numbers:,} numbers are too many for that: "
            "run it with shorter vectors."
        )
    bits = _bits_for(each, find, size)
    marked = [
        _marked(arguments, find, partial(_own, rank=rank, size=size, bits=bits)) for rank, arguments in enumerate(each)
    ]
    numbered = [_marked(arguments, find, partial(_block_numbers, size=size)) for arguments in each]
    where = observe(function, numbered, find, [set() for _ in each])
    seen = observe(function, marked, find, _ends_of_rounds(where))
    if error := seen.error or where.error:
        raise CourseError(f"blocks() ran the function again with numbers of its own, and {error}.")
    return _SnapshotReader(seen, where, [find(arguments) for arguments in marked], size, bits).frames()


def _ends_of_rounds(seen: ObservedRun) -> list[set[float]]:
    """For each rank the last moment before each of its receives: what it holds then, it holds at a round's end."""
    wanted: list[set[float]] = [set() for _ in seen.moments]
    for _, got, _ in message_rounds(seen.events):
        before = bisect.bisect_left(seen.moments[got.rank], got.end)
        if before:
            wanted[got.rank].add(seen.moments[got.rank][before - 1])
    return wanted


# --- marking the arguments ----------------------------------------------------------------------------------------


def _is_vector(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.ndim > 0 and value.dtype.kind in "fiuc"


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
    """Bits for each rank in the type of the marked vectors."""
    types = {_type_of(value, size).name for arguments in each if _is_vector(value := find(arguments))}
    return min((_BITS[name] for name in types), default=52) // size


def _own(value: Any, rank: int, size: int, bits: int) -> Any:
    counts = tuple(int(other == rank) for other in range(size))
    if isinstance(value, list):
        return [Item(counts, position) for position in range(len(value))]
    if not _is_vector(value):
        return Item(counts)
    return np.full(value.shape, 2 ** (bits * rank), _type_of(value, size))


def _block_numbers(value: Any, size: int) -> Any:
    """Every element is the number of its block, from 1; lists need no numbers."""
    if not _is_vector(value):
        return value
    lengths = [len(part) for part in np.array_split(value.reshape(-1), size)]
    return np.repeat(np.arange(1, size + 1), lengths).astype(_type_of(value, size)).reshape(value.shape)


def _type_of(value: np.ndarray, size: int) -> np.dtype:
    enough = _BITS.get(value.dtype.name, 0) >= _LEAST_BITS * size
    return value.dtype if enough else np.dtype(np.float64)


# --- reading what was held ----------------------------------------------------------------------------------------


class _SnapshotReader:
    """Turns snapshots into frames."""

    def __init__(self, seen: ObservedRun, where: ObservedRun, marked: list, size: int, bits: int) -> None:
        self.seen, self.where, self.marked, self.size, self.bits = seen, where, marked, size, bits
        given = [_length(value) for value in marked]
        self.length = max(1, *given, *map(_length, seen.finals))
        self.keeps_length = max(given) == self.length
        held_as_items = any(isinstance(value, (list, Item)) for value in marked)
        self.columns = self.length if held_as_items else size
        each, rest = divmod(self.length, self.columns)  # as np.array_split cuts
        self.bounds = [column * each + min(column, rest) for column in range(self.columns + 1)]
        # A list of arrays, as `gather` gives: each array is then one item.
        self.whole = any(isinstance(v, (list, tuple)) and any(map(_is_vector, v)) for v in seen.finals)
        self.letters = False

    def frames(self) -> BlockFrames:
        rounds = message_rounds(self.seen.events)
        last = max((number for _, _, number in rounds), default=0)
        found = self._all_frames(rounds, last)
        self.letters = not last and not found.adds and self._blocks_move()
        return self._all_frames(rounds, last) if self.letters else found

    def _all_frames(self, rounds: Sequence[tuple[Event, Event, int]], last: int) -> BlockFrames:
        ends = self._ends_of_receives(rounds)
        names = ["start", *(f"round {k}" for k in range(1, last + 1))]
        if not last:
            names = ["before", "after"] if self.seen.ended else ["start", "stuck"]
        frames = []
        for number, name in enumerate(names):
            is_last = number == len(names) - 1
            held = [self._row(rank, *self._state(rank, number, ends, is_last)) for rank in range(self.size)]
            frames.append(Frame(name, tuple(held)))
        return BlockFrames(tuple(frames), self.seen.ended)

    def _blocks_move(self) -> bool:
        """Whether a block ends up where another was, or alone, so that it needs a letter to be known by."""
        if not self.keeps_length:
            return False
        for value, numbers in zip(self.seen.finals, self.where.finals, strict=True):
            if not (isinstance(value, np.ndarray) and isinstance(numbers, np.ndarray) and value.size):
                continue
            if value.size < self.length or any(
                number not in (0, column + 1) for column, number in enumerate(self._numbers_of_blocks(numbers))
            ):
                return True
        return False

    def _numbers_of_blocks(self, numbers: np.ndarray) -> list[int]:
        """For each place which block is there, from 1; 0 where that cannot be told."""
        found = []
        for part in np.array_split(np.ravel(numbers), self.columns):
            number = part[0] if len(part) and (part == part[0]).all() else 0
            found.append(int(number) if number in range(1, self.columns + 1) else 0)
        return found

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
            return self.seen.finals[rank], self.where.finals[rank]
        later = min((end for round_, end in ends[rank] if round_ > number), default=math.inf)
        taken = [stretches for at, stretches in self.seen.snapshots[rank] if at < later]
        if later == math.inf or not taken:
            return self._state(rank, number, ends, is_last=True)
        return taken[-1], None

    def _row(self, rank: int, value: Any, numbers: Any) -> tuple[Block, ...]:
        row: list[Block] = [()] * self.columns
        if isinstance(value, (np.ndarray, Stretches)):
            held = value if isinstance(value, Stretches) else Stretches.of(value)
            if self.whole:
                row[min(rank, self.columns - 1)] = self._block(held)
            elif held.length == self.length:
                which = self._which(numbers)
                for column in range(self.columns):
                    part = held.cut(self.bounds[column], self.bounds[column + 1])
                    row[column] = self._block(part, which[column])
            elif held.length:
                column = self._origin(held, numbers, rank)
                row[column] = self._block(held, column + 1)
        elif isinstance(value, Item):
            row[self._column_of(value, rank)] = (self._piece_of(value),)
        elif isinstance(value, (list, tuple)):
            for column, item in enumerate(value[: self.columns]):
                if isinstance(item, Item):
                    row[column] = (self._piece_of(item),)
                elif _is_vector(item):
                    row[column] = self._block(Stretches.of(item))
        return tuple(row)

    def _which(self, numbers: Any) -> list[int]:
        """Which block is in each place; before the call, each is in its own."""
        if isinstance(numbers, np.ndarray):
            return self._numbers_of_blocks(numbers)
        return list(range(1, self.columns + 1))

    def _block(self, held: Stretches, which: int = 0) -> Block:
        """The pieces of equal values in a block."""
        if not held.length:
            return ()
        ends = [*held.starts[1:].tolist(), held.length]
        return tuple(
            self._piece((end - begin) / held.length, value, which)
            for begin, end, value in zip(held.starts.tolist(), ends, held.values, strict=True)
        )

    def _piece(self, share: float, value: Any, which: int) -> BlockPiece:
        counts = self._counts(value)
        if counts is None:
            return BlockPiece(share, (0,) * self.size, is_known=False)
        letter = _LETTERS[which - 1] if self.letters and which and sum(counts) == 1 else ""
        return BlockPiece(share, counts, f"{counts.index(1)}{letter}" if letter else "")

    def _counts(self, number: Any) -> tuple[int, ...] | None:
        """For each rank, how many times its number is in this; None if this is no sum of the ranks' numbers."""
        if not (np.isfinite(number) and np.imag(number) == 0):
            return None
        real = np.real(number)
        if not 0 <= real < 2 ** (self.bits * self.size) or int(real) != real:
            return None
        return tuple(int(real) >> (self.bits * rank) & ((1 << self.bits) - 1) for rank in range(self.size))

    def _origin(self, held: Stretches, numbers: Any, rank: int) -> int:
        """The block that a shorter vector came from; the rank's own where that cannot be told."""
        times = sum(self._counts(held.values[0]) or ())
        if isinstance(numbers, np.ndarray) and numbers.size == held.length and times:
            found = float(np.real(numbers.flat[0])) / times
            if found in range(1, self.columns + 1):
                return int(found) - 1
        return min(rank, self.columns - 1)

    def _column_of(self, item: Item, rank: int) -> int:
        wanted = rank if item.position is None else item.position
        return wanted if wanted < self.columns else 0

    def _piece_of(self, item: Item) -> BlockPiece:
        sources = [rank for rank, times in enumerate(item.counts) if times]
        letter = "" if item.position is None or len(sources) > 1 else _LETTERS[item.position % len(_LETTERS)]
        return BlockPiece(1.0, item.counts, f"{sources[0]}{letter}" if letter else "")


def _length(value: Any) -> int:
    if isinstance(value, np.ndarray):
        return value.size
    return len(value) if isinstance(value, (list, tuple)) else 0
