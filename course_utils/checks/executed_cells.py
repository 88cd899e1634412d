"""Which cells of the notebook ran, and how each ended: whether a function is the one that its cell now holds.

A check is given a function, not a cell. After a SyntaxError the name still means what an earlier run of the cell
defined, often the line `raise NotImplementedError`; after a renaming too. IPython calls `begin` and `end` around each
cell, which `watch` asks it to do.
"""

import ast
import inspect
import re
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from course_utils.checks.notebook import in_python

_MOST = 2_000


@dataclass(eq=False)
class ExecutedCell:
    """One execution of a cell.

    Attributes:
        text: as it was written.
        cell_id: of the cell in the notebook, the same each time it is executed; None where the notebook does not say.
        error: what ended it; None where nothing did, or while it runs.
        ended: whether it has ended.
        began: whether anything of it ran; a SyntaxError comes before that.
    """

    text: str
    cell_id: str | None = None
    error: BaseException | None = None
    ended: bool = False
    began: bool = True


@dataclass(frozen=True)
class NotDefined:
    """Why a function is not the one that its cell holds.

    Attributes:
        function: its name.
        error: the type of the error that ended the cell before the function was defined; "" for none.
        message: of that error.
        line: of the cell, on which it was raised; None where that is not known.
        began: whether the lines before that one ran.
        renamed_to: the functions that the cell defines instead.
    """

    function: str
    error: str = ""
    message: str = ""
    line: int | None = None
    began: bool = True
    renamed_to: tuple[str, ...] = ()


_cells: deque[ExecutedCell] = deque(maxlen=_MOST)


def watch(shell: Any) -> None:
    """Keep a list of the cells that this IPython executes."""
    shell.events.register("pre_run_cell", begin)
    shell.events.register("post_run_cell", end)


def begin(info: Any) -> None:
    """Note a cell that is about to be executed."""
    _cells.append(ExecutedCell(info.raw_cell or "", getattr(info, "cell_id", None)))


def end(result: Any) -> None:
    """Note how the cell ended. The cell in which the course was imported had not been noted before."""
    if result is None or result.info is None:
        return
    if not _cells or _cells[-1].ended:
        begin(result.info)
    cell = _cells[-1]
    cell.ended, cell.began = True, result.error_before_exec is None
    cell.error = result.error_before_exec or result.error_in_exec


def texts() -> list[str]:
    """The texts of the cells that were executed."""
    return [cell.text for cell in _cells]


def not_defined(function: Callable, cells: Sequence[ExecutedCell] | None = None) -> NotDefined | None:
    """Find out whether a function of the notebook is older than what its cell holds now; None where it is not.

    Args:
        function: as a check is given it.
        cells: in the order of their execution; None: those of this notebook.
    """
    plain = inspect.unwrap(function)
    name, module = getattr(plain, "__name__", None), getattr(plain, "__module__", None)
    if not name or module != "__main__":
        return None
    cells = list(_cells) if cells is None else cells
    numbers = [number for number, cell in enumerate(cells) if _is_about(cell, name)]
    if not numbers:
        return None
    newest = cells[numbers[-1]]
    later = [cell for cell in cells[numbers[-1] + 1 :] if cell.cell_id and cell.cell_id == newest.cell_id]
    return (_without(later[-1], name) if later else None) or _ended_before(newest, name)


def _is_about(cell: ExecutedCell, name: str) -> bool:
    """Whether the cell defines the function, or would if it were Python."""
    if (statements := _statements(cell.text)) is not None:
        return name in _functions(statements)
    return bool(re.search(rf"^\s*(d\w{{0,3}}|e?f)\s+{re.escape(name)}\b", cell.text, re.MULTILINE))


def _ended_before(cell: ExecutedCell, name: str) -> NotDefined | None:
    """Why the cell never came to the end of the function's definition; None where it did."""
    if cell.error is None:
        return None
    line = _line_of(cell.error)
    if cell.began and line is not None:
        definition = _functions(_statements(cell.text) or []).get(name)
        if definition is None or line > (definition.end_lineno or 0):
            return None
    return _stopped(cell, name)


def _without(cell: ExecutedCell, name: str) -> NotDefined | None:
    """What the function's cell has become, which no longer defines it."""
    if cell.error is not None and not cell.began:
        return _stopped(cell, name)
    others = tuple(_functions(_statements(cell.text) or []))
    return NotDefined(name, renamed_to=others) if others else None


def _stopped(cell: ExecutedCell, name: str) -> NotDefined:
    error = cell.error
    message = error.msg if isinstance(error, SyntaxError) else str(error)
    return NotDefined(name, type(error).__name__, message.partition("\n")[0], _line_of(error), cell.began)


def _line_of(error: BaseException | None) -> int | None:
    """The line of the cell on which an error was raised, or which is no Python."""
    if isinstance(error, SyntaxError):
        return error.lineno
    step: TracebackType | None = error.__traceback__ if error else None
    while step and step.tb_frame.f_code.co_name != "<module>":
        step = step.tb_next
    return step.tb_lineno if step else None


def _functions(statements: Sequence[ast.stmt]) -> dict[str, ast.FunctionDef | ast.AsyncFunctionDef]:
    """The functions that statements define, by name."""
    kinds = ast.FunctionDef, ast.AsyncFunctionDef
    return {statement.name: statement for statement in statements if isinstance(statement, kinds)}


def _statements(cell: str) -> list[ast.stmt] | None:
    """A cell's statements; None where it is no Python."""
    try:
        return ast.parse(in_python(cell)).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
