"""Every notebook runs from top to bottom and leaves nothing behind; one broken on purpose is found."""

import re
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output
from run_notebook import FOLDERS, ROOT, chosen, compared_outputs, rejected, run_notebook

from course_utils.syllabus import LESSONS

NOTEBOOKS = chosen([])
SOLVED = sorted((ROOT / "exercises" / "solutions").glob("*.ipynb"))
CHECKED = {"tags": ["nbval-check-output"]}
LESSON = ROOT / "notebooks" / "04_messages.ipynb"
ALWAYS = ("notebooks/00", "notebooks/01", "notebooks/04", "exercises/00", "exercises/04", "exercises/12")
"""Pages that `make test` runs, too: the first, one of MPI, one of torch, and exercises of three kinds."""
FURTHER = [path for path in NOTEBOOKS if path.stem.endswith("_further")]
SOLUTIONS = ROOT / "exercises" / "solutions" / "04_messages.ipynb"


def _marks(path: Path) -> tuple[pytest.MarkDecorator, ...]:
    """All pages run in `make test-all`, and a third of what goes further; the rest of that once a week."""
    if str(path.relative_to(ROOT)).startswith(ALWAYS):
        return ()
    return (pytest.mark.weekly if path in FURTHER and FURTHER.index(path) % 3 != 2 else pytest.mark.long,)


@pytest.mark.timeout(960)
@pytest.mark.parametrize(
    "notebook",
    [
        *(pytest.param(path, marks=_marks(path)) for path in NOTEBOOKS),
        *(
            pytest.param(path, marks=pytest.mark.weekly if number % 6 else pytest.mark.long)
            for number, path in enumerate(SOLVED)
        ),
    ],
    ids=[str(path.relative_to(ROOT)) for path in (*NOTEBOOKS, *SOLVED)],
)
def test_a_notebook_runs_from_top_to_bottom(notebook: Path):
    ended = run_notebook(notebook)
    assert not ended.wrong, f"{ended.wrong}\n{ended.said}"


@pytest.mark.parametrize("lesson", [lesson for lesson in LESSONS if lesson.written], ids=lambda lesson: lesson.stem)
def test_nbval_compares_an_output_of_every_lesson(lesson):
    assert compared_outputs(ROOT / "notebooks" / f"{lesson.stem}.ipynb") > 0


def test_notebooks_are_chosen_by_lesson_or_by_file(tmp_path: Path):
    for folder in FOLDERS:
        (tmp_path / folder).mkdir()
        for stem in ("04_messages", "04_messages_further", "05_allreduce"):
            (tmp_path / folder / f"{stem}.ipynb").touch()
    assert len(chosen([], tmp_path)) == 6 and len(chosen(["04"], tmp_path)) == 4
    assert chosen(["05"], tmp_path) == [tmp_path / folder / "05_allreduce.ipynb" for folder in FOLDERS]
    assert chosen([str(tmp_path / "notebooks" / "05_allreduce.ipynb")]) == chosen(["05"], tmp_path)[:1]
    for missing in ("19", str(tmp_path / "none.ipynb")):
        with pytest.raises(SystemExit, match="no notebook is called"):
            chosen([missing], tmp_path)


def write(folder: Path, *cells: nbformat.NotebookNode) -> Path:
    """A small notebook of code cells."""
    path = folder / "small.ipynb"
    for count, cell in enumerate(cells, start=1):
        cell.execution_count = count  # nbval compares only what has been run
    nbformat.write(new_notebook(cells=list(cells)), path)
    return path


@pytest.mark.timeout(200)
def test_a_sound_notebook_passes(tmp_path: Path):
    output = new_output("stream", name="stdout", text="3 rounds\n")
    checked = new_code_cell("print(rounds, 'rounds')", metadata=CHECKED, outputs=[output])
    expected = new_code_cell("1 / 0", metadata={"tags": ["raises-exception"]})
    ended = run_notebook(write(tmp_path, new_code_cell("rounds = 3"), checked, expected), seconds=120)
    assert not ended.wrong, ended.said


@pytest.mark.timeout(200)
@pytest.mark.parametrize(
    "cell, said",
    [
        (
            new_code_cell(
                "print('3 rounds')", metadata=CHECKED, outputs=[new_output("stream", name="stdout", text="2 rounds\n")]
            ),
            "2 rounds",
        ),
        (new_code_cell("%%no_such_magic\nx = 1"), "a magic that does not exist"),
        (new_code_cell("raise ValueError('rank 7 of 4')"), "rank 7 of 4"),
    ],
    ids=["a changed number", "a magic that does not exist", "an error"],
)
def test_a_broken_notebook_is_found(tmp_path: Path, cell: nbformat.NotebookNode, said: str):
    ended = run_notebook(write(tmp_path, cell), seconds=120)
    assert ended.wrong == "small.ipynb fails"
    assert said in ended.said


