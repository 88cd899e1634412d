"""Check the answers in an exercise notebook without running its other cells: for `course check NOTEBOOK`."""

import ast
import json
import linecache
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from course_utils.checks.registry import find
from course_utils.errors import CourseError

if TYPE_CHECKING:
    from course_utils.checks.verdict import Verdict
    from course_utils.ranks.ranks import Ranks

_DEFINITIONS = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef)


def check_notebook(notebook: Path, ranks: int, tell: Callable[[object], None]) -> "list[Verdict]":
    """Judge each function that a cell of the notebook hands to `course.check`, on ranks of its own.

    Args:
        ranks: how many to start; they are ended afterwards, and a learner's running ranks are left alone.
        tell: called with each verdict as soon as there is one.

    Raises:
        CourseError: the file is not a notebook, or holds no check.
    """
    answers = [(find(name), function) for name, function in answers_in(notebook)]
    if not answers:
        raise CourseError(f"{notebook} holds no course.check(…): give an exercise notebook, from the folder exercises.")
    from course_utils.checks.judge import verdict_on

    verdicts = []
    with _own_ranks(ranks) as running:
        for exercise, function in answers:
            verdicts.append(verdict_on(exercise, function, running))
            tell(verdicts[-1])
    return verdicts


def answers_in(notebook: Path) -> Iterator[tuple[str, Any]]:
    """(exercise's name, function) for each check in the notebook, in order.

    Of its cells only imports, definitions and assignments without a call are run.
    """
    import mpi4py

    mpi4py.rc.initialize = False  # this process is not a rank: a cell may import MPI, but must not start it
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for number, source in enumerate(code_cells(notebook), start=1):
        try:
            nodes = ast.parse(source).body
        except SyntaxError:  # a cell with a magic, or with a mistake that its check will show
            continue
        for node in nodes:
            if checked := checked_function(node):
                name, function = checked
                yield name, namespace.get(function, _undefined(function))
            elif defines(node):
                _run(node, f"cell {number} of {notebook.name}", source, namespace)


def code_cells(notebook: Path) -> list[str]:
    """The sources of a notebook's code cells, in order.

    Raises:
        CourseError: there is no such file, or it is not a notebook.
    """
    try:
        return cells_in(notebook.read_text(encoding="utf-8"), notebook)
    except OSError as error:
        raise CourseError(f"{notebook} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise CourseError(f"{notebook} is not a notebook.") from None


def cells_in(text: str, notebook: Path) -> list[str]:
    """The sources of the code cells in a notebook's text.

    Raises:
        CourseError: it is not a notebook's.
    """
    try:
        cells = json.loads(text)["cells"]
        return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    except (ValueError, KeyError, TypeError, RecursionError, MemoryError):
        raise CourseError(f"{notebook} is not a notebook.") from None


def checked_function(node: ast.stmt) -> tuple[str, str] | None:
    """The two arguments of `course.check("name", function)`."""
    match node:
        case ast.Expr(ast.Call(ast.Attribute(attr="check"), [ast.Constant(str(name)), ast.Name(function)])):
            return name, function
    return None


def defines(node: ast.stmt) -> bool:
    """Does a statement only name something: an import, a definition, or an assignment without a call?"""
    if isinstance(node, ast.Assign | ast.AnnAssign):
        return not any(isinstance(part, ast.Call) for part in ast.walk(node))
    return isinstance(node, _DEFINITIONS)


def _run(node: ast.stmt, file: str, source: str, namespace: dict[str, Any]) -> None:
    """Define what a statement defines; what fails stays undefined, and the check that needs it says so."""
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    try:
        exec(compile(ast.Module([node], []), file, "exec"), namespace)
    except Exception as error:
        print(f"{file}, line {node.lineno}: {type(error).__name__}: {error}")


def _undefined(name: str) -> Callable:
    def undefined(*_: Any, **__: Any) -> None:
        raise NameError(f"name {name!r} is not defined in this notebook, or its cell has a mistake")

    return undefined


@contextmanager
def _own_ranks(number: int) -> "Iterator[Ranks]":
    """Ranks in a folder of their own, ended with it."""
    from course_utils.ranks.start import start

    before = os.environ.get("COURSE_RUNTIME")
    with tempfile.TemporaryDirectory(prefix="course-check-") as folder:
        os.environ["COURSE_RUNTIME"] = folder
        try:
            ranks = start(number)
            try:
                yield ranks
            finally:
                ranks.stop()
        finally:
            os.environ.pop("COURSE_RUNTIME") if before is None else os.environ.update(COURSE_RUNTIME=before)


def body_text(source: str) -> str:
    """The text of a function's body without its docstring."""
    function = ast.parse(source).body[0]
    body = [node for node in function.body if not is_docstring(node)]
    return "\n".join(source.splitlines()[body[0].lineno - 1 : body[-1].end_lineno]) if body else ""


def is_docstring(node: ast.stmt) -> bool:
    """Whether the statement is a bare string."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
