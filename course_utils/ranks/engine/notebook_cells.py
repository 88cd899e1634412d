"""A handed-in notebook's cells, run on a rank as the notebook would run them, and the functions that come of them.

There is no notebook on the rank: what starts ranks, checks, shows or asks IPython for something does nothing there, but
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
import tempfile
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from course_utils.ranks.engine.interrupts import is_importing
from course_utils.ranks.engine.reply import from_bytes, to_bytes

SECONDS = 40
"""For one cell; what it has defined by then counts."""
Cells = tuple[tuple[str, str], ...]
"""Of each cell its name in messages, and its source."""


class Answer:
    """A submitted function as its judge holds it: a name and a text. Pickled, it arrives on a rank as a function."""

    def __init__(self, exercise: str, name: str, cells: Cells, signature: inspect.Signature | None) -> None:
        self.__name__ = name
        self._exercise, self._cells = exercise, cells
        if signature is not None:
            self.__signature__ = signature

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        raise RuntimeError("a submitted function runs on ranks only")

    def __reduce__(self) -> tuple:
        return answer_of, (self._exercise, self.__name__, self._cells)


def answer_of(exercise: str, name: str, cells: Cells) -> Callable:
    """The submission's function for an exercise: as its check cell was given it, else as its name stands at the end."""

    def answer(*arguments: Any, **keywords: Any) -> Any:
        run = cells_run(cells)
        function = run.checked.get(exercise, run.namespace.get(name))
        if function is None:
            raise NameError(f"name {name!r} is not defined in this notebook, or its cell has a mistake")
        return function(*arguments, **keywords)

    return answer


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


def stand_in_for_the_notebook() -> None:
    """Put what does nothing in the place of what a notebook has and a rank has not."""
    course_utils = sys.modules["course_utils"]
    for name in ("start", "check", "hint", "progress", "predict", "measured", "answer", "doctor", "report"):
        setattr(course_utils, name, Nothing())
    sys.modules["course_utils.checks"] = _Names("course_utils.checks")


class CellsRun:
    """One run of a notebook's cells.

    Attributes:
        namespace: what they have defined.
        checked: exercise → the function that they had checked.
    """

    def __init__(self) -> None:
        shell = _Shell()
        given = {"get_ipython": lambda: shell, "display": shell, "course": sys.modules["course_utils"]}
        self.namespace: dict[str, Any] = {"__name__": "__main__", **given}
        self.checked: dict[str, Any] = {}
        self._flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT

    def note(self, exercise: Any = None, function: Any = None, *_: Any, **__: Any) -> Nothing:
        """In the place of `course.check`: the function counts as it is now, and so does all that it needs.

        The copy is the one that ranks would have been sent. Whatever the notebook makes of these names later, it stays.
        """
        if type(exercise) is str and callable(function):
            try:
                function = from_bytes(to_bytes(function))
            except Exception as error:
                print(f"{exercise} uses something that cannot be sent to ranks: {error}")
            self.checked[exercise] = function
        return Nothing()

    def run(self, file: str, source: str) -> None:
        """Run a cell, each statement by itself: what fails is printed and passed over."""
        linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
        tree = ast.parse(source, file)
        for node in tree.body:
            if (
                isinstance(node, ast.ImportFrom) and node.module == "__future__"
            ):  # it holds in the cells to come as well
                for alias in node.names:
                    self._flags |= getattr(__future__, alias.name).compiler_flag
        for node in tree.body:
            try:
                code = compile(ast.Module([node], []), file, "exec", flags=self._flags, dont_inherit=True)
                waits = eval(code, self.namespace)
                if code.co_flags & inspect.CO_COROUTINE:
                    asyncio.run(waits)
            except (Exception, SystemExit, GeneratorExit, asyncio.CancelledError) as error:
                print(f"{file}, line {node.lineno}: {type(error).__name__}: {error}")


_runs: dict[Cells, CellsRun] = {}


def run_cells(cells: Cells) -> None:
    """Run them in order, once, in an empty folder of this rank's own."""
    cells_run(cells)


def cells_run(cells: Cells) -> CellsRun:
    """The run of these cells in this process, which the first call makes."""
    from course_utils.ranks.engine.rank_process import this_rank

    if cells in _runs:
        return _runs[cells]
    run = _runs[cells] = CellsRun()
    stand_in_for_the_notebook()
    vars(sys.modules["course_utils"])["check"] = run.note
    folder = tempfile.mkdtemp(prefix="notebook-", dir=this_rank().folder.path)
    os.chdir(folder)
    sys.path.insert(0, folder)
    for file, source in cells:
        try:
            with _time_limit(SECONDS):
                run.run(file, source)
        except OutOfTime:
            print(f"{file} was broken off after {SECONDS} s")
    return run


@contextmanager
def _time_limit(seconds: int) -> Iterator[None]:
    def leave(_: int, frame: types.FrameType | None) -> None:
        if is_importing(frame):
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
