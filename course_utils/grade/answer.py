"""A submitted function, as the grader holds it: a name and a text. On contained ranks it becomes a function."""

import linecache
from collections.abc import Callable
from inspect import Signature
from typing import Any

_loaded: dict[str, Any] = {}
_cells_loaded: list[tuple] = []
_arm: list[Callable[[], None]] = []  # what a contained rank does before a submission's first line


def arm() -> None:
    """Let a contained rank's guard look at things as they are now, and refuse from here on; elsewhere do nothing."""
    for begin in _arm:
        begin()


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
    if not _arm:
        raise RuntimeError("this process is no contained rank")
    _arm[0]()
    _cells_loaded.append(cells)
    _loaded["__name__"] = "submission"
    for file, source in cells:
        linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
        try:
            exec(compile(source, file, "exec"), _loaded)
        except Exception as error:
            print(f"{file}: {type(error).__name__}: {error}")