@pytest.mark.timeout(200)
def test_a_process_left_behind_is_found_and_ended(tmp_path: Path):
    sleep = [sys.executable, "-c", "import time; time.sleep(300)"]
    cell = f"import subprocess\nleft = subprocess.Popen({sleep}, start_new_session=True)"
    ended = run_notebook(write(tmp_path, new_code_cell(cell)), seconds=120, grace=1)
    assert "leaves 1 processes" in ended.wrong, ended.said


@pytest.mark.parametrize(
    "folder, line, sound",
    [
        ("exercises", "○ f: not begun", True),
        ("exercises", "✗ f: rank 2 holds 1", False),
        ("exercises", "", False),
        ("solutions", "✓ f: 4 ranks agree", True),
        ("solutions", "✗ f: rank 2 holds 1", False),
        ("solutions", "○ f: not begun", False),
        ("notebooks", "✗ f: rank 2 holds 1", True),
    ],
)
def test_exercises_say_not_begun_and_solutions_pass(folder: str, line: str, sound: bool):
    assert (rejected(Path(folder, "small.ipynb"), 'course.check("f", f)', line) is None) == sound


def beginning(notebook: Path, until: int, folder: Path) -> tuple[nbformat.NotebookNode, Path]:
    """The first cells of a notebook, with where to write them; the lesson's own last cell stops the ranks."""
    whole = nbformat.read(notebook, as_version=4)
    whole.cells = [*whole.cells[: until + 1], new_code_cell("ranks.stop()")]
    target = folder / notebook.parent.name
    target.mkdir()
    return whole, target / notebook.name


@pytest.mark.timeout(960)
@pytest.mark.skipif(not LESSON.is_file(), reason="lesson 4 is not built")
def test_one_changed_number_on_a_page_turns_the_lesson_red(tmp_path: Path):
    cells = nbformat.read(LESSON, as_version=4).cells
    stored = {
        i: o for i, cell in enumerate(cells) for o in cell.get("outputs", []) if re.search(r"\d", o.get("text", ""))
    }
    notebook, target = beginning(LESSON, min(stored), tmp_path)
    output = notebook.cells[-2].outputs[0]
    output.text = re.sub(r"\d", lambda digit: str((int(digit[0]) + 1) % 10), output.text, count=1)
    nbformat.write(notebook, target)
    ended = run_notebook(target)
    assert ended.wrong == f"{LESSON.name} fails"
    assert "mismatch" in ended.said


@pytest.mark.timeout(960)
@pytest.mark.skipif(not LESSON.is_file(), reason="lesson 4 is not built")
def test_one_wrong_rank_on_a_page_turns_the_lesson_red(tmp_path: Path):
    cells = nbformat.read(LESSON, as_version=4).cells
    position = next(i for i, cell in enumerate(cells) if cell.get("outputs") and "dest=right" in cell.source)
    notebook, target = beginning(LESSON, position, tmp_path)
    notebook.cells[position].source = cells[position].source.replace("dest=right", "dest=left")
    nbformat.write(notebook, target)
    ended = run_notebook(target)
    assert ended.wrong == f"{LESSON.name} fails"
    assert "dest=left" in ended.said


@pytest.mark.timeout(960)
@pytest.mark.skipif(not SOLUTIONS.is_file(), reason="lesson 4 is not built")
def test_one_wrong_rank_in_an_algorithm_turns_the_solutions_red(tmp_path: Path):
    cells = nbformat.read(SOLUTIONS, as_version=4).cells
    position = next(i for i, cell in enumerate(cells) if cell.source.startswith("def tree_broadcast"))
    notebook, target = beginning(SOLUTIONS, position + 1, tmp_path)
    notebook.cells = [cell for cell in notebook.cells if not cell.source.startswith("course.check(")]
    notebook.cells.insert(-1, cells[position + 1])
    algorithm = notebook.cells[-3]
    algorithm.source, changed = re.subn(r"dest=\(?rank \+ step", lambda found: f"{found[0]} + 1", algorithm.source)
    assert changed == 1, algorithm.source
    nbformat.write(notebook, target)
    ended = run_notebook(target)
    assert ended.wrong == f"{SOLUTIONS.name} fails"
    assert "✗ tree_broadcast" in ended.said
