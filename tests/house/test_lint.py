"""House rules that ruff does not know, and that ruff's own are in force where they should be."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from course_utils.syllabus import ROOT

TEXTS = {".py", ".md", ".toml", ".yml", ".txt", ".json", ".ipynb", ".css", ""}


def tracked() -> list[Path]:
    """Every text file that git knows, or would take."""
    command = ["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("this is not a git checkout")
    files = [ROOT / name for name in done.stdout.split("\0") if name]
    return [file for file in files if file.suffix in TEXTS and file.is_file()]


def ruff(code: str, file: str) -> str:
    """What ruff says of this code, were it this file."""
    command = [sys.executable, "-m", "ruff", "check", "--output-format=concise", f"--stdin-filename={ROOT / file}", "-"]
    return subprocess.run(command, input=code, capture_output=True, text=True, cwd=ROOT, check=False).stdout


def test_no_file_knows_the_machine_it_was_written_on() -> None:
    for place in (ROOT, Path.home()):
        if len(place.parts) < 3:  # as short a name may stand in any text
            continue
        named = re.compile(rf"(?<![\w.}}]){re.escape(str(place))}/")
        assert not [file for file in tracked() if named.search(file.read_text(encoding="utf-8"))]


@pytest.mark.parametrize(
    ("code", "file", "rule"),
    [
        ('"""A module."""\n\nimport os\n', "course_utils/x.py", "F401"),
        ('"""A module."""\n\n# x = 1\n', "course_utils/x.py", "ERA001"),
        ('"""A module."""\n\n\ndef shown() -> int:\n    return 1\n', "course_utils/x.py", "D103"),
        ("x = 1  # " + "long " * 30 + "\n", "notebooks/src/x.py", "E501"),
        ("import os\n", "tests/test_x.py", "F401"),
    ],
)
def test_ruff_rejects(code, file, rule) -> None:
    assert rule in ruff(code, file)


def test_ruff_lets_pages_be() -> None:
    code = "# %%\n# %%px\ncomm = MPI.COMM_WORLD\n\n# %%\ncomm.rank\n"
    assert "All checks passed!" in ruff(code, "notebooks/src/x.py")
