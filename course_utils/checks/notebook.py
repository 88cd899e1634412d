"""A notebook's text: its code cells, a cell as Python, a function and its body. Nothing is run."""

import ast
import errno
import json
import os
import re
import stat
from pathlib import Path

from course_utils.errors import CourseError

LARGEST = 256 << 20
"""Bytes of a notebook; one that shows pictures may have a hundred million."""
_ABOUT_PYTHON = re.compile(r"%%(time|timeit|capture|prun)\b")
_HERE_AND_ON_THE_RANKS = re.compile(r"%%px\b.*\s--local\b")
_ON_THE_RANKS = re.compile(r"%%px\b")
_A_FILE = re.compile(r"%%(?:writefile|file)\s+(-a\s+)?(\S+)\s*$")
_A_STATEMENT = re.compile(r"^(\s*)%time\s+(?=\S)", re.MULTILINE)


def code_cells(notebook: Path) -> list[str]:
    """The sources of a notebook's code cells, in order.

    Raises:
        CourseError: there is no such file, or it is not a notebook, or no plain file.
    """
    return [source for kind, source in cells_of(notebook) if kind == "code"]


def cells_of(notebook: Path) -> list[tuple[str, str]]:
    """The kinds ("code", "markdown", "raw") and sources of a notebook's cells, in order.

    Formats 2 and 3, which JupyterLab still opens, keep their cells on worksheets. nbformat could convert them, but it
    rejects much of what Jupyter opens.

    Raises:
        CourseError: there is no such file, or it is not a notebook, or no plain file.
    """
    try:
        content = json.loads(_text_of(notebook))
        sheets = content["worksheets"] if "cells" not in content else [content]
        cells = [cell for sheet in sheets for cell in sheet["cells"]]
        return [(cell["cell_type"], _source_of(cell)) for cell in cells]
    except (ValueError, KeyError, TypeError, RecursionError, MemoryError):  # a UnicodeDecodeError is a ValueError
        raise CourseError(f"{notebook} is not a notebook.") from None


def _source_of(cell: dict) -> str:
    """A cell's text; only code has to have one, which formats 2 and 3 call its input."""
    if cell["cell_type"] == "code":
        return "".join(cell["input"] if "input" in cell else cell["source"])
    return "".join(map(str, cell.get("source") or ""))


def _text_of(notebook: Path) -> str:
    """The text of a plain file, which is neither a link to something else, nor endless, nor waits for a writer.

    JSON is UTF-8, but editors have written UTF-16 with a mark at the beginning, and Windows' own letters.

    Raises:
        CourseError: it is none.
    """
    try:
        with open(os.open(notebook, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            about = os.fstat(file.fileno())
            if not stat.S_ISREG(about.st_mode):
                raise CourseError(f"{notebook} is not a file.")
            if about.st_size > LARGEST:
                raise CourseError(f"{notebook} has {about.st_size:,} bytes: too many for a notebook.")
            data = file.read(LARGEST)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise CourseError(f"{notebook} is a link; hand in the file itself.") from None
        raise CourseError(f"{notebook} cannot be read: {error.strerror}.") from None
    try:
        return data.decode(json.detect_encoding(data), "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("cp1252", "replace")


def in_python(cell: str) -> str:
    """A cell as IPython would hand it to Python, line by line. One that is in a different language becomes empty.

    What magics of time are about is run, and what is to become a file is written.
    """
    from IPython.core.inputtransformer2 import TransformerManager

    first, _, rest = cell.lstrip().partition("\n")
    if file := _A_FILE.match(first):
        return f"open({file[2]!r}, {'a' if file[1] else 'w'!r}, encoding='utf-8').write({rest!r})\n"
    if first.startswith("%%"):
        is_python = _ABOUT_PYTHON.match(first) or _HERE_AND_ON_THE_RANKS.match(first)
        cell = f"#\n{rest}" if is_python else ""
    blank = len(cell) - len(cell.lstrip("\n"))  # IPython leaves them out, and all lines behind would be misnumbered
    try:
        return "\n" * blank + TransformerManager().transform_cell(_A_STATEMENT.sub(r"\1", cell))
    except Exception:  # a mistake, which Python will find as well
        return cell


def runs_on_ranks_only(cell: str) -> bool:
    """Whether a cell is for the ranks, so that the notebook itself does not have what it defines."""
    first = cell.lstrip().partition("\n")[0]
    return bool(_ON_THE_RANKS.match(first)) and not _HERE_AND_ON_THE_RANKS.match(first)


def function_text(source: str, name: str) -> str | None:
    """The text of a module's function, decorators included; None where there is none of this name."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            return "\n".join(source.splitlines()[first - 1 : node.end_lineno]) + "\n"
    return None


def body_text(source: str) -> str:
    """The text of a function's body without its docstring."""
    function = next(node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef))
    body = [node for node in function.body if not is_docstring(node)]
    return "\n".join(source.splitlines()[body[0].lineno - 1 : body[-1].end_lineno]) if body else ""


def is_docstring(node: ast.stmt) -> bool:
    """Whether the statement is a bare string."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
