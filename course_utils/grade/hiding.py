"""What a submission must not see: the course's own answers, its solutions, its tests, other submissions.

The ranks import the lessons' modules from copies in which each exercise's body is one line that raises. Where the
system allows a mount namespace, the originals are covered as well, so that they cannot even be read.
"""

import ast
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from pathlib import Path

from course_utils.syllabus import LESSONS, ROOT

_PACKAGE = Path(__file__).resolve().parents[1]
_FOLDERS = ("exercises", "tests", "slides", "notebooks", ".git", "docs")


def lesson_modules() -> dict[str, tuple[str, ...]]:
    """Module → the exercises whose reference it holds, for the lessons that are written."""
    found = {lesson.stem.partition("_")[2]: lesson.exercises for lesson in LESSONS}
    return {module: names for module, names in found.items() if (_PACKAGE / f"{module}.py").exists()}


def without_answers(source: str, exercises: tuple[str, ...]) -> str:
    """A module's source with the bodies of its exercises taken out; their signatures stay."""
    tree = ast.parse(source)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name in exercises:
            text = f"the course's own {node.name} is hidden while answers are graded"
            node.body = ast.parse(f"raise NotImplementedError({text!r})").body
    return ast.unparse(tree)


def write_copies(folder: Path) -> None:
    """Put the modules without their answers into `folder`."""
    for module, exercises in lesson_modules().items():
        source = (_PACKAGE / f"{module}.py").read_text(encoding="utf-8")
        (folder / f"{module}.py").write_text(without_answers(source, exercises), encoding="utf-8")


def hidden_folders() -> list[Path]:
    """Folders that ranks must not look into."""
    beside = [ROOT / name for name in _FOLDERS] if (ROOT / "pyproject.toml").exists() else []
    found = [_PACKAGE / "checks", _PACKAGE / "__pycache__", *beside]
    return [folder for folder in found if folder.is_dir()]


def hidden_files() -> list[Path]:
    """Files that ranks must not read: the originals of the lessons' modules."""
    return [_PACKAGE / f"{module}.py" for module in lesson_modules()]


class CopiesFirst(importlib.abc.MetaPathFinder):
    """Finds the lessons' modules among the copies, before Python looks where they really are."""

    def __init__(self, folder: Path) -> None:
        self._copies = {f"course_utils.{file.stem}": file for file in folder.glob("*.py")}

    def find_spec(self, name: str, path=None, target=None) -> importlib.machinery.ModuleSpec | None:
        """The copy's spec for a lesson's module, nothing for any other."""
        if name not in self._copies:
            return None
        return importlib.util.spec_from_file_location(name, self._copies[name])


def hide_in_this_process(folder: Path) -> None:
    """Runs in the rank, before anything of a submission does."""
    for module in lesson_modules():
        sys.modules.pop(f"course_utils.{module}", None)
    sys.meta_path.insert(0, CopiesFirst(folder))
