"""However a notebook ends, nothing of ours goes on: no process, no shared memory, no folder."""

import os
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from jupyter_client import BlockingKernelClient, KernelManager

from course_utils.ranks.processes.ranks_folder import MARK, RanksFolder, sweep
from course_utils.system import marked, shared_names

START = "import course_utils as course\nranks = course.start(4)"
DEADLOCK = "def wait(comm):\n    comm.recv(source=(comm.rank + 1) % comm.size)\nranks.run(wait)"
SECONDS = 10.0


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COURSE_RUNTIME", str(tmp_path))
    return tmp_path


@pytest.fixture
def kernel(runtime: Path) -> Iterator[tuple[KernelManager, BlockingKernelClient]]:
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel()
    client = manager.blocking_client()
    client.start_channels()
    client.wait_for_ready(timeout=60)
    yield manager, client
    client.stop_channels()
    manager.shutdown_kernel(now=True)
    for folder in RanksFolder.all():
        folder.end()


def run(client: BlockingKernelClient, code: str) -> dict:
    answer = client.execute_interactive(code, timeout=120, output_hook=lambda message: None, allow_stdin=False)
    return answer["content"]


def ours(runtime: Path) -> list[int]:
    return [pid for pid, mark in marked(MARK) if mark.startswith(str(runtime))]


def shared_memory() -> set[str]:
    """Names in shared memory that our ranks have mapped; other people's come and go meanwhile."""
    return set().union(*(folder.shared_memory() for folder in RanksFolder.all()))


def assert_gone(runtime: Path, memory: set[str]) -> None:
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline and (ours(runtime) or any(runtime.iterdir())):
        time.sleep(0.1)
    assert ours(runtime) == []
    assert list(runtime.iterdir()) == []
    assert not memory & shared_names()


def begin_deadlock(client: BlockingKernelClient) -> None:
    client.execute(DEADLOCK)
    time.sleep(1.0)


@pytest.mark.parametrize(
    "way",
    [
        "shutdown",
        "kill in a deadlock",
        pytest.param("kill", marks=pytest.mark.long),
        pytest.param("terminate", marks=pytest.mark.long),
        pytest.param("restart", marks=pytest.mark.long),
        pytest.param("restart in a deadlock", marks=pytest.mark.long),
    ],
)
def test_nothing_is_left_of_a_kernel_that_ends(kernel, runtime: Path, way: str) -> None:
    manager, client = kernel
    assert run(client, START)["status"] == "ok"
    assert len(ours(runtime)) >= 5
    memory = shared_memory()
    if "deadlock" in way:
        begin_deadlock(client)
    if way.startswith("kill"):
        os.kill(manager.provisioner.pid, signal.SIGKILL)
    elif way == "terminate":
        os.kill(manager.provisioner.pid, signal.SIGTERM)
        time.sleep(1.0)
        manager.shutdown_kernel(now=True)
    elif way.startswith("restart"):
        manager.restart_kernel(now="deadlock" in way)
    else:
        manager.shutdown_kernel()
    assert_gone(runtime, memory)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (DEADLOCK, "are waiting in recv(source="),
        ("%%px\nwhile True:\n    pass", "All 4 ranks were computing at line "),
    ],
    ids=["deadlock", "endless loop in %%px"],
)
def test_the_stop_button_gives_a_report_and_the_ranks_back(kernel, code: str, words: str) -> None:
    manager, client = kernel
    assert run(client, START)["status"] == "ok"
    asked = client.execute(code)
    time.sleep(1.0)
    manager.interrupt_kernel()
    deadline = time.monotonic() + 60
    while (reply := client.get_shell_msg(timeout=60))["parent_header"].get("msg_id") != asked:
        assert time.monotonic() < deadline
    said = reply["content"]["evalue"]
    assert said.startswith(("stopped by you.", "deadlock: ")) and (words in said or "is waiting in recv" in said)
    assert run(client, "%%px\nfrom mpi4py import MPI\nassert MPI.COMM_WORLD.allreduce(1) == 4")["status"] == "ok"


def test_px_after_a_deadlock_works(kernel) -> None:
    _, client = kernel
    assert run(client, START)["status"] == "ok"
    answer = run(
        client, "%%px\nfrom mpi4py import MPI\nif MPI.COMM_WORLD.rank == 1:\n    MPI.COMM_WORLD.recv(source=0)"
    )
    assert answer["ename"] == "RankError"
    assert "Rank 1 is waiting in recv(source=0), line 4 of your cell" in answer["evalue"]
    assert run(client, "%%px\nassert MPI.COMM_WORLD.allreduce(1) == 4")["status"] == "ok"


def test_px_counts_lines_as_the_notebook_does_and_says_when_ranks_are_gone(kernel) -> None:
    _, client = kernel
    assert run(client, START)["status"] == "ok"
    assert "line 3 of your cell" in run(client, "%%px\n\n1 / 0")["evalue"]
    assert run(client, "ranks.restart()")["status"] == "ok"
    assert run(client, "%%px --targets 0\nx = 1")["status"] == "ok"
    assert run(client, "ranks.stop()")["status"] == "ok"
    for cell in ("%%px\nx = 1", "%%px --targets 0\nx = 1"):
        answer = run(client, cell)
        assert (answer["ename"], answer["evalue"][:24]) == ("RanksGone", "These ranks were stopped")


def test_a_killed_rank_is_named_in_the_notebook_and_one_word_brings_new_ones(kernel) -> None:
    _, client = kernel
    assert run(client, START)["status"] == "ok"
    kill = "%%px\nimport os, signal\nfrom mpi4py import MPI\nif MPI.COMM_WORLD.rank == 2:\n    os.kill(os.getpid(), 9)"
    answer = run(client, f"{kill}\nMPI.COMM_WORLD.Barrier()")
    assert answer["ename"] == "RanksGone"
    assert answer["evalue"].startswith("rank 2 was ended by signal 9, SIGKILL. `ranks.restart()` starts new ranks")
    assert run(client, "ranks.restart();")["status"] == "ok"
    assert run(client, "%%px\nfrom mpi4py import MPI\nassert MPI.COMM_WORLD.allreduce(1) == 4")["status"] == "ok"


def test_a_sweep_ends_what_has_no_owner(runtime: Path) -> None:
    import subprocess
    import sys

    folder = RanksFolder.new()
    orphan = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(600)"],
        env={**os.environ, "COURSE_RANKS": str(folder.path)},
        start_new_session=True,
    )
    os.utime(folder.path, (time.time() - 60, time.time() - 60))
    assert sweep() == [f"{folder.path.name}: ended 1 processes that had no notebook any more"]
    assert orphan.wait(timeout=10) != 0
    assert not folder.path.exists()


def test_a_sweep_passes_over_a_folder_that_goes_meanwhile(runtime: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RanksFolder, "all", lambda: [RanksFolder(runtime / "ranks-gone")])
    assert sweep() == []


def test_nothing_is_left_where_somebody_removes_the_folder(kernel, runtime: Path) -> None:
    _, client = kernel
    assert run(client, START)["status"] == "ok"
    memory = shared_memory()
    for folder in RanksFolder.all():
        shutil.rmtree(folder.path)
    assert_gone(runtime, memory)
