"""The checks for GPUs on processors: the same code with gloo and small sizes; what becomes of a check that fails."""

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from course_utils.errors import CourseError
from course_utils.lessons.gpu_nodes.ladder import Climb
from course_utils.system import started_at
from course_utils.trace.mpi import memory
from course_utils.trace.mpi.memory import check_memory, device_of
from gpu import all_checks
from gpu.ladder import rows_of
from gpu.on_ranks import share_a_gpu
from gpu.registry import CHECKS, PARTS, Where
from gpu.running import without_meaning
from workshop.bench.rows import Row

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "tests" / "gpu" / "run.sh"
NOT_NEEDED = "mpi4py ipyparallel pytest matplotlib sklearn torchvision psutil IPython cloudpickle tqdm typer numpy zmq"
NEED_A_GPU = {"asynchrony", "side-stream", "events", "bucket-streams", "allocator", "small-batches", "orders"}
NEED_A_GPU |= {"sharded-memory", "flight-recorder", "memory-in-trace"}
NEED_PACKAGES = {
    "mpi-and-gpus",
    "training-program",
    "recorded-order",
    "recorded-backward",
    "profile",
    "widths",
    "planner-steps",
}
SPOILED = """
import os, signal, sys, time
from gpu import __main__, registry
from gpu.registry import check, equal

@check(0, shows="a good one")
def good(where):
    yield equal("fine", 0.0)

@check(0, shows="misses its target")
def off(where):
    yield equal("far off", 1.0)

@check(0, shows="raises")
def raises(where):
    yield equal("before", 0.0)
    raise ValueError("some words")

@check(0, shows="crashes")
def crashes(where):
    yield equal("before", 0.0)
    print("last words", flush=True)
    os.kill(os.getpid(), signal.SIGSEGV)

@check(0, shows="hangs, and so does a process of its own")
def hangs(where):
    child = os.fork()
    if child:
        open(os.environ["CHILD"], "w").write(str(child))
    while True:
        time.sleep(1)

@check(0, shows="draws a bar")
def bars(where):
    from course_utils.progress_bar import ProgressBar

    with ProgressBar("a bar", delay=0) as bar:
        bar.refresh()
        yield equal("bars that leave a semaphore behind", float(bar._bar is not None))

sys.argv = ["run.sh", "--device", "cpu", *sys.argv[1:]]
sys.exit(__main__.main())
"""


def run(*options: str, path: str = "") -> subprocess.CompletedProcess:
    """The script with this Python; `path` goes before what Python looks through."""
    known = os.environ | {"PYTHON": sys.executable, "PYTHONPATH": path}
    return subprocess.run([SCRIPT, *options], env=known, capture_output=True, text=True, timeout=250)


@pytest.fixture
def spoiled(tmp_path):
    """Some checks that fail in every way beside one that passes; the same command line."""

    def start(*options: str) -> subprocess.CompletedProcess:
        known = os.environ | {"PYTHONPATH": f"{ROOT / 'tests'}:{ROOT}", "CHILD": str(tmp_path / "child")}
        command = [sys.executable, "-c", SPOILED, *options]
        return subprocess.run(command, env=known, capture_output=True, text=True, timeout=100)

    return start


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_without_a_gpu_one_line_and_0():
    found = run()
    assert found.returncode == 0, found.stderr
    assert len(found.stdout.splitlines()) == 1 and "no GPU here" in found.stdout
    assert run("--require-gpu").returncode == 1, "in a job, nothing checked is not a success"


def test_every_check_is_in_one_part():
    all_checks.load()
    assert sorted(name for part in PARTS.values() for name in part) == sorted(CHECKS)


def test_every_check_runs_on_processors_with_torch_alone(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        f"import sys\nsys.modules.update(dict.fromkeys({NOT_NEEDED.split()!r}))\n"
    )
    file = tmp_path / "rows"
    found = run("--device", "cpu", "--json", str(file), "--timeout", "100", path=str(tmp_path))
    assert found.returncode == 0, found.stdout + found.stderr
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    measured = {line["check"] for line in lines if "value" in line}
    needs = {line["check"]: line["needs"] for line in lines if not line.get("metric") or "needs" in line}
    assert {name for name in needs if "GPU" in needs[name]} - {"bandwidth"} == NEED_A_GPU
    assert {name for name in needs if "GPU" not in needs[name]} == NEED_PACKAGES
    all_checks.load()
    assert measured | set(needs) == set(CHECKS)
    assert all(line["lessons"] for line in lines)


@pytest.mark.long
def test_what_needs_more_packages_runs_with_them():
    found = run("--device", "cpu", "--only", *sorted(NEED_PACKAGES))
    assert found.returncode == 0, found.stdout + found.stderr
    every = len(NEED_PACKAGES)
    assert f"{every} of {every} checks passed" in found.stdout, found.stdout


