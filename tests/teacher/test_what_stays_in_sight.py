"""Nothing that a sandbox keeps in sight of the course solves the exercise that is being judged in it.

Each answer is compared, statement by statement and without its variables' names, with every function that stays.
"""

import ast
import copy
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from course_utils.checks.registry import declared, own_answers
from course_utils.syllabus import ROOT

PACKAGE = ROOT / "course_utils"
NOT_IN_SIGHT = {"checks", "teacher"}
SHARE, LEAST = 0.5, 3
"""Of an answer's statements, and of how many at least, a function is taken for one that may solve the exercise."""
_BODIES = ("body", "orelse", "handlers", "finalbody")
_WITHOUT_WORK = (ast.FunctionDef, ast.ClassDef, ast.With, ast.Try, ast.Import, ast.ImportFrom)
SLOW = "lesson 14 gives the slow program, which the answer makes faster"
ANOTHER_SCHEDULE = "a different schedule, which shares the loop over what stages have left to do"
GIVEN = {
    ("speed_up_1", "slow_1"): SLOW,
    ("speed_up_2", "slow_2"): SLOW,
    ("speed_up_4", "slow_4"): SLOW,
    ("speed_up_5", "slow_5"): SLOW,
    ("average_gradients", "gather_scatter_gradients"): "a different algorithm, which sends more and is rejected",
    ("gpipe_schedule", "zb_v_schedule"): ANOTHER_SCHEDULE,
    ("gpipe_schedule", "dual_pipe_v_schedule"): ANOTHER_SCHEDULE,
    ("one_f_one_b_schedule", "zb_v_schedule"): ANOTHER_SCHEDULE,
    ("one_f_one_b_schedule", "dual_pipe_v_schedule"): ANOTHER_SCHEDULE,
    ("pack_samples", "packed_file"): "draws the format that the exercise's text describes, and writes no file",
}
"""What is in sight on purpose: (exercise, function) → why."""


class _WithoutNames(ast.NodeTransformer):
    """Variables have other names in every function; what is called on them has not."""

    def visit_Name(self, node: ast.Name) -> ast.Name:  # noqa: N802 - ast's name
        return ast.Name("_", node.ctx)

    def visit_arg(self, node: ast.arg) -> ast.arg:
        return ast.arg("_")


def statements_of(function: ast.FunctionDef) -> Counter[str]:
    """The statements of a function, each without those inside it."""
    found: Counter[str] = Counter()
    for node in ast.walk(function):
        is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(node, ast.stmt) and not isinstance(node, _WITHOUT_WORK) and not is_docstring:
            alone = copy.copy(node)
            for name in _BODIES:
                if hasattr(alone, name):
                    setattr(alone, name, [])
            found[ast.dump(_WithoutNames().visit(copy.deepcopy(alone)))] += 1
    return found


def functions_in_sight() -> Iterator[tuple[str, str, Counter[str]]]:
    """Module, name and statements of every function of the course but those of the checks."""
    for file in sorted(PACKAGE.rglob("*.py")):
        parts = file.relative_to(ROOT).with_suffix("").parts
        if NOT_IN_SIGHT.isdisjoint(parts):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.FunctionDef):
                    yield ".".join(parts), node.name, statements_of(node)


def alike(answer: Counter[str], other: Counter[str]) -> bool:
    common = (answer & other).total()
    return common >= LEAST and common >= SHARE * answer.total()


def test_no_function_that_stays_in_sight_is_as_good_as_a_hidden_answer() -> None:
    functions = list(functions_in_sight())
    statements = {f"{module}:{name}": own for module, name, own in functions}
    found = set()
    for exercise in declared():
        hidden = own_answers(since=exercise.lesson)
        for answer in (exercise.library, *exercise.also_hidden):
            for module, name, own in functions:
                if f"{module}:{name}" not in hidden and alike(statements.get(answer, Counter()), own):
                    found.add((exercise.name, name))
    assert found - GIVEN.keys() == set(), "hide it with `also_hidden`, or say in GIVEN why it is in sight on purpose"
    assert GIVEN.keys() - found == set(), "no longer in sight"


def test_a_copy_with_other_names_is_found() -> None:
    original, renamed, other = (
        statements_of(ast.parse(text).body[0])  # type: ignore[arg-type]
        for text in (
            "def f(comm, x):\n    n = comm.size\n    for i in range(n):\n        x += comm.recv()\n    return x",
            "def g(c, total):\n    p = c.size\n    for k in range(p):\n        total += c.recv()\n    return total",
            "def h(comm, x):\n    comm.send(x)\n    y = comm.recv()\n    del x\n    return y",
        )
    )
    assert alike(original, renamed) and not alike(original, other)


def test_hidden_answers_are_functions_of_the_course() -> None:
    for dotted_name in own_answers():
        module = dotted_name.partition(":")[0]
        assert Path(ROOT, *module.split(".")).with_suffix(".py").exists(), dotted_name
