"""What a submitted notebook holds: read as text and as a syntax tree, never run in this process."""

import ast
import errno
import inspect
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from course_utils.checks.notebook import cells_in
from course_utils.checks.registry import declared
from course_utils.errors import CourseError
from course_utils.teacher.notebook_cells import Cells

LARGEST = 256 << 20
"""Bytes of a notebook; one that shows pictures may have a hundred million."""
_LESSON_OF = {exercise.name: exercise.lesson for exercise in declared()}
_ABOUT_PYTHON = re.compile(r"%%(time|timeit|capture|prun)\b")
_A_FILE = re.compile(r"%%(?:writefile|file)\s+(-a\s+)?(\S+)\s*$")
_A_STATEMENT = re.compile(r"^(\s*)%time\s+(?=\S)", re.MULTILINE)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_STATEMENTS_WITH_BODIES = ("body", "orelse", "finalbody", "handlers", "cases")


@dataclass(frozen=True)
class Submission:
    """A notebook's answers, as text.

    Attributes:
        name: of the file.
        cells: every code cell up to the last that an answer needs, as Python: what is IPython's has become calls of
            `get_ipython()`.
        answers: exercise → the name that the notebook gives to its function; "" where it has none.
        signatures: of functions whose parameters can be read.
    """

    name: str
    cells: Cells
    answers: dict[str, str]
    signatures: dict[str, inspect.Signature] = field(default_factory=dict)

    @property
    def lessons(self) -> set[str]:
        """The lessons that the notebook answers something of, by their stems."""
        return {_LESSON_OF[name] for name in self.answers}

    @property
    def expected(self) -> list[str]:
        """Every exercise of these lessons."""
        return [name for name, lesson in _LESSON_OF.items() if lesson in self.lessons]


def read(notebook: Path) -> Submission:
    """Read a submission.

    Raises:
        CourseError: the file is not a notebook, or answers no exercise.
    """
    cells: list[tuple[str, str]] = []
    checked: dict[str, str] = {}
    needed: dict[str, int] = {}  # the last cell that each name's function needs
    imported: set[str] = set()
    signatures: dict[str, inspect.Signature] = {}
    for number, written in enumerate(cells_in(_text_of(notebook), notebook), start=1):
        source = in_python(written)
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):  # what it defines is then missing
            continue
        for node in _statements(tree.body):
            for exercise, function in _checks(node):
                checked[exercise] = function
                needed[function] = len(cells)
            for name in _bound(node):
                needed[name] = len(cells)
                (imported.add if isinstance(node, ast.Import | ast.ImportFrom) else imported.discard)(name)
                signatures.pop(name, None)
                if isinstance(node, ast.FunctionDef) and not node.decorator_list and (known := _signature(node.args)):
                    signatures[name] = known
        cells.append((f"cell {number} of {notebook.name}", source))
    own = needed.keys() - imported  # what is imported is an earlier lesson's, unless the notebook has it checked
    answers = {name: name for name in own if name in _LESSON_OF}
    answers |= {name: function for name, function in checked.items() if name in _LESSON_OF}
    if not answers:
        raise CourseError(f"{notebook} answers no exercise of the course.")
    last = max((needed[function] for function in answers.values() if function in needed), default=-1)
    return Submission(notebook.name, tuple(cells[: last + 1]), answers, signatures)


def _text_of(notebook: Path) -> str:
    """The text of a plain file, which is neither a link to something else, nor endless, nor waits for a writer.

    Raises:
        CourseError: it is none.
    """
    try:
        with open(os.open(notebook, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            about = os.fstat(file.fileno())
            if not stat.S_ISREG(about.st_mode):
                raise CourseError(f"{notebook} is not a file.")
            if about.st_size > LARGEST:
                raise CourseError(f"{notebook} has {about.st_size:,} bytes: too many for a notebook.")
            return file.read(LARGEST).decode("utf-8-sig")  # some editors begin a file with a mark
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise CourseError(f"{notebook} is a link; hand in the file itself.") from None
        raise CourseError(f"{notebook} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise CourseError(f"{notebook} is not a notebook.") from None


def in_python(cell: str) -> str:
    """A cell as IPython would hand it to Python, line by line. One that is in another language becomes empty.

    What magics of time are about is run, and what is to become a file is written.
    """
    from IPython.core.inputtransformer2 import TransformerManager

    first, _, rest = cell.lstrip().partition("\n")
    if file := _A_FILE.match(first):
        return f"open({file[2]!r}, {'a' if file[1] else 'w'!r}, encoding='utf-8').write({rest!r})\n"
    if first.startswith("%%"):
        cell = f"#\n{rest}" if _ABOUT_PYTHON.match(first) else ""
    try:
        return TransformerManager().transform_cell(_A_STATEMENT.sub(r"\1", cell))
    except Exception:  # a mistake, which Python will find as well
        return cell


def _statements(nodes: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that a cell runs itself, also those behind an `if` or a `try`; not those in its functions."""
    for node in nodes:
        yield node
        if not isinstance(node, _DEFINITIONS):
            for name in _STATEMENTS_WITH_BODIES:
                yield from _statements(getattr(node, name, []))


def _checks(node: ast.stmt) -> Iterator[tuple[str, str]]:
    """(exercise, name of the function) of what a statement has checked; a function without a name is called as it."""
    if isinstance(node, _DEFINITIONS):
        return
    for part in ast.walk(node):
        match part:
            case ast.Call(ast.Attribute(attr="check") | ast.Name("check"), [ast.Constant(str(exercise)), function]):
                yield exercise, function.id if isinstance(function, ast.Name) else exercise


def _bound(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [alias.asname or alias.name.partition(".")[0] for alias in node.names]
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    names = [part for target in targets if target for part in ast.walk(target) if isinstance(part, ast.Name)]
    return [name.id for name in names if isinstance(name.ctx, ast.Store)]  # `f.calls = 0` reads f


def _signature(arguments: ast.arguments) -> inspect.Signature | None:
    """The parameters' names and kinds; every default is None, for it would have to be run to be known.

    None for what Python rejects, such as two parameters of one name: it will say so itself.
    """
    kinds = inspect.Parameter
    plain: list[tuple[ast.arg, Any]] = [(one, kinds.POSITIONAL_ONLY) for one in arguments.posonlyargs]
    plain += [(one, kinds.POSITIONAL_OR_KEYWORD) for one in arguments.args]
    required = len(plain) - len(arguments.defaults)
    found = [
        kinds(one.arg, kind, default=kinds.empty if place < required else None)
        for place, (one, kind) in enumerate(plain)
    ]
    if arguments.vararg:
        found.append(kinds(arguments.vararg.arg, kinds.VAR_POSITIONAL))
    for one, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        found.append(kinds(one.arg, kinds.KEYWORD_ONLY, default=None if default else kinds.empty))
    if arguments.kwarg:
        found.append(kinds(arguments.kwarg.arg, kinds.VAR_KEYWORD))
    try:
        return inspect.Signature(found)
    except ValueError:
        return None
