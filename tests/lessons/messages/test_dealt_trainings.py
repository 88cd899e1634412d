"""The cluster behind the ranks, and trainings dealt out to them: pictures, and the page's code without the course."""

import os
import re
import subprocess
import sys
from pathlib import Path

import nbclient
import nbformat
import pytest

from course_utils.errors import CourseError
from course_utils.lessons.messages import pictures
from workshop.publish.sources import ROOT

PAGE = ROOT / "notebooks" / "src" / "04_messages_further.py"
IN_ADVANCE = [{"0.001": 30, "0.002": 20}, {"0.1": 4, "1": 3}]
ONE_AT_A_TIME = [{"0.001": 30}, {"0.002": 20, "0.1": 4, "1": 3}]


def bars_of(ax) -> dict[int, list[tuple[float, float]]]:
    """Row → where each of its bars begins, and how long it is."""
    found: dict[int, list[tuple[float, float]]] = {}
    for bar in ax.patches:
        found.setdefault(round(bar.get_y() + bar.get_height() / 2), []).append((bar.get_x(), bar.get_width()))
    return found


def test_every_training_is_a_bar_as_long_as_its_steps() -> None:
    picture = pictures.dealt_trainings({"in advance": IN_ADVANCE, "one at a time": ONE_AT_A_TIME})
    first, second = picture.axes
    assert bars_of(first) == {0: [(0, 30), (30, 20)], 1: [(0, 4), (4, 3)]}
    assert bars_of(second) == {0: [(0, 30)], 1: [(0, 20), (20, 4), (24, 3)]}
    bold = [{text.get_text() for text in ax.texts if text.get_fontweight() == "bold"} for ax in picture.axes]
    assert bold == [{"50 steps"}, {"30 steps"}]
    assert "rank 1: 0.002 20, 0.1 4, 1 3" in picture.alt_text


@pytest.mark.parametrize(
    ("most", "finding"),
    [
        ({"in advance": 50, "one at a time": 30}, "Dealt out one at a time, the busiest rank makes 30 steps, not 50"),
        ({"in advance": 40, "one at a time": 60}, "Dealt out in advance, the busiest rank makes 40 steps, not 60"),
        ({"in advance": 1350, "one at a time": 1350}, "The busiest rank makes 1,350 steps"),
        ({"in advance": 7}, "The busiest rank makes 7 steps"),
    ],
)
def test_the_run_chooses_the_title(most, finding) -> None:
    assert pictures.dealing_finding(most) == finding


def test_a_rank_may_get_nothing_and_all_plans_need_the_same_ranks() -> None:
    assert pictures.busiest([{}, {}]) == 0
    assert "rank 1: nothing" in pictures.dealt_trainings({"by luck": [{"1": 5}, {}]}).alt_text
    with pytest.raises(CourseError, match="same ranks"):
        pictures.dealt_trainings({"in advance": IN_ADVANCE, "one at a time": [{}]})
    with pytest.raises(CourseError, match="same ranks"):
        pictures.dealt_trainings({})


def test_the_cluster_that_is_drawn_is_the_one_that_runs(four_ranks) -> None:
    processes = four_ranks.view.apply_sync(os.getpid)
    assert processes == four_ranks.pids
    picture = pictures.cluster(os.getpid(), four_ranks.controller, processes)
    words = " ".join(text.get_text() for text in picture.axes[0].texts)
    for number in (os.getpid(), *processes):
        assert f"process {number}" in words and f"process {number}" in picture.alt_text
    assert four_ranks.controller in words and "MPI" in words
    assert "MPI" not in {text.get_text() for text in pictures.cluster(1, "here:2", [3]).axes[0].texts}
    with pytest.raises(CourseError, match="one engine"):
        pictures.cluster(1, "here:2", [])


# --- the five lines that need no course -------------------------------------------------------------------------------


def five_lines() -> str:
    """Return the code that the page shows, as a learner would copy it."""
    [block] = re.findall(r"^# ```python\n(.*?)^# ```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return re.sub(r"^# ?", "", block, flags=re.MULTILINE)


@pytest.fixture
def elsewhere(tmp_path, monkeypatch) -> Path:
    """A folder from which nothing of the course can be imported, and an environment in which `mpiexec` is found."""
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    return tmp_path


def test_five_lines_start_a_cluster_in_a_script(elsewhere) -> None:
    lines = five_lines()
    assert len([line for line in lines.splitlines() if line.strip()]) <= 5 and "course" not in lines
    (elsewhere / "five_lines.py").write_text(lines)
    command = [sys.executable, "five_lines.py"]
    ended = subprocess.run(command, cwd=elsewhere, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines()[-1] == "[4, 4, 4, 4]"


def test_five_lines_start_a_cluster_in_a_notebook(elsewhere) -> None:
    cell = nbformat.v4.new_code_cell(five_lines())
    notebook = nbformat.v4.new_notebook(cells=[cell])
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(elsewhere)}}).execute()
    printed = "".join(output.text for output in cell.outputs if output.get("name") == "stdout")
    assert "[4, 4, 4, 4]" in printed.splitlines()
