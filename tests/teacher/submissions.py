"""Notebooks as they are handed in, for the tests of grading: made from cells, or read from `handed_in`."""

import os
import re
import textwrap
from pathlib import Path

import nbformat
import pytest

from course_utils.teacher.grading import Mark
from course_utils.teacher.marks import grade_each
from course_utils.teacher.sandbox import obstacle

needs_a_box = pytest.mark.skipif(obstacle() is not None and os.environ.get("CI") != "true", reason=str(obstacle()))
RIGHT = "def rank_squared(comm):\n    return comm.rank**2\n"
NAMES = "def who_is_there(comm, name):\n    return comm.allgather(name)\n"


def collection(name: str) -> dict[str, list[str]]:
    """The notebooks of a file: begun by "=== what it is", their cells parted by "---"."""
    text = (Path(__file__).with_name("handed_in") / f"{name}.txt").read_bytes().decode()
    parts = re.split(r"^=== (.*)\n", text, flags=re.MULTILINE)
    return {
        title: re.split(r"^---\n", cells.rstrip(), flags=re.MULTILINE) for title, cells in zip(parts[1::2], parts[2::2])
    }


def notebook(folder: Path, *cells: str, name: str = "ada.ipynb") -> Path:
    """A notebook with these code cells."""
    file = folder / name
    written = [nbformat.v4.new_code_cell(textwrap.dedent(cell)) for cell in cells]
    nbformat.write(nbformat.v4.new_notebook(cells=written), file)
    return file


def marks_of(notebooks: list[Path], ranks: int = 4) -> list[Mark]:
    """The marks of several notebooks."""
    return [mark for marks in grade_each(notebooks, ranks) for mark in marks]


def mark_of(folder: Path, *cells: str, exercise: str = "rank_squared", ranks: int = 2) -> Mark:
    """The mark for one exercise of a notebook with these cells."""
    marks = marks_of([notebook(folder, *cells)], ranks)
    return next(mark for mark in marks if mark.exercise == exercise)
