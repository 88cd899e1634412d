"""Replies of contained ranks as data: JSON, and the raw bytes of arrays behind it. No pickle: nothing in it can run.

`pack` runs in the rank and writes values of known kinds, everything else by the name of its class. `unpack_reply`
runs in the grader, believes nothing, and makes the values anew. Both bound how much, how large and how deep. msgpack
or cbor2 could take the place of JSON, which is the smallest part: they know no arrays, tensors or events either, and
each value would have to be examined as it is now.
"""

import dataclasses
import json
import math
import struct
import sys
from collections import OrderedDict
from collections.abc import Callable, Mapping
from enum import EnumType
from typing import Any

import numpy as np

from course_utils.ranks.engine.reply import Raised, Reply
from course_utils.trace.events import Agreement, Event, is_well_formed, read_layouts

HEADER = struct.Struct("<QQ")  # before tasks and replies: the call's number, and how many bytes follow
ENDED = (1 << 64) - 1
"""In the place of a call's number: what follows is the rank's exit status."""
_JSON = struct.Struct("<Q")  # how many bytes of JSON; the arrays' own follow
LARGEST_TEXT = 64 << 20
"""Bytes of JSON in a reply: the trace of a hundred thousand messages has 10 MB."""
MOST_VALUES, DEEPEST = 500_000, 60
_SCALARS = frozenset(np.sctypeDict.values())
_NUMBERS = "biufcSU"
"""Kinds of NumPy's dtypes whose bytes mean the same everywhere; among the others are pointers."""


class Unreadable(ValueError):
    """The bytes are no reply."""


class Foreign:
    """Base of what stands for objects that are not let in."""


def foreign(name: str) -> Foreign:
    """An empty object whose class bears this name."""
    return type(name[:60], (Foreign,), {})()


# --- in the rank ------------------------------------------------------------------------------------------------------


class _Writer:
    """Turns values into what JSON can say: None, bool, int, float and str as they are, all else as [kind, …]."""

    def __init__(self) -> None:
        self.bytes: list[bytes] = []
        self._size = 0
        self._values = 0
        self._tensors: dict[int, int] = {}  # a network may hold a tensor twice, and must afterwards, too
        self._held: list[Any] = []

    def write(self, value: Any, depth: int = 0) -> Any:
        self._values += 1
        if self._values > MOST_VALUES or depth > DEEPEST:
            raise ValueError("the result holds too much, or is nested too deep")
        cls = type(value)
        if value is None or cls in (bool, str) or (cls is int and abs(value) < 1 << 63):
            return value
        if cls is float:
            return value if math.isfinite(value) else ["float", repr(value)]
        if cls is int:
            return ["int", hex(value)]
        if cls in _WRITE:
            return [cls.__name__, *_WRITE[cls](self, value, depth + 1)]
        if cls is np.ndarray:
            return self._array(value, depth)
        if cls in _SCALARS:
            kept = value.dtype.kind in _NUMBERS
            return ["scalar", *self._array(np.asarray(value), depth)[1:]] if kept else ["foreign", cls.__name__]
        return self._of_torch(value, depth) or self._of_course(value, depth) or ["foreign", cls.__name__]

    def each(self, values: Any, depth: int) -> list:
        return [self.write(value, depth) for value in values]

    def blob(self, data: bytes) -> list[int]:
        self.bytes.append(data)
        self._size += len(data)
        return [self._size - len(data), len(data)]

    def _array(self, array: np.ndarray, depth: int) -> list:
        shape = list(array.shape)
        if array.dtype.kind in _NUMBERS:
            return ["array", array.dtype.str, shape, *self.blob(array.tobytes())]
        if array.dtype.kind == "O":
            return ["objects", shape, self.each(array.reshape(-1), depth + 1)]
        return ["foreign", "ndarray"]

    def _of_torch(self, value: Any, depth: int) -> list | None:
        torch = sys.modules.get("torch")
        cls = type(value)
        if torch is None:
            return None
        if cls in (torch.Tensor, torch.nn.Parameter):
            return self._tensor(torch, value)
        if cls in (torch.dtype, torch.device):
            return [cls.__name__, str(value).removeprefix("torch.")]
        if cls is torch.Size:
            return ["Size", *value]
        if _module_class(cls.__module__, cls.__qualname__) is cls:
            return ["module", cls.__module__, cls.__qualname__, self.write(vars(value), depth + 1)]
        return None

    def _tensor(self, torch: Any, value: Any) -> list:
        if id(value) in self._tensors:
            return ["same", self._tensors[id(value)]]
        plain = value.detach().cpu()
        name = str(plain.dtype).removeprefix("torch.")
        if plain.layout != torch.strided or plain.is_quantized:
            return ["foreign", type(value).__name__]
        numbers = (plain.contiguous().view(torch.int16) if name == "bfloat16" else plain).numpy()
        if numbers.dtype.kind not in _NUMBERS:
            return ["foreign", type(value).__name__]
        self._tensors[id(value)] = len(self._tensors)
        self._held.append(value)
        parameter = type(value) is torch.nn.Parameter
        return ["tensor", name, parameter, bool(value.requires_grad), *self._array(numbers, 0)[1:]]

    def _of_course(self, value: Any, depth: int) -> list | None:
        """Classes of the course that hold data, with their names and their fields; members of its enumerations."""
        cls = type(value)
        if isinstance(cls, EnumType):
            return ["member", cls.__module__, cls.__qualname__, value.name] if _is_of_course(cls) else None
        fields = _fields(cls)
        if fields is None or not _is_of_course(cls):
            return None
        held = [(name, getattr(value, name)) for name in fields if hasattr(value, name)]
        attributes = [[name, self.write(value, depth + 1)] for name, value in held]
        return ["course", cls.__module__, cls.__qualname__, *attributes]


