"""The executed edition: a website from the lessons as one run of each came out, with search and without a network.

Sphinx, myst-nb and sphinx-book-theme build it; they are the extra `site`, which `make site` installs beside the course.
"""

import json
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell

from course_utils.checks.registry import names_of
from course_utils.machine import allowed_cores
from course_utils.syllabus import LESSONS, Lesson
from workshop.publish.commands import run
from workshop.publish.exercises import STUCK
from workshop.publish.glossary import ANCHOR
from workshop.publish.mathjax import mathjax_script
from workshop.publish.navigation import CONTENTS, navigation_of
from workshop.publish.notebooks import assemble, join_streams, keep_outputs, read_committed, run_all
from workshop.publish.plans import plans_page
from workshop.publish.reading import links_for_readers, questions_for_readers
from workshop.publish.readme import other_notebooks, totals
from workshop.publish.sources import ROOT, AuthoringError, Page, is_checked, pages

SPHINX_SECONDS = 600
CELL_SECONDS = 600  # a busy machine makes a slow website, not none
DOCUMENTS = (
    "docs/install.md",
    "docs/clusters.md",
    "ondemand/README.md",
    "docs/settings.md",
    "docs/teachers.md",
    "docs/programme.md",
    "docs/grading.md",
    "docs/leaderboard.md",
    "docs/glossary.md",
    "docs/sources.md",
    "CHANGELOG.md",
)
"""What is read besides notebooks and decks, in the order of the menu: those of them that are written."""
PLANS = "docs/plans.md"
"""A document that is written here: what `course plan` says of some models."""
LINK = re.compile(r"(?<!!)\[(?P<words>[^\]]+)\]\((?!https?:|mailto:|#)(?P<path>[^)#\s]+)[^)]*\)")
"""A link in a document to another file."""
MAP = re.compile(r"!\[[^\]]+\]\(docs/map\.png\)")
"""The map of the course, with its text alternative, as the README shows it."""
WIDGET = "application/vnd.jupyter.widget-view+json"
"""What only a live notebook can show."""


def build_site(
    root: Path = ROOT, wanted: list[str] | None = None, out: Path | None = None, only_run: list[str] | None = None
) -> Iterator[str]:
    """Run the lessons and build the website from them, telling of each step.

    Args:
        root: the repository.
        wanted: stems; none means all lessons that are written.
        out: where to; site/build where not given.
        only_run: stems of the lessons to run; None means all. Others have the outputs that are committed.

    Yields:
        A line for each thing done.

    Raises:
        AuthoringError: where `out` holds something else than a website, a lesson fails, or Sphinx finds a broken link
            or anything else to warn of.
    """
    out = (out or root / "site" / "build").resolve()
    if out.exists() and not is_website(out):
        raise AuthoringError(f"{out} is not a website, and what it holds would be lost: name a new folder with --out")
    found = [page for page in pages(root, wanted) if page.kind != "solution"]
    with tempfile.TemporaryDirectory(prefix="course-site-") as folder:
        project = Path(folder)
        copy_frame(root, project)
        documents = copy_documents(root, project, [page.target for page in found])
        documents.append(write_plans(project))
        decks = copy_decks(root, project / "_extra" / "slides", {page.lesson for page in found})
        yield from write_pages(found, root, project, decks, only_run)
        (project / "index.md").write_text(index(root, found, documents), encoding="utf-8")
        (project / "order.json").write_text(json.dumps(order(found)), encoding="utf-8")
        built = project / "built"
        strict = [] if wanted else ["-W", "--keep-going"]  # some lessons alone have links to the others
        command = [sphinx_python(root), "-m", "sphinx", "-b", "html", "-q", *strict, ".", str(built)]
        run(command, project, SPHINX_SECONDS, "building the website")
        tidy(built)
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(built, out)
    yield f"{out / 'index.html'}: {len(found)} pages, {len(decks)} decks"


