"""Read the sources of pages: which there are, what is built from each, and their cells in percent format."""

import re
from dataclasses import dataclass
from pathlib import Path

import jupytext
from nbformat import NotebookNode

from course_utils.syllabus import FURTHER, PART_2, lesson_of

ROOT = Path(__file__).resolve().parents[2]
"""The repository's folder."""

CHECKED = "nbval-check-output"
"""The tag of a cell whose output is committed and compared."""

EXERCISE = "exercise"
"""The tag of a source cell that names a function whose body the learner writes."""

TEACHING = ("lesson", "part 2", "further")
"""The kinds of pages to read and run, in the order in which a lesson has them."""

ALT_TEXT = ".txt"
"""The ending of a file beside a figure, with its alternative text."""

KEPT_METADATA = ("tags", "slideshow", "jupyter")
MAGIC = re.compile(r"^(\s*)# ?(%%?[a-zA-Z]|!\w)", re.MULTILINE)
FORMAT = {"extension": ".py", "format_name": "percent", "comment_magics": False}
FIRST_CELL = re.compile(r"^# %%(?=\s|$)", re.MULTILINE)


class BusyFigure(UserWarning):
    """A figure that shows nothing, because the machine was too busy to measure."""


class AuthoringError(Exception):
    """A source that cannot be built, or a built file that is not what its source gives; one plain line each."""


@dataclass(frozen=True)
class Page:
    """One notebook to build.

    Attributes:
        kind: "lesson", "part 2", "further", "exercise" or "solution".
        source: the percent script, relative to the repository.
        target: the notebook, relative to the repository.
    """

    kind: str
    source: Path
    target: Path

    @property
    def stem(self) -> str:
        """The notebook's name, `04_messages` or `05_allreduce_further`."""
        return self.source.stem

    @property
    def lesson(self) -> str:
        """The stem of the lesson that the page belongs to."""
        return lesson_of(self.stem)

    @property
    def teaches(self) -> bool:
        """Whether it is a page to read and run, and no page of exercises or solutions."""
        return self.kind in TEACHING


def pages(root: Path = ROOT, wanted: list[str] | None = None) -> list[Page]:
    """All pages that have a source, in the order of lessons.

    Args:
        root: the repository.
        wanted: stems or the beginnings of stems (`04`); none means all.

    Raises:
        AuthoringError: where a wanted stem has no source.
    """
    found = []
    for source in sorted((root / "notebooks" / "src").glob("*.py")):
        relative = source.relative_to(root)
        found.append(Page(kind_of(source.stem), relative, Path("notebooks") / f"{source.stem}.ipynb"))
    found.sort(key=lambda page: (page.lesson, TEACHING.index(page.kind)))
    for source in sorted((root / "exercises" / "src").glob("*.py")):
        relative = source.relative_to(root)
        found.append(Page("exercise", relative, Path("exercises") / f"{source.stem}.ipynb"))
        found.append(Page("solution", relative, Path("exercises") / "solutions" / f"{source.stem}.ipynb"))
    return choose(found, [page.stem for page in found], wanted)


def kind_of(stem: str) -> str:
    """Return the kind of a page in the folder `notebooks`, from its name."""
    if stem.endswith(FURTHER):
        return "further"
    return "part 2" if stem.endswith(PART_2) else "lesson"


def choose(things: list, stems: list[str], wanted: list[str] | None) -> list:
    """Those `things` whose stem begins with one of `wanted`; all of them where nothing is wanted."""
    if not wanted:
        return things
    for name in wanted:
        if not any(stem.startswith(name) for stem in stems):
            raise AuthoringError(f"no source is called {name}; there are: {', '.join(sorted(set(stems))) or 'none'}")
    return [thing for thing, stem in zip(things, stems, strict=True) if stem.startswith(tuple(wanted))]


def read_cells(path: Path) -> list[NotebookNode]:
    """The cells of a percent script; what stands before its first `# %%` is a note to authors and left out.

    Raises:
        AuthoringError: where the file has no cell.
    """
    text = path.read_text(encoding="utf-8")
    first = FIRST_CELL.search(text)
    if first is None:
        raise AuthoringError(f"{path.name} has no cell: a cell begins with a line `# %%`")
    notebook = jupytext.reads(text[first.start() :], fmt=FORMAT)
    for cell in notebook.cells:
        if cell.cell_type == "code":  # jupytext's own rule also takes the comment `# why?` for a magic
            cell.source = MAGIC.sub(r"\1\2", cell.source)
        cell.metadata = NotebookNode({k: v for k, v in cell.metadata.items() if k in KEPT_METADATA})
    return notebook.cells


def tags(cell: NotebookNode) -> list[str]:
    """The tags of a cell."""
    return cell.metadata.get("tags", [])


def is_checked(cell: NotebookNode) -> bool:
    """Whether the cell's output is committed and compared."""
    return cell.cell_type == "code" and CHECKED in tags(cell)
