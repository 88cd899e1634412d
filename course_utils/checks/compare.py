"""Compare what a rank gave with what it should have given. The difference is a `Finding`; `finding_text` words it.

Nothing here calls a method of the learner's object before its exact type is known: an object that claims to be equal
to everything is seen for what it is. `torch.testing.assert_close` calls such methods, compares no texts, and says what
differs in a sentence, where a check needs values: the kind of the difference, and where in the result it is.
"""

import contextlib
import dataclasses
import sys
from collections.abc import Iterable
from typing import Any

import numpy as np

from course_utils.checks.finding import Finding, Key, Kind, Where
from course_utils.checks.promised_errors import Raises
from course_utils.words import count

_TOLERANCES = {  # per dtype: relative to the largest expected number, and absolute
    "float16": (1e-2, 1e-3),
    "bfloat16": (3e-2, 1e-2),
    "float32": (1e-5, 1e-6),
    "float64": (1e-10, 1e-14),
    "complex64": (1e-5, 1e-6),
    "complex128": (1e-10, 1e-14),
}
_NAMES = {"int": "integer", "str": "string", "bool": "truth value"}
_PLAIN = {"bool": bool, "int": int, "float": float, "complex": complex, "str": str}
_NUMPY_SCALARS = frozenset(np.sctypeDict.values())
_NUMPY_KINDS = {"b": "bool", "i": "int", "u": "int", "f": "float", "c": "complex", "U": "str", "S": "bytes"}


def difference(rank: int, got: Any, expected: Any, tolerance: float | None = None) -> Finding | None:
    """Find what is wrong with rank `rank`'s `got`; None where it is right.

    Arrays and tensors must have the expected shape and dtype. A list may stand for a tuple, an array of one axis for
    a tuple of numbers, NumPy's scalars for Python's. Numbers differ when they are further apart than `tolerance` times
    the largest expected one; by default what the dtype can hold after a few additions, and nothing at all for integers.
    """
    return _Comparison(rank, tolerance).run(got, expected, ())


def is_changed(before: Any, after: Any) -> bool:
    """Whether a value is certainly not what it was: a number, a text, an array or tensor, or what such are put into.

    Objects of other kinds count as unchanged, but for the fields of data classes and named tuples.
    """
    kind = kind_of(before)
    if kind != kind_of(after):
        return True
    if kind == "list" or isinstance(before, tuple):
        return len(before) != len(after) or any(map(is_changed, before, after))
    if kind == "dict":
        return list(before) != list(after) or any(is_changed(before[key], after[key]) for key in before)
    if kind in ("array", "tensor") or kind in _PLAIN or kind in ("None", "bytes"):
        return difference(0, after, before, 0.0) is not None
    if kind in ("set", "frozenset") and all(kind_of(element) in _PLAIN for element in (*before, *after)):
        return before != after
    if dataclasses.is_dataclass(before):
        names = [field.name for field in dataclasses.fields(before)]
        return any(is_changed(getattr(before, name), getattr(after, name)) for name in names)
    return False


def largest_error(pairs: Iterable[tuple[Any, Any]]) -> float:
    """The largest absolute difference between the numbers of (got, expected) pairs of equal form; 0.0 without any."""
    errors = [0.0]
    for got, expected in pairs:
        if kind_of(expected) in ("array", "tensor"):
            left, right = _as_array(got), _as_array(expected)
            if left.size and left.dtype.kind in "iufc":
                errors.append(float(np.max(np.abs(left - right))))
        elif kind_of(expected) in ("list", "tuple"):
            errors.append(largest_error(zip(got, expected, strict=True)))
        elif kind_of(expected) in ("float", "int"):
            errors.append(abs(float(got) - float(expected)))
    return max(errors)


def kind_of(value: Any) -> str:
    """One of None, bool, int, float, complex, str, bytes, array, tensor, list, tuple, dict; else the type's name.

    Only the exact types count, not what derives from them: those may do anything.
    """
    cls = type(value)
    if value is None:
        return "None"
    if cls in (bool, int, float, complex, str, bytes, list, tuple, dict):
        return cls.__name__
    if cls is np.ndarray:
        return "array"
    if cls in _NUMPY_SCALARS:
        return _NUMPY_KINDS.get(value.dtype.kind, cls.__name__)
    torch = sys.modules.get("torch")
    if torch and cls in (torch.Tensor, torch.nn.Parameter):
        return "tensor"
    return cls.__name__


