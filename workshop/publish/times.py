"""How long every page runs, and which of its cells runs longest: `make times`."""

import datetime
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from nbformat import NotebookNode
from tqdm.auto import tqdm

from workshop.publish.notebooks import assemble, run_all
from workshop.publish.sources import ROOT, AuthoringError, pages

PAGE_SECONDS = 60
"""What a page may take on two cores, its kernel's start included."""
BEGAN, ENDED = "iopub.execute_input", "shell.execute_reply"
HEAD = f"{'page':<28}{'runs for':>9}  of {PAGE_SECONDS} s  slowest cell"


@dataclass(frozen=True)
class PageTime:
    """One run of a page.

    Attributes:
        stem: of the page.
        seconds: from the start of its kernel to the end of its last cell.
        slowest: seconds of the cell that ran longest.
        line: where that cell begins.
        problem: why the page did not run to its end; empty where it did.
    """

    stem: str
    seconds: float
    slowest: float = 0.0
    line: str = ""
    problem: str = ""


def time_pages(root: Path = ROOT, wanted: list[str] | None = None) -> Iterator[PageTime]:
    """Run the lessons' pages, one after the other, with a progress bar, and tell of each as it ends.

    Args:
        root: the repository.
        wanted: stems; none means all lessons.
    """
    lessons = [page for page in pages(root, wanted) if page.teaches]
    with tqdm(lessons, unit=" pages", file=sys.stderr, leave=False) as bar:
        for page in bar:
            bar.set_description(page.stem)
            began = time.perf_counter()
            try:
                ran = run_all(assemble(page, root), page, root)
                yield PageTime(page.stem, time.perf_counter() - began, *slowest_cell(ran))
            except AuthoringError as error:
                yield PageTime(page.stem, time.perf_counter() - began, problem=str(error))


def slowest_cell(ran: NotebookNode) -> tuple[float, str]:
    """Seconds of the cell that ran longest, and its first line; (0.0, "") where no cell ran."""
    taken = {position: seconds_of(cell) for position, cell in enumerate(ran.cells) if cell.cell_type == "code"}
    if not taken:
        return 0.0, ""
    position = max(taken, key=taken.__getitem__)
    return taken[position], ran.cells[position].source.partition("\n")[0]


def seconds_of(cell: NotebookNode) -> float:
    """How long a cell ran, as the kernel's messages tell; 0.0 where it did not."""
    execution = cell.metadata.get("execution", {})
    if not {BEGAN, ENDED} <= set(execution):
        return 0.0
    began, ended = (datetime.datetime.fromisoformat(execution[moment]) for moment in (BEGAN, ENDED))
    return (ended - began).total_seconds()


def row(name: str, seconds: float, allowed: float, rest: str = "") -> str:
    """A line of the table."""
    return f"{name:<28}{seconds:7.1f} s  {100 * seconds / allowed:5.0f}%  {rest}".rstrip()


def line_of(page: PageTime) -> str:
    """A page's line: its seconds, the share of what is allowed, and its slowest cell or what went wrong."""
    cell = f"{page.slowest:5.1f} s  {page.line[:60]}"
    over = f"✗ over {PAGE_SECONDS} s  " if page.seconds > PAGE_SECONDS else ""
    return row(page.stem, page.seconds, PAGE_SECONDS, f"✗ {page.problem}" if page.problem else over + cell)


def sum_of(found: list[PageTime]) -> str:
    """The last line: all pages together."""
    return row(f"all {len(found)}", sum(page.seconds for page in found), PAGE_SECONDS * max(1, len(found)))