def is_website(folder: Path) -> bool:
    """Whether a folder is empty or holds what Sphinx has built."""
    return folder.is_dir() and ((folder / "objects.inv").is_file() or not any(folder.iterdir()))


def write_pages(
    found: list[Page], root: Path, project: Path, decks: set[str], only_run: list[str] | None
) -> Iterator[str]:
    """Put the pages where Sphinx finds them; a lesson that fails does not keep the others from being run.

    Args:
        decks: stems of the lessons whose slides are there to link to.

    Yields:
        A line for each page.

    Raises:
        AuthoringError: after the last page, where one has failed.
    """
    failed = []
    for count, page in enumerate(found, start=1):
        begun = time.monotonic()
        runs = page.teaches and (only_run is None or page.stem.startswith(tuple(only_run)))
        where = f"{count} of {len(found)}  {page.target}"
        try:
            notebook = executed(page, root) if runs else as_committed(page, root)
        except AuthoringError as error:
            failed.append(page.stem)
            yield f"{where}: fails after {time.monotonic() - begun:.0f} s. {error}"
            continue
        for_reading(notebook, page, deck=page.stem in decks)
        target = project / page.target
        target.parent.mkdir(exist_ok=True)
        target.write_text(nbformat.writes(notebook), encoding="utf-8")
        yield f"{where}: {f'run in {time.monotonic() - begun:.0f} s' if runs else 'taken as it is'}"
    if failed:
        raise AuthoringError(f"no website is built, for {', '.join(failed)} failed; the lines above say why")


def copy_frame(root: Path, project: Path) -> None:
    """Copy what all pages share: Sphinx's settings, styles, scripts, and the documents' pictures."""
    shutil.copy(root / "site" / "conf.py", project)
    shutil.copytree(root / "site" / "_static", project / "_static")
    (project / "_static" / "mathjax").mkdir()
    shutil.copy(mathjax_script(root / "slides" / "build" / "cache"), project / "_static" / "mathjax")
    (project / "docs").mkdir()
    for picture in (root / "docs").glob("*.png"):
        shutil.copy(picture, project / "docs")


def copy_documents(root: Path, project: Path, notebooks: list[Path]) -> list[str]:
    """Copy the documents that are written; of links to files that are no page of the website, the words remain.

    Args:
        notebooks: the notebooks that are pages, relative to the repository.

    Returns:
        Their names, such as "docs/sources.md".
    """
    documents = [name for name in DOCUMENTS if (root / name).is_file()]
    there = {(root / name).resolve() for name in [*documents, *notebooks]}
    for name in documents:
        folder = (root / name).parent
        text = LINK.sub(
            lambda link, folder=folder: link[0] if (folder / link["path"]).resolve() in there else link["words"],
            ANCHOR.sub("", (root / name).read_text(encoding="utf-8")),
        )
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text(text, encoding="utf-8")
    return documents


def write_plans(project: Path) -> str:
    """Write the page of plans; returns its name."""
    (project / PLANS).write_text(plans_page(), encoding="utf-8")
    return PLANS


def tidy(built: Path) -> None:
    """Remove what does not belong to a built website: notes of Sphinx, and templates that the themes leave behind."""
    for folder in (".doctrees", "_sources"):
        shutil.rmtree(built / folder, ignore_errors=True)
    for template in (built / "_static").glob("*.html"):
        template.unlink()


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
    notebook = run_all(assemble(page, root), page, root, CELL_SECONDS)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            for output in cell.outputs:
                if output.get("data", {}).pop(WIDGET, None) and "text/html" not in output.data:
                    output.data.clear()  # what it says of itself is of no use without a kernel
            cell.outputs = join_streams([output for output in cell.outputs if output.get("data", True)])
    return notebook


def as_committed(page: Page, root: Path) -> NotebookNode:
    """The page's notebook with the outputs that are committed."""
    notebook, committed = assemble(page, root), read_committed(page, root)
    if committed is not None and any(is_checked(cell) for cell in notebook.cells):
        keep_outputs(notebook, committed)
    return notebook


