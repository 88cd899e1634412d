"""Four ranks as on a Mac: they start, work, hang, die, come back and leave nothing. `test_as_on_a_mac` runs this."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from as_on_a_mac import TEMPORARY
from jupyter_client import KernelManager

import course_utils as course
from course_utils import system
from course_utils.errors import CourseError, RanksGone
from course_utils.ranks.processes import forking
from course_utils.ranks.processes.launch_ranks import find_mpiexec
from course_utils.ranks.processes.ranks_folder import MARK, RanksFolder, runtime_root, sweep

SECONDS = 60.0


def test_this_is_what_a_mac_has_and_has_not() -> None:
    assert not system.LINUX and not os.path.exists("/proc/self") and not hasattr(os, "sched_getaffinity")
    assert {"lo0", "en0"} <= {name for _, name in socket.if_nameindex()} and system.LOOPBACK == "lo0"
    with pytest.raises(OSError):
        socket.gethostbyname(socket.gethostname())
    with pytest.raises(OSError, match="too long"):
        socket.socket(socket.AF_UNIX).bind(f"{TEMPORARY}/{'x' * 60}")
    assert not forking.can_fork()


def test_without_a_choice_the_files_lie_below_the_long_folder(monkeypatch) -> None:
    for name in ("COURSE_RUNTIME", "XDG_RUNTIME_DIR"):
        monkeypatch.delenv(name, raising=False)
    assert runtime_root().parent == Path(TEMPORARY)


def test_they_start_and_work_with_mpi_and_gloo_and_nobody_else_can_reach_them(four_ranks, capsys) -> None:
    assert four_ranks.run(lambda comm: comm.allreduce(comm.rank)).results == [6] * 4

    def mean() -> list[float]:
        import torch
        import torch.distributed as dist

        values = torch.arange(3.0) * dist.get_rank()
        dist.all_reduce(values, dist.ReduceOp.AVG)
        return values.tolist()

    assert four_ranks.run(mean, backend="gloo").results == [[0.0, 1.5, 3.0]] * 4
    sockets = psutil.net_connections("inet")
    assert len([one for one in sockets if one.status == psutil.CONN_LISTEN]) > 4
    assert {one.laddr.ip for one in sockets if one.laddr} == {"127.0.0.1"}  # a firewall asks about any other
    four_ranks.status()
    assert capsys.readouterr().out.count("is free") == 4


def test_a_hang_is_told_and_the_ranks_live_on(four_ranks) -> None:
    before = four_ranks.pids
    with pytest.raises(CourseError, match="deadlock"):
        four_ranks.run(lambda comm: comm.recv(source=(comm.rank + 1) % comm.size))
    assert four_ranks.run(lambda comm: comm.allreduce(1)).results == [4] * 4
    assert four_ranks.pids == before


def test_who_computes_for_ever_is_stopped(four_ranks) -> None:
    def compute(comm) -> None:
        while comm.rank == 1:
            sum(range(1000))

    attempt = four_ranks.attempt(compute, [()] * 4, limit=1.0)
    assert "not finished after " in attempt.trouble and "rank 1 was computing" in attempt.trouble.lower()


def test_who_dies_is_named_and_new_ranks_come(four_ranks) -> None:
    def die(comm) -> None:
        if comm.rank == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        comm.barrier()

    with pytest.raises(RanksGone, match="rank 2 was ended by signal 9, SIGKILL"):
        four_ranks.run(die)
    old = four_ranks.pids
    four_ranks.restart()
    assert four_ranks.run(lambda comm: comm.allreduce(1)).results == [4] * 4
    assert not {*old} & {*four_ranks.pids} and not any(map(system.started_at, old))


def test_links_are_asked_for_in_vain_and_the_ranks_say_so(four_ranks, capsys) -> None:
    ranks = course.start(2, link="100 Mbit/s")
    said = capsys.readouterr().out
    assert "No links here: only Linux can make them" in said and "inside this machine instead" in said
    assert ranks.run(lambda comm: comm.allreduce(1)).results == [2, 2]
    ranks.stop()


def gone(folder: Path) -> bool:
    """Whether nothing is left of a notebook's ranks within some time."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        if not any(folder.iterdir()) and not [mark for _, mark in system.marked(MARK) if mark.startswith(str(folder))]:
            return True
        time.sleep(0.2)
    return False


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.setenv("COURSE_RUNTIME", str(tmp_path))
    return tmp_path


def test_nothing_is_left_of_a_kernel_that_is_killed(runtime: Path) -> None:
    manager = KernelManager(kernel_name="python3")
    manager.start_kernel()
    client = manager.blocking_client()
    client.start_channels()
    client.wait_for_ready(timeout=SECONDS)
    code = "import course_utils as course; assert course.start(4).run(lambda comm: comm.size).results == [4] * 4"
    answer = client.execute_interactive(code, timeout=200, output_hook=lambda message: None, allow_stdin=False)
    assert answer["content"]["status"] == "ok", answer["content"]
    marks = [mark for _, mark in system.marked(MARK)]
    assert len([mark for mark in marks if mark.startswith(str(runtime))]) >= 10  # controller, mpiexec, shells, ranks
    client.stop_channels()
    os.kill(manager.provisioner.process.pid, signal.SIGKILL)
    assert gone(runtime)
    manager.shutdown_kernel(now=True)


def test_what_a_dead_notebook_has_left_is_swept(runtime: Path) -> None:
    left = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    folder = RanksFolder.new()
    folder.own(left.pid)
    abandoned = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(600)"], env={**os.environ, MARK: str(folder.path)}
    )
    assert sweep() == [] and folder.living_owners() == [left.pid]
    left.communicate(b"\n")
    os.utime(folder.path, (0, 0))
    assert folder.living_owners() == []
    assert sweep() == [f"{folder.path.name}: ended 1 processes that had no notebook any more"]
    assert abandoned.wait() == -signal.SIGTERM and gone(runtime)


def test_the_other_launcher_of_the_wheel_needs_no_name_either(runtime: Path, monkeypatch) -> None:
    monkeypatch.setenv("COURSE_MPIEXEC", str(Path(find_mpiexec()).with_name("mpiexec.hydra")))
    ranks = course.start(3)
    assert ranks.run(lambda comm: comm.allreduce(1)).results == [3] * 3
    ranks.stop()


def test_torchrun_meets_where_it_need_not_ask_for_a_name(tmp_path: Path) -> None:
    from course_utils.lessons.overlap.torchrun import run_torchrun

    lines = (
        "import torch",
        "import torch.distributed as dist",
        "dist.init_process_group('gloo')",
        "one = torch.ones(1)",
    )
    (tmp_path / "add.py").write_text("\n".join([*lines, "dist.all_reduce(one)", "print(f'sum {int(one)}\\n', end='')"]))
    told = run_torchrun("torchrun --standalone --nproc-per-node=2 add.py", tmp_path, seconds=SECONDS * 4)
    assert told.count("sum 2") == 2, told


def test_workers_of_a_data_loader_are_spawned(tmp_path: Path) -> None:
    from course_utils.lessons.hardware.reading_speed import time_reading

    (tmp_path / "one").write_bytes(b"x")
    assert not time_reading(lambda index: b"x", 1, [tmp_path / "one"], cold=True, rounds=1).cold  # nobody counts