def describe(value: Any, limit: int = 60) -> str:
    """A short text for a value in a message; never raises, whatever the value is."""
    kind = kind_of(value)
    if kind in ("array", "tensor"):
        return f"{with_article(kind)} of shape {shape_of(value)}"
    if kind in ("list", "tuple") and {"array", "tensor"} & {*map(kind_of, value)}:
        of_each = {*map(kind_of, value)}
        return f"{with_article(kind)} of {count(len(value), of_each.pop() if len(of_each) == 1 else 'value')}"
    text = with_article(kind)
    with contextlib.suppress(Exception):  # an entry's repr may raise, an integer may be too long to print
        if kind in _PLAIN:
            text = repr(_PLAIN[kind](value))
        elif kind in ("bytes", "list", "tuple", "dict"):
            text = repr(value)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def with_article(kind: str) -> str:
    """A kind of value in words: "an array", "nothing"."""
    if kind == "None":
        return "nothing"
    kind = _NAMES.get(kind, kind)
    return f"{'an' if kind[:1].lower() in 'aeiou' else 'a'} {kind}"


def shape_of(value: Any) -> tuple[int, ...]:
    """The shape of an array or a tensor, in plain integers."""
    return tuple(int(side) for side in value.shape)


def _as_array(value: Any) -> np.ndarray:
    if kind_of(value) == "tensor":
        value = value.detach().cpu()
        value = (value.float() if "bfloat16" in str(value.dtype) else value).numpy()
    array = np.asarray(value)
    if array.dtype.kind == "f":
        return array.astype(np.float64)
    return array.astype(np.int64) if array.dtype.kind in "iu" and array.dtype.itemsize < 8 else array


