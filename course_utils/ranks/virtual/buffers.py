"""What a message or a collective reads and writes: mpi4py's buffers, as arrays of one dimension."""

import functools
import operator
from itertools import accumulate
from typing import Any

import numpy as np

from course_utils.errors import MessageTruncated
from course_utils.trace.events import BYTES

_name_of = functools.cache(str)


def numbers(buf: Any) -> np.ndarray:
    """What mpi4py takes as a buffer, as an array of one dimension on the same memory.

    Raises:
        ValueError: it is not contiguous, or no buffer.
    """
    if type(buf) is not np.ndarray:
        return _numbers_of(buf)
    if buf.ndim == 1 and buf.flags.c_contiguous:
        return buf
    if buf.flags.c_contiguous:
        return buf.reshape(-1)
    if buf.flags.f_contiguous:
        return buf.reshape(-1, order="F")
    raise ValueError("ndarray is not contiguous")


def _numbers_of(buf: Any) -> np.ndarray:
    if isinstance(buf, (list, tuple)):
        if buf[0] is None:
            return np.empty(0, np.uint8)
        array = numbers(buf[0])
        count = next((part for part in buf[1:] if isinstance(part, int) and not isinstance(part, bool)), None)
        return array if count is None else array[:count]
    if buf is None:
        return np.empty(0, np.uint8)
    if isinstance(buf, np.ndarray):
        return numbers(buf.view(np.ndarray))
    if hasattr(buf, "element_size"):
        return numbers(buf.detach().numpy())
    return np.frombuffer(buf, np.uint8)


def kind_of(buf: Any) -> str:
    """The type of the numbers in a buffer, "float64"; BYTES where it is not an array."""
    array = buf[0] if isinstance(buf, (list, tuple)) else buf
    return _name_of(array.dtype) if isinstance(array, np.ndarray) else BYTES


def copy_into(target: np.ndarray, data: np.ndarray) -> None:
    """Write what has come to the beginning of a place for it: bytes, whatever the types."""
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


def cuts(buf: Any, size: int) -> tuple[list[int], list[int]]:
    """How many numbers each rank has in a buffer, and from where on: as [array, counts, …] says, else as many each."""
    if isinstance(buf, (list, tuple)):
        for part in buf[1:]:
            if isinstance(part, (tuple, list)) and part and isinstance(part[0], (tuple, list, np.ndarray)):
                counts, starts = [int(count) for count in part[0]], part[1]
                return counts, [int(s) for s in starts] if starts is not None else [0, *accumulate(counts)][:-1]
            if isinstance(part, (list, tuple, np.ndarray)):
                counts = [int(count) for count in part]
                starts = next((p for p in buf[2:] if p is not part and isinstance(p, (list, tuple, np.ndarray))), None)
                return counts, [int(s) for s in starts] if starts is not None else [0, *accumulate(counts)][:-1]
    each = operator.floordiv(len(numbers(buf)), size)
    return [each] * size, [each * rank for rank in range(size)]
