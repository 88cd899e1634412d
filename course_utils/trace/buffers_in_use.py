"""Buffers of operations under way, which nobody may change, nor use for anything else, until they are complete.

Source: MPI 4.1, section 3.7.2.
"""

import zlib
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from course_utils.trace.recorder import SourceLine, recorder

_SMALL = 65536
"""Bytes of an array that is compared before and after it was sent."""


class _Request(Protocol):
    text: str
    source_line: SourceLine


def contiguous_array(buf: Any) -> np.ndarray | None:
    """The contiguous array of what mpi4py takes as a buffer; None for everything else."""
    array = buf[0] if isinstance(buf, (list, tuple)) and buf else buf
    return array if isinstance(array, np.ndarray) and array.flags.c_contiguous and array.size else None


def note_overlapping_buffers(request: _Request, read: np.ndarray | None, written: np.ndarray | None) -> None:
    """Note that an operation sends from, or receives into, an array that another one still writes to."""
    for does, array in (("sends from", read), ("writes to", written)):
        for other in recorder.open.values() if array is not None else ():
            other_array = getattr(other, "writes", None)
            if other is not request and other_array is not None and np.may_share_memory(other_array, array):
                writer = f"{other.text}{other.source_line}"
                text = f"{request.text}{request.source_line} {does} an array to which {writer} still writes"
                recorder.notes.append(text)


def watch_for_changes(array: np.ndarray, request: _Request, record: Callable) -> Callable:
    """Something that notes, when the request is complete, that its array is another than it was, and then records."""
    if array.nbytes > _SMALL:
        return record
    before = zlib.crc32(array.data)

    def on_completion(end: float, *status: Any) -> None:
        if zlib.crc32(array.data) != before:
            recorder.notes.append(f"the array of {request.text}{request.source_line} is changed before the wait for it")
        record(end, *status)

    return on_completion