class _Comparison:
    """One comparison: the rank and the tolerance, handed down through lists, tuples and dicts."""

    def __init__(self, rank: int, tolerance: float | None):
        self.rank = rank
        self.tolerance = tolerance

    def run(self, got: Any, expected: Any, where: Where) -> Finding | None:
        if expected is ...:
            return None
        if type(expected) is Raises:
            return self._errors(got, expected, where)
        wanted, given = kind_of(expected), kind_of(got)
        if given == "array" and wanted in ("int", "float", "bool") and got.shape == () and got.dtype.kind in "iufb":
            got = got[()]
            given = kind_of(got)
        if given == "array" and wanted == "tuple" and got.ndim == 1 and {*map(kind_of, expected)} <= {"int", "float"}:
            got, given = tuple(got), "tuple"
        if given == "None" and wanted != "None":
            return self._found(Kind.NOTHING, where, None, expected)
        if not self._kinds_fit(wanted, given):
            return self._found(Kind.TYPE, where, got, expected)
        if wanted in ("array", "tensor"):
            return self._arrays(got, expected, where)
        if wanted in ("list", "tuple"):
            return self._sequences(got, expected, where)
        if wanted == "dict":
            return self._dicts(got, expected, where)
        if wanted in ("int", "float", "complex"):
            return self._numbers(got, expected, where)
        if wanted in _PLAIN:
            got, expected = _PLAIN[wanted](got), _PLAIN[wanted](expected)
        elif type(got) is not type(expected):  # two classes with one name: the learner's own and the course's
            return self._found(Kind.TYPE, where, got, expected)
        elif dataclasses.is_dataclass(expected):
            return self._fields(got, expected, where)
        equals: Any = type(expected).__eq__
        same = equals(expected, got) is True
        return None if same else self._found(Kind.VALUE, where, got, expected)

    def _found(
        self,
        kind: Kind,
        where: Where,
        got: Any,
        expected: Any,
        index: tuple[int, ...] | None = None,
        dtype: str = "",
    ) -> Finding:
        return Finding(kind, self.rank, where, index, got, expected, dtype=dtype)

    def _errors(self, got: Any, expected: Raises, where: Where) -> Finding | None:
        if type(got) is not Raises:
            return self._found(Kind.TYPE, where, got, expected)
        if got.error == expected.error:
            is_silent = expected.has_message and not got.has_message
            return self._found(Kind.NO_MESSAGE, where, got, expected) if is_silent else None
        return self._found(Kind.OTHER_ERROR if got.error else Kind.NO_ERROR, where, got, expected)

    @staticmethod
    def _kinds_fit(wanted: str, given: str) -> bool:
        also = {"float": ("int",), "complex": ("float", "int"), "list": ("tuple",), "tuple": ("list",)}
        return given == wanted or given in also.get(wanted, ())

    def _numbers(self, got: Any, expected: Any, where: Where) -> Finding | None:
        if kind_of(expected) == "int":
            same = abs(int(got) - int(expected)) <= (self.tolerance or 0)
        else:
            name = expected.dtype.name if isinstance(expected, np.generic) else f"{np.result_type(expected)}"
            try:
                same = not self._wrong_at(np.array([got], dtype=name), np.array([expected]), name).any()
            except OverflowError:  # an integer too large for a float
                same = False
        return None if same else self._found(Kind.VALUE, where, got, expected)

    def _arrays(self, got: Any, expected: Any, where: Where) -> Finding | None:
        got_type, expected_type = _dtype(got), _dtype(expected)
        if shape_of(got) != shape_of(expected):
            return self._found(Kind.SHAPE, where, shape_of(got), shape_of(expected))
        if got_type != expected_type:
            return self._found(Kind.DTYPE, where, got_type, expected_type)
        left, right = _as_array(got), _as_array(expected)
        wrong = self._wrong_at(left, right, expected_type)
        if not wrong.any():
            return None
        index = tuple(map(int, np.unravel_index(int(np.argmax(wrong)), wrong.shape)))
        return self._found(Kind.VALUE, where, left[index], right[index], index, expected_type)

    def _wrong_at(self, got: np.ndarray, expected: np.ndarray, dtype: str) -> np.ndarray:
        """A mask of the places where the numbers differ by more than is allowed."""
        relative, absolute = _TOLERANCES.get(dtype, (0.0, 0.0))
        if self.tolerance is not None:
            relative, absolute = self.tolerance, absolute if self.tolerance else 0.0
        if relative == 0 and expected.dtype.kind not in "fc":
            return np.asarray(got != expected)
        finite = np.abs(expected[np.isfinite(expected)])
        allowed = absolute + relative * float(finite.max() if finite.size else 0.0)
        with np.errstate(invalid="ignore"):
            close = np.abs(got - expected) <= allowed
        return ~(close | (got == expected) | (np.isnan(got) & np.isnan(expected)))

    def _sequences(self, got: Any, expected: Any, where: Where) -> Finding | None:
        if len(got) != len(expected):
            return self._found(Kind.LENGTH, where, len(got), len(expected))
        pairs = enumerate(zip(got, expected, strict=True))
        return next(filter(None, (self.run(mine, wanted, (*where, index)) for index, (mine, wanted) in pairs)), None)

    def _fields(self, got: Any, expected: Any, where: Where) -> Finding | None:
        names = [field.name for field in dataclasses.fields(expected)]
        found = (self.run(getattr(got, name), getattr(expected, name), (*where, name)) for name in names)
        return next(filter(None, found), None)

    def _dicts(self, got: dict, expected: dict, where: Where) -> Finding | None:
        for key, wanted in expected.items():
            if key not in got:
                return self._found(Kind.MISSING_ENTRY, where, None, key)
            found = self.run(got[key], wanted, (*where, key if isinstance(key, str) else Key(key)))
            if found:
                return found
        extra = [key for key in got if key not in expected]
        return self._found(Kind.EXTRA_ENTRY, where, extra[0], None) if extra else None


def _dtype(value: Any) -> str:
    return str(value.dtype).removeprefix("torch.")


def is_plain(kind: str) -> bool:
    """Whether a kind of value is a number, a truth value or a text."""
    return kind in _PLAIN


def with_kind(value: Any) -> str:
    """A plain value with its kind: "the integer 3"."""
    kind = kind_of(value)
    return f"the {_NAMES.get(kind, kind)} {describe(value)}"
