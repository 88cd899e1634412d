"""The executed edition: a website from the lessons as one run of each came out, with search and without a network.

Sphinx, myst-nb and sphinx-book-theme build it; they are the extra `site`, which `make site` installs beside the course.
"""

import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell

from course_utils.authoring.exercises import STUCK
from course_utils.authoring.mathjax import mathjax_script
from course_utils.authoring.notebooks import assemble, join_streams, keep_outputs, read_committed, run_all
from course_utils.authoring.slides import run as run_command
from course_utils.authoring.sources import ROOT, AuthoringError, Page, is_checked, pages
from course_utils.checks.registry import names_of
from course_utils.cluster.cores import allowed_cores
from course_utils.syllabus import LESSONS, Lesson

SPHINX_SECONDS = 600
DOCUMENTS = ("docs/sources.md", "ondemand/README.md")
"""What lessons and the first page link to, besides notebooks and decks."""
TO_A_FILE = re.compile(r"\[([^\]]+)\]\((?!https?:|#)[^)]*(?<!\.md)(?<!\.ipynb)\)")
"""A link in a document to a file that is no page: its words remain."""
WIDGET = "application/vnd.jupyter.widget-view+json"
"""What only a live notebook can show."""


def build_site(
    root: Path = ROOT, wanted: list[str] | None = None, out: Path | None = None, run: bool = True
) -> Iterator[str]:
    """Run the lessons and build the website from them, telling of each step.

    Args:
        root: the repository.
        wanted: stems; none means all lessons that are written.
        out: where to; site/build where not given.
        run: whether to run the lessons. Otherwise they have the outputs that are committed, and no others.

    Yields:
        A line for each thing done.

    Raises:
        AuthoringError: where a lesson fails, or Sphinx finds a broken link or anything else to warn of.
    """
    out = (out or root / "site" / "build").resolve()
    lessons = [page for page in pages(root, wanted) if page.kind != "solution"]
    with tempfile.TemporaryDirectory(prefix="course-site-") as folder:
        project = Path(folder)
        shutil.copytree(root / "site" / "_static", project / "_static")
        (project / "_static" / "mathjax").mkdir()
        shutil.copy(mathjax_script(root / "slides" / "build" / "cache"), project / "_static" / "mathjax")
        shutil.copy(root / "site" / "conf.py", project)
        for document in DOCUMENTS:
            (project / document).parent.mkdir(exist_ok=True)
            text = (root / document).read_text(encoding="utf-8")
            (project / document).write_text(TO_A_FILE.sub(r"\1", text), encoding="utf-8")
        decks = copy_decks(root, project / "_extra" / "slides", {page.stem for page in lessons})
        for page in lessons:
            notebook = executed(page, root) if run and page.kind == "lesson" else as_committed(page, root)
            for_reading(notebook, page, deck=page.stem in decks)
            target = project / page.target
            target.parent.mkdir(exist_ok=True)
            target.write_text(nbformat.writes(notebook), encoding="utf-8")
            yield f"{page.target}: {'run' if run and page.kind == 'lesson' else 'taken as it is'}"
        (project / "index.md").write_text(index(root, lessons), encoding="utf-8")
        built = project / "built"
        strict = [] if wanted else ["-W", "--keep-going"]  # some lessons alone have links to the others
        command = [sphinx_python(root), "-m", "sphinx", "-b", "html", "-q", *strict, ".", str(built)]
        run_command(command, project, SPHINX_SECONDS, "building the website")
        shutil.rmtree(built / ".doctrees", ignore_errors=True)
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(built, out)
    yield f"{out / 'index.html'}: {len(lessons)} pages, {len(decks)} decks"


def sphinx_python(root: Path) -> str:
    """The Python that has the extra `site`: this one, or the one beside the course.

    Raises:
        AuthoringError: neither has it.
    """
    beside = root / ".venv" / "site" / "bin" / "python"
    if find_spec("myst_nb") and find_spec("sphinx_book_theme"):
        return sys.executable
    if beside.is_file():
        return str(beside)
    raise AuthoringError('the website needs myst-nb and sphinx-book-theme: make site, or pip install -e ".[site]"')


def executed(page: Page, root: Path) -> NotebookNode:
    """The page's notebook with all outputs of a run of it."""
    notebook = run_all(assemble(page, root), page, root)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = join_streams([output for output in cell.outputs if WIDGET not in output.get("data", {})])
    return notebook


def as_committed(page: Page, root: Path) -> NotebookNode:
    """The page's notebook with the outputs that are committed."""
    notebook, committed = assemble(page, root), read_committed(page, root)
    if committed is not None and any(is_checked(cell) for cell in notebook.cells):
        keep_outputs(notebook, committed)
    return notebook


def for_reading(notebook: NotebookNode, page: Page, deck: bool) -> None:
    """Make a notebook a page of the website: no way to the solutions, and links to what belongs to the lesson."""
    stuck = re.escape(STUCK).replace(r"\{name\}", r"\w+").replace(r"\{stem\}", page.stem)
    notebook.cells = [cell for cell in notebook.cells if not re.fullmatch(stuck, cell.source)]
    if page.kind == "lesson":
        links = [f"[Exercises](../exercises/{page.stem}.ipynb)"]
        if deck:
            links.append(f'<a href="../slides/{page.stem}/index.html">Slides</a>')
            links.append(f'<a href="../slides/{page.stem}.pdf">Slides as PDF</a>')
        notebook.cells.insert(1, new_markdown_cell(" · ".join(links)))


def copy_decks(root: Path, target: Path, stems: set[str]) -> set[str]:
    """Copy the decks that are built, `make slides` makes them; returns their stems."""
    built = root / "slides" / "build"
    target.mkdir(parents=True)
    found = {stem for stem in stems if (built / stem / "index.html").is_file() and (built / f"{stem}.pdf").is_file()}
    for stem in found:
        shutil.copytree(built / stem, target / stem)
        shutil.copy(built / f"{stem}.pdf", target)
    return found


def index(root: Path, found: list[Page]) -> str:
    """The first page: what the course is, its lessons, and where all pages stand."""
    stems = {page.stem for page in found}
    lessons = [lesson for lesson in LESSONS if lesson.stem in stems]
    text = (root / "site" / "index.md").read_text(encoding="utf-8")
    return text.format(
        cores=allowed_cores(),
        lessons="\n".join(["| | The question | Minutes | Exercises |", "|---|---|---|---|", *map(row, lessons)]),
        pages="\n".join(f"notebooks/{lesson.stem}" for lesson in lessons),
        exercises="\n".join(f"exercises/{lesson.stem}" for lesson in lessons),
    )


def row(lesson: Lesson) -> str:
    """A lesson's line in the table of lessons."""
    exercises = f"[{len(names_of(lesson))}](exercises/{lesson.stem}.ipynb)"
    return f"| {lesson.number} | [{lesson.title}](notebooks/{lesson.stem}.ipynb) | {lesson.minutes} | {exercises} |"
