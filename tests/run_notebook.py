"""Run notebooks as a learner would, with nbval, and reject what nbval lets pass: `make nbval`.

`python tests/run_notebook.py` runs every lesson and every exercise notebook, each in a process of its own;
`python tests/run_notebook.py 04 05` those of two lessons; `python tests/run_notebook.py NOTEBOOK …` those files.

nbval (`--nbval-lax`) runs every cell and compares the outputs of those tagged `nbval-check-output`. Beside it:
- a magic that does not exist prints a UsageError and counts as passed: here it fails;
- no page does what works by luck, but for the cells that show it;
- in an exercise untouched every check says ○, in a solution every check says ✓;
- when the notebook has ended, no process that it started is left.
This file is also the pytest plugin that does the first two.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from course_utils import system

# What checks addresses in JSON takes a second to import, in every run of a notebook; notebooks hold none.
sys.modules.setdefault("rfc3987_syntax", None)

ROOT = Path(__file__).resolve().parents[1]
CELL_SECONDS = 300
GRACE_SECONDS = 10
"""How long after the kernel's end its ranks may take to notice."""


@dataclass(frozen=True)
class Ended:
    """How a notebook's run ended: what is wrong (empty where nothing is), and what pytest said."""

    wrong: str
    said: str


def run_notebook(notebook: Path, seconds: float = 900, grace: float = GRACE_SECONDS) -> Ended:
    """Run a notebook in its folder, with its own folders for progress and ranks, within `seconds`.

    What it started may take `grace` seconds to end after it; then it is left over, and killed.
    """
    with tempfile.TemporaryDirectory(prefix="course-nb-", ignore_cleanup_errors=True) as scratch:
        environment, runtime = own_environment(Path(scratch))
        options = ["--nbval-lax", "--nbval-current-env", f"--nbval-cell-timeout={CELL_SECONDS}"]
        options = ["-p", "run_notebook", "-p", "nbval.plugin", *options]
        plain = ["-x", "-q", "--color=no", "-p", "no:cacheprovider", "-c", os.devnull, f"--rootdir={notebook.parent}"]
        command = [sys.executable, "-m", "pytest", *options, *plain, str(notebook)]
        process = subprocess.Popen(
            command,
            cwd=notebook.parent,
            env=environment | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},  # nbval alone: each plugin takes its time
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            said, _ = process.communicate(timeout=seconds)
            wrong = "" if process.returncode == 0 else f"{notebook.name} fails"
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            end(marked(runtime))
            said, wrong = process.communicate()[0], f"{notebook.name} takes longer than {seconds:.0f} s"
        left = leftovers(runtime, grace)
        end(left)
        if left and not wrong:
            wrong = f"{notebook.name} leaves {len(left)} processes: {', '.join(sorted(set(left.values())))}"
    return Ended(wrong, said)


def own_environment(scratch: Path) -> tuple[dict[str, str], Path]:
    """The environment of a run that shares neither progress nor ranks with any other, and its runtime folder."""
    from workshop.publish.notebooks import kernel_environment  # slow, and the plugin needs none of it

    environment = kernel_environment(scratch, ROOT / "tests")
    return environment, Path(environment["COURSE_RUNTIME"])


def marked(runtime: Path) -> dict[int, str]:
    """The processes whose environment names this runtime folder: process id to command."""
    found = {}
    for pid, folder in system.marked("COURSE_RUNTIME"):
        if folder == str(runtime) and pid != os.getpid():
            with contextlib.suppress(psutil.Error):  # gone in the meantime
                found[pid] = " ".join(psutil.Process(pid).cmdline())[:120]
    return found


def leftovers(runtime: Path, grace: float) -> dict[int, str]:
    """The processes of a runtime folder that are still there after the time of grace."""
    until = time.monotonic() + grace
    while marked(runtime) and time.monotonic() < until:
        time.sleep(0.2)
    return marked(runtime)


def end(processes: dict[int, str]) -> None:
    """Kill processes that carry our own mark."""
    for pid in processes:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item):
    """After nbval has run a cell and found nothing, look at what it printed."""
    result = yield
    cell = getattr(item, "cell", None)
    if cell is not None:
        wrong = rejected(Path(item.fspath), cell.source, printed(item.test_outputs or []))
        if wrong:
            raise AssertionError(f"cell {item.cell_num}: {wrong}\n{cell.source}")
    return result


def printed(outputs: list[dict]) -> str:
    """All text of a cell's outputs."""
    texts = []
    for output in outputs:
        texts += [output.get("text", ""), output.get("evalue", ""), output.get("data", {}).get("text/plain", "")]
    return "\n".join(texts)


LUCKY = ("ranks.run(swap, 10", '"hasty ring": hasty_ring')
"""What is in the cells that show what works by luck: lesson 4's short swap, and a ring with a race in Further 5."""


def rejected(notebook: Path, source: str, text: str) -> str | None:
    """What is wrong with a cell that ran, or None."""
    if "UsageError:" in text:
        return f"a magic that does not exist: {text.strip()}"
    if "By luck:" in text and not any(shown in source for shown in LUCKY):
        return f"the course's own code works by luck: {text.strip()}"
    if "course.check(" not in source:
        return None
    if notebook.parent.name == "solutions" and ("✓" not in text or "✗" in text):
        return f"the solution is rejected: {text.strip()}"
    if notebook.parent.name == "exercises" and ("○" not in text or "✗" in text):
        return f"an exercise not begun must say ○: {text.strip()}"
    return None


FOLDERS = "notebooks", "exercises"
"""Where the notebooks of learners are."""


def chosen(names: Sequence[str], root: Path = ROOT) -> list[Path]:
    """Return the notebooks that are named by their files, or by how their lessons begin (`04`); without names all.

    Raises:
        SystemExit: no notebook has this name.
    """
    everything = [path for folder in FOLDERS for path in sorted((root / folder).glob("*.ipynb"))]
    found = []
    for name in names:
        file = name.endswith(".ipynb")
        of_name = [Path(name).resolve()] if file else [path for path in everything if path.name.startswith(name)]
        if not all(path.is_file() for path in of_name) or not of_name:
            raise SystemExit(f"no notebook is called {name}")
        found += of_name
    return found or everything


def compared_outputs(notebook: Path) -> int:
    """In how many cells nbval compares the output with the committed one."""
    return sum(
        "nbval-check-output" in cell["metadata"].get("tags", []) and bool(cell["outputs"])
        for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        if cell["cell_type"] == "code"
    )


def main(names: list[str]) -> int:
    """Run notebooks one after the other; the exit status is 1 where one is wrong."""
    status = 0
    for notebook in chosen(names):
        begun = time.monotonic()
        ended = run_notebook(notebook)
        name, seconds = "/".join(notebook.parts[-2:]), f"{time.monotonic() - begun:.0f} s"
        print(f"{name}: {ended.wrong or f'passed, {compared_outputs(notebook)} compared'} ({seconds})", flush=True)
        if ended.wrong:
            print(ended.said)
            status = 1
    return status


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))  # for `workshop`, which is not installed
    sys.exit(main(sys.argv[1:]))