def for_reading(notebook: NotebookNode, page: Page, deck: bool) -> None:
    """Make a notebook a page of the website: no way to the solutions, its links to other pages, and the slides."""
    notebook.metadata.pop("widgets", None)  # their state alone makes a page ask the network for scripts
    stuck = re.escape(STUCK).replace(r"\{name\}", r"\w+").replace(r"\{stem\}", page.stem)
    notebook.cells = [cell for cell in notebook.cells if not re.fullmatch(stuck, cell.source)]
    questions_for_readers(notebook)
    links_for_readers(notebook)
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = cell.source.replace(f"](../{CONTENTS})", "](../index.md)")
    if page.kind == "lesson" and deck:
        slides = f'<a href="../slides/{page.stem}/index.html">Slides</a>'
        pdf = f'<a href="../slides/{page.stem}.pdf">Slides as PDF</a>'
        notebook.cells.insert(1, new_markdown_cell(f"{slides} · {pdf}"))


def copy_decks(root: Path, target: Path, stems: set[str]) -> set[str]:
    """Copy the decks that are built, `make slides` makes them; returns their stems."""
    built = root / "slides" / "build"
    target.mkdir(parents=True)
    found = {stem for stem in stems if (built / stem / "index.html").is_file() and (built / f"{stem}.pdf").is_file()}
    for stem in found:
        shutil.copytree(built / stem, target / stem)
        shutil.copy(built / f"{stem}.pdf", target)
    return found


def index(root: Path, found: list[Page], documents: list[str]) -> str:
    """The first page: what the course is, its lessons, and where all pages stand."""
    stems = {page.lesson for page in found}
    lessons = [lesson for lesson in LESSONS if lesson.stem in stems]
    text = (root / "site" / "index.md").read_text(encoding="utf-8")
    shown = MAP.search((root / "README.md").read_text(encoding="utf-8"))
    return text.format(
        map=shown[0] if shown else "",
        cores=allowed_cores(),
        lessons="\n".join(["| | The question | Minutes | Exercises |", "|---|---|---|---|", *map(row, lessons)]),
        totals=totals(),
        pages="\n".join(line for lesson in lessons for line in in_the_menu(lesson)),
        exercises="\n".join(f"{lesson.number} · {lesson.title} <exercises/{lesson.stem}>" for lesson in lessons),
        documents="\n".join(name.removesuffix(".md") for name in documents),
    )


def order(found: list[Page]) -> dict[str, dict[str, str]]:
    """For each page the one before and the one after it, as Sphinx calls them: `conf.py` gives its buttons these."""
    there = {page.target for page in found}
    pages_around = {}
    for page in found:
        navigation = navigation_of(page)
        if navigation is not None:
            links = {"prev": navigation.previous, "next": navigation.next}
            targets = {name: link.target for name, link in links.items() if link and link.target in there}
            pages_around[docname(page.target)] = {name: docname(target) for name, target in targets.items()}
    return pages_around


def docname(target: Path) -> str:
    """What Sphinx calls a page: its path without the ending."""
    return target.with_suffix("").as_posix()


def in_the_menu(lesson: Lesson) -> list[str]:
    """A lesson's lines in the menu: its page or both its pages, and after them its *Further*."""
    lines = [f"{lesson.number} · {lesson.title} <notebooks/{lesson.stem}>"]
    if lesson.part_2:
        lines.append(f"{lesson.number} · {lesson.part_2.title} <notebooks/{lesson.second_notebook.stem}>")
    if lesson.further:
        lines.append(f"{lesson.number} · Further <notebooks/{lesson.further.stem}>")
    return lines


def row(lesson: Lesson) -> str:
    """A lesson's line in the table of lessons."""
    exercises = f"[{len(names_of(lesson))}](exercises/{lesson.stem}.ipynb)"
    question = f"[{lesson.title}](notebooks/{lesson.stem}.ipynb){other_notebooks(lesson)}"
    return f"| {lesson.number} | {question} | {lesson.minutes_of_pages} | {exercises} |"
