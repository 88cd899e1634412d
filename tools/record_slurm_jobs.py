"""Record what lesson 13's cells print in jobs of a real Slurm: tools/record_slurm_jobs.py

It starts a Slurm with two nodes on this machine (`tests/slurm_here.py`, which takes root) and runs the cells of the
page up to the last one that is recorded, so that the page and its recordings cannot differ. The files are written
beside the lesson's other recordings.
"""

import contextlib
import io
import json
import platform
import re
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import pytest
import torch
from IPython.core.interactiveshell import InteractiveShell

from course_utils.lessons.gpu_nodes.recorded_jobs import FOLDER, RECORDED_JOBS, RecordedOutput
from workshop.publish.sources import ROOT, read_cells

sys.path.insert(0, str(ROOT / "tests"))
from slurm_here import SlurmHere, slurm_here  # noqa: E402 - it is found there

PAGE = ROOT / "notebooks" / "src" / "13_gpu_nodes.py"


def main() -> None:
    """Run the cells in a Slurm, and write what the recorded ones printed."""
    with running_slurm() as slurm:
        outputs = outputs_of_page()
        version = slurm.call("sinfo", "--version").split()[-1]
    versions = {"Slurm": version, "Python": platform.python_version(), "torch": torch.__version__}
    machine = "A real Slurm with two emulated nodes, c1 and c2, on one computer without GPUs."
    for name, output in outputs.items():
        recorded = RecordedOutput(output, machine, f"{datetime.now(UTC):%Y-%m-%d}", versions)
        file = FOLDER / f"{name}.json"
        file.write_text(json.dumps(asdict(recorded), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        print(f"{file}\n{recorded}\n")


@contextlib.contextmanager
def running_slurm() -> Iterator[SlurmHere]:
    """Start a Slurm whose nodes share a folder, and let this process find it."""
    with (
        tempfile.TemporaryDirectory(prefix="course-record-") as shared,
        slurm_here([Path(shared)]) as slurm,
        pytest.MonkeyPatch.context() as patch,
    ):
        slurm.set_variables(patch)
        patch.setenv("COURSE_SHARED", shared)
        yield slurm


def outputs_of_page() -> dict[str, str]:
    """Run the page as far as its last recorded cell; return what each recorded cell printed."""
    cells = [cell.source for cell in read_cells(PAGE) if cell.cell_type == "code"]
    numbers = {
        name: next(number for number, source in enumerate(cells) if words in source)
        for name, words in RECORDED_JOBS.items()
    }
    shell, outputs = InteractiveShell.instance(), dict[str, str]()
    for number, source in enumerate(cells[: max(numbers.values()) + 1]):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            done = shell.run_cell(source)
        if not done.success:
            raise RuntimeError(f"{done.error_in_exec or done.error_before_exec!r} in the cell\n{source}\n{printed}")
        for name in (name for name, wanted in numbers.items() if wanted == number):
            outputs[name] = without_remark(printed.getvalue())
    shell.run_cell("scratch.cleanup()")
    return outputs


def without_remark(printed: str) -> str:
    """Leave out the line on this machine's torchvision, which is no part of the job, and progress bars."""
    return re.sub(r"^\(The installed torchvision .*\n", "", printed, flags=re.MULTILINE)


if __name__ == "__main__":
    main()
