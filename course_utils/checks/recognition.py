"""The lines "Recognised …" in the files of what people write: each stands for a test of an outcome.

Recognised by `dtype`.                                     the kind of the finding, or an exercise's own key
Recognised by `value` or `nothing` in `y`.                 … in a part of the result: a name or an index
Recognised by `type`, expected `list`.                     … with what was expected: a value, or its kind
Recognised by `shape` on rank 0, got `(2,)`.               … on one rank, with what was got
Recognised by `no error`, expected `ValueError`.           a call came back that the docstring promises to reject
Recognised by anything in `the gradient of x`.             whatever is wrong in this part of the result
Recognised by the error `ZeroDivisionError`.               a rank raised it: the words are in its type or text
Recognised in the case `float32`.                          the key of the case that failed, luck apart
Recognised when it hangs.                                  a symptom: the exercise's, or one for all lessons
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from course_utils.checks.compare import is_plain, kind_of
from course_utils.checks.exercise import Case, Exercise, Outcome, Recogniser
from course_utils.checks.finding import Finding, Key, Kind
from course_utils.checks.promised_errors import Raises
from course_utils.checks.sample_answers import SUFFIX
from course_utils.checks.symptoms import COMMON, raised
from course_utils.errors import CourseError, nearest

_CODES = r"`[^`]+`(?: or `[^`]+`)*"
_FINDING = re.compile(
    rf"by (?:(?P<kinds>{_CODES})|anything)(?: in (?P<parts>{_CODES}))?(?: on rank (?P<rank>\d+))?"
    rf"(?:, expected (?P<expected>{_CODES}))?(?:, got (?P<got>{_CODES}))?"
)
_ERROR = re.compile(r"by the error `(?P<words>[^`]+)`")
_CASE = re.compile(rf"in the cases? (?P<keys>{_CODES})")
_SYMPTOM = re.compile(r"when (?P<name>.+)")


def recogniser(exercise: Exercise, line: str) -> Recogniser:
    """The test that a line "Recognised …" stands for.

    Args:
        line: without its first word and its full stop.

    Raises:
        CourseError: the line is of no known form, or names no symptom.
    """
    if found := _ERROR.fullmatch(line):
        words = found["words"]
        return lambda case, outcome: raised(outcome, words)
    if found := _CASE.fullmatch(line):
        keys = _codes(found["keys"])
        return lambda case, outcome: case.key in keys and not _by_luck(outcome)
    if found := _FINDING.fullmatch(line):
        return _finding_like(found.groupdict())
    if found := _SYMPTOM.fullmatch(line):
        return _symptom(exercise, found["name"])
    raise CourseError(f'{exercise.name}{SUFFIX}: what is "Recognised {line}"?')


def _symptom(exercise: Exercise, name: str) -> Recogniser:
    known = {**COMMON, **exercise.symptoms}
    if name not in known:
        raise CourseError(f'{exercise.name}{SUFFIX}: no symptom is called "{name}".{nearest(name, list(known))}')
    return known[name]


def _codes(text: str | None) -> list[str]:
    return re.findall(r"`([^`]+)`", text or "")


def _by_luck(outcome: Outcome) -> bool:
    return outcome.finding is not None and outcome.finding.kind == Kind.BY_LUCK


def _finding_like(wanted: Mapping[str, str | None]) -> Recogniser:
    kinds, parts = _codes(wanted["kinds"]), _codes(wanted["parts"])
    tests: list[Callable[[Finding], bool]] = []
    if kinds:
        tests.append(lambda finding: finding.name in kinds)
    if parts:
        tests.append(
            lambda finding: any(_step_text(step) in parts for step in (*finding.where, *(finding.index or ())))
        )
    if rank := wanted["rank"]:
        tests.append(lambda finding: finding.rank == int(rank))
    if expected := _codes(wanted["expected"]):
        tests.append(lambda finding: bool(_names_of(finding.expected) & {*expected}))
    if got := _codes(wanted["got"]):
        tests.append(lambda finding: bool(_names_of(finding.got) & {*got}))

    def is_like(case: Case, outcome: Outcome) -> bool:
        return outcome.finding is not None and all(test(outcome.finding) for test in tests)

    return is_like


def _step_text(step: str | int | Key) -> str:
    return str(step.value if isinstance(step, Key) else step)


def _names_of(value: Any) -> set[str]:
    """By what a file may call a value: its kind and, of a number, a text or a shape, itself."""
    if isinstance(value, Raises):
        return {value.error, value.own_name}
    kind = kind_of(value)
    is_simple = is_plain(kind) or (kind == "tuple" and all(is_plain(kind_of(entry)) for entry in value))
    return {kind, str(value)} if is_simple else {kind}
