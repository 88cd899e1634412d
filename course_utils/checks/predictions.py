"""Predict before you run: what the learner expects is asked first, and shown beside the measurement or answer."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from course_utils.checks import panel as parts
from course_utils.checks.executed_cells import texts as executed_texts
from course_utils.checks.notebook import code_cells
from course_utils.checks.panel import NEUTRAL, NOT_YET, RIGHT, Panel
from course_utils.checks.prediction_scores import is_hit, is_number, measured_in, plain, remark, shown
from course_utils.checks.progress_records import SESSION, notebook_of_kernel, page_of_kernel, read_all
from course_utils.errors import CourseError, nearest
from course_utils.measuring import BUSY


@dataclass(frozen=True)
class Noted:
    """A prediction.

    Attributes:
        answers: what was expected, per question; empty where it was taken back.
        within: a number is hit when it is off by this factor at most; None: by a tenth.
        choices: the answers there were to choose from, by letter.
    """

    answers: dict[str, Any] = field(default_factory=dict)
    within: float | None = None
    choices: dict[str, str] = field(default_factory=dict)


_predictions: dict[str, Noted] = {}


def predict(
    name: str,
    *values: Any,
    choices: Mapping[str, str] | Sequence[str] | None = None,
    within: float | None = None,
    **answers: Any,
) -> None:
    """Note what you expect, before anything runs. It is kept when the kernel restarts.

    Args:
        name: of the prediction; `measured` uses the same.
        values: instead of `answers`, the one value where there is only one question.
        choices: the answers to choose from, {"a": "…", "b": "…"} or a list; then give `answer="a"`.
        within: a number is a hit when it is off by this factor at most: 2 for half to twice as much.
            Without it, a tenth is allowed.
        answers: one number per question, or with `choices` one letter. `...` is a question that is not answered yet.

    Raises:
        CourseError: nothing to note, no name, a name or a question that no cell of this notebook measures, or a factor
            below 1.
    """
    _need_name(name, "predict")
    options = _as_mapping(choices)
    measured_here = _measured_here()
    answers |= _by_question(name, values, answers, measured_here.get(name, set()))
    _need_known(name, answers, measured_here)
    if options and not answers:
        answers = {"answer": ...}
    if not answers:
        raise CourseError(f'Give predict a value: course.predict("{name}", answer=...).')
    if within is not None and not (is_number(within) and 1 <= within < math.inf):
        raise CourseError(f"within={within!r} is not a factor: 2 means from half as much to twice as much.")
    open_ones = [key for key, value in answers.items() if value is ...]
    unknown = [value for value in answers.values() if options and value is not ... and not _is_choice(value, options)]
    no_numbers = {key: value for key, value in answers.items() if not options and not _can_be_compared(value)}
    if open_ones:
        what = "a letter" if options else "what you expect"
        which = "" if list(answers) == ["answer"] else f" ({', '.join(open_ones)})"
        remark_text = f"not answered yet{which}. Put {what} where the dots are, then run the cell."
    elif unknown:
        remark_text = f"{_in_short(unknown[0])} is not one of {', '.join(options)}."
    elif no_numbers:
        key, value = next(iter(no_numbers.items()))
        remark_text = f"not noted. {_in_short(value)} cannot be compared with a number. Write one: {key}=5."
    else:
        _note(name, Noted(dict(answers), None if within is None else float(within), options))
        words = [shown(value) if key == "answer" else f"{key} = {shown(value)}" for key, value in answers.items()]
        parts.show(_asked(name, options, answers, ", ".join(words), noted=True))
        return
    if known(name).answers:
        _note(name, Noted())  # dots take an earlier prediction back
    parts.show(_asked(name, options, answers, remark_text, noted=False))


def measured(name: str, *, busy: bool = False, **values: Any) -> None:
    """Show the prediction of this name beside what was measured, and whether it was hit.

    For what a run has brought: counted, timed, or learned. Use `answer` for a value that nothing had to run for.

    Args:
        name: the one given to `predict`, in this session or an earlier one.
        busy: whether the machine was too busy with other work to measure (`course_utils.measuring.is_busy`). Then
            nothing is compared or kept, and one line says so.
        values: one per question, named as they were in `predict`.

    Raises:
        CourseError: no value, or no name.
    """
    _need_values(name, values, "measured")
    if busy:
        parts.show(_not_compared(name))
        return
    _compare(name, values, "measured")


def answer(name: str, **values: Any) -> None:
    """Show the prediction of this name beside the answer, and whether it was hit.

    For a value that is known without a measurement: by an argument, by a formula or a simulation, or because it has
    just been seen on the page. It is kept and counted like a measurement (`measured`), and the table calls it answer.

    Args:
        name: the one given to `predict`, in this session or an earlier one.
        values: one per question, named as they were in `predict`.

    Raises:
        CourseError: no value, or no name.
    """
    _need_values(name, values, "answer")
    _compare(name, values, "answer")


def _compare(name: str, values: dict[str, Any], heading: str) -> None:
    """Keep the values with what was hit, and show them beside the prediction, under this heading."""
    noted = known(name)
    hits = {
        key: is_hit(noted.answers[key], value, noted.within) for key, value in values.items() if key in noted.answers
    }
    SESSION.write(measured=name, values={key: plain(value) for key, value in values.items()}, hits=hits)
    shown_values = {key: shown(value) for key, value in values.items()}
    value = {} if hits else {"measured": name, "values": shown_values, "heading": heading}
    parts.show(Panel(_table(noted, values, heading), _compared(name, noted, values, hits, heading), value))


def known(name: str) -> Noted:
    """The prediction of this name: of this session, or the latest one that was kept; an empty one without any."""
    if name in _predictions:
        return _predictions[name]
    here, found = page_of_kernel(), Noted()
    for record in read_all():
        elsewhere = here and record.get("page") not in (here, None)
        answers, within = record.get("answers"), record.get("within")
        if record.get("prediction") == name and isinstance(answers, dict) and not elsewhere:
            found = Noted(answers, float(within) if is_number(within) else None)
    return found


def _note(name: str, noted: Noted) -> None:
    _predictions[name] = noted
    allowed = {} if noted.within is None else {"within": noted.within}
    SESSION.write(prediction=name, answers={key: plain(value) for key, value in noted.answers.items()}, **allowed)


def _asked(name: str, options: dict[str, str], answers: dict[str, Any], remark_text: str, noted: bool) -> Panel:
    """The panel of `predict`: the choices, and what was noted or is still missing."""
    lines = [f"  {letter}) {text}" for letter, text in options.items()]
    lines.append(f"Noted. {name}: {remark_text}" if noted else f"○ {name}: {remark_text}")
    chosen = [letter for letter in options if noted and letter in answers.values()]
    mark, words, kind = ("", "noted", RIGHT) if noted else ("○", "your prediction", NEUTRAL)
    html = parts.panel_html(
        f"Prediction {name}: {'noted' if noted else 'not answered yet'}",
        kind,
        name,
        mark=mark,
        words=words,
        said=remark_text.replace(" = ", "\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}"),
        choices=options,
        chosen=chosen,
    )
    asks = [] if noted or list(answers) == ["answer"] else [key for key, value in answers.items() if value is ...]
    return Panel("\n".join(lines), html, {} if noted else {"asked": name, "questions": asks, "choices": options})


def _table(noted: Noted, values: dict[str, Any], heading: str) -> str:
    """Predictions and values as text, a line for each question."""
    rows = [("", "predicted", heading, "")]
    for key, value in values.items():
        guess = noted.answers.get(key, "–")
        remark_text = remark(guess, value, noted.within) if key in noted.answers else ""
        rows.append((key, shown(guess), shown(value), remark_text))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = [[row[0].ljust(widths[0]), row[1].rjust(widths[1]), row[2].rjust(widths[2]), row[3]] for row in rows]
    return "\n".join("  ".join(cells).rstrip() for cells in lines)


def _compared(name: str, noted: Noted, values: dict[str, Any], hits: dict[str, bool], heading: str) -> str:
    """The panel of `measured` or `answer`: a row for each question, with hit or missed in words."""
    named = list(values) != ["answer"]
    texts = "1 1 130px" if noted.choices else "1 1 70px"
    columns = {"question": "1 1 80px"} if named else {}
    columns |= {"predicted": texts, heading: texts, "how near": "2 1 180px"}
    rows = [
        [
            *([key] if named else []),
            with_choice(noted.answers.get(key, "–"), noted.choices),
            with_choice(value, noted.choices),
            _judged(noted, key, value, hits),
        ]
        for key, value in values.items()
    ]
    count = f"{sum(hits.values())} of {len(hits)} hit" if hits else "nothing was predicted"
    kind = NEUTRAL if not hits else RIGHT if all(hits.values()) else NOT_YET
    return parts.panel_html(f"Prediction {name}: {count}", kind, name, said=count, columns=columns, rows=rows)


def _not_compared(name: str) -> Panel:
    """The panel of `measured` on a busy machine."""
    remark_text = f"not compared. {BUSY}."
    label, words = f"Prediction {name}: not compared", "not compared"
    html = parts.panel_html(label, NEUTRAL, name, mark="○", words=words, said=BUSY)
    return Panel(f"○ {name}: {remark_text}", html)


def _judged(noted: Noted, key: str, value: Any, hits: dict[str, bool]) -> dict[str, Any]:
    """A badge that says hit or missed, and how far off it was."""
    if key not in hits:
        return {"badge": ["–", "no prediction", NEUTRAL], "remark": ""}
    text = remark(noted.answers[key], value, noted.within)
    badge = ["✓", "hit", RIGHT] if hits[key] else ["✗", "missed", NOT_YET]
    return {"badge": badge, "remark": "" if text in ("as predicted", "not as predicted") else text}


def with_choice(value: Any, choices: Mapping[str, str]) -> str:
    """The value; a letter with what it stands for."""
    text = choices.get(value) if isinstance(value, str) else None
    return f"{value}) {text}" if text else shown(value)


def _measured_here() -> dict[str, set[str]]:
    """The questions that this notebook measures, by the name of their prediction; empty where that cannot be known."""
    notebook = notebook_of_kernel()
    try:
        saved = code_cells(notebook) if notebook.suffix == ".ipynb" else []
    except CourseError:
        saved = []
    return measured_in([*saved, *executed_texts()]) or {} if saved else {}


def _by_question(name: str, values: tuple, answers: Mapping[str, Any], questions: set[str]) -> dict[str, Any]:
    """The one value that was given without its question, with it.

    Raises:
        CourseError: there are several values or questions.
    """
    if not values:
        return {}
    if len(values) > 1 or answers or len(questions) > 1:
        asked = ", ".join(f"{question}=..." for question in sorted(questions)) or "answer=..."
        raise CourseError(f'Say which question each number answers: course.predict("{name}", {asked}).')
    return {next(iter(questions), "answer"): values[0]}


def _need_known(name: str, answers: Mapping[str, Any], measured_here: Mapping[str, set[str]]) -> None:
    """Reject what nothing would ever be compared with.

    Raises:
        CourseError: the notebook measures predictions, and none of this name, or not this question of it.
    """
    if not measured_here:
        return
    if name not in measured_here:
        own = f' If you want to measure it, write `course.measured("{name}", …)` in a cell, and save the notebook.'
        raise CourseError(f'No cell of this notebook measures "{name}".{nearest(name, list(measured_here)) or own}')
    questions = measured_here[name]
    if questions and (unknown := [question for question in answers if question not in questions]):
        asked = ", ".join(f"{question}=..." for question in sorted(questions))
        raise CourseError(f'"{name}" has no question {unknown[0]!r}. Write course.predict("{name}", {asked}).')


def _is_choice(value: Any, options: Mapping[str, str]) -> bool:
    return isinstance(value, str) and value in options


def _can_be_compared(value: Any) -> bool:
    """Whether a prediction without choices can be hit: a number, or a truth value."""
    return value is ... or isinstance(value, (bool, np.bool_)) or (is_number(value) and not math.isnan(value))


def _in_short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:39]}…"


def _as_mapping(choices: Mapping[str, str] | Sequence[str] | None) -> dict[str, str]:
    if choices is None:
        return {}
    return dict(choices) if isinstance(choices, Mapping) else dict(zip("abcdefghij", choices, strict=False))


def _need_values(name: Any, values: dict[str, Any], function: str) -> None:
    _need_name(name, function)
    if not values:
        raise CourseError(f'Give {function} the value: course.{function}("{name}", answer=…).')


def _need_name(name: Any, function: str) -> None:
    if not isinstance(name, str):
        raise CourseError(f'The prediction\'s name comes first, in quotes: course.{function}("rounds", answer=...).')
