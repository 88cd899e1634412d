"""What a message or a collective reads and writes: mpi4py's buffers, as arrays of one dimension."""

import functools
import operator
from collections.abc import Sequence
from itertools import accumulate
from types import NoneType
from typing import Any, NamedTuple

import numpy as np

from course_utils.errors import MessageTruncated
from course_utils.ranks.virtual import virtual_mpi
from course_utils.trace.events import BYTES

_name_of = functools.cache(str)


def numbers(buf: Any) -> np.ndarray:
    """What mpi4py takes as a buffer, as an array of one dimension on the same memory.

    Raises:
        BufferError: it is not contiguous.
        KeyError, TypeError, ValueError: it is no buffer, or its description makes no sense; as mpi4py has them.
        VirtualRanksCannot: real ranks may know what it means.
    """
    if type(buf) is not np.ndarray:
        return _numbers_of(buf)
    if buf.dtype.kind not in "biufc":
        raise KeyError(f"cannot map {buf.dtype.char!r} to MPI datatype")
    if buf.ndim == 1 and buf.flags.c_contiguous:
        return buf
    if buf.flags.c_contiguous:
        return buf.reshape(-1)
    if buf.flags.f_contiguous:
        return buf.reshape(-1, order="F")
    raise BufferError("dlpack: buffer is not contiguous")


def _numbers_of(buf: Any) -> np.ndarray:
    if isinstance(buf, (list, tuple)):
        described = _Described.of(buf)
        if not isinstance(described.count, (int, NoneType)):  # one for each rank, as `pieces` has them
            return described.array
        return described.part(described.count, described.start)
    if buf is None:
        return np.empty(0, np.uint8)
    if isinstance(buf, np.ndarray):
        return numbers(buf.view(np.ndarray))
    if hasattr(buf, "element_size"):
        return numbers(buf.detach().numpy())
    return np.frombuffer(buf, np.uint8)


class _Described(NamedTuple):
    """A buffer as mpi4py's lists describe it: [array, count, displacement, type], all but the first optional.

    Attributes:
        array: the memory, as numbers of the type.
        count, start: as given: a number, a list with one for each rank, or None.
        left: bytes at the end that make no whole number.
    """

    array: np.ndarray
    count: Any
    start: Any
    left: int

    @classmethod
    def of(cls, buf: Sequence) -> "_Described":
        memory, *more = buf
        if not 1 <= len(more) <= 3:
            raise ValueError("message: expecting 2 to 4 items")
        array = numbers(memory)
        kind = array.dtype
        if len(more) == 3 or more[-1] is None or virtual_mpi.is_datatype(more[-1]):
            last = more.pop()
            kind = kind if last is None else virtual_mpi.dtype_of(last)
        count, start = [*more, None, None][:2]
        if isinstance(count, tuple) and len(more) == 1:
            count, start = count
        left = array.nbytes % kind.itemsize
        if array.dtype != kind:
            array = array.view(np.uint8)[: array.nbytes - left].view(kind)
        return cls(array, _plain(count), _plain(start), left)

    def part(self, count: int | None, start: int | None) -> np.ndarray:
        """The numbers of a message."""
        start = start or 0
        if count is None:
            if self.left:
                size = self.array.itemsize
                raise ValueError(
                    f"message: cannot infer count, buffer length {self.array.nbytes + self.left} is not a multiple of "
                    f"datatype extent {size} (lb:0, ub:{size})"
                )
            return self.array[start:]
        if start + count > len(self.array):
            raise virtual_mpi.VirtualRanksCannot(
                f"Virtual ranks cannot go beyond the end of an array: {count} elements from {start} on, "
                f"of {len(self.array)}."
            )
        return self.array[start : start + count]


def _plain(value: Any) -> Any:
    """A count, or counts, as Python's own numbers."""
    if value is None:
        return None
    return operator.index(value) if hasattr(value, "__index__") and np.ndim(value) == 0 else [int(n) for n in value]


def kind_of(buf: Any) -> str:
    """The type of the numbers in a buffer, "float64"; BYTES where it is not an array, or sent as another type."""
    array = buf
    if isinstance(buf, (list, tuple)) and buf:
        array = buf[0]
        if any(virtual_mpi.is_sent_as_bytes(part) for part in buf[1:]):
            return BYTES
    return _name_of(array.dtype) if isinstance(array, np.ndarray) else BYTES


def copy_into(target: np.ndarray, data: np.ndarray) -> None:
    """Write what has come to the beginning of a place for it: bytes, whatever the types."""
    if not target.flags.writeable:
        raise BufferError("dlpack: buffer is not writable")
    if target.dtype == data.dtype:
        target[: len(data)] = data
    else:
        target.view(np.uint8)[: data.nbytes] = data.view(np.uint8)


def copy_received(name: str, buf: Any, data: bytes | np.ndarray, source: int) -> None:
    """Write what the call `name` has received from a rank into its place.

    Raises:
        MessageTruncated: it is longer than the place.
        ValueError: it is not a whole number of the place's elements.
    """
    target = numbers(buf)
    if isinstance(data, bytes):
        data = np.frombuffer(data, np.uint8)
    if data.nbytes > target.nbytes:
        raise MessageTruncated(
            f"{name}: the message from rank {source} has {data.nbytes} bytes, the array for it has room "
            f"for {target.nbytes}. Are shape and dtype the same on both sides?"
        )
    if target.dtype is not data.dtype and target.itemsize and data.nbytes % target.itemsize:
        raise ValueError(
            f"{name}: the message has {data.nbytes} bytes, not a whole number of {target.dtype} of {target.itemsize} "
            "bytes. Is the dtype the same on both sides?"
        )
    copy_into(target, data)


def size_of(array: np.ndarray, kind: str) -> tuple[int, str]:
    """How much there is, as collectives agree on it: 10 "float64"."""
    return (array.nbytes if kind == BYTES else len(array)), kind


def pieces(buf: Any, size: int, one_for_each: bool) -> tuple[np.ndarray, list[int], list[int]]:
    """A buffer with a piece for each rank: its numbers, and how many of them each rank has, and from where on.

    Args:
        one_for_each: whether a list may give a count for each rank, as in Scatterv; else one count holds for all.
    """
    if buf is None:
        return np.empty(0, np.uint8), [0] * size, [0] * size
    described = _Described.of(buf) if isinstance(buf, (list, tuple)) else _Described(numbers(buf), None, None, 0)
    array, count, start = described.array, described.count, described.start
    if count is None:
        entries = len(described.part(None, 0))
        if entries % size:
            raise ValueError(
                f"message: cannot infer count, number of entries {entries} is not a multiple of "
                f"required number of blocks {size}"
            )
        count = entries // size
    if isinstance(count, int):
        begin = start if isinstance(start, int) else 0
        counts, starts = [count] * size, [begin + count * rank for rank in range(size)]
    elif one_for_each:
        counts, starts = count, [0, *accumulate(count)][:-1] if start is None else start
    else:
        raise TypeError("an integer is required")
    for own, begin in zip(counts, starts, strict=True):
        described.part(own, begin)
    return array, counts, starts
