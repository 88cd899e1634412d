"""What a sandbox shows of the machine: of the course nothing, wherever it and copies of it are."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from course_utils.syllabus import ROOT
from course_utils.teacher import visible_files
from course_utils.teacher.sandbox import Sandbox
from tests.teacher.submissions import needs_a_box

pytestmark = [
    needs_a_box,
    pytest.mark.timeout(300),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can put copies of the course below the system's folders"),
]
SEEN = """
import json, os, sys
def has_content(file):
    try:
        return bool(open(file).read(1))
    except PermissionError:
        return False
found = []
marks, *roots = map(str.split, sys.argv[1:])
for root in roots:
    for folder, names, files in os.walk(" ".join(root)):
        found += [os.path.join(folder, name) for name in files if name in marks]
print(json.dumps([file for file in found if has_content(file)]))
"""
MARKS = ("05_allreduce.ipynb", "suspicious_ring.py", "course_utils-2026.11-py3-none-any.whl", "packed-answers.pack")
"""Files of the course in each of the copies below."""


@pytest.fixture
def below() -> Iterator[list[Path]]:
    """New folders below those of the system."""
    with tempfile.TemporaryDirectory(dir="/opt") as first, tempfile.TemporaryDirectory(dir="/usr/local") as second:
        folders = [Path(first), Path(second)]
        for folder in folders:
            folder.chmod(0o755)
        yield folders


def a_copy(folder: Path) -> Path:
    """A repository of the course with its solutions and its history."""
    shutil.copytree(ROOT / "course_utils", folder / "course_utils", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "exercises", folder / "exercises")
    a_history(folder / ".git")
    return folder


def a_history(folder: Path) -> None:
    for name in ("objects", "refs"):
        (folder / name).mkdir(parents=True)
    (folder / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / "objects" / "packed-answers.pack").write_text("everything")


def seen_in_a_box(tmp_path: Path, roots: list[Path]) -> list[str]:
    """The files of the course that a process in a new box sees in these folders."""
    visible_files.visible_files.cache_clear()
    (tmp_path / "package").mkdir()
    command = Sandbox.of(tmp_path).command([sys.executable, "-c", SEEN, " ".join(MARKS), *map(str, roots)])
    visible_files.visible_files.cache_clear()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_no_copy_below_the_folders_of_the_system_is_in_sight(below, monkeypatch, tmp_path) -> None:
    for folder in below:
        a_copy(folder / "course" / "2026-11")
        (folder / "course" / "current").symlink_to("2026-11")
        a_history(folder / "course.git")
        solutions = folder / "handed out" / "solutions"
        solutions.mkdir(parents=True)
        shutil.copy(ROOT / "exercises" / "solutions" / "05_allreduce.ipynb", solutions)
        (folder / "course_utils-2026.11-py3-none-any.whl").write_text("answers")
    assert set(MARKS) == {file.name for folder in below for file in folder.rglob("*") if file.name in MARKS}
    assert seen_in_a_box(tmp_path, below) == []


@pytest.mark.long
def test_an_installation_beside_other_packages_is_covered_and_they_are_not(below, monkeypatch, tmp_path) -> None:
    packages = below[1] / "lib" / "python3" / "site-packages"
    shutil.copytree(ROOT / "course_utils", packages / "course_utils")
    for other in ("tests", "numpy_of_ours"):
        (packages / other).mkdir()
        (packages / other / "__init__.py").touch()
    monkeypatch.setattr(sys, "path", [*sys.path, str(packages)])
    files = visible_files.visible_files.__wrapped__()
    assert [path for path in files.covered if path.is_relative_to(packages)] == [packages / "course_utils"]
    assert seen_in_a_box(tmp_path, below) == []


@pytest.mark.long
@pytest.mark.parametrize("inside", [".venv", "."], ids=["an environment in the repository", "the repository is one"])
def test_python_in_a_repository_of_the_course_stays_in_sight(inside, below, monkeypatch, tmp_path) -> None:
    for folder in below:
        copy = a_copy(folder / "course")
        prefix = (copy / inside).resolve()
        packages = prefix / "lib" / "python3" / "site-packages"
        shutil.copytree(ROOT / "course_utils", packages / "course_utils")
        (packages / "suspicious.py").write_text("needed")
        monkeypatch.setattr(sys, "exec_prefix", str(prefix))
        monkeypatch.setattr(sys.modules[__name__], "MARKS", (*MARKS, "suspicious.py"))
        assert seen_in_a_box(folder, below) == [str(packages / "suspicious.py")]


@pytest.mark.long
def test_of_opt_only_what_python_needs_is_in_sight(below, monkeypatch, tmp_path) -> None:
    (below[0] / "needed").mkdir()
    for name in ("needed/packed-answers.pack", "packed-answers.pack"):
        (below[0] / name).write_text("a library")
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{below[0]}/needed")
    assert seen_in_a_box(tmp_path, below) == [f"{below[0]}/needed/packed-answers.pack"]
