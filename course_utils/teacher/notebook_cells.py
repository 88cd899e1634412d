"""A submission's cells, run in a contained rank as the notebook would run them, and the functions that come of them.

There is no notebook in the box: what starts ranks, checks, shows or asks IPython for something does nothing there, but
that a check notes which function it was given.
"""

import __future__

import ast
import asyncio
import inspect
import linecache
import os
import signal
import sys
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from course_utils.ranks.engine.interrupts import imports
from course_utils.ranks.engine.reply import from_bytes, to_bytes

SECONDS = 40
"""For one cell; what it has defined by then counts."""
Cells = tuple[tuple[str, str], ...]
"""Of each cell its name in messages, and its source."""


class OutOfTime(BaseException):
    """A cell took too long."""


class Nothing:
    """Takes the place of ranks, results and pictures: whatever is done with it gives nothing again."""

    def __getattr__(self, name: str) -> "Nothing":
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __call__(self, *_: Any, **__: Any) -> "Nothing":
        return self

    def __getitem__(self, _: Any) -> "Nothing":
        return self

    def __iter__(self) -> Iterator:
        return iter(())

    def __enter__(self) -> "Nothing":
        return self

    def __exit__(self, *_: object) -> None: ...


class _Shell(Nothing):
    """In the place of IPython."""

    def run_line_magic(self, name: str, line: str, *_: Any) -> None:
        if name == "cd":
            os.chdir(Path(line).expanduser())


class _Names(types.ModuleType):
    """A module of which every name stands for nothing."""

    def __getattr__(self, name: str) -> Nothing:
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing()


_namespace: dict[str, Any] = {"__name__": "__main__"}
_checked: dict[str, Any] = {}
_loaded: list[Cells] = []
_from_the_future: set[str] = set()


def stand_in_for_the_notebook() -> None:
    """Put what does nothing in the place of what a notebook has and a contained rank has not."""
    course_utils = sys.modules["course_utils"]
    for name in ("start", "hint", "progress", "predict", "measured", "doctor", "report"):
        setattr(course_utils, name, Nothing())
    vars(course_utils)["check"] = _note
    sys.modules["course_utils.checks"] = _Names("course_utils.checks")
    shell = _Shell()
    _namespace.update(get_ipython=lambda: shell, display=shell, course=course_utils)


def _note(exercise: Any = None, function: Any = None, *_: Any, **__: Any) -> Nothing:
    """In the place of `course.check`: the function counts as it is now, and so does all that it needs.

    The copy is the one that ranks would have been sent. Whatever the notebook makes of these names later, it stays.
    """
    if type(exercise) is str and callable(function):
        try:
            function = from_bytes(to_bytes(function))
        except Exception as error:
            print(f"{exercise} uses something that cannot be sent to ranks: {error}")
        _checked[exercise] = function
    return Nothing()


def run_cells(cells: Cells) -> None:
    """Run them in order, once, each statement by itself: what fails is printed and passed over."""
    if cells in _loaded:
        return
    _loaded.append(cells)
    for file, source in cells:
        linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
        try:
            with _limited(SECONDS):
                _run(file, source)
        except OutOfTime:
            print(f"{file} was broken off after {SECONDS} s")


def _run(file: str, source: str) -> None:
    tree = ast.parse(source, file)
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            _from_the_future.update(alias.name for alias in node.names)  # for the cells to come as well
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    for name in _from_the_future:
        flags |= getattr(__future__, name).compiler_flag
    for node in tree.body:
        try:
            code = compile(ast.Module([node], []), file, "exec", flags=flags, dont_inherit=True)
            waits = eval(code, _namespace)
            if code.co_flags & inspect.CO_COROUTINE:
                asyncio.run(waits)
        except (Exception, SystemExit, GeneratorExit, asyncio.CancelledError) as error:
            print(f"{file}, line {node.lineno}: {type(error).__name__}: {error}")


@contextmanager
def _limited(seconds: int) -> Iterator[None]:
    def leave(_: int, frame: types.FrameType | None) -> None:
        if imports(frame):
            signal.alarm(1)
        else:
            raise OutOfTime

    before = signal.signal(signal.SIGALRM, leave)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def answer_of(exercise: str, name: str, cells: Cells) -> Callable:
    """The submission's function for an exercise: as its check cell was given it, else as its name stands at the end."""

    def answer(*arguments: Any, **keywords: Any) -> Any:
        run_cells(cells)
        function = _checked.get(exercise, _namespace.get(name))
        if function is None:
            raise NameError(f"name {name!r} is not defined in this notebook, or its cell has a mistake")
        return function(*arguments, **keywords)

    return answer
