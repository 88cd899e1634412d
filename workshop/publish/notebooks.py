"""Build notebooks from their sources, and find those that are not what their sources give.

A committed notebook holds the outputs of the cells tagged `nbval-check-output` and no others. They come from running
the notebook once; while no source of a cell up to the last tagged one changes, they are kept and nothing is run.
"""

import hashlib
import os
import re
import subprocess
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError
from nbformat import NotebookNode
from nbformat.v4 import new_notebook

from course_utils import settings
from course_utils.ranks.processes import forking
from workshop.publish.exercises import fill, gives_away
from workshop.publish.glossary import link_terms
from workshop.publish.navigation import add_bars
from workshop.publish.sources import ROOT, AuthoringError, Page, is_checked, pages, read_cells

CELL_TIMEOUT = 120
ANSI = re.compile(r"\x1b\[[\d;]*m")
KERNEL = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def assemble(page: Page, root: Path = ROOT) -> NotebookNode:
    """The notebook that the page's source gives, without any output.

    Raises:
        AuthoringError: where the source cannot be built; it names the file.
    """
    try:
        cells = read_cells(root / page.source)
        link_terms(cells, page, root)
        if not page.teaches:
            cells = fill(cells, root, page.stem, solved=page.kind == "solution")
        add_bars(cells, page)
    except (AuthoringError, SyntaxError) as error:
        raise AuthoringError(f"{page.source}: {error}") from error
    count = 0
    for position, cell in enumerate(cells):
        cell.id = cell_id(page.stem, position)
        if cell.cell_type == "code":
            count += 1
            cell.execution_count = count if is_checked(cell) else None  # nbval wants one where it compares
            cell.outputs = []
    cells[0].metadata["built_from"] = page.source.as_posix()
    metadata = {**KERNEL, "course": {"built_from": page.source.as_posix(), "build": "make notebooks"}}
    return new_notebook(cells=cells, metadata=metadata)


def cell_id(stem: str, position: int) -> str:
    """The same id each time for the cell at a position of a notebook."""
    return hashlib.sha256(f"{stem}:{position}".encode()).hexdigest()[:12]


def read_committed(page: Page, root: Path = ROOT) -> NotebookNode | None:
    """The built notebook as it stands in the repository, or None."""
    path = root / page.target
    if not path.is_file():
        return None
    try:
        return nbformat.read(path, as_version=4)
    except (ValueError, KeyError, nbformat.reader.NotJSONError):
        return None


def build(root: Path = ROOT, wanted: list[str] | None = None, run: bool = False) -> list[tuple[Path, str]]:
    """Write every notebook, and tell what was done with each.

    Args:
        root: the repository.
        wanted: stems; none means all.
        run: also run notebooks whose sources have not changed.

    Returns:
        (notebook, "unchanged" | "written" | "run and written") in order.

    Raises:
        AuthoringError: where a source cannot be built or a cell fails.
    """
    return [(page.target, build_page(page, root, run)) for page in pages(root, wanted)]


def build_page(page: Page, root: Path, run: bool = False) -> str:
    """Write one notebook; returns what was done."""
    notebook, committed = assemble(page, root), read_committed(page, root)
    done = "written"
    checked = any(is_checked(cell) for cell in notebook.cells)
    if checked and (run or committed is None or not keep_outputs(notebook, committed)):
        execute(notebook, page, root)
        done = "run and written"
    text = nbformat.writes(notebook) + "\n"
    path = root / page.target
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return "unchanged"
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".ipynb.new")
    beside.write_text(text, encoding="utf-8")
    os.replace(beside, path)
    return done


