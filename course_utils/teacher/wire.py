"""How a rank's reply reaches the grader: as data. Nothing that a submission made is called in the grader's process.

Pickle would call whatever the sender names. Here the reader knows the few names that it will call; an object of any
other class arrives as an empty one of the same name, which is all that a verdict says of it.
"""

import io
import pickle
import struct
import sys
from typing import Any

import numpy as np

from course_utils.ranks.engine.reply import Raised, Reply
from course_utils.trace.events import Event

HEADER = struct.Struct("<QQ")  # before tasks and replies: the call's number, and how many bytes follow
_NAMES = {
    "builtins": {"complex", "set", "frozenset", "slice", "range", "bytearray"},
    "collections": {"OrderedDict"},
    "_codecs": {"encode"},
    "numpy": {"ndarray", "dtype"},
    "numpy._core.multiarray": {"_reconstruct", "scalar"},
    "numpy._core.numeric": {"_frombuffer"},
    "course_utils.ranks.engine.reply": {"Reply", "Raised"},
    "course_utils.trace.events": {"Event"},
    "course_utils.teacher.wire": {"foreign", "tensor"},
}
_SCALARS = frozenset(np.sctypeDict.values())


class Inert:
    """Base of what stands for objects that are not let in."""

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def __setstate__(self, _: Any) -> None: ...


def foreign(name: str) -> Inert:
    """An empty object whose class bears this name."""
    return type(str(name)[:60], (Inert,), {})()


def tensor(numbers: np.ndarray, dtype: str, parameter: bool, requires_grad: bool) -> Any:
    """A tensor, made anew from its numbers."""
    import torch

    made = torch.from_numpy(numbers.copy()).to(getattr(torch, dtype))
    return torch.nn.Parameter(made, requires_grad) if parameter else made


def _allowed(module: str, name: str) -> bool:
    if name in _NAMES.get(module, ()):
        return True
    torch = sys.modules.get("torch")
    if torch is None:
        return False
    if module == "torch":
        return name in ("Size", "device") or isinstance(getattr(torch, name, None), torch.dtype)
    if module.startswith("torch.nn.modules."):
        cls = getattr(sys.modules.get(module), name, None)
        return isinstance(cls, type) and issubclass(cls, torch.nn.Module)
    return False


class _Writer(pickle.Pickler):
    def reducer_override(self, thing: Any) -> Any:
        cls = type(thing)
        torch = sys.modules.get("torch")
        if torch and cls in (torch.Tensor, torch.nn.Parameter):
            plain = thing.detach().cpu()
            name = str(plain.dtype).removeprefix("torch.")
            numbers = (plain.float() if name == "bfloat16" else plain).numpy()
            return tensor, (numbers, name, cls is torch.nn.Parameter, thing.requires_grad)
        itself = isinstance(thing, type) or cls.__name__ in ("function", "builtin_function_or_method")
        named = thing if itself else cls
        if issubclass(cls, np.dtype) or cls in _SCALARS or (torch and cls is torch.dtype):
            return NotImplemented
        if _allowed(getattr(named, "__module__", None) or "builtins", getattr(named, "__qualname__", "")):
            return NotImplemented
        return foreign, (cls.__name__,)


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if _allowed(module, name):
            return super().find_class(module, name)
        return type(name[:60], (Inert,), {})


def pack(thing: Any) -> bytes:
    """Runs in the rank: a reply as bytes, with a name in the place of whatever the grader would not let in."""
    buffer = io.BytesIO()
    _Writer(buffer, protocol=4).dump(thing)
    return buffer.getvalue()


def unpack_reply(rank: int, data: bytes) -> tuple[Reply, list[str]]:
    """Runs in the grader: (reply, offences), whatever the bytes are."""
    try:
        reply, offences = _Reader(io.BytesIO(data)).load()
        if type(reply) is not Reply or not _sound(rank, reply):
            raise ValueError("a malformed reply")
    except Exception as error:
        return Reply(rank, "raised", error=Raised(type(error).__name__, "its reply cannot be read")), []
    return reply, [text[:300] for text in offences if type(text) is str] if type(offences) is list else []


def _sound(rank: int, reply: Reply) -> bool:
    error = reply.error
    return (
        type(reply.rank) is int
        and reply.rank == rank
        and reply.kind in ("returned", "raised", "interrupted")
        and (error is None or (type(error) is Raised and all(type(getattr(error, x)) is str for x in Raised.__slots__)))
        and type(reply.arguments) is tuple
        and type(reply.output) is str
        and type(reply.events) is list
        and all(type(event) is Event and event.rank == rank for event in reply.events)
        and all(type(seconds) is float for seconds in (reply.began, reply.ended))
        and (reply.waiting is None or type(reply.waiting) is str)
    )
