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
_A_FILE = re.compile(r"%%(?:writefile|file)\s+(-a\s+)?(\S+)\s*$")
_A_STATEMENT = re.compile(r"^(\s*)%time\s+(?=\S)", re.MULTILINE)


def code_cells(notebook: Path) -> list[str]:
    """The sources of a notebook's code cells, in order.

    Raises:
        CourseError: there is no such file, or it is not a notebook, or no plain file.
    """
    try:
        cells = json.loads(_text_of(notebook))["cells"]
        return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    except (ValueError, KeyError, TypeError, RecursionError, MemoryError):  # a UnicodeDecodeError is a ValueError
        raise CourseError(f"{notebook} is not a notebook.") from None


def _text_of(notebook: Path) -> str:
    """The text of a plain file, which is neither a link to something else, nor endless, nor waits for a writer.

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
            return file.read(LARGEST).decode("utf-8-sig")  # some editors begin a file with a mark
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise CourseError(f"{notebook} is a link; hand in the file itself.") from None
        raise CourseError(f"{notebook} cannot be read: {error.strerror}.") from None


def in_python(cell: str) -> str:
    """A cell as IPython would hand it to Python, line by line. One that is in another language becomes empty.

    What magics of time are about is run, and what is to become a file is written.
    """
    from IPython.core.inputtransformer2 import TransformerManager

    first, _, rest = cell.lstrip().partition("\n")
    if file := _A_FILE.match(first):
        return f"open({file[2]!r}, {'a' if file[1] else 'w'!r}, encoding='utf-8').write({rest!r})\n"
    if first.startswith("%%"):
        cell = f"#\n{rest}" if _ABOUT_PYTHON.match(first) else ""
    try:
        return TransformerManager().transform_cell(_A_STATEMENT.sub(r"\1", cell))
    except Exception:  # a mistake, which Python will find as well
        return cell


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
