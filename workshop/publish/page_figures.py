"""A deck's figures that its lesson's pages draw: each page runs once, and each cell that names a figure gives its own.

`# %% tags=["figure:01_downhill"]` is such a cell; its last line gives a Matplotlib `Figure`. So a deck shows what its
page shows, from the same code, and brings the picture's alternative text along.
"""

import ast
import contextlib
import io
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from matplotlib.figure import Figure
from nbformat import NotebookNode

from course_utils.syllabus import FURTHER, PART_2
from workshop.publish.sources import ROOT, AuthoringError, read_cells, tags

TAG = "figure:"
MAY_FAIL = "raises-exception"
"""The tag of a cell that is there to raise."""


@dataclass(frozen=True)
class PageRun:
    """A lesson's pages, each run as far as its last figure, in the order of reading.

    Attributes:
        figures: by name.
        names: what the pages have defined.
    """

    figures: dict[str, Figure] = field(default_factory=dict)
    names: SimpleNamespace = field(default_factory=SimpleNamespace)


def figures_of(stem: str, root: Path = ROOT) -> list[str]:
    """The names of the figures that a lesson's pages draw for its deck, in the order of the pages.

    *Further* and a second page count only if the deck shows one of their figures: they would have to run for it.
    """
    return [name for cells in _pages(stem, root) for cell in cells for name in _named(cell)]


class PageSettings(ast.NodeTransformer):
    """Gives names the deck's values where the page assigns its own, outside functions."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values, self.used = values, set[str]()

    def visit_Module(self, module: ast.Module) -> ast.Module:
        for node in module.body:
            name = getattr(node.targets[0], "id", None) if isinstance(node, ast.Assign) else None
            if name in self.values:
                node.value = ast.parse(repr(self.values[name]), mode="eval").body
                self.used.add(name)
        return ast.fix_missing_locations(module)


def run_page(stem: str, settings: Mapping[str, Any], root: Path = ROOT) -> PageRun:
    """Run a lesson's pages as far as the last figure of each, in this process; a page that has none is not run.

    Args:
        settings: values of names that a page assigns, such as fewer columns or repetitions.

    Raises:
        AuthoringError: a cell raises although it is not there to, a cell that names a figure gives none, or no page
            that is run assigns a name of the settings.
    """
    from IPython.core.interactiveshell import InteractiveShell

    figures, own = dict[str, Figure](), PageSettings(settings)
    cells = [cell for cells in _pages(stem, root) for cell in _up_to_last_figure(cells)]
    if not cells:
        return PageRun()
    shell = InteractiveShell.instance()
    shell.ast_transformers.append(own)
    shell.display_formatter.active_types = ["text/plain"]  # figures are drawn once, when they are saved
    shell.display_formatter.mimebundle_formatter.enabled = False
    for cell in cells:
        with contextlib.redirect_stdout(io.StringIO()):
            done = shell.run_cell(cell.source)
        if not done.success and MAY_FAIL not in tags(cell):
            raise AuthoringError(f"{stem}: {done.error_in_exec or done.error_before_exec!r} in the cell\n{cell.source}")
        for name in _named(cell):
            if not isinstance(done.result, Figure):
                raise AuthoringError(f"{stem}: the cell of {name} ends with no figure")
            figures[name] = done.result
    if unknown := sorted(set(settings) - own.used):
        raise AuthoringError(f"{stem} assigns no {', '.join(unknown)}, which its deck sets")
    return PageRun(figures, SimpleNamespace(**shell.user_ns))


def _pages(stem: str, root: Path) -> list[list[NotebookNode]]:
    """The code cells of a lesson's page, and of each of its others if the deck shows one of that page's figures."""
    sources = [root / "notebooks" / "src" / f"{name}.py" for name in (stem, stem + PART_2, stem + FURTHER)]
    found = [
        [cell for cell in read_cells(source) if cell.cell_type == "code"] for source in sources if source.is_file()
    ]
    deck = root / "slides" / "src" / f"{stem}.md"
    shown = deck.read_text(encoding="utf-8") if deck.is_file() else ""
    return [
        cells
        for number, cells in enumerate(found)
        if number == 0 or any(f"figures/{name}.png" in shown for cell in cells for name in _named(cell))
    ]


def _up_to_last_figure(cells: list[NotebookNode]) -> list[NotebookNode]:
    last = max((number for number, cell in enumerate(cells, start=1) if _named(cell)), default=0)
    return cells[:last]


def _named(cell: NotebookNode) -> list[str]:
    return [tag.removeprefix(TAG) for tag in tags(cell) if tag.startswith(TAG)]
