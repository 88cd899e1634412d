"""Predict before you run: what the learner expects is asked first, and stands beside the measurement after."""

import numbers
from collections.abc import Mapping, Sequence
from typing import Any

from course_utils.checks.records import SESSION
from course_utils.errors import CourseError

_predictions: dict[str, dict[str, Any]] = {}


def predict(name: str, *, choices: Mapping[str, str] | Sequence[str] | None = None, **answers: Any) -> None:
    """Note what you expect, before anything runs.

    Args:
        name: of the prediction; `measured` uses the same.
        choices: the answers to choose from, {"a": "…", "b": "…"} or a list; then give `answer="a"`.
        answers: one number or word per question. `...` is a question that is not answered yet.
    """
    _need_name(name, "predict")
    options = _as_mapping(choices)
    if options and not answers:
        answers = {"answer": ...}
    if not answers:
        raise CourseError(f'Give predict a value to note: course.predict("{name}", answer=...).')
    for letter, text in options.items():
        print(f"  {letter}) {text}")
    _predictions.pop(name, None)
    open_ones = [key for key, value in answers.items() if value is ...]
    if open_ones:
        what = "a letter" if options else "what you expect"
        which = "" if list(answers) == ["answer"] else f" ({', '.join(open_ones)})"
        print(f"○ {name}: not answered yet{which}. Put {what} where the dots are, then run the cell.")
        return
    unknown = [value for value in answers.values() if options and value not in options]
    if unknown:
        print(f"○ {name}: {unknown[0]!r} is not one of {', '.join(options)}.")
        return
    _predictions[name] = dict(answers)
    SESSION.write(prediction=name, answers={key: _plain(value) for key, value in answers.items()})
    noted = [_show(value) if key == "answer" else f"{key} = {_show(value)}" for key, value in answers.items()]
    print(f"Noted. {name}: {', '.join(noted)}")


def measured(name: str, **values: Any) -> None:
    """Print the prediction of this name beside what was measured.

    Args:
        name: the one given to `predict`.
        values: one per question, named as they were in `predict`.
    """
    _need_name(name, "measured")
    if not values:
        raise CourseError(f'Give measured the value: course.measured("{name}", answer=…).')
    predicted = _predictions.get(name, {})
    SESSION.write(measured=name, values={key: _plain(value) for key, value in values.items()})
    rows = [("", "predicted", "measured", "")]
    for key, value in values.items():
        guess = predicted.get(key, "–")
        rows.append((key, _show(guess), _show(value), _remark(guess, value) if key in predicted else ""))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row in rows:
        cells = [row[0].ljust(widths[0]), row[1].rjust(widths[1]), row[2].rjust(widths[2]), row[3]]
        print("  ".join(cells).rstrip())


def _remark(guess: Any, value: Any) -> str:
    """How far the guess was off, in words."""
    if not _is_number(guess) or not _is_number(value):
        return "as predicted" if _plain(guess) == _plain(value) else "not as predicted"
    guess, value = float(guess), float(value)
    if guess == value:
        return "as predicted"
    if guess == 0 or not value / guess > 0:
        return "not as predicted"
    ratio = value / guess
    if 0.9 <= ratio <= 1.1:
        return "close"
    return f"{ratio:.2g} times the prediction"


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _show(value: Any) -> str:
    if _is_number(value) and not isinstance(value, numbers.Integral):
        return f"{float(value):.3g}"
    return str(value)


def _plain(value: Any) -> Any:
    """The value as JSON can hold it."""
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        return int(value)
    if _is_number(value):
        return float(value)
    return value if isinstance(value, (str, bool)) or value is None else str(value)


def _as_mapping(choices: Mapping[str, str] | Sequence[str] | None) -> dict[str, str]:
    if choices is None:
        return {}
    return dict(choices) if isinstance(choices, Mapping) else dict(zip("abcdefghij", choices, strict=False))


def _need_name(name: Any, function: str) -> None:
    if not isinstance(name, str):
        raise CourseError(f'The prediction\'s name comes first, in quotes: course.{function}("rounds", answer=...).')
