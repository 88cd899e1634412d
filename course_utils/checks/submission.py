"""What a handed-in notebook holds: read as text and as a syntax tree, never run in this process.

The one reader of `course check NOTEBOOK` and of `course grade`: which function answers an exercise is decided here.
"""

import ast
import builtins
import functools
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from course_utils.checks.notebook import cells_of, in_python, runs_on_ranks_only
from course_utils.checks.registry import declared
from course_utils.checks.undefined_answer import Undefined, UndefinedAnswer
from course_utils.errors import CourseError
from course_utils.ranks.engine.notebook_cells import Answer, CellFailure, Cells

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_STATEMENTS_WITH_BODIES = ("body", "orelse", "finalbody", "handlers", "cases")
_A_DEFINITION = re.compile(r"^\s*(?:async\s+)?(?:def|class)\s+(\w+)", re.MULTILINE)


@dataclass(frozen=True)
class Submission:
    """A notebook's answers, as text.

    Attributes:
        name: of the file.
        cells: the code cells that are run, as Python: what is IPython's has become calls of `get_ipython()`.
        answers: exercise → the name that the notebook gives to its function; "" where it has none.
        signatures: of functions whose parameters can be read.
        numbers: of the cells, as they are counted among the notebook's code cells.
        defined_by: name → the last statement that defines it, by its cell's index and its line.
        unread: name → why the cell that should define it does not.
    """

    name: str
    cells: Cells
    answers: dict[str, str]
    signatures: dict[str, inspect.Signature] = field(default_factory=dict)
    numbers: tuple[int, ...] = ()
    defined_by: dict[str, tuple[int, int]] = field(default_factory=dict)
    unread: dict[str, UndefinedAnswer] = field(default_factory=dict)

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

    def undefined(self, exercise: str, failures: tuple[CellFailure, ...] = ()) -> UndefinedAnswer:
        """Why there is no function for an exercise once the cells have run, with these failures."""
        name = self.answers.get(exercise, exercise)
        cell, line = self.defined_by.get(name, (-1, 0))
        for failure in failures:
            if failure.cell == cell and failure.line in (line, 0):
                why = Undefined.RAISED if failure.line else Undefined.CUT_OFF
                return UndefinedAnswer(name, why, self.numbers[cell], failure.line, message=failure.message)
        return self.unread.get(name, UndefinedAnswer(name))


def read(notebook: Path) -> Submission:
    """Read a submission.

    Raises:
        CourseError: the file is not a notebook, or answers no exercise.
    """
    reading = _SubmissionReader(notebook.name)
    for kind, written in cells_of(notebook):
        if kind == "code":
            reading.add_code(written)
        elif kind == "raw":  # a text may show a function that is no answer
            reading.add_unread(written, UndefinedAnswer("", Undefined.NO_CODE))
    submission = reading.submission()
    if not submission.answers:
        raise CourseError(f"{notebook} answers no exercise of the course.")
    return submission