def keep_outputs(notebook: NotebookNode, committed: NotebookNode) -> bool:
    """Take the checked outputs from the committed notebook, where no code up to the last of them has changed.

    Returns:
        False where something has changed, so that the notebook must be run.
    """
    new, old = code_cells(notebook), code_cells(committed)
    last = max(index for index, cell in enumerate(new) if is_checked(cell))
    same = [cell.source for cell in new[: last + 1]] == [cell.source for cell in old[: last + 1]]
    if not same or any(is_checked(cell) and not before.outputs for cell, before in zip(new, old, strict=False)):
        return False
    for cell, before in zip(new, old, strict=False):
        if is_checked(cell):
            cell.outputs = before.outputs
    return True


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    """The code cells of a notebook."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def run_all(notebook: NotebookNode, page: Page, root: Path, seconds: int = CELL_TIMEOUT) -> NotebookNode:
    """A copy of the notebook with all outputs of a run in its own folder.

    The learner's progress and the ranks' files go to a folder of the run's own.

    Args:
        seconds: how long one cell may take.

    Raises:
        AuthoringError: where a cell fails; it names the cell.
    """
    run = nbformat.from_dict(notebook)
    with tempfile.TemporaryDirectory(prefix="course-build-", ignore_cleanup_errors=True) as scratch:
        environment = kernel_environment(Path(scratch), root)
        client = NotebookClient(
            run,
            timeout=seconds,
            kernel_name="python3",
            resources={"metadata": {"path": str(root / page.target.parent)}},
        )
        (root / page.target.parent).mkdir(parents=True, exist_ok=True)
        try:
            client.execute(env=environment, stderr=subprocess.DEVNULL)
        except (CellExecutionError, CellTimeoutError) as error:
            text = ANSI.sub("", str(error))
            raise AuthoringError(f"{page.source}: a cell fails when the notebook is run\n{text}") from error
    return run


def execute(notebook: NotebookNode, page: Page, root: Path) -> None:
    """Run the notebook and leave in it the outputs of the checked cells only.

    Raises:
        AuthoringError: where a cell fails, or a checked one prints nothing; it names the cell.
    """
    run = run_all(notebook, page, root)
    for cell, ran in zip(notebook.cells, run.cells, strict=True):
        if is_checked(cell):
            cell.outputs = [plain_output(output, cell.execution_count) for output in join_streams(ran.outputs)]
            if not cell.outputs:
                raise AuthoringError(f"{page.source}: a cell tagged nbval-check-output prints nothing:\n{cell.source}")


def kernel_environment(scratch: Path, root: Path) -> dict[str, str]:
    """The environment of a kernel that keeps progress and runtime files in `scratch`; ranks come from our server."""
    runtime = scratch / "run"
    folders = {settings.HOME.name: scratch / "home", settings.RUNTIME.name: runtime}
    for folder in folders.values():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = os.pathsep.join(part for part in (str(root), str(ROOT), os.environ.get("PYTHONPATH", "")) if part)
    own = {"PYTHONPATH": path, "TQDM_DISABLE": "1"}  # a progress bar is no output to keep
    environment = {**os.environ, **own, **{name: str(folder) for name, folder in folders.items()}}
    if lent := forking.fork_server(torch=True, environment=environment):  # this process keeps it for the next kernel
        (runtime / lent.path.name).symlink_to(lent.path)
    return environment


def join_streams(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """The outputs with the pieces of one stream put together, as they would arrive at once."""
    joined: list[NotebookNode] = []
    for output in outputs:
        before = next(
            (o for o in joined if output.output_type == "stream" == o.output_type and o.name == output.name), None
        )
        if before is None:
            joined.append(output)
        else:
            before.text += output.text
    return joined


def plain_output(output: NotebookNode, count: int) -> NotebookNode:
    """The output without what differs from run to run: metadata, and a count that is not the cell's."""
    if "execution_count" in output:
        output.execution_count = count
    if "metadata" in output:
        output.metadata = NotebookNode()
    return output


def check(root: Path = ROOT, wanted: list[str] | None = None) -> list[str]:
    """What is wrong with the committed notebooks, one plain line each; nothing is run.

    Every notebook is compared with what its source gives, apart from outputs; checked cells have an output, others
    have none; the learner's notebook holds no solution; and no notebook is without a source.
    """
    wrong: list[str] = []
    found = pages(root, wanted)
    for page in found:
        committed = read_committed(page, root)
        if committed is None:
            wrong.append(f"{page.target} is missing or unreadable: run `make notebooks`")
            continue
        expected = assemble(page, root)
        difference = first_difference(expected, committed)
        if difference:
            wrong.append(f"{page.target} is not what {page.source} gives ({difference}): run `make notebooks`")
        wrong += wrong_outputs(page, committed)
        if page.kind == "exercise":
            solution = assemble(Page("solution", page.source, page.target), root)
            for name in gives_away(committed.cells, solution.cells):
                wrong.append(f"{page.target} shows the solution of {name}")
    return wrong if wanted else wrong + without_source(root, {page.target for page in found})


def first_difference(expected: NotebookNode, committed: NotebookNode) -> str | None:
    """Where two notebooks first differ, outputs apart."""
    for number, (new, old) in enumerate(zip(expected.cells, committed.cells, strict=False), start=1):
        for key in ("cell_type", "source", "id", "metadata", "execution_count"):
            if new.get(key) != old.get(key):
                return f"cell {number}, its {key.replace('_', ' ')}"
    if len(expected.cells) != len(committed.cells):
        return f"{len(committed.cells)} cells instead of {len(expected.cells)}"
    return None if expected.metadata == committed.metadata else "the notebook's metadata"


def wrong_outputs(page: Page, committed: NotebookNode) -> list[str]:
    """Checked cells without an output, and others with one."""
    wrong = []
    for number, cell in enumerate(committed.cells, start=1):
        if cell.cell_type != "code":
            continue
        if is_checked(cell) and not cell.outputs:
            wrong.append(f"{page.target}: cell {number} is checked but has no output: run `make notebooks`")
        if not is_checked(cell) and cell.outputs:
            wrong.append(f"{page.target}: cell {number} has an output that nothing checks: run `make notebooks`")
    return wrong


def without_source(root: Path, targets: set[Path]) -> list[str]:
    """Notebooks that no source builds."""
    folders = (root / "notebooks", root / "exercises", root / "exercises" / "solutions")
    found = {path.relative_to(root) for folder in folders for path in folder.glob("*.ipynb")}
    return [f"{path} has no source: remove it, or write the source" for path in sorted(found - targets)]
