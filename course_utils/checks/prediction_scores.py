"""Predictions against measurements: hit or missed, how far off, and which predictions a lesson asks for."""

import ast
import functools
import math
import numbers
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np

from course_utils.checks.notebook import code_cells, in_python
from course_utils.errors import CourseError

_OPTIONS = {"choices", "within"}


@dataclass(frozen=True)
class Comparison:
    """One question of a prediction, and whether its first measurement found it right."""

    name: str
    question: str
    hit: bool
    page: str | None = None


def comparisons(records: Iterable[dict[str, Any]]) -> list[Comparison]:
    """The first comparison of each question: who predicts again after the measurement has not predicted.

    Args:
        records: in order. Those of schema 1 do not say what was hit; it follows from the prediction before them.
    """
    found: dict[tuple[str, str], Comparison] = {}
    predicted: dict[str, dict[str, Any]] = {}
    for record in records:
        if isinstance(name := record.get("prediction"), str):
            predicted[name] = record
        elif isinstance(name := record.get("measured"), str):
            page = record.get("page")
            for question, hit in _hits(record, predicted.get(name, {})).items():
                first = Comparison(name, question, hit, page if isinstance(page, str) else None)
                found.setdefault((name, question), first)
    return list(found.values())


def _hits(record: dict[str, Any], prediction: dict[str, Any]) -> dict[str, bool]:
    """What a record of a measurement says was hit, by question."""
    if isinstance(hits := record.get("hits"), dict):
        return {question: hit for question, hit in hits.items() if isinstance(hit, bool)}
    answers, values, within = prediction.get("answers"), record.get("values"), prediction.get("within")
    if not isinstance(answers, dict) or not isinstance(values, dict):
        return {}
    factor = float(within) if is_number(within) else None
    return {
        question: is_hit(answers[question], value, factor) for question, value in values.items() if question in answers
    }


def asked_on(page: Path) -> frozenset[tuple[str, str]]:
    """The predictions that a notebook asks for: (name, question)."""
    try:
        return _asked_on(page.resolve(), page.stat().st_mtime_ns)
    except OSError:
        return frozenset()


@functools.cache
def _asked_on(page: Path, _changed: int) -> frozenset[tuple[str, str]]:
    try:
        sources = code_cells(page)
    except CourseError:
        return frozenset()
    found: set[tuple[str, str]] = set()
    for call in _calls(sources, {"predict"}):
        match call.args:
            case [ast.Constant(str(name)), *_]:
                questions = {word.arg for word in call.keywords if word.arg} - _OPTIONS
                found |= {(name, question) for question in questions or {"answer"}}
    return frozenset(found)


def measured_in(cells: Iterable[str]) -> dict[str, set[str]] | None:
    """The questions that cells measure or answer, by the name of their prediction.

    A name without a question is one whose questions are not written out. None where a name is not written out, so that
    any may be measured.
    """
    found: dict[str, set[str]] = {}
    any_question: set[str] = set()
    for call in _calls(cells, {"measured", "answer"}):
        match call.args:
            case [ast.Constant(str(name))]:
                found.setdefault(name, set()).update(word.arg for word in call.keywords if word.arg)
                if any(word.arg is None for word in call.keywords):  # `**found`
                    any_question.add(name)
            case _:
                return None
    return {name: set() if name in any_question else questions - {"busy"} for name, questions in found.items()}


def _calls(cells: Iterable[str], functions: set[str]) -> Iterator[ast.Call]:
    """The calls of these functions of the course in cells; a cell that is no Python has none."""
    for cell in cells:
        if not any(f"{function}(" in cell for function in functions):
            continue
        try:
            nodes = list(ast.walk(ast.parse(in_python(cell))))
        except (SyntaxError, ValueError, RecursionError):
            continue
        for node in nodes:
            match node:
                case ast.Call(ast.Attribute(ast.Name("course"), function)) if function in functions:
                    yield node


_FEW = 5  # whole numbers that differ by this much at most are compared by their difference
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
    if isinstance(guess, numbers.Integral) and isinstance(value, numbers.Integral) and not hit:
        difference = int(value) - int(guess)
        if abs(difference) <= _FEW:
            return f"{abs(difference)} {'more' if difference > 0 else 'fewer'} than predicted"
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


def is_number(value: Any) -> TypeGuard[float]:
    """Is it a real number, and no truth value?"""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def shown(value: Any) -> str:
    """A value as the table shows it: at least three digits of what is not an integer, and never 2.46e+04."""
    if is_number(value) and not isinstance(value, numbers.Integral):
        return f"{float(value):,.0f}" if 1000 <= abs(value) < 1e9 else f"{float(value):.3g}"
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