class _SubmissionReader:
    """What has been found in a notebook's cells so far."""

    def __init__(self, notebook: str) -> None:
        self._notebook, self._number = notebook, 0
        self._cells: list[tuple[str, str]] = []  # those that are Python, and will be run
        self._numbers: list[int] = []
        self._signatures: dict[str, inspect.Signature] = {}
        self._defined_by: dict[str, tuple[int, int]] = {}
        self._unread: dict[str, UndefinedAnswer] = {}
        self._checked: dict[str, str] = {}  # exercise → the name of the function that was given to its check
        self._needed: dict[str, int] = {}  # the last cell that each name's function needs
        self._imported: set[str] = set()
        self._names: list[tuple[set[str], set[str]]] = []  # of each cell, those that it uses and those that it binds
        self._names_of_check = {"check"}
        self._is_checked_indirectly = False  # in a loop, or by a function of the notebook's own
        self._texts: list[str] = []

    def submission(self) -> Submission:
        """The notebook, once all cells have been added."""
        answers = self._answers()
        cells = self._cells_to_run(answers)
        return Submission(
            self._notebook, cells, answers, self._signatures, tuple(self._numbers), self._defined_by, self._unread
        )

    def add_unread(self, written: str, why: UndefinedAnswer) -> None:
        """A cell of which nothing is run: what it seems to define is missing for this reason."""
        for name in _A_DEFINITION.findall(written):
            if name in _lesson_of():
                self._unread[name] = replace(why, function=name)

    def add_code(self, written: str) -> None:
        """A code cell."""
        self._number += 1
        if runs_on_ranks_only(written):
            self.add_unread(written, UndefinedAnswer("", Undefined.ON_RANKS_ONLY, self._number))
        source = in_python(written)
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            self.add_unread(written, _unreadable(self._number, source, error))
            return
        self._add_names(list(ast.walk(tree)))  # first, because reading signatures takes the defaults away
        for statement in tree.body:
            self._add_statement(statement)
        self._cells.append((f"cell {self._number} of {self._notebook}", source))
        self._numbers.append(self._number)

    def _add_statement(self, statement: ast.stmt) -> None:
        """Note what a statement of a cell has checked, and the names that it binds."""
        self._add_checks(statement)
        for node in _statements([statement]):
            for name in _bound(node):
                self._needed[name] = len(self._cells)
                self._defined_by[name] = len(self._cells), statement.lineno
                change = self._imported.add if isinstance(node, ast.Import | ast.ImportFrom) else self._imported.discard
                change(name)
                self._signatures.pop(name, None)
                if isinstance(node, ast.FunctionDef) and not node.decorator_list and (known := _signature(node.args)):
                    self._signatures[name] = known

    def _add_checks(self, statement: ast.stmt) -> None:
        """Note the functions that a statement has checked; a function without a name is called as its exercise."""
        parts = list(ast.walk(statement))
        aliases = [alias for part in parts if isinstance(part, ast.ImportFrom) for alias in part.names]
        self._names_of_check |= {alias.asname for alias in aliases if alias.name == "check" and alias.asname}
        indirect = {id(part) for part in parts if self._is_check(part)}
        for part in parts:
            if isinstance(part, ast.Call) and self._is_check(part.func):
                given = dict(zip(("name", "function"), part.args))
                given |= {keyword.arg: keyword.value for keyword in part.keywords if keyword.arg}
                match given.get("name"), given.get("function"):
                    case ast.Constant(str(exercise)), function:
                        indirect.discard(id(part.func))
                        self._checked[exercise] = function.id if isinstance(function, ast.Name) else exercise
                        self._needed[self._checked[exercise]] = len(self._cells)
        inside = (part for part in parts if isinstance(part, (*_DEFINITIONS, ast.Lambda)))
        indirect |= {id(part) for definition in inside for part in ast.walk(definition) if self._is_check(part)}
        self._is_checked_indirectly |= bool(indirect)

    def _add_names(self, parts: list[ast.AST]) -> None:
        """Note the names and the texts of a cell."""
        names = [part for part in parts if isinstance(part, ast.Name)]
        used = {name.id for name in names if isinstance(name.ctx, ast.Load)}
        stored = {name.id for name in names if not isinstance(name.ctx, ast.Load)}
        arguments = {part.arg for part in parts if isinstance(part, ast.arg)}
        bound = {name for part in parts if isinstance(part, ast.stmt) for name in _bound(part)}
        self._names.append((used, stored | arguments | bound))
        self._texts += [part.value for part in parts if isinstance(part, ast.Constant) and type(part.value) is str]

    def _is_check(self, part: ast.AST) -> bool:
        match part:
            case ast.Attribute(attr="check", ctx=ast.Load()):
                return True
            case ast.Name(id=name, ctx=ast.Load()):
                return name in self._names_of_check
        return False

    def _answers(self) -> dict[str, str]:
        """Exercise → the name of its function. What is imported is an earlier lesson's, unless it was checked."""
        own = self._needed.keys() - self._imported
        answers = {name: name for name in (*self._unread, *own) if name in _lesson_of()}
        if self._is_checked_indirectly:
            answers |= {name: name for name in self._texts if name in _lesson_of()}
        return answers | {name: function for name, function in self._checked.items() if name in _lesson_of()}

    def _cells_to_run(self, answers: dict[str, str]) -> Cells:
        """The cells up to the last that is needed.

        These are all of them if a function is taken as it is at the end. Of the cells behind the last check, those with
        a helper that nothing before them defines are needed, too.
        """
        if self._is_checked_indirectly or answers.keys() - self._checked.keys() - self._unread.keys():
            return tuple(self._cells)
        last = max((self._needed[function] for function in answers.values() if function in self._needed), default=-1)
        while last >= 0 and (behind := self._helpers_behind(last)):
            last = max(behind)
        return tuple(self._cells[: last + 1])

    def _helpers_behind(self, last: int) -> list[int]:
        """The cells behind this one that bind a name which the cells up to it use and do not bind."""
        used = {name for names, _ in self._names[: last + 1] for name in names}
        bound = {name for _, names in self._names[: last + 1] for name in names}
        missing = used - bound - vars(builtins).keys()
        return [number for number in range(last + 1, len(self._names)) if self._names[number][1] & missing]


def _unreadable(number: int, source: str, error: Exception) -> UndefinedAnswer:
    """A cell that is no Python: at which line, and what Python says of it."""
    line = error.lineno or 0 if isinstance(error, SyntaxError) else 0
    lines = source.splitlines()
    code = lines[line - 1] if 0 < line <= len(lines) else ""
    message = error.msg if isinstance(error, SyntaxError) else str(error)
    return UndefinedAnswer("", Undefined.SYNTAX_ERROR, number, line, code, message)


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


def _bound(node: ast.stmt) -> list[str]:
    if isinstance(node, _DEFINITIONS):
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
