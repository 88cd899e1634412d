"""What a buffer holds by MPI's rules: numbers of which type, how many for each rank, and in which memory order.

What is sent and the room for it must have the same signature: the same types in the same number.

Source: MPI 4.1, section 3.3.1, and for each collective the section on it; mpi4py, "Communication of buffer-like
objects", for how its lists [array, counts, displacements, datatype] are read.
"""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from mpi4py import MPI

from course_utils.trace.events import BYTES, BufferLayout
from course_utils.trace.mpi.call_errors import BufferTooSmall

_NO_BYTES = "bBc"
"""Formats of buffers of bytes, which may be a part of anything."""


class Parts(NamedTuple):
    """What mpi4py's list holds: [array, counts, displacements, datatype], of which only the array must be there.

    Attributes:
        counts: an integer, or one for each rank; None where mpi4py counts by itself.
        starts: displacements, one for each rank; None where the parts lie one behind the other.
    """

    array: Any
    counts: Any = None
    starts: Any = None
    datatype: Any = None


def parts_of(buf: Any) -> Parts:
    """Read what mpi4py takes as a buffer."""
    if not isinstance(buf, (list, tuple)) or not buf:
        return Parts(buf)
    array, *rest = buf
    datatype = rest.pop() if rest and _names_types(rest[-1]) else None
    counts = rest[0] if rest else None
    starts = rest[1] if len(rest) > 1 else None
    if isinstance(counts, tuple):
        counts, starts = (*counts, None)[:2]
    return Parts(array, counts, starts, datatype)


def _names_types(part: Any) -> bool:
    """Whether a part is a datatype, or several, rather than counts or displacements."""
    first = part[0] if isinstance(part, (list, tuple)) and part else part
    return isinstance(first, (MPI.Datatype, str))


def unit_of(buf: Any) -> str:
    """The type of the numbers in a buffer, "float64"; BYTES where it holds bytes, or that is not known."""
    if type(buf) is np.ndarray:
        return _unit_of_dtype(buf.dtype)
    if buf is None or isinstance(buf, type(MPI.IN_PLACE)):
        return BYTES
    array, _, _, datatype = parts_of(buf)
    if isinstance(datatype, MPI.Datatype):
        return unit_of_datatype(datatype)
    return BYTES if datatype is not None else _unit_of_array(array)


def _unit_of_array(array: Any) -> str:
    if isinstance(array, np.ndarray):
        return _unit_of_dtype(array.dtype)
    if hasattr(array, "element_size"):  # torch's
        return str(array.dtype).removeprefix("torch.")
    try:
        code = memoryview(array).format
        return BYTES if code in _NO_BYTES else _unit_of_dtype(np.dtype(code))
    except (TypeError, ValueError):
        return BYTES


@functools.cache  # numpy puts the name of a type together each time
def _unit_of_dtype(dtype: np.dtype) -> str:
    return BYTES if dtype.kind in "VOSU" else str(dtype)


def unit_of_datatype(datatype: MPI.Datatype) -> str:
    """The type of which a datatype of MPI's is made, "float64"; BYTES where these are several, or bytes."""
    if datatype.is_predefined:
        return _unit_of_predefined(datatype.handle, datatype.typestr)
    return _unit_of_derived(datatype)


@functools.cache
def _unit_of_predefined(handle: int, code: str) -> str:
    return BYTES if handle in (MPI.BYTE.handle, MPI.PACKED.handle) else _unit_of_dtype(np.dtype(code))


def _unit_of_derived(datatype: MPI.Datatype) -> str:
    if datatype == MPI.DATATYPE_NULL:
        return BYTES
    *_, made_of = datatype.Get_contents()
    units = {unit_of_datatype(part) for part in made_of}
    for part in made_of:
        if not part.is_predefined:
            part.Free()  # `Get_contents` has made it
    return units.pop() if len(units) == 1 else BYTES


def bytes_of(array: Any) -> int | None:
    """Bytes of an array, of whatever kind; None where that is not known."""
    if isinstance(array, np.ndarray):
        return array.nbytes
    if hasattr(array, "element_size"):  # a tensor of torch is not a buffer of Python's, and mpi4py takes it
        return array.numel() * array.element_size()
    try:
        return None if isinstance(array, type(MPI.BOTTOM)) else memoryview(array).nbytes
    except TypeError:
        return None


def item_bytes(parts: Parts) -> int:
    """Bytes of one of the items that are counted; 0 where that is not known."""
    array, _, _, datatype = parts
    if isinstance(datatype, MPI.Datatype):
        return datatype.Get_size()
    if datatype is not None:
        return np.dtype(datatype).itemsize if isinstance(datatype, str) else 0
    if hasattr(array, "element_size"):
        return array.element_size()
    try:
        return array.itemsize if isinstance(array, np.ndarray) else memoryview(array).itemsize
    except TypeError:
        return 0


def _has_no_gaps(parts: Parts) -> bool:
    """Whether the datatype has no gaps, so that so many bytes are so many items."""
    return parts.datatype is None or (isinstance(parts.datatype, MPI.Datatype) and parts.datatype.is_predefined)


def message_bytes(buf: Any, pieces: int = 1) -> int | None:
    """Bytes of one message of a buffer, which holds so many `pieces`, one for each rank; None where not known.

    Raises:
        BufferTooSmall: the count reaches beyond the end of the array.
    """
    if type(buf) is np.ndarray:
        return None if buf.size % pieces else buf.nbytes // pieces
    parts = parts_of(buf)
    room, item = bytes_of(parts.array), item_bytes(parts)
    if parts.counts is None:
        if room is None or not _has_no_gaps(parts) or room % (pieces * item or 1):
            return None
        return room // pieces
    if not isinstance(parts.counts, (int, np.integer)):
        return None
    number = int(parts.counts)
    if room is not None and _has_no_gaps(parts) and pieces * number * item > room:
        asked = f"{number} for each of {pieces} ranks" if pieces > 1 else f"{number}"
        raise BufferTooSmall(f"the count is {asked}, and the array has room for {room // item}")
    return number * item


