"""The command `course`, as a shell runs it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from course_utils.diagnosis import CAN_RUN, Probed
from course_utils.errors import CourseError
from course_utils.probes import SCHEMA
from course_utils.syllabus import ROOT
from workshop.bench import cluster
from workshop.bench.__main__ import bench
from workshop.bench.rows import Row

COURSE = str(Path(sys.executable).with_name("course"))


def course(*arguments: str, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [COURSE, *arguments], capture_output=True, text=True, timeout=120, env={**os.environ, **environment}
    )


def in_process(capsys, *arguments: str) -> tuple[int, str]:
    """Exit status and output of the command in this process."""
    from course_utils.cli import app

    with pytest.raises(SystemExit) as end:
        app(list(arguments))
    return end.value.code or 0, capsys.readouterr().out


def notebook_of(folder: Path, *cells: str) -> Path:
    """A notebook with these code cells."""
    file = folder / "answers.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells]), file)
    return file


def test_doctor_ends_with_status_0_where_the_course_can_run() -> None:
    done = course("doctor")
    assert done.returncode == 0 and "Traceback" not in done.stderr  # where there are bars, on a slow machine
    assert done.stdout.endswith(f"{CAN_RUN}\n")


def test_doctor_ends_with_status_1_where_it_cannot(monkeypatch, capsys) -> None:
    missing = Probed("MPI", "missing", False, remedy="`make setup`")
    monkeypatch.setattr("course_utils.cli.examine", lambda quick: [missing])
    status, output = in_process(capsys, "doctor")
    assert status == 1 and output.startswith(f"{missing}\n")


def test_doctor_prints_one_object_for_programs() -> None:
    done = course("doctor", "--quick", "--json")
    report = json.loads(done.stdout)
    assert done.returncode == 0 and report["schema"] == SCHEMA and report["can_run"] is True
    assert set(report["versions"]) == {"course", "python", "torch", "mpi4py", "mpi"} and all(
        report["versions"].values()
    )
    health = {check["name"]: check["health"] for check in report["checks"]}
    assert health["python"] == "ok" and health["ranks"] == health["gloo"] == "not tried"
    assert {"name", "health", "values", "missing", "command"} == set(report["checks"][0])


def test_doctor_tells_programs_what_is_missing_and_how_to_get_it(monkeypatch, capsys) -> None:
    missing = Probed("MPI", "missing", False, missing=("mpi4py",), command="make setup")
    monkeypatch.setattr("course_utils.cli.examine", lambda quick: [missing])
    status, output = in_process(capsys, "doctor", "--json")
    report = json.loads(output)
    assert status == 1 and report["can_run"] is False
    assert report["checks"] == [
        {"name": "mpi", "health": "failed", "values": {}, "missing": ["mpi4py"], "command": "make setup"}
    ]
    with pytest.raises(CourseError, match="leave out --log or --json"):
        from course_utils.cli import app

        app(["doctor", "--json", "--log", "x"], standalone_mode=False)


def test_a_package_on_the_pythonpath_is_named_with_what_leaves_it_out(tmp_path) -> None:
    (tmp_path / "numpy").mkdir()
    (tmp_path / "numpy" / "__init__.py").write_text('raise ImportError("numpy of another Python")\n')
    path = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(tmp_path))))
    done = course("doctor", "--quick", PYTHONPATH=path)
    [line] = [line for line in done.stdout.splitlines() if "PYTHONPATH" in line]
    assert done.returncode == 1 and line.startswith(f"✗ PYTHONPATH  PYTHONPATH brings numpy from {tmp_path}, before")
    assert "ImportError: numpy of another Python" in line and "`env -u PYTHONPATH course doctor`" in line
    assert "make setup" not in line
    report = json.loads(course("doctor", "--json", PYTHONPATH=path).stdout)
    health = {check["name"]: (check["health"], check["command"]) for check in report["checks"]}
    assert health["pythonpath"] == ("failed", "unset PYTHONPATH") and health["ranks"][0] == "not tried"
    assert health["gpus"][0] == "ok", "torch is not blamed"


def test_an_old_torch_stops_the_doctor_before_ranks_fail(tmp_path) -> None:
    metadata = tmp_path / "torch-2.11.0.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text("Metadata-Version: 2.1\nName: torch\nVersion: 2.11.0\n")
    path = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH"))))
    done = course("doctor", "--json", PYTHONPATH=path)
    report = json.loads(done.stdout)
    checks = {check["name"]: check for check in report["checks"]}
    assert done.returncode == 1 and not report["can_run"] and report["versions"]["torch"] == "2.11.0"
    [missing], [old] = checks["packages"]["missing"], checks["packages"]["values"]["unfit_versions"].items()
    assert missing.startswith("torch>=") and old == ("torch", {"version": "2.11.0", "needed": missing[5:]})
    assert checks["ranks"]["health"] == checks["gloo"]["health"] == "not tried"


def test_bench_alone_lists_them() -> None:
    done = course("bench")
    assert done.returncode == 0 and "\ncluster      how long ranks take to start" in done.stdout


def test_bench_passes_its_options_on() -> None:
    done = course("bench", "--help")
    assert done.returncode == 0 and "how many rounds" in done.stdout


def test_bench_says_in_one_line_that_it_needs_a_checkout(monkeypatch, tmp_path) -> None:
    from course_utils import cli

    monkeypatch.setattr(cli, "ROOT", tmp_path)
    with pytest.raises(CourseError, match="needs a checkout of the course"):
        cli.bench(None)


def test_a_bench_prints_a_table_or_json_and_a_missed_target_is_no_failure(monkeypatch, capsys) -> None:
    rows = [Row("cluster", "stop", 9.0, "s", "lower", 1.0, 0.5, 2)]
    monkeypatch.setattr(cluster, "run", lambda runs: rows if runs == 2 else pytest.fail("the runs are not passed on"))
    bench("cluster", runs=2)
    assert "✗ missed" in capsys.readouterr().out
    bench("cluster", runs=2, json=True)
    output = capsys.readouterr().out
    assert json.loads(output)["ok"] is False and output.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("bench", "clutser"), "Did you mean 'cluster'?"),
        (("bench", "zzz"), "`course bench` lists them."),
        (("bench", "cluster", "06"), "The bench cluster has no parts to choose from"),
        (("bench", "grader", "tree_brodcast"), 'Did you mean "tree_broadcast"?'),
        (("check", "nowhere.ipynb"), "nowhere.ipynb cannot be read: No such file"),
        (("check", "pyproject.toml"), "pyproject.toml is not a notebook."),
        (("check", "notebooks"), "cannot be read: Is a directory"),
        (("bench", "cluster", "--runs=0"), "greater than or equal to 1"),
    ],
)
def test_a_mistake_gets_a_plain_line(arguments, says) -> None:
    done = subprocess.run([COURSE, *arguments], capture_output=True, text=True, timeout=120, cwd=ROOT)
    assert done.returncode == 2
    assert says in done.stderr and "Traceback" not in done.stderr


def test_sweep_says_what_it_did(tmp_path) -> None:
    done = course("sweep", COURSE_RUNTIME=str(tmp_path))
    assert (done.returncode, done.stdout) == (0, "Nothing was left behind.\n")


def test_check_judges_every_exercise_of_a_notebook(tmp_path) -> None:
    notebook = notebook_of(
        tmp_path,
        "def rank_squared(comm):\n    return comm.rank ** 2",
        "import course_utils as course\ncourse.check('rank_squared', rank_squared)",
        "def who_is_there(comm, name):\n    return [name]\n\ncourse.check('who_is_there', who_is_there)",
    )
    done = course("check", str(notebook), "--ranks=2")
    lines = done.stdout.splitlines()
    assert done.returncode == 1, done.stderr
    assert lines[0].startswith("2 ranks on this machine")
    assert lines[1].startswith("✓ rank_squared: ") and lines[2].startswith("✗ who_is_there: ")


def test_a_notebook_without_an_answer_is_rejected(tmp_path) -> None:
    done = course("check", str(notebook_of(tmp_path, "1 + 1")))
    assert done.returncode == 2 and "answers no exercise of the course." in done.stderr


def test_exercises_lists_what_is_declared(capsys) -> None:
    status, output = in_process(capsys, "exercises", "4")
    lines = output.splitlines()
    [line] = [line for line in lines if "tree_broadcast" in line]
    assert status == 0 and line.split()[:3] == ["04", "tree_broadcast", "difficulty"] and "20 minutes" in line
    assert len(in_process(capsys, "exercises")[1].splitlines()) > len(lines)
    assert "Lesson 77 has no exercises yet." in course("exercises", "77").stderr


def test_plan_says_which_layout_is_best(capsys) -> None:
    code, said = in_process(capsys, "plan", "Llama 3 8B", "--gpus", "8", "--of", "h100")
    assert code == 0 and "the quickest" in said and "Breaks first" in said
    code, said = in_process(capsys, "plan", "Llama 3 70B", "--gpus", "8", "--tested-only")
    assert code == 0 and "Nothing fits" in said and "offloaded" not in said


def test_plan_rejects_a_model_that_it_does_not_know() -> None:
    rejected = course("plan", "GPT-9")
    assert rejected.returncode == 2 and "There is no model 'GPT-9'" in rejected.stderr