@pytest.mark.long
def test_ranks_start_as_they_do_on_gpus():
    found = run("--device", "cpu", "--start", "spawn", "--only", "collectives")
    assert found.returncode == 0, found.stdout + found.stderr
    assert "all_reduce, P = 2, error" in found.stdout


def test_what_fails_is_a_row_and_not_the_end(spoiled, tmp_path):
    found = spoiled("--only", "hangs", "off", "raises", "crashes", "good", "--timeout", "2")
    assert found.returncode == 1, found.stderr
    assert "✗ hangs: not finished after 2 s, and killed" in found.stdout
    assert "✗ raises: ValueError: some words" in found.stdout
    assert "✗ crashes: died: SIGSEGV" in found.stdout and "last words" in found.stdout
    assert found.stdout.count("before") == 2  # what was measured before is kept
    assert "1 of 5 checks passed" in found.stdout
    assert "failed: hangs, off, raises, crashes" in found.stdout
    assert started_at(int((tmp_path / "child").read_text())) is None


def test_what_was_measured_is_home_before_the_end(spoiled, tmp_path):
    found = spoiled("--only", "good", "hangs", "--timeout", "50", "--budget", "4", "--out", str(tmp_path / "home"))
    assert found.returncode == 1, found.stderr
    rows = [json.loads(line) for line in (tmp_path / "home" / "rows.jsonl").read_text().splitlines()]
    assert rows[0]["check"] == "good" and rows[0]["ok"]
    assert rows[1]["check"] == "hangs" and "and killed" in rows[1]["error"], "the budget ends it, not its own limit"
    assert json.loads((tmp_path / "home" / "machine.json").read_text())["torch"] == torch.__version__
    late = spoiled("--only", "hangs", "good", "--timeout", "2", "--budget", "2")
    assert "○ good needs more time: the budget is spent" in late.stdout
    assert late.stdout.index("✗ hangs") < late.stdout.index("○ good"), "each is told as it ends"


def test_ranks_that_share_a_gpu_are_nodes_for_nccl_and_their_times_say_nothing():
    where = Where("cuda", 1, "spawn", ranks=2, shared=True)
    assert where.world_sizes == [2]
    assert share_a_gpu(0)["NCCL_HOSTID"] != share_a_gpu(1)["NCCL_HOSTID"]
    row = without_meaning(Row("gpu", "all-reduce", 3.0, "GB/s", "higher", 100.0, 0.0, 1))
    assert row.ok and "says nothing" in row.metric


def test_no_check_draws_a_bar(spoiled, monkeypatch):
    monkeypatch.delenv("TQDM_DISABLE", raising=False)
    found = spoiled("--only", "bars")
    assert found.returncode == 0, found.stdout + found.stderr


def test_a_check_has_its_own_limit_unless_all_are_given(spoiled):
    all_checks.load()
    assert CHECKS["training-program"].seconds >= 300 and CHECKS["collectives"].seconds == 90
    found = spoiled("--only", "hangs", "--timeout", "1")
    assert "not finished after 1 s" in found.stdout


def test_the_compiler_alone_may_lose_on_small_batches():
    climbed = Climb("a GPU", "today", {"a": 32, "b": 32}, 1.0, [1.0], {"a": [1.0], "b": [2.0]}, {"a": 1.0, "b": 1.0})
    rows = {row.metric: row for row in rows_of(climbed)}
    assert rows["b, gain"].value == 0.5 and all(row.ok for row in rows.values())


def test_an_unknown_check_is_named(spoiled):
    found = spoiled("--only", "nonsense")
    assert found.returncode == 2 and "There is no check 'nonsense'" in found.stdout


@pytest.mark.parametrize("given", [torch.ones(3), None, b"123", [torch.ones(2), 2], [], 7])
def test_the_processors_memory_is_what_mpi_takes(given):
    assert device_of(given) == "cpu"
    check_memory("Send", given)


class OnGpu:
    """What an array of CuPy looks like from here."""

    device = "<CUDA Device 1>"


@pytest.mark.parametrize("given", [torch.ones(3, device="meta"), [torch.ones(3, device="meta"), 3], OnGpu()])
def test_other_memory_is_rejected_in_a_line(given):
    with pytest.raises(CourseError, match=r"^Bcast: the array lies on .*(meta|CUDA).*tensor\.cpu\(\)\.numpy\(\)"):
        check_memory("Bcast", given)


def test_an_mpi_that_reads_a_gpu_is_given_arrays_when_their_kernels_are_done(monkeypatch):
    queue = ["kernel that computes the array"]
    stream = SimpleNamespace(synchronize=lambda: queue.append("wait"))
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: stream)
    monkeypatch.setattr(memory, "cuda_aware", lambda: True)
    monkeypatch.setattr(memory, "device_of", lambda buf: "cpu" if buf is None else "cuda:0")

    @memory.check_buffers
    class Comm:
        def Send(self, buf, dest) -> None:
            queue.append("MPI reads")

    Comm().Send(torch.ones(3), dest=1)
    assert queue == ["kernel that computes the array", "wait", "MPI reads"]
