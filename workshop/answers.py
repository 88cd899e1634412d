"""Right and wrong answers that people write, to judge the checks by: `tests/answers/<exercise>/{right,wrong}/*.py`.

An answer is a file that defines the function, imports and all. A wrong one's docstring begins with
`Refused with: <a piece of the verdict's line>`: the mistake that the check must name.
"""

import ast
import sys
import types
from collections.abc import Callable
from pathlib import Path

import cloudpickle

from course_utils.errors import CourseError
from course_utils.syllabus import ROOT

FOLDER = ROOT / "tests" / "answers"
REFUSED = "Refused with: "


def answers(kind: str, exercise: str = "*") -> list[Path]:
    """The files of one kind, "right" or "wrong", of one exercise or of all."""
    return sorted(FOLDER.glob(f"{exercise}/{kind}/*.py"))


def exercise_of(path: Path) -> str:
    """The name of the exercise that a file answers."""
    return path.parent.parent.name


def load(path: Path) -> Callable:
    """The function that the file defines, in a module of its own that travels to the ranks by value."""
    exercise = exercise_of(path)
    module = types.ModuleType(f"answer_{exercise}_{path.parent.name}_{path.stem}")
    module.__file__ = str(path)
    sys.modules[module.__name__] = module
    cloudpickle.register_pickle_by_value(module)
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), vars(module))
    return getattr(module, exercise)


def refused_with(path: Path) -> str:
    """The words that the verdict on a wrong answer must contain.

    Raises:
        CourseError: its docstring does not say so.
    """
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    first = docstring.partition("\n")[0]
    if not first.startswith(REFUSED):
        raise CourseError(f"{path}: the docstring must begin with {REFUSED!r}.")
    return first.removeprefix(REFUSED).strip()
