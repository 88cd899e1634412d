"""What a submission must not see: the course's own answers, its solutions, its tests, other submissions.

What lessons before the submission's own have taught is library, which its answers may use; that stays in sight.
The ranks import the other lessons' modules from copies (`teacher.copies`) in which each exercise's body is one line
that raises. Where the system allows a mount namespace, the originals are covered as well: they cannot even be read.
"""

import ast
from pathlib import Path

from course_utils.checks.registry import declared
from course_utils.syllabus import ROOT

_PACKAGE = Path(__file__).resolve().parents[1]
_FOLDERS = ("exercises", "tests", "slides", "notebooks", ".git", "docs")


def lesson_modules(since: str = "") -> dict[str, tuple[str, ...]]:
    """Module → the functions in it that are the answers to exercises, or as good as answers.

    Args:
        since: stem of the first lesson whose answers count; "" means all.
    """
    found: dict[str, tuple[str, ...]] = {}
    for exercise in declared():
        if exercise.lesson < since:
            continue
        for place in (exercise.library, *exercise.also_hidden):
            module, _, function = place.partition(":")
            found[module] = (*found.get(module, ()), function)
    return found


def _file(module: str) -> Path:
    return _PACKAGE.parent.joinpath(*module.split(".")).with_suffix(".py")


def without_answers(source: str, exercises: tuple[str, ...]) -> str:
    """A module's source with the bodies of its exercises taken out; their signatures stay."""
    tree = ast.parse(source)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name in exercises:
            text = f"the course's own {node.name} is hidden while answers are graded"
            node.body = ast.parse(f"raise NotImplementedError({text!r})").body
    return ast.unparse(tree)


def write_copies(folder: Path, since: str = "") -> None:
    """Put the modules without their answers into `folder`."""
    for module, exercises in lesson_modules(since).items():
        source = _file(module).read_text(encoding="utf-8")
        (folder / f"{module}.py").write_text(without_answers(source, exercises), encoding="utf-8")


def hidden_folders() -> list[Path]:
    """Folders that ranks must not look into."""
    beside = [ROOT / name for name in _FOLDERS] if (ROOT / "pyproject.toml").exists() else []
    found = [_PACKAGE / "checks", *_PACKAGE.glob("lessons/*/checks"), *beside]
    return [folder for folder in found if folder.is_dir()]


def hidden_files(since: str = "") -> list[Path]:
    """Files that ranks must not read: the originals of the lessons' modules, and what Python has compiled of them."""
    originals = [_file(module) for module in lesson_modules(since)]
    compiled = [one for file in originals for one in (file.parent / "__pycache__").glob(f"{file.stem}.*.pyc")]
    return [*originals, *sorted(compiled)]
