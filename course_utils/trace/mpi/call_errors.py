"""Errors of MPI and of mpi4py in words: of the call that the learner wrote, and what it means.

A traced call is made of others: an `Allreduce` of an `Iallreduce` that is polled. Who reads an error did not write
these.
"""

import functools
import re
import traceback
from collections.abc import Callable
from typing import Any

from mpi4py import MPI

_CALL = "learners_call"
"""The attribute of an error in which its call is kept."""


class NotABuffer(TypeError):
    """Something that is no array was given to a call that sends or receives arrays."""

    def __init__(self, thing: Any) -> None:
        self.thing = thing
        super().__init__(f"{type(thing).__name__} is no array")


class BufferTooSmall(ValueError):
    """Counts that reach beyond the end of an array: MPI would read or overwrite what lies behind it."""


def note_call(error: BaseException, call: str) -> None:
    """Keep in an error which call it has left; the last to do so is the call that the learner made."""
    setattr(error, _CALL, call)


def name_errors(name: str, call: Callable) -> Callable:
    """The method, whose errors know its name."""

    @functools.wraps(call)
    def named(*args: Any, **kwargs: Any) -> Any:
        try:
            return call(*args, **kwargs)
        except Exception as error:
            note_call(error, name)
            raise

    return named


def error_text(error: BaseException) -> str | None:
    """An error of MPI's, or of mpi4py's, in words that begin with the call; None for other errors."""
    call = getattr(error, _CALL, "") or _call_in_traceback(error)
    if isinstance(error, NotABuffer):
        return _not_a_buffer_text(call, error.thing)
    if isinstance(error, MPI.Exception):
        return _mpi_text(call, error)
    if not call or not _is_of_mpi4py(error):
        return None
    return f"{call}: {_mpi4py_text(call, str(error.args[0]) if error.args else str(error))}"


def _frames_of_mpi4py(error: BaseException) -> list[str]:
    names = [frame.f_code.co_name for frame, _ in traceback.walk_tb(error.__traceback__)]
    return [name for name in names if name.startswith("mpi4py.MPI.")]


def _is_of_mpi4py(error: BaseException) -> bool:
    *_, (last, _) = traceback.walk_tb(error.__traceback__)
    return isinstance(error, BufferTooSmall) or last.f_code.co_name.startswith("mpi4py.MPI.")


def _call_in_traceback(error: BaseException) -> str:
    """The outermost function of mpi4py's that an error came through: "bcast"."""
    names = _frames_of_mpi4py(error)
    return names[0].rpartition(".")[2] if names else ""


def _not_a_buffer_text(call: str, thing: Any) -> str:
    given = "None" if thing is None else _article(type(thing).__name__)
    small = f"{_small(call)}, with a small letter, takes any Python object"
    return f"{call}: it needs an array, and was given {given}. {small}"


def _small(call: str) -> str:
    """The call for Python objects that goes with one for arrays."""
    return f"{call[:1].lower()}{call[1:]}"


def _article(name: str) -> str:
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


# --- MPI's own --------------------------------------------------------------------------------------------------------

_MEANINGS = {
    MPI.ERR_COMM: " (it was freed, or this rank is not in it)",
    MPI.ERR_RMA_SYNC: " (it is locked already, or not open)",
    MPI.ERR_TRUNCATE: " (more was sent than the receiver has room for)",
    MPI.ERR_OTHER: " (it may be that the ranks do not all give the same amount of data)",
    MPI.ERR_TAG: " (a tag is 0 or more)",
}
"""What the errors of MPI mean whose own words say little."""


def _mpi_text(call: str, error: MPI.Exception) -> str:
    """MPI's words on an error: the call that failed and the innermost reason, of MPICH's stack of them."""
    message = str(error)
    in_stack = re.search(r"MPI_(\w+?)(_c)?\(", message)
    call = call or (in_stack[1] if in_stack else "")
    reason = (message.strip().splitlines()[-1].partition(": ")[2] or message).strip()
    if error.Get_error_class() == MPI.ERR_BUFFER and "aliased" in reason:
        reason = "the send and the receive buffer are the same array. Use MPI.IN_PLACE, or a second array"
    elif error.Get_error_class() == MPI.ERR_ROOT and (root := re.search(r"value given was (-?\d+)", reason)):
        reason = f"root={root[1]} is not a rank of this communicator"
    elif sizes := re.search(r"(\d+) and tag .*truncated; (\d+) bytes received but buffer size is (\d+)", reason):
        room, size = sorted(map(int, sizes.groups()[1:]))  # MPICH 5.0 has them the wrong way round
        reason = (
            f"the message from rank {sizes[1]} has {size} bytes, the array for it has room for {room}. "
            "Are shape and dtype the same on both sides?"
        )
    else:
        reason += _MEANINGS.get(error.Get_error_class(), "")
    return f"{call}: {reason}" if call else reason


# --- mpi4py's ---------------------------------------------------------------------------------------------------------

_IN_OTHER_WORDS = (
    (
        r"cannot infer count, number of entries (\d+) is not a multiple of required number of blocks (\d+)",
        r"an array of \1 numbers cannot be cut into \2 equal parts, one for each rank. {call}v takes unequal parts",
    ),
    (
        r"expecting buffer or list/tuple|.*bytes-like object is required.*",
        "it needs an array, and was given something else. {small}, with a small letter, takes any Python object",
    ),
    (
        r".*not contiguous.*",
        "the array is not contiguous in memory, as a column is not. "
        "Send np.ascontiguousarray(array), or receive into a new array and copy",
    ),
    (r".*not writ(e)?able.*", "the array cannot be written to"),
    (
        r".*cannot map 'O' to MPI datatype.*",
        "the array holds Python objects (dtype=object), for which MPI has no datatype. Give it a dtype of numbers",
    ),
)
"""What mpi4py says of buffers, as a regular expression, and in words for who has not written it."""


def _mpi4py_text(call: str, text: str) -> str:
    text = text.removeprefix("message: ")
    for pattern, words in _IN_OTHER_WORDS:
        if re.fullmatch(pattern, text):
            return re.sub(pattern, words, text, count=1).format(call=call, small=_small(call))
    return text
