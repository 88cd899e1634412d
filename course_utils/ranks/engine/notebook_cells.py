"""A handed-in notebook's cells, run on a rank as the notebook would run them, and the functions that come of them.

There is no notebook on the rank: what starts ranks, checks, shows or asks IPython for something does nothing there, but
that a check notes which function it was given.
"""

import __future__

import ast
import asyncio
import inspect
import linecache
import math
import os
import signal
import sys
import tempfile
import types
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

from course_utils.ranks.engine.interrupts import is_importing
from course_utils.ranks.engine.reply import from_bytes, to_bytes

SECONDS, ALL_SECONDS = 40, 150
"""For one cell, and for all of them; what has been defined by then counts."""
_MOST_FAILURES = 100
Cells = tuple[tuple[str, str], ...]
"""Of each cell its name in messages, and its source."""


class CellFailure(NamedTuple):
    """A statement that ended with an error, and was passed over.

    Attributes:
        cell: its index.
        line: on which it begins; 0 where the whole cell was cut off.
        message: the error's type and text.
    """

    cell: int
    line: int
    message: str


class CellsReport(NamedTuple):
    """What has become of a notebook's cells on a rank.

    Attributes:
        defined: of the names that were asked for, those that stand for something.
        checked: the exercises of which a function was given to a check.
        failures: in order.
    """

    defined: tuple[str, ...]
    checked: tuple[str, ...]
    failures: tuple[CellFailure, ...]


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


def _gives_nothing(self: "Nothing", *_: Any, **__: Any) -> "Nothing":
    return self


def _is_so(*_: Any) -> bool:
    return True


class Nothing:
    """Takes the place of ranks, results and pictures: whatever is done with it gives nothing again.

    As a number it is 0, as a list it is empty, and a comparison with it comes out true: a cell that goes on to define
    an answer shall come to that line.
    """

    def __getattr__(self, name: str) -> "Nothing":
        if name.startswith("__"):
            raise AttributeError(name)
        return self

    def __iter__(self) -> Iterator:
        return iter(())

    def __await__(self) -> Generator[None, None, "Nothing"]:
        yield from ()
        return self

    def __len__(self) -> int:
        return 0

    def __bool__(self) -> bool:
        return True

    def __hash__(self) -> int:
        return 0

    def __format__(self, _: str) -> str:
        return "nothing"

    def __int__(self) -> int:
        return 0

    def __exit__(self, *_: object) -> None: ...

    async def __aexit__(self, *_: object) -> None: ...

    async def __aenter__(self) -> "Nothing":
        return self

    __array_ufunc__ = None  # NumPy leaves arithmetic to this class
    __call__ = __getitem__ = __enter__ = __setitem__ = __delitem__ = _gives_nothing
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _is_so
    __add__ = __sub__ = __mul__ = __truediv__ = __floordiv__ = __mod__ = __pow__ = __matmul__ = _gives_nothing
    __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = __rpow__ = __rmatmul__ = _gives_nothing
    __and__ = __or__ = __xor__ = __rand__ = __ror__ = __rxor__ = _gives_nothing
    __neg__ = __pos__ = __abs__ = __invert__ = __round__ = _gives_nothing
    __index__ = __trunc__ = __int__

    def __float__(self) -> float:
        return 0.0


class _Started(Nothing):
    """In the place of ranks, which know their number."""

    def __init__(self, world_size: Any = 4, *_: Any, **__: Any) -> None:
        self.world_size = world_size if type(world_size) is int else 4


class _Shell(Nothing):
    """In the place of IPython.

    Attributes:
        user_ns: the notebook's names.
    """

    def __init__(self, names: dict[str, Any]) -> None:
        self.user_ns = names

    def run_line_magic(self, name: str, line: str, *_: Any) -> None:
        """Change the folder, or run a file of Python that a cell has written."""
        if name == "cd":
            os.chdir(Path(line).expanduser())
        if name == "run" and (file := Path(line.split()[-1]).with_suffix(".py")).is_file():
            exec(compile(file.read_text(encoding="utf-8"), str(file), "exec"), self.user_ns)


class _Names(types.ModuleType):
    """A module of which every name stands for nothing."""

    def __getattr__(self, name: str) -> Nothing:
        if name.startswith("__"):
            raise AttributeError(name)
        return Nothing()


def stand_in_for_the_notebook() -> None:
    """Put what does nothing in the place of what a notebook has and a rank has not."""
    course_utils = sys.modules["course_utils"]
    for name in ("check", "hint", "progress", "predict", "measured", "answer", "doctor", "report"):
        setattr(course_utils, name, Nothing())
    vars(course_utils)["start"] = _Started
    sys.modules["course_utils.checks"] = _Names("course_utils.checks")


class CellsRun:
    """One run of a notebook's cells.

    Attributes:
        namespace: what they have defined.
        checked: exercise → the function that they had checked.
        failures: statements that ended with an error, and cells that were cut off.
    """

    def __init__(self) -> None:
        self.namespace: dict[str, Any] = {"__name__": "__main__"}
        shell = _Shell(self.namespace)
        course = sys.modules["course_utils"]
        self.namespace |= {"get_ipython": lambda: shell, "display": Nothing(), "course": course}
        self.checked: dict[str, Any] = {}
        self.failures: list[CellFailure] = []
        self._flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT

    def note(self, name: Any = None, function: Any = None, *_: Any, **__: Any) -> Nothing:
        """In the place of `course.check`: the function counts as it is now, and so does all that it needs.

        The copy is the one that ranks would have been sent. Whatever the notebook makes of these names later, it stays.
        """
        if type(name) is str and callable(function):
            try:
                function = from_bytes(to_bytes(function))
            except Exception as error:
                print(f"{name} uses something that cannot be sent to ranks: {error}")
            self.checked[name] = function
        return Nothing()

    def add_failure(self, cell: int, file: str, line: int, message: str) -> None:
        """Print and note what went wrong."""
        print(f"{file}{f', line {line}' if line else ''}: {message}")
        if len(self.failures) < _MOST_FAILURES:
            self.failures.append(CellFailure(cell, line, message[:300]))

    def run(self, cell: int, file: str, source: str) -> None:
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
                self.add_failure(cell, file, node.lineno, f"{type(error).__name__}: {error}")

    def complete(self) -> None:
        """Give the functions that were checked the helpers that only cells behind their checks have defined."""
        for function in self.checked.values():
            if isinstance(function, types.FunctionType) and function.__globals__ is not self.namespace:
                for name, value in self.namespace.items():
                    function.__globals__.setdefault(name, value)


_runs: dict[Cells, CellsRun] = {}


def run_cells(cells: Cells, names: tuple[str, ...] = ()) -> CellsReport:
    """Run them in order, once, in an empty folder of this rank's own, and report what they have defined of these."""
    run = cells_run(cells)
    defined = tuple(name for name in names if run.namespace.get(name) is not None)
    return CellsReport(defined, tuple(run.checked), tuple(run.failures))


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
    began = monotonic()
    for number, (file, source) in enumerate(cells):
        left = math.ceil(ALL_SECONDS - (monotonic() - began))
        if left <= 0:
            run.add_failure(number, file, 0, f"the cells before it took {ALL_SECONDS} s")
            continue
        try:
            with _time_limit(min(left, SECONDS)):
                run.run(number, file, source)
        except OutOfTime:
            run.add_failure(number, file, 0, f"it was cut off after {min(left, SECONDS)} s")
    run.complete()
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
