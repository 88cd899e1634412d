"""Answers that are the same after renaming: a hint for a teacher, and no verdict.

Two answers are compared as syntax trees in which local names are numbered in the order of their first use, and
docstrings, comments, annotations and the order of imports are gone. What is short, what is like a right answer that the
course knows, and what many of a class have written tells nothing, and is left out. Moss and JPlag find more, such as
statements in another order, but they compare whole programs, and most of a notebook here is the same for everybody.
"""

import ast
import importlib.util
import itertools
import multiprocessing
import resource
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path

from course_utils.checks.notebook import is_docstring
from course_utils.checks.registry import find
from course_utils.checks.submission import Submission, read
from course_utils.errors import CourseError

FEWEST_STATEMENTS = 6
"""Shorter answers are often the same by chance."""
MOST_ALIKE = 4
"""Learners with the same answer; what more of them have written is what people write."""
_SECONDS = 90.0
"""For reading one notebook, and for the start of the process that does so, on a busy machine."""
_BYTES = 2 << 30
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class AlikeAnswers:
    """Learners whose answers to an exercise are equal after renaming.

    Attributes:
        exercise: its name.
        learners: two or more.
        statements: how many the answer has.
    """

    exercise: str
    learners: tuple[str, ...]
    statements: int


@dataclass(frozen=True)
class AnswerShape:
    """An answer without the names that its author has chosen."""

    tree: str
    statements: int


def alike_answers(notebooks: Sequence[tuple[str, Path]]) -> list[AlikeAnswers]:
    """Find answers that are equal after renaming, those with the most statements first.

    Args:
        notebooks: a learner's name, and what this learner handed in. They are read in a process of their own.
    """
    written: defaultdict[str, defaultdict[AnswerShape, list[str]]] = defaultdict(lambda: defaultdict(list))
    for learner, shapes in _read_all(notebooks):
        for exercise, shape in shapes.items():
            if shape.statements >= FEWEST_STATEMENTS and learner not in written[exercise][shape]:
                written[exercise][shape].append(learner)
    found = []
    for exercise, by_shape in written.items():
        several = {shape: learners for shape, learners in by_shape.items() if 1 < len(learners) <= MOST_ALIKE}
        known = known_shapes(exercise) if several else frozenset()
        found += [
            AlikeAnswers(exercise, tuple(learners), shape.statements)
            for shape, learners in several.items()
            if shape.tree not in known
        ]
    return sorted(found, key=lambda alike: -alike.statements)


def _read_all(notebooks: Sequence[tuple[str, Path]]) -> Iterator[tuple[str, dict[str, AnswerShape]]]:
    """Read notebooks in a process that they may break; then those after it are read by a new one."""
    left = list(notebooks)
    while left:
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), initializer=_limit_memory) as process:
            waiting = [(learner, process.submit(shapes_in, file)) for learner, file in left]
            for number, (learner, answer) in enumerate(waiting):
                try:
                    yield learner, answer.result(_SECONDS)
                except (BrokenProcessPool, TimeoutError):
                    left = left[number + 1 :]
                    for other in list(process._processes.values()):
                        other.kill()
                    break
            else:
                left = []


def _limit_memory() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_BYTES, resource.getrlimit(resource.RLIMIT_AS)[1]))


def shapes_in(notebook: Path) -> dict[str, AnswerShape]:
    """The shape of each answer of a notebook; nothing of it is run."""
    try:
        submission = read(notebook)
    except (CourseError, RecursionError, MemoryError):
        return {}
    functions = _functions_of(submission)
    return {
        exercise: shape_of(name, functions)
        for exercise, name in submission.answers.items()
        if isinstance(functions.get(name), _FUNCTIONS)
    }


def _functions_of(submission: Submission) -> dict[str, ast.stmt]:
    """The functions of a notebook by name; of several definitions the last."""
    functions: dict[str, ast.stmt] = {}
    for _, source in submission.cells:
        try:
            functions |= _functions_in(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
    return functions


def _functions_in(source: str) -> dict[str, ast.stmt]:
    return {node.name: node for node in ast.parse(source).body if isinstance(node, _FUNCTIONS)}


def known_shapes(exercise: str) -> frozenset[str]:
    """The shapes of the right answers that the course knows for an exercise, its own among them."""
    trees = set()
    found = find(exercise)
    spec = importlib.util.find_spec(found.library.partition(":")[0])
    own = Path(spec.origin).read_text(encoding="utf-8") if spec and spec.origin else ""
    for source in (own, *(program.source for program in found.written.right)):
        functions = _functions_in(source)
        if exercise in functions:
            trees.add(shape_of(exercise, functions).tree)
    return frozenset(trees)


def shape_of(name: str, functions: Mapping[str, ast.stmt]) -> AnswerShape:
    """The shape of a function and of the functions of the notebook that it uses.

    Args:
        name: the function.
        functions: all functions of the notebook, by name.
    """
    used = {function: functions[function] for function in _with_helpers(name, functions)}
    renaming = _Renaming(used)
    trees = [renaming.visit(_plain(function)) for function in used.values()]
    statements = sum(isinstance(node, ast.stmt) for tree in trees for node in ast.walk(tree))
    return AnswerShape("\n".join(ast.dump(tree) for tree in trees), statements)


def _with_helpers(name: str, functions: Mapping[str, ast.stmt]) -> list[str]:
    """The function and those that it uses, in the order of first use."""
    found = [name]
    for function in found:
        for node in ast.walk(functions[function]):
            if isinstance(node, ast.Name) and node.id in functions and node.id not in found:
                found.append(node.id)
    return found


def _plain(function: ast.stmt) -> ast.stmt:
    """A copy without docstrings and annotations, with its imports in alphabetical order."""
    copy = ast.parse(ast.unparse(function)).body[0]
    for node in ast.walk(copy):
        if isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
            node.body = [part for part in node.body if not is_docstring(part)] or [ast.Pass()]
            if not isinstance(node, ast.ClassDef):
                node.returns = None
        if isinstance(body := getattr(node, "body", None), list):
            node.body = list(_sorted_imports(body))  # type: ignore[attr-defined]
    return copy


def _sorted_imports(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    for is_import, group in itertools.groupby(body, lambda node: isinstance(node, ast.Import | ast.ImportFrom)):
        nodes = list(group)
        yield from sorted(nodes, key=ast.dump) if is_import else map(_without_annotation, nodes)


def _without_annotation(node: ast.stmt) -> ast.stmt:
    if isinstance(node, ast.AnnAssign) and node.value is not None:
        return ast.Assign([node.target], node.value)
    return node


class _Renaming(ast.NodeTransformer):
    """Numbers the names that an answer gives; those that it only uses, such as `range` and `comm.Send`, stay."""

    def __init__(self, functions: Mapping[str, ast.stmt]) -> None:
        self._own = set(functions)
        for function in functions.values():
            for node in ast.walk(function):
                if isinstance(node, ast.arg):
                    self._own.add(node.arg)
                elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    self._own.add(node.id)
                elif isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
                    self._own.add(node.name)
        self._numbers: dict[str, str] = {}

    def _number(self, name: str) -> str:
        return self._numbers.setdefault(name, f"v{len(self._numbers)}") if name in self._own else name

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Name(self._number(node.id), node.ctx)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return ast.arg(self._number(node.arg))

    def _visit_definition(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> ast.AST:
        node.name = self._number(node.name)
        self.generic_visit(node)
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = _visit_definition
