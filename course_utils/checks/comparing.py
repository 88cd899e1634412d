"""A prediction against a measurement: hit or missed, and how far off, in words."""

import math
import numbers
from typing import Any

import numpy as np

_NEAR = 0.9, 1.1  # measured over predicted, where the prediction names no factor of its own


def is_hit(guess: Any, value: Any, within: float | None = None) -> bool:
    """Whether the prediction holds: a number within the factor `within` (without it, a tenth), anything else equal."""
    if not is_number(guess) or not is_number(value):
        return plain(guess) == plain(value)
    ratio = ratio_of(guess, value)
    least, most = _NEAR if within is None else (1 / within, within)
    return ratio is not None and least * (1 - 1e-9) <= ratio <= most * (1 + 1e-9)


def remark(guess: Any, value: Any, within: float | None = None) -> str:
    """How far the guess was off, in words."""
    hit = is_hit(guess, value, within)
    ratio = ratio_of(guess, value) if is_number(guess) and is_number(value) else None
    if ratio is None or ratio == 1:
        return "as predicted" if hit else "not as predicted"
    if _NEAR[0] <= ratio <= _NEAR[1]:
        return "close" if hit else f"{ratio:.4g} times the prediction"
    return f"{ratio:.2g} times the prediction{f', within the factor {within:g}' if hit else ''}"


def ratio_of(guess: Any, value: Any) -> float | None:
    """Measured over predicted: 1 where they are equal; None where a ratio says nothing."""
    try:
        guess, value = float(guess), float(value)
    except OverflowError:
        return 1.0 if guess == value else None
    if guess == value:
        return 1.0
    ratio = value / guess if guess else 0.0
    return ratio if 0 < ratio < math.inf else None


def is_number(value: Any) -> bool:
    """Is it a real number, and no truth value?"""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def shown(value: Any) -> str:
    """A value as the table shows it: three digits of what is no whole number."""
    if is_number(value) and not isinstance(value, numbers.Integral):
        return f"{float(value):.3g}"
    return str(value)


def plain(value: Any) -> Any:
    """The value as JSON can hold it."""
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        return int(value)
    if is_number(value):
        return float(value)
    if isinstance(value, np.bool_):
        return bool(value)
    return value if isinstance(value, (str, bool)) or value is None else str(value)
