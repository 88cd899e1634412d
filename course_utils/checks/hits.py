"""Which predictions were hit, and which ones a lesson asks for."""

import ast
import functools
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_utils.checks.comparing import is_hit, is_number
from course_utils.checks.notebook import code_cells
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
        return _asked_on(page, page.stat().st_mtime_ns)
    except OSError:
        return frozenset()


@functools.cache
def _asked_on(page: Path, _changed: int) -> frozenset[tuple[str, str]]:
    try:
        sources = code_cells(page)
    except CourseError:
        return frozenset()
    found: set[tuple[str, str]] = set()
    for source in sources:
        if "predict(" not in source:
            continue
        try:
            nodes = list(ast.walk(ast.parse(source)))
        except (SyntaxError, ValueError, RecursionError):
            continue
        for node in nodes:
            match node:
                case ast.Call(ast.Attribute(attr="predict"), [ast.Constant(str(name))], keywords):
                    questions = {word.arg for word in keywords if word.arg} - _OPTIONS
                    found |= {(name, question) for question in questions or {"answer"}}
    return frozenset(found)
