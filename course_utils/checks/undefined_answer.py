"""Why a notebook has no function for an exercise, as a value, and the sentence that says so to its learner."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

from course_utils.checks.verdict import Result


class Undefined(Enum):
    """Why there is no function."""

    NOWHERE = auto()  # no cell defines it
    NO_CODE = auto()  # it is in a raw cell
    ON_RANKS_ONLY = auto()  # its cell is for the ranks alone
    SYNTAX_ERROR = auto()  # its cell is no Python
    RAISED = auto()  # the statement that would have defined it raised an error
    CUT_OFF = auto()  # its cell took too long


@dataclass(frozen=True)
class UndefinedAnswer:
    """A function that a notebook does not have once its cells have run.

    Attributes:
        function: its name.
        why: what is the matter.
        cell: the number of its cell, counted among the code cells; 0 for none.
        line: of the cell.
        code: that line.
        message: Python's.
    """

    function: str
    why: Undefined = Undefined.NOWHERE
    cell: int = 0
    line: int = 0
    code: str = ""
    message: str = ""

    @property
    def result(self) -> Result:
        """What this is worth: an exercise of which there is no code has not been begun."""
        return Result.NOT_BEGUN if self.why in (Undefined.NOWHERE, Undefined.NO_CODE) else Result.WRONG

    def __str__(self) -> str:
        return _WORDS[self.why](self)


def _where(answer: UndefinedAnswer) -> str:
    code = f": `{answer.code.strip()[:80]}`" if answer.code.strip() else ""
    end = "" if answer.message.endswith((".", "?", "!")) else "."
    return f"cell {answer.cell}, line {answer.line}{code}: {answer.message}{end}"


_WORDS: dict[Undefined, Callable[[UndefinedAnswer], str]] = {
    Undefined.NOWHERE: lambda answer: f"not begun. No code cell of this notebook defines `{answer.function}`.",
    Undefined.NO_CODE: lambda answer: (
        f"not begun. `{answer.function}` is in a raw cell, which Jupyter does not run. Make it a code cell."
    ),
    Undefined.ON_RANKS_ONLY: lambda answer: (
        f"cell {answer.cell} begins with `%%px`, so `{answer.function}` exists on the ranks and not in the notebook. "
        "Define it in a cell without `%%px`."
    ),
    Undefined.SYNTAX_ERROR: lambda answer: f"{_where(answer)} Python could not read this cell, so none of it was run.",
    Undefined.RAISED: lambda answer: f"{_where(answer)} Because of this error, `{answer.function}` was not defined.",
    Undefined.CUT_OFF: lambda answer: (
        f"cell {answer.cell} was cut off because it ran too long, so `{answer.function}` was not defined."
    ),
}
