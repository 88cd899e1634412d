"""GitHub's workflows: what they may do, what they run, and that all that they name is there."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

from course_utils.syllabus import LESSONS, ROOT

FILES = sorted((ROOT / ".github" / "workflows").iterdir())


def read(file: Path) -> dict:
    """A workflow; YAML 1.1 reads its key `on` as True."""
    workflow = yaml.safe_load(file.read_text(encoding="utf-8"))
    workflow["on"] = workflow.pop(True)
    return workflow


def steps(workflow: dict) -> list[dict]:
    """All steps of all jobs."""
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def commands(workflow: dict) -> str:
    """All that runs in a shell, a step a line."""
    return "\n".join(" ".join(step["run"].split()) for step in steps(workflow) if "run" in step)


TESTS, NEWEST_TORCH = read(ROOT / ".github/workflows/tests.yml"), read(ROOT / ".github/workflows/newest-torch.yml")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_workflow_may_read_alone_and_needs_no_secret(file) -> None:
    workflow, text = read(file), file.read_text(encoding="utf-8")
    assert workflow["permissions"] == {"contents": "read"}
    assert not re.search(r"secrets\.|github\.token|pull_request_target", text)
    assert not any("permissions" in job for job in workflow["jobs"].values())
    checkouts = [step for step in steps(workflow) if step.get("uses", "").startswith("actions/checkout@")]
    assert len(checkouts) == len(workflow["jobs"])
    assert all(step["with"] == {"persist-credentials": False} for step in checkouts)
    assert all(job["timeout-minutes"] <= 90 for job in workflow["jobs"].values())


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_an_action_is_pinned_by_the_hash_of_a_commit_with_its_version_beside_it(file) -> None:
    lines = re.findall(r"uses: (.*)", file.read_text(encoding="utf-8"))
    assert lines and all(re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line) for line in lines)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_what_a_workflow_names_is_there(file) -> None:
    shell = commands(read(file))
    targets = re.findall(r"^([a-z-]+(?: [a-z-]+)*):(?!=)", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    assert set(re.findall(r"\bmake (?!PYTHON)([\w-]+)", shell)) <= {name for line in targets for name in line.split()}
    for name, test in re.findall(r"(tests/[\w/]+\.py)(?:::(\w+))?", shell):
        assert (ROOT / name).exists() and f"def {test}" in (ROOT / name).read_text(encoding="utf-8")
    for name in re.findall(r"\S+\.ipynb|\S+\.yml", shell):
        assert (ROOT / name).exists(), name


def test_linux_and_macos_run_the_tests_on_the_oldest_and_the_newest_python() -> None:
    matrix = TESTS["jobs"]["make-test"]["strategy"]["matrix"]
    allowed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"]
    oldest, beyond = map(int, re.fullmatch(r">=3\.(\d+),<3\.(\d+)", allowed).groups())
    assert matrix["python"] == [f"3.{oldest}", f"3.{beyond - 1}"]
    assert [name.partition("-")[0] for name in matrix["system"]] == ["ubuntu", "macos"]
    assert "make test PYTHON=python\n" in commands(TESTS)


def test_nbval_is_a_step_that_runs_all_notebooks() -> None:
    named = [step for step in TESTS["jobs"]["nbval"]["steps"] if step.get("name", "").startswith("nbval")]
    assert [step["run"] for step in named] == ["make nbval PYTHON=python"]
    assert "tests/run_notebook.py $(LESSONS)" in (ROOT / "Makefile").read_text()


def test_conda_solves_its_file_and_runs_lessons_0_4_and_6() -> None:
    run = commands({"jobs": {"conda": TESTS["jobs"]["conda"]}})
    assert "conda env create --yes --file environment.yml" in run
    assert re.findall(r"\S+\.ipynb", run) == [f"notebooks/{LESSONS[number].stem}.ipynb" for number in (0, 4, 6)]


def test_the_website_is_an_artifact() -> None:
    *_, build, upload = TESTS["jobs"]["site"]["steps"]
    assert build["run"].startswith("make site") and upload["uses"].startswith("actions/upload-artifact@")
    assert upload["with"]["path"] == "site/build"


def test_the_newest_torch_reports_once_a_week_and_blocks_nothing() -> None:
    assert NEWEST_TORCH["on"]["schedule"][0]["cron"].endswith("* * 1") and "pull_request" not in NEWEST_TORCH["on"]
    tests = next(step for step in steps(NEWEST_TORCH) if step.get("id") == "tests")
    assert tests["continue-on-error"] is True
    report = steps(NEWEST_TORCH)[-1]
    assert report["if"] == "always()" and "$GITHUB_STEP_SUMMARY" in report["run"]
