"""What stands in for `mpi4py.MPI` while virtual ranks run, and what virtual ranks cannot do, said in a line."""

import _thread
import builtins
import contextlib
import os
import subprocess
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from course_utils.errors import CourseError, nearest
from course_utils.trace.mpi.several_requests import UNDEFINED
from course_utils.trace.recorder import is_learner_code

ANY_SOURCE, ANY_TAG, PROC_NULL = -2, -1, -1
"""As MPICH has them."""


class VirtualRanksCannot(CourseError):
    """A function wants what virtual ranks cannot do."""


class _KnownInPart(type):
    """The type of `KnownInPart`, for what is asked of the class itself: `MPI.Datatype.Create_struct`."""

    def __getattr__(cls, name: str) -> Any:
        raise cls.unknown(name)  # type: ignore[attr-defined]


class KnownInPart(metaclass=_KnownInPart):
    """An object of mpi4py of which virtual ranks know a part.

    What real ranks may know besides is rejected by name: all calls of mpi4py that begin with a capital letter, and the
    names in `left_out`.
    """

    called = ""
    left_out: frozenset[str] = frozenset()

    def __getattr__(self, name: str) -> Any:
        raise self.unknown(name)

    @classmethod
    def unknown(cls, name: str) -> Exception:
        """The error for a name that this object does not have: VirtualRanksCannot where real ranks may know it."""
        if name[0].isupper() or name in cls.left_out:
            return VirtualRanksCannot(f"Virtual ranks have no {cls.called}.{name}.")
        known = [other for other in dir(cls) if not other.startswith("_")]
        return AttributeError(f"{cls.called} has no attribute {name!r}.{nearest(name, known)}", name=name)


