"""What a handed-in notebook holds: read as text and as a syntax tree, never run in this process.

The one reader of `course check NOTEBOOK` and of `course grade`: which function answers an exercise is decided here.
"""

import ast
import functools
import inspect
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from course_utils.checks.notebook import code_cells, in_python
from course_utils.checks.registry import declared
from course_utils.errors import CourseError
from course_utils.ranks.engine.notebook_cells import Answer, Cells

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
        return {_lesson_of()[name] for name in self.answers}

    @property
    def expected(self) -> list[str]:
        """Every exercise of these lessons."""
        return [name for name, lesson in _lesson_of().items() if lesson in self.lessons]

    @property
    def answered(self) -> list[str]:
        """The exercises that it answers, or has checked."""
        return [name for name in self.expected if name in self.answers]

    def answer(self, exercise: str) -> Answer:
        """Its function for an exercise that it answers."""
        name = self.answers[exercise]
        return Answer(exercise, name, self.cells, self.signatures.get(name))


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
    for number, written in enumerate(code_cells(notebook), start=1):
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
    answers = {name: name for name in own if name in _lesson_of()}
    answers |= {name: function for name, function in checked.items() if name in _lesson_of()}
    if not answers:
        raise CourseError(f"{notebook} answers no exercise of the course.")
    last = max((needed[function] for function in answers.values() if function in needed), default=-1)
    return Submission(notebook.name, tuple(cells[: last + 1]), answers, signatures)


@functools.cache
def _lesson_of() -> dict[str, str]:
    """Exercise → the stem of its lesson, in order."""
    return {exercise.name: exercise.lesson for exercise in declared()}


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
    """The parameters' names and kinds; every default becomes None, for it would have to be run to be known.

    None for what Python rejects, such as two parameters of one name: it will say so itself.
    """
    for parameter in ast.walk(arguments):
        if isinstance(parameter, ast.arg):
            parameter.annotation = None
    arguments.defaults = [ast.Constant(None) for _ in arguments.defaults]
    arguments.kw_defaults = [default and ast.Constant(None) for default in arguments.kw_defaults]
    function = ast.fix_missing_locations(ast.Expression(ast.Lambda(arguments, ast.Constant(None))))
    try:  # the lambda is made of names and of None, and is not called: nothing of the notebook's runs
        return inspect.signature(eval(compile(function, "signature", "eval")))
    except (SyntaxError, ValueError):
        return None