_WRITE: dict[type, Callable[[_Writer, Any, int], list]] = {
    complex: lambda writer, value, depth: writer.each([value.real, value.imag], depth),
    bytes: lambda writer, value, depth: writer.blob(value),
    bytearray: lambda writer, value, depth: writer.blob(bytes(value)),
    slice: lambda writer, value, depth: writer.each([value.start, value.stop, value.step], depth),
    range: lambda writer, value, depth: writer.each([value.start, value.stop, value.step], depth),
    list: lambda writer, value, depth: writer.each(value, depth),
    tuple: lambda writer, value, depth: writer.each(value, depth),
    set: lambda writer, value, depth: writer.each(value, depth),
    frozenset: lambda writer, value, depth: writer.each(value, depth),
    dict: lambda writer, value, depth: [writer.each(pair, depth) for pair in value.items()],
    OrderedDict: lambda writer, value, depth: [writer.each(pair, depth) for pair in value.items()],
}


def pack(reply: Reply) -> bytes:
    """A reply as bytes.

    Raises:
        ValueError: it is too large, or nested too deep.
    """
    writer = _Writer()
    content = {field.name: getattr(reply, field.name) for field in dataclasses.fields(Reply)}
    content["error"] = [reply.error.type, reply.error.message, reply.error.line] if reply.error else None
    content["events"] = [[*event] for event in reply.events]
    for name in ("value", "arguments"):
        content[name] = writer.write(content[name])
    text = json.dumps(content).encode()
    if len(text) > LARGEST_TEXT:
        raise ValueError("the result holds too much")
    return b"".join([_JSON.pack(len(text)), text, *writer.bytes])


# --- in the grader ----------------------------------------------------------------------------------------------------


