"""A made-up class: notebooks as learners hand them in, from what people write for each exercise.

Most hold right answers, wrong ones and some not begun, in the course's own exercise notebook. Every seventh is none
of that: a text, a notebook that was cut off, an empty one, or one that reaches for what no answer needs.
"""

import ast
import json
import random
from collections.abc import Iterator
from pathlib import Path

from course_utils.checks.registry import exercises_of
from course_utils.checks.sample_answers import Program
from course_utils.syllabus import ROOT, Lesson
from course_utils.teacher.hiding import lesson_modules

SHARES = {"right": 0.6, "wrong": 0.25, "": 0.15}
"""How often an exercise's answer is right, wrong, or not begun."""
_REACHES = "import os\nos_system = os.system\n\n\ndef {name}(*given, **named):\n    os_system('true')\n"


def write_class(folder: Path, lesson: Lesson, number: int = 30, seed: int = 0) -> list[Path]:
    """Write this many submissions of a lesson's exercises; the same seed gives the same ones."""
    chance = random.Random(f"{lesson.stem} {seed}")
    odd = _odd_ones(lesson)
    files = [folder / f"learner_{index:02}.ipynb" for index in range(number)]
    for index, file in enumerate(files):
        file.write_text(next(odd) if index % 7 == 6 else _filled_in(lesson, _drawn(lesson, chance)), encoding="utf-8")
    return files


def _drawn(lesson: Lesson, chance: random.Random) -> dict[str, str]:
    """Exercise → source of the answer drawn for it; those not begun are left out."""
    found = {}
    for exercise in exercises_of(lesson):
        [kind] = chance.choices(list(SHARES), list(SHARES.values()))
        written = exercise.written
        programs = {"right": written.right, "wrong": [program for program, _ in written.wrong], "": []}[kind]
        fit = [program.source for program in programs if _stands_alone(program, lesson)]
        if fit:
            found[exercise.name] = chance.choice(fit)
    return found


def _stands_alone(answer: Program, lesson: Lesson) -> bool:
    """Does it do without the library's answers to this lesson? They are hidden while it is graded."""
    hidden = {f"{module}.{function}" for module, names in lesson_modules(lesson.stem).items() for function in names}
    imports = [node for node in ast.walk(ast.parse(answer.source)) if type(node) is ast.ImportFrom]
    return hidden.isdisjoint(f"{node.module}.{alias.name}" for node in imports for alias in node.names)


def _filled_in(lesson: Lesson, sources: dict[str, str]) -> str:
    notebook = json.loads((ROOT / "exercises" / f"{lesson.stem}.ipynb").read_text(encoding="utf-8"))
    for cell in notebook["cells"]:
        name = cell["metadata"].get("nbgrader", {}).get("grade_id")
        if name in sources:
            cell["source"] = sources[name]
    return json.dumps(notebook)


def _odd_ones(lesson: Lesson) -> Iterator[str]:
    name = exercises_of(lesson)[0].name
    while True:
        yield "I could not open it on my tablet."
        yield _filled_in(lesson, {name: _REACHES.format(name=name)})
        yield _filled_in(lesson, {})[:2000]
        yield json.dumps({"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
