"""What a submission must not see: the course's own answers, its solutions, its tests, other submissions.

What lessons before the submission's own have taught is library, which its answers may use; that stays in sight.
Contained ranks get a copy of the course without checks, in which the body of each other exercise is one line that
raises. The originals are not in their box.
"""

import ast
import os
import shutil
from pathlib import Path

from course_utils.checks.hidden_answer import HIDDEN
from course_utils.checks.registry import own_answers

_PACKAGE = Path(__file__).resolve().parents[1]
_TEACHERS = ("__init__.py", "contained_rank.py", "rank_service.py", "second_record.py", "wire.py", "__pycache__")
"""Of the teachers' tools, what the ranks need."""


def lesson_modules(since: str = "") -> dict[str, tuple[str, ...]]:
    """Module → the functions in it that are the answers to exercises, or as good as answers.

    Args:
        since: stem of the first lesson whose answers count; "" means all.
    """
    found: dict[str, tuple[str, ...]] = {}
    for dotted_name in own_answers(since):
        module, _, function = dotted_name.partition(":")
        found[module] = (*found.get(module, ()), function)
    return found


def _file(module: str) -> Path:
    return _PACKAGE.parent.joinpath(*module.split(".")).with_suffix(".py")


def without_answers(source: str, exercises: tuple[str, ...]) -> str:
    """A module's source with the bodies of its exercises taken out; their signatures stay."""
    tree = ast.parse(source)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name in exercises:
            node.body = ast.parse(f"raise NotImplementedError({HIDDEN.format(name=node.name)!r})").body
    return ast.unparse(tree)


def write_package(folder: Path, since: str = "") -> None:
    """Put a copy of the course into `folder`, readable by all: without checks, and without the answers that count."""
    modules = {_file(module): functions for module, functions in lesson_modules(since).items()}

    def left_out(folder: str, names: list[str]) -> set[str]:
        here = Path(folder)
        if here == _PACKAGE / "teacher":
            return {name for name in names if name not in _TEACHERS}
        stems = {file.stem for file in modules if here in (file.parent, file.parent / "__pycache__")}
        return {name for name in names if name == "checks" or (name.endswith((".py", ".pyc")) and _stem(name) in stems)}

    copy = folder / _PACKAGE.name
    shutil.copytree(_PACKAGE, copy, ignore=left_out)
    for file, functions in modules.items():
        source = file.read_text(encoding="utf-8")
        (copy / file.relative_to(_PACKAGE)).write_text(without_answers(source, functions), encoding="utf-8")
    for directory, _, files in os.walk(folder):
        Path(directory).chmod(0o755)
        for name in files:
            Path(directory, name).chmod(0o644)


def _stem(name: str) -> str:
    return name.partition(".")[0]