class _Reader:
    """Makes the values anew. What is malformed raises something, which `unpack_reply` catches."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._values = 0
        self._tensors: list[Any] = []

    def read(self, data: Any, depth: int = 0) -> Any:
        self._values += 1
        if self._values > MOST_VALUES or depth > DEEPEST + 1:
            raise Unreadable("too much")
        if data is None or type(data) in (bool, int, float, str):
            return data
        kind, *parts = data
        return _READ[kind](self, parts, depth + 1)

    def each(self, items: list, depth: int) -> list:
        return [self.read(item, depth) for item in items]

    def blob(self, begin: int, size: int) -> bytes:
        if not 0 <= begin <= begin + size <= len(self._data):
            raise Unreadable("bytes that are not there")
        return bytes(self._data[begin : begin + size])

    def array(self, dtype: str, shape: list[int], begin: int, size: int) -> np.ndarray:
        kind = np.dtype(_text(dtype))
        if kind.kind not in _NUMBERS:
            raise Unreadable("an array of something else than numbers")
        if kind.itemsize * math.prod(shape) != size or any(side < 0 for side in shape):
            raise Unreadable("an array of another size")
        return np.frombuffer(self.blob(begin, size), kind).reshape(shape).copy() if size else np.empty(shape, kind)

    def objects(self, shape: list[int], items: list, depth: int) -> np.ndarray:
        values = self.each(items, depth)
        made = np.empty(len(values), object)
        for index, value in enumerate(values):
            made[index] = value
        return made.reshape(shape)

    def tensor(self, name: str, parameter: bool, requires_grad: bool, *array: Any) -> Any:
        import torch

        made = torch.from_numpy(self.array(*array))
        if name == "bfloat16":
            made = made.view(torch.bfloat16)
        if str(made.dtype) != f"torch.{name}":
            raise Unreadable("a tensor of another dtype")
        grows = bool(requires_grad) and made.dtype.is_floating_point | made.dtype.is_complex
        made = torch.nn.Parameter(made, grows) if parameter else made.requires_grad_(grows)
        self._tensors.append(made)
        return made

    def same(self, number: int) -> Any:
        return self._tensors[number]

    def module(self, module: str, name: str, state: Any, depth: int) -> Any:
        cls: Any = _module_class(_text(module), _text(name))
        values = self.read(state, depth)
        if cls is None or type(values) is not dict or not all(type(key) is str for key in values):
            raise Unreadable("no module of torch")
        made = cls.__new__(cls)
        vars(made).update(values)
        return made

    def member(self, module: str, name: str, member: str) -> Any:
        cls = _course_class(_text(module), _text(name))
        return cls[_text(member)] if isinstance(cls, EnumType) else foreign(_text(name))

    def course(self, module: str, name: str, attributes: list, depth: int) -> Any:
        cls: Any = _course_class(_text(module), _text(name))
        fields = _fields(cls) if cls else None
        if fields is None:
            return foreign(_text(name))
        values = {field: self.read(value, depth) for field, value in attributes}
        if not set(values) <= set(fields):
            raise Unreadable("fields that are not there")
        if issubclass(cls, tuple):
            return tuple.__new__(cls, [values[field] for field in fields])
        made: Any = object.__new__(cls)
        for field, value in values.items():
            object.__setattr__(made, field, value)
        return made


def _text(data: Any) -> str:
    if type(data) is not str:
        raise Unreadable("no text")
    return data


def _of_torch(name: str) -> Any:
    import torch

    found = getattr(torch, _text(name), None)
    if type(found) is not torch.dtype:
        raise Unreadable("no dtype of torch")
    return found


def _device(name: str) -> Any:
    import torch

    return torch.device(_text(name)[:20])


def _size(sides: list) -> Any:
    import torch

    return torch.Size(sides)


_READ: Mapping[str, Callable[[_Reader, list, int], Any]] = {
    "float": lambda reader, parts, depth: float(parts[0]),
    "int": lambda reader, parts, depth: int(_text(parts[0])[:4000], 16),
    "complex": lambda reader, parts, depth: complex(*reader.each(parts, depth)),
    "bytes": lambda reader, parts, depth: reader.blob(*parts),
    "bytearray": lambda reader, parts, depth: bytearray(reader.blob(*parts)),
    "slice": lambda reader, parts, depth: slice(*reader.each(parts, depth)),
    "range": lambda reader, parts, depth: range(*parts),
    "list": lambda reader, parts, depth: reader.each(parts, depth),
    "tuple": lambda reader, parts, depth: tuple(reader.each(parts, depth)),
    "set": lambda reader, parts, depth: set(reader.each(parts, depth)),
    "frozenset": lambda reader, parts, depth: frozenset(reader.each(parts, depth)),
    "dict": lambda reader, parts, depth: dict(reader.each(pair, depth) for pair in parts),
    "OrderedDict": lambda reader, parts, depth: OrderedDict(reader.each(pair, depth) for pair in parts),
    "array": lambda reader, parts, depth: reader.array(*parts),
    "scalar": lambda reader, parts, depth: reader.array(*parts)[()],
    "objects": lambda reader, parts, depth: reader.objects(parts[0], parts[1], depth),
    "tensor": lambda reader, parts, depth: reader.tensor(*parts),
    "same": lambda reader, parts, depth: reader.same(*parts),
    "dtype": lambda reader, parts, depth: _of_torch(*parts),
    "device": lambda reader, parts, depth: _device(*parts),
    "Size": lambda reader, parts, depth: _size(parts),
    "module": lambda reader, parts, depth: reader.module(parts[0], parts[1], parts[2], depth),
    "course": lambda reader, parts, depth: reader.course(parts[0], parts[1], parts[2:], depth),
    "member": lambda reader, parts, depth: reader.member(*parts),
    "foreign": lambda reader, parts, depth: foreign(_text(*parts)),
}


def unpack_reply(rank: int, data: bytes) -> Reply:
    """The reply of a rank; where the bytes are none, a reply that says so."""
    try:
        return _reply(rank, data)
    except Exception as error:  # whatever malformed data may lead to
        return Reply(rank, "raised", error=Raised(type(error).__name__, "its reply cannot be read"))


def _reply(rank: int, data: bytes) -> Reply:
    [size] = _JSON.unpack_from(data)
    if size > LARGEST_TEXT:
        raise Unreadable("too much")
    begin = _JSON.size
    content = json.loads(data[begin : begin + size])
    reader = _Reader(memoryview(data)[begin + size :])
    reply = Reply(
        rank,
        content["kind"],
        value=reader.read(content["value"]),
        arguments=reader.read(content["arguments"]),
        error=Raised(*map(_text, content["error"])) if content["error"] else None,
        waiting=content["waiting"],
        events=[_event(rank, *fields) for fields in content["events"]],
        output=_text(content["output"]),
        never_waited_for=tuple(map(_text, content["never_waited_for"])),
        notes=tuple(map(_text, content["notes"])),
        uncounted=tuple(map(_text, content["uncounted"])),
        bypassed=tuple(map(_text, content["bypassed"])),
        began=float(content["began"]),
        ended=float(content["ended"]),
    )
    if reply.kind not in ("returned", "raised", "interrupted", "unusable") or type(reply.arguments) is not tuple:
        raise Unreadable("a malformed reply")
    if type(reply.waiting) not in (str, type(None)):
        raise Unreadable("a malformed reply")
    return reply


def _event(rank: int, *fields: Any) -> Event:
    """An event of this rank, each of whose fields is what `Event` says."""
    event = Event(*fields)
    if event.agreement is not None:
        event = event._replace(agreement=Agreement(*event.agreement))
    event = event._replace(layouts=read_layouts(event.layouts))
    if not is_well_formed(event) or (event.agreement and not is_well_formed(event.agreement)):
        raise Unreadable("a malformed event")
    if event.rank != rank or event.bytes < 0:
        raise Unreadable("an event of another rank, or of no size")
    return event


# --- classes that both sides know -------------------------------------------------------------------------------------


def _module_class(module: str, name: str) -> type | None:
    """A class of torch's networks."""
    torch = sys.modules.get("torch")
    if torch is None or not module.startswith("torch.nn.modules."):
        return None
    cls = getattr(sys.modules.get(module), name, None)
    return cls if isinstance(cls, type) and issubclass(cls, torch.nn.Module) else None


def _is_of_course(cls: type) -> bool:
    return cls.__module__.startswith("course_utils.")


def _course_class(module: str, name: str) -> type | None:
    """A class of the course's, where its module is imported here."""
    if not module.startswith("course_utils."):
        return None
    cls = getattr(sys.modules.get(module), name, None)
    return cls if isinstance(cls, type) and cls.__module__ == module else None


def _fields(cls: type) -> tuple[str, ...] | None:
    """The fields of a data class or a named tuple; None for every other class."""
    if dataclasses.is_dataclass(cls):
        return tuple(field.name for field in dataclasses.fields(cls))
    return getattr(cls, "_fields", None) if issubclass(cls, tuple) else None
