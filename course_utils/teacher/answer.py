"""A submitted function, as the grader holds it: a name and a text. On contained ranks it becomes a function."""

import ast
import contextlib
import linecache
from collections.abc import Callable
from inspect import Signature
from typing import Any

from course_utils.ranks.engine import guard_hook

PACKAGES = {"course_utils", "matplotlib", "mpi4py", "numpy", "torch", "torchvision"}
"""What lessons import. These packages are no submission's, and may start a process as they are imported: matplotlib
asks the system which fonts there are."""

_loaded: dict[str, Any] = {}
_cells_loaded: list[tuple] = []


class Answer:
    """Stands for a submitted function where the checks are told of it; calling it here is an error."""

    def __init__(self, name: str, cells: tuple[tuple[str, str], ...], signature: Signature | None) -> None:
        self.__name__ = name
        self._cells = cells
        if signature is not None:
            self.__signature__ = signature

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        raise RuntimeError("a submitted function runs on contained ranks only")

    def __reduce__(self) -> tuple:
        return on_the_rank, (self.__name__, self._cells)


def on_the_rank(name: str, cells: tuple[tuple[str, str], ...]) -> Callable:
    """The function that, on a rank, runs the submission's definitions before its first call."""

    def answer(*arguments: Any, **keywords: Any) -> Any:
        if not _cells_loaded:
            _load(cells)
        if name not in _loaded:
            raise NameError(f"name {name!r} is not defined in this notebook, or its cell has a mistake")
        return _loaded[name](*arguments, **keywords)

    return answer


def _load(cells: tuple[tuple[str, str], ...]) -> None:
    if not guard_hook.hooks:
        raise RuntimeError("this process is no contained rank")
    for _, source in cells:
        _import_packages(source)
    guard_hook.arm()
    _cells_loaded.append(cells)
    _loaded["__name__"] = "submission"
    for file, source in cells:
        linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
        for node in ast.parse(source).body:  # one by one: what a page imports for its own use may be out of sight here
            try:
                exec(compile(ast.Module([node], []), file, "exec"), _loaded)
            except Exception as error:
                print(f"{file}, line {node.lineno}: {type(error).__name__}: {error}")


def _import_packages(source: str) -> None:
    """Carry out the imports of `PACKAGES`, before the guard refuses what they do; their names are bound later."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.ImportFrom):
            modules = [node.module or ""]
        elif isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        else:
            continue
        if all(module.partition(".")[0] in PACKAGES for module in modules):
            with contextlib.suppress(Exception):  # the cell says it again, and then it is told
                exec(compile(ast.Module([node], []), "imports", "exec"), {})