def bytes_for_each(buf: Any, size: int) -> tuple[int, ...] | None:
    """Bytes of each rank's piece of a buffer of a vector form, for `size` ranks; None where that is not known.

    Raises:
        BufferTooSmall: the counts reach beyond the end of the array.
    """
    parts = parts_of(buf)
    room, item, counts = bytes_of(parts.array), item_bytes(parts), parts.counts
    if not item or room is None:
        return None
    if counts is None:
        each, more = divmod(room // item, size)
        return tuple(item * (each + (rank < more)) for rank in range(size)) if _has_no_gaps(parts) else None
    counts = [int(counts)] * size if isinstance(counts, (int, np.integer)) else [int(count) for count in counts]
    if len(counts) != size:
        return None
    end = _end(counts, parts.starts)
    if item * end > room and _has_no_gaps(parts):
        raise BufferTooSmall(f"the counts reach as far as number {end}, and the array has {room // item}")
    return tuple(item * count for count in counts)


def _end(counts: Sequence[int], starts: Any) -> int:
    """How far parts reach, in items."""
    if starts is None:
        return sum(counts)
    if isinstance(starts, (int, np.integer)):
        starts = [rank * int(starts) for rank in range(len(counts))]
    return max((int(start) + count for start, count in zip(starts, counts, strict=False) if count), default=0)


def order_of(buf: Any, pieces: int = 1) -> tuple[tuple[int, ...], bool]:
    """The shape of an array whose memory order matters, and whether it lies there by columns; () for all others.

    Args:
        buf: what mpi4py takes as a buffer.
        pieces: into so many pieces the array is cut, one behind the other in memory. Where they may be meant to be
            columns, as of an array that was made to lie by columns, the order is as it should be.
    """
    array = buf if type(buf) is np.ndarray else _whole_array(buf)
    if array is None or array.ndim < 2:
        return (), False
    flags = array.flags
    by_rows, by_columns = flags.c_contiguous, flags.f_contiguous
    if by_rows == by_columns:
        return (), False
    if by_columns and pieces > 1:
        columns_are_meant = array.shape[-1] % pieces == 0 and array.base is None
        if array.shape[0] % pieces or columns_are_meant:
            return (), False
    return array.shape, by_columns


def _whole_array(buf: Any) -> np.ndarray | None:
    """The array in one of mpi4py's lists, where all of it is meant."""
    if not isinstance(buf, (list, tuple)) or not buf or not isinstance(buf[0], np.ndarray):
        return None
    return buf[0] if _has_no_gaps(parts_of(buf)) else None


@functools.lru_cache(10_000)
def _layout(unit: str, sizes: tuple[int, ...], shape: tuple[int, ...], by_columns: bool) -> BufferLayout:
    return BufferLayout(unit, sizes, shape, by_columns)


def message_layouts(buf: Any) -> tuple[BufferLayout, ...]:
    """How a message lies in memory, where that matters."""
    shape, by_columns = order_of(buf)
    return (_layout(unit_of(buf), (), shape, by_columns),) if shape else ()


def whole_layout(buf: Any) -> BufferLayout | None:
    """Of a buffer that goes to each rank, or to one, as a whole."""
    return None if _is_nothing(buf) else _layout(unit_of(buf), _known(message_bytes(buf)), *order_of(buf))


def cut_layout(buf: Any, size: int) -> BufferLayout | None:
    """Of a buffer with a piece of the same size for each of `size` ranks."""
    if _is_nothing(buf):
        return None
    return _layout(unit_of(buf), _known(message_bytes(buf, size)), *order_of(buf, size))


def vector_layout(buf: Any, order: Sequence[int]) -> BufferLayout | None:
    """Of a buffer with a piece for each rank, of sizes of their own.

    Args:
        buf: what mpi4py takes as a buffer.
        order: for each rank of the communicator its number in the run.
    """
    if _is_nothing(buf):
        return None
    sizes = bytes_for_each(buf, len(order)) or ()
    if sizes and any(first > then for first, then in zip(order, order[1:], strict=False)):
        sizes = tuple(size for _, size in sorted(zip(order, sizes, strict=True)))
    return _layout(unit_of(buf), sizes, *order_of(buf, len(order)))


def typed_layout(buf: Any, order: Sequence[int]) -> BufferLayout | None:
    """Of a buffer in which each rank's piece has a datatype of its own, as `Alltoallw` takes it."""
    array, counts, _, datatypes = parts_of(buf)
    if array is None or not isinstance(datatypes, (list, tuple)) or len(datatypes) != len(order):
        return None
    counts = [1] * len(order) if counts is None else [int(count) for count in counts]
    sizes = [count * datatype.Get_size() for count, datatype in zip(counts, datatypes, strict=False)]
    return _layout(BYTES, tuple(size for _, size in sorted(zip(order, sizes, strict=False))), (), False)


def _is_nothing(buf: Any) -> bool:
    array = buf[0] if isinstance(buf, (list, tuple)) and buf else buf
    return array is None or isinstance(array, type(MPI.IN_PLACE))


def _known(size: int | None) -> tuple[int, ...]:
    return () if size is None else (size,)
