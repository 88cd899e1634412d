"""What a submitted notebook holds: read as text and as a syntax tree, never run in this process."""

import ast
import inspect
import re
from dataclasses import dataclass, field
from pathlib import Path

from course_utils.checks.notebook import checked_function, code_cells, defines
from course_utils.checks.registry import declared
from course_utils.errors import CourseError

_MACHINERY = ("course_utils.checks", "course_utils.ranks", "course_utils.teacher", "course_utils.trace")
_LESSONS_CHECKS = re.compile(r"course_utils\.lessons\.\w+\.checks\b")
_FOR_LEARNERS = {("course_utils.trace.recorder", "phase")}
_LESSON_OF = {exercise.name: exercise.lesson for exercise in declared()}


@dataclass(frozen=True)
class Submission:
    """A notebook's answers, as text.

    Attributes:
        name: of the file.
        cells: (the cell's name in messages, source) of every cell that defines something, up to the last answer. Only
            their imports, definitions and assignments without a call are kept: nothing else of a notebook is run.
        answers: exercise → the name that the notebook gives to its function.
        signatures: of functions whose parameters can be read.
        refusals: why the notebook as a whole scores zero; empty for an honest one.
    """

    name: str
    cells: tuple[tuple[str, str], ...]
    answers: dict[str, str]
    signatures: dict[str, inspect.Signature] = field(default_factory=dict)
    refusals: tuple[str, ...] = ()

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
        CourseError: the file is no notebook, or answers no exercise.
    """
    cells: list[tuple[str, str]] = []
    checked: dict[str, str] = {}
    defined: dict[str, int] = {}
    imported: set[str] = set()
    signatures: dict[str, inspect.Signature] = {}
    refusals: list[str] = []
    for number, source in enumerate(code_cells(notebook), start=1):
        try:
            tree = ast.parse(source)
        except (SyntaxError, ValueError, RecursionError):  # a magic, or a mistake: what it defines is then missing
            continue
        refusals += [f"cell {number} {why}" for why in _refusals(tree)]
        checked.update(filter(None, map(checked_function, tree.body)))
        kept = [node for node in tree.body if defines(node)]
        if not kept:
            continue
        for node in kept:
            for name in _bound(node):
                defined[name] = len(cells)
                (imported.add if isinstance(node, ast.Import | ast.ImportFrom) else imported.discard)(name)
                signatures.pop(name, None)
                if isinstance(node, ast.FunctionDef) and not node.decorator_list:
                    signatures[name] = _signature(node.args)
        cells.append((f"cell {number} of {notebook.name}", _only(kept, source)))
    own = defined.keys() - imported  # what is imported is an earlier lesson's, unless the notebook has it checked
    answers = {name: name for name in defined if name in own and name in _LESSON_OF} | {
        name: function for name, function in checked.items() if name in _LESSON_OF
    }
    if not answers:
        raise CourseError(f"{notebook} answers no exercise of the course.")
    last = max((defined[function] for function in answers.values() if function in defined), default=-1)
    answers = {name: function for name, function in answers.items() if function in defined} or dict.fromkeys(
        answers, ""
    )
    return Submission(notebook.name, tuple(cells[: last + 1]), answers, signatures, tuple(dict.fromkeys(refusals)))


def _only(nodes: list[ast.stmt], source: str) -> str:
    """The source with every other line emptied, so that the lines keep their numbers."""
    lines = source.splitlines()
    kept: set[int] = set()
    for node in nodes:
        first = min([node.lineno, *(one.lineno for one in getattr(node, "decorator_list", []))])
        kept.update(range(first, (node.end_lineno or node.lineno) + 1))
    return "\n".join(line if number in kept else "" for number, line in enumerate(lines, start=1))


def _bound(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [alias.asname or alias.name.partition(".")[0] for alias in node.names]
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    names = [part for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)]
    return [name.id for name in names if isinstance(name.ctx, ast.Store)]  # `f.calls = 0` reads f


def _signature(arguments: ast.arguments) -> inspect.Signature:
    """The parameters' names and kinds; every default is None, for it would have to be run to be known."""
    kinds = inspect.Parameter
    plain = [(one, kinds.POSITIONAL_ONLY) for one in arguments.posonlyargs]
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
    return inspect.Signature(found)


def _refusals(tree: ast.Module) -> list[str]:
    """What no answer needs and no grader can let pass, wherever in the notebook it stands."""
    course = _names_of_the_course(tree)
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr.startswith(("input_transformer", "ast_transformer")):
            found.append("changes what IPython makes of a cell (an input transformer)")
        elif isinstance(node, ast.Import):
            found += [_reaches(alias.name) for alias in node.names if _is_machinery(alias.name)]
        elif isinstance(node, ast.ImportFrom):
            found += [_reaches(name) for name in _machinery(node)]
        elif isinstance(node, ast.Assign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(target, ast.Attribute) and _root(target) in course for target in targets):
                found.append("patches course_utils")
        elif isinstance(node, ast.Call) and _is_setattr(node.func):
            found += ["patches course_utils"] * bool(node.args and _root(node.args[0]) in course)
    return found


def _is_setattr(function: ast.expr) -> bool:
    return isinstance(function, ast.Name) and function.id == "setattr"


def _machinery(node: ast.ImportFrom) -> list[str]:
    names = [(node.module or "", alias.name) for alias in node.names]
    return [
        f"{module}.{name}"
        for module, name in names
        if _is_machinery(f"{module}.{name}") and (module, name) not in _FOR_LEARNERS
    ]


def _is_machinery(name: str) -> bool:
    return name.startswith(_MACHINERY) or bool(_LESSONS_CHECKS.match(name))


def _reaches(name: str) -> str:
    return f"imports {name}, which is the grader's"


def _names_of_the_course(tree: ast.Module) -> set[str]:
    names = {"course", "course_utils"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.asname or "course_utils" for alias in node.names if alias.name.startswith("course_utils")}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("course_utils"):
            names |= {alias.asname or alias.name for alias in node.names}
    return names


def _root(node: ast.AST) -> str | None:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None