class MPIException(RuntimeError):
    """An error of MPI's."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("Get_") or name.startswith("error_"):
            raise VirtualRanksCannot(f"Virtual ranks have no MPI.Exception.{name}.")
        raise AttributeError(name)


MPIException.__name__ = "Exception"


def reject_backend(backend: str | None) -> None:
    """Reject a call that asks for a group of torch.distributed.

    Raises:
        CourseError: it does.
    """
    if backend is not None:
        raise CourseError(f"Virtual ranks have no group of torch.distributed ({backend}).")


class InPlace:
    """MPI.IN_PLACE."""


class Op(KnownInPart):
    """An operation of MPI on NumPy arrays; of two Python objects, on themselves."""

    called = "MPI.Op"
    left_out = frozenset(("f2py", "fromhandle", "fromint", "handle", "py2f", "toint"))

    def __init__(self, name: str, function: Callable, on_objects: Callable | None = None, commute: bool = True) -> None:
        self.name, self._function, self._on_objects = name, function, on_objects or function
        self._commute = commute
        self.is_predefined = on_objects is None or name in _OPERATIONS
        self.is_commutative = commute

    @classmethod
    def Create(cls, function: Callable, commute: bool = False) -> "Op":
        """An operation of one's own: function(incoming, inout, datatype), on buffers."""

        def combine(first: np.ndarray, second: np.ndarray) -> np.ndarray:
            result = np.array(second)
            function(np.array(first).data, result.data, None)
            return result

        return cls("another operation", combine, lambda first, second: function(first, second, None), commute)

    def Is_commutative(self) -> bool:
        return self._commute

    def Free(self) -> None:
        """Nothing to free."""

    free = Free

    def check(self, name: str, kind: np.dtype) -> None:
        """Reject numbers that MPI does not combine so.

        Raises:
            MPIException: it does not.
        """
        if kind.kind not in _KINDS.get(self.name, kind.kind):
            raise MPIException(f"I{name.lower()}: MPI_Op operation not defined for this datatype")

    def Reduce_local(self, inbuf: Any, inoutbuf: Any) -> None:
        if len(inbuf) != len(inoutbuf):
            raise ValueError("Reduce_local: both buffers need the same length")
        inoutbuf[...] = self.combine(inbuf, inoutbuf)

    def combine(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Element by element, in the dtype of both."""
        return np.asarray(self._function(first, second)).astype(second.dtype, copy=False)

    def __call__(self, first: Any, second: Any) -> Any:
        return self._on_objects(first, second)


class Datatype(KnownInPart):
    """A type of numbers."""

    called = "MPI.Datatype"
    left_out = frozenset(
        ("combiner", "contents", "decode", "envelope", "f2py", "fromhandle", "fromint", "handle", "is_named", "py2f")
        + ("toint", "true_extent", "true_lb", "true_ub", "typestr")
    )

    def __init__(self, name: str, kind: Any, is_predefined: bool = True) -> None:
        self.name, self.dtype, self.is_predefined = name, np.dtype(kind), is_predefined
        self.size = self.extent = self.ub = self.dtype.itemsize
        self.lb, self.typechar = 0, self.dtype.char

    @classmethod
    def fromcode(cls, code: str) -> "Datatype":
        """The type of a letter: "d"."""
        kind = _dtype_of_code(code)
        return next((datatype for datatype in DATATYPES.values() if datatype.dtype == kind), None) or cls(
            str(kind), kind
        )

    def tocode(self) -> str:
        return self.typechar

    def Get_size(self) -> int:
        return self.size

    def Get_extent(self) -> tuple[int, int]:
        return 0, self.size

    def Get_name(self) -> str:
        return f"MPI_{self.name}"

    def Dup(self) -> "Datatype":
        return Datatype(self.name, self.dtype, is_predefined=False)

    def Commit(self) -> "Datatype":
        return self

    def Free(self) -> None:
        """Nothing to free."""

    free = Free


class Status(KnownInPart):
    """Whom a message came from, with which tag, and how long it is."""

    called = "MPI.Status"
    left_out = frozenset(("f2py", "py2f", "tomemory"))

    def __init__(self) -> None:
        self.source, self.tag, self.count, self.cancelled, self.error = ANY_SOURCE, ANY_TAG, 0, False, 0

    def take(self, found: "Status") -> None:
        """Say what this one says."""
        self.source, self.tag, self.count, self.cancelled = found.source, found.tag, found.count, found.cancelled

    def Get_source(self) -> int:
        return self.source

    def Get_tag(self) -> int:
        return self.tag

    def Get_count(self, datatype: Any = None) -> int:
        whole, left = divmod(self.count, 1 if datatype is None else dtype_of(datatype).itemsize)
        return UNDEFINED if left else whole

    Get_elements = Get_count

    def Get_error(self) -> int:
        return self.error

    def Is_cancelled(self) -> bool:
        return self.cancelled


def _larger(first: Any, second: Any) -> Any:
    return second if second > first else first


def _smaller(first: Any, second: Any) -> Any:
    return second if second < first else first


_OPERATIONS: dict[str, tuple[Any, Callable[[Any, Any], Any]]] = {
    "SUM": (np.add, lambda a, b: a + b),
    "PROD": (np.multiply, lambda a, b: a * b),
    "MAX": (np.maximum, _larger),
    "MIN": (np.minimum, _smaller),
    "LAND": (np.logical_and, lambda a, b: bool(a) & bool(b)),
    "LOR": (np.logical_or, lambda a, b: bool(a) | bool(b)),
    "LXOR": (np.logical_xor, lambda a, b: bool(a) ^ bool(b)),
    "BAND": (np.bitwise_and, lambda a, b: a & b),
    "BOR": (np.bitwise_or, lambda a, b: a | b),
    "BXOR": (np.bitwise_xor, lambda a, b: a ^ b),
    "MAXLOC": (None, lambda a, b: b if b[0] > a[0] else a),
    "MINLOC": (None, lambda a, b: b if b[0] < a[0] else a),
}
_DATATYPES = {
    "BYTE": "u1", "CHAR": "i1", "SHORT": "i2", "INT": "i4", "LONG": "i8", "LONG_LONG": "i8", "FLOAT": "f4",
    "DOUBLE": "f8", "INT8_T": "i1", "INT16_T": "i2", "INT32_T": "i4", "INT64_T": "i8", "UINT8_T": "u1",
    "UINT16_T": "u2", "UINT32_T": "u4", "UINT64_T": "u8", "BOOL": "?", "C_BOOL": "?", "COMPLEX": "c8",
    "DOUBLE_COMPLEX": "c16", "C_FLOAT_COMPLEX": "c8", "C_DOUBLE_COMPLEX": "c16", "UNSIGNED": "u4", "UNSIGNED_INT": "u4",
    "UNSIGNED_LONG": "u8", "UNSIGNED_LONG_LONG": "u8", "UNSIGNED_SHORT": "u2", "UNSIGNED_CHAR": "u1",
    "SIGNED_CHAR": "i1", "SIGNED_INT": "i4", "SIGNED_LONG": "i8", "SINT32_T": "i4", "SINT64_T": "i8", "REAL": "f4",
    "REAL4": "f4", "REAL8": "f8", "DOUBLE_PRECISION": "f8", "INTEGER": "i4", "F_INT": "i4", "F_DOUBLE": "f8",
    "FLOAT32_T": "f4", "FLOAT64_T": "f8", "C_COMPLEX": "c8", "F_COMPLEX": "c8",
}  # fmt: skip
_NUMBERS, _LOGICAL, _BITS = "iufc", "biu", "iu"
_KINDS = {
    "SUM": _NUMBERS, "PROD": _NUMBERS, "MAX": "iuf", "MIN": "iuf", "LAND": _LOGICAL, "LOR": _LOGICAL, "LXOR": _LOGICAL,
    "BAND": _BITS, "BOR": _BITS, "BXOR": _BITS,
}  # fmt: skip
"""The kinds of NumPy's types for which MPICH has an operation."""
DATATYPES = {name: Datatype(name, kind) for name, kind in _DATATYPES.items()}
OPERATIONS = {name: Op(name, *both) for name, both in _OPERATIONS.items()}
IN_PLACE = InPlace()


def op_of(op: Any) -> Op:
    """An operation as ours; the real `mpi4py.MPI`'s too, where a module has loaded that.

    Raises:
        VirtualRanksCannot: it is of another kind.
    """
    if isinstance(op, Op):
        return op
    if op is None:
        return OPERATIONS["SUM"]
    real = _real_mpi()
    for name, ours in OPERATIONS.items():
        if real is not None and op == getattr(real, name):
            return ours
    raise VirtualRanksCannot(f"Virtual ranks know no operation {op!r}.")


def is_datatype(value: Any) -> bool:
    """Whether this says of which type numbers are: a type of MPI's, ours or the real one's, or its letter."""
    return isinstance(value, (Datatype, str)) or hasattr(value, "tocode")


def is_sent_as_bytes(value: Any) -> bool:
    """Whether this is a type of which the trace knows no more than how long it is."""
    return not isinstance(value, str) and is_datatype(value) and (value.name == "BYTE" or not value.is_predefined)


def dtype_of(datatype: Any) -> np.dtype:
    """The type of NumPy for one of MPI.

    Raises:
        VirtualRanksCannot: there is none.
    """
    if isinstance(datatype, Datatype):
        return datatype.dtype
    return _dtype_of_code(datatype if isinstance(datatype, str) else datatype.tocode())


def _dtype_of_code(code: Any) -> np.dtype:
    try:
        return np.dtype(code)
    except TypeError:
        raise VirtualRanksCannot(f"Virtual ranks know no datatype {code!r}.") from None


def check_tag(call: str, tag: Any, any_too: bool = False) -> None:
    """Reject what MPI takes for no tag.

    Raises:
        MPIException, TypeError: as mpi4py's.
    """
    if not hasattr(tag, "__index__"):
        raise TypeError("an integer is required")
    if tag < 0 and not (any_too and tag == ANY_TAG):
        raise MPIException(f"{call}: Invalid tag, value is {tag}")


def check_root(call: str, root: Any, size: int) -> None:
    """Reject a root that is no rank.

    Raises:
        MPIException, TypeError: as mpi4py's.
    """
    if not hasattr(root, "__index__"):
        raise TypeError("an integer is required")
    if not 0 <= root < size:
        raise MPIException(f"I{call.lower()}: Invalid root (value given was {root})")


def is_in_place(buf: Any) -> bool:
    """Whether this is MPI.IN_PLACE, ours or the real one."""
    return isinstance(buf, InPlace) or type(buf).__name__ == "InPlaceType"


_loaded: list[Any] = []


def _real_mpi() -> Any:
    return _loaded[-1] if _loaded else None


_REAL_ONES = "COMM_WORLD", "COMM_SELF"


class _NoWorld:
    """Stands for a real communicator in the real `mpi4py.MPI`, where a module has loaded that."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        raise _no_world(self._name)


def _no_world(name: str) -> VirtualRanksCannot:
    return VirtualRanksCannot(f"Virtual ranks have no MPI.{name}: use the `comm` that your function is given.")


@contextlib.contextmanager
def _without_world(real: types.ModuleType | None) -> Iterator[None]:
    """Inside, nothing can be called on the real module's communicators."""
    before = {name: real.__dict__[name] for name in _REAL_ONES if real is not None and name in real.__dict__}
    for name in before:
        setattr(real, name, _NoWorld(name))
    try:
        yield
    finally:
        for name, comm in before.items():
            setattr(real, name, comm)


class _Module(types.ModuleType):
    """`MPI`, as virtual ranks see it."""

    def __getattr__(self, name: str) -> Any:
        if name in _REAL_ONES:
            raise _no_world(name)
        if name.startswith("__"):
            raise AttributeError(name)
        raise VirtualRanksCannot(f"Virtual ranks have no MPI.{name}.")


def module(clock: Callable[[], float], request: type, comm: type, **more: Any) -> types.ModuleType:
    """A module that stands in for `mpi4py.MPI`; `MPI.Wtime()` is the rank's virtual time. `more`: further names."""
    mpi = _Module("mpi4py.MPI")
    mpi.__dict__.update(OPERATIONS)
    mpi.__dict__.update(DATATYPES)
    mpi.__dict__.update(
        ANY_SOURCE=ANY_SOURCE, ANY_TAG=ANY_TAG, PROC_NULL=PROC_NULL, UNDEFINED=UNDEFINED, IN_PLACE=IN_PLACE,
        COMM_NULL=None, REQUEST_NULL=None, Status=Status, Request=request, Comm=comm,
        Intracomm=comm, Op=Op, Datatype=Datatype, Exception=MPIException, Wtime=clock,
        Wtick=lambda: 1e-9, BSEND_OVERHEAD=96, COMM_TYPE_SHARED=1, GROUP_NULL=None, CART=2,
        Is_initialized=lambda: True, Is_finalized=lambda: False, **more,
    )  # fmt: skip
    return mpi


@contextlib.contextmanager
def replace_mpi(mpi: types.ModuleType) -> Iterator[None]:
    """Inside, `from mpi4py import MPI` gives the stand-in, and what virtual ranks cannot do is rejected."""
    try:
        import mpi4py as package
    except ImportError:
        package = types.ModuleType("mpi4py")
    names = {"mpi4py": package, "mpi4py.MPI": mpi}
    before = {name: sys.modules.get(name) for name in (*names, *_ON_MPI)}
    for name in _ON_MPI:  # they import MPI, and so get the stand-in
        sys.modules.pop(name, None)
    had = package.__dict__.get("MPI")
    _loaded.append(before["mpi4py.MPI"])
    sys.modules.update(names)
    package.MPI = mpi
    try:
        with contextlib.ExitStack() as back:
            back.enter_context(mark_rank_thread())
            back.enter_context(_without_world(before["mpi4py.MPI"]))
            for owner, name, what in _REJECTED:
                back.enter_context(_reject_calls(owner, name, what))
            yield
    finally:
        _loaded.pop()
        for name, old in before.items():
            if old is None:
                sys.modules.pop(name, None)
            else:
                sys.modules[name] = old
        if had is None:
            del package.MPI
        else:
            package.MPI = had


_ON_MPI = "mpi4py.util", "mpi4py.util.dtlib", "mpi4py.util.pkl5", "mpi4py.util.pool", "mpi4py.util.sync"
"""Modules of mpi4py that hold what they have taken from MPI."""
_CLOCK = "read a clock: their time is virtual, and `MPI.Wtime()` says it"
_PROCESS, _THREAD = "start a process", "start a thread"
_REJECTED = [
    (time, "sleep", "sleep: `comm.compute(seconds)` lets virtual time pass"),
    *((time, name, _CLOCK) for name in ("time", "time_ns", "perf_counter", "perf_counter_ns")),
    *((time, name, _CLOCK) for name in ("monotonic", "monotonic_ns", "process_time", "process_time_ns")),
    *((time, name, _CLOCK) for name in ("thread_time", "thread_time_ns", "clock_gettime") if hasattr(time, name)),
    *((time, name, _CLOCK) for name in ("ctime", "localtime", "gmtime")),
    (threading.Thread, "start", _THREAD),
    (_thread, "start_new_thread", _THREAD),
    (subprocess.Popen, "__init__", _PROCESS),
    *((os, name, _PROCESS) for name in ("fork", "forkpty", "system", "popen", "posix_spawn") if hasattr(os, name)),
    (builtins, "input", "ask at the keyboard"),
]
_STEPS = 12
"""So far outwards is looked for the learner's code, behind what the standard library puts in between."""


_OURS = str(Path(__file__).resolve().parents[2])
_TAUGHT = f"{_OURS}{os.sep}" + "lessons"


def _is_machinery(filename: str) -> bool:
    """Whether this is the course's own, and nothing that it teaches: its bars and notes read real clocks."""
    return filename.startswith(_OURS) and not filename.startswith(_TAUGHT)


@contextlib.contextmanager
def mark_rank_thread() -> Iterator[None]:
    """Inside, this thread runs virtual ranks."""
    _rank_threads.add(threading.get_ident())
    try:
        yield
    finally:
        _rank_threads.discard(threading.get_ident())


def is_on_a_rank() -> bool:
    """Whether the thread that calls runs virtual ranks; a notebook has others."""
    return threading.get_ident() in _rank_threads


_rank_threads: set[int] = set()


@contextlib.contextmanager
def _reject_calls(owner: Any, name: str, what: str) -> Iterator[None]:
    """Inside, the learner's code on a rank's thread cannot call `owner.name`; everybody else can."""
    original = getattr(owner, name)
    direct = owner is time

    def rejected(*args: Any, **kwargs: Any) -> Any:
        if is_on_a_rank():
            frame: types.FrameType | None = sys._getframe(1)
            for _ in range(1 if direct else _STEPS):
                if frame is None or _is_machinery(frame.f_code.co_filename):
                    break
                if is_learner_code(frame.f_code.co_filename):
                    raise VirtualRanksCannot(f"Virtual ranks cannot {what}.")
                frame = frame.f_back
        return original(*args, **kwargs)

    setattr(owner, name, rejected)
    try:
        yield
    finally:
        setattr(owner, name, original)
