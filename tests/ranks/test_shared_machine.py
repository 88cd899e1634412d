"""On a machine that others use too: no file of ours can be read, no port of ours reached, and no set is left behind."""

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

import course_utils as course
from course_utils.ranks.processes.ranks_folder import MARK, RanksFolder
from course_utils.system import marked


def listeners_of(pids: list[int]) -> set[str]:
    """Addresses on which these processes listen, TCP over IPv4 and IPv6, as the system tells them."""
    sockets = [one for pid in pids for one in psutil.Process(pid).net_connections("tcp")]
    return {one.laddr.ip for one in sockets if one.status == psutil.CONN_LISTEN}


def torch_group_is_up():
    import torch
    import torch.distributed as dist

    dist.all_reduce(torch.ones(1))
    return listeners_of([os.getpid()])


def test_every_listener_is_on_loopback(four_ranks) -> None:
    in_torch = four_ranks.run(torch_group_is_up, backend="gloo").results
    ours = [pid for pid, mark in marked(MARK) if mark == str(four_ranks.connection.folder.path)]
    assert len(ours) >= 5
    found = listeners_of(ours)
    assert found, "the controller listens somewhere, or this test reads nothing"
    assert found | set().union(*in_torch) <= {"127.0.0.1", "::1", "::ffff:127.0.0.1"}


def test_no_file_can_be_read_by_others(four_ranks) -> None:
    four_ranks.run(torch_group_is_up, backend="gloo")
    top = four_ranks.connection.folder.path
    for path in [top, *top.rglob("*")]:
        copied_by_ipython = path.parts[-2:] == ("startup", "README")
        assert copied_by_ipython or path.lstat().st_mode & 0o077 == 0, path


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become a second user here")
def test_a_second_user_sees_nothing(four_ranks) -> None:
    top = four_ranks.connection.folder.path
    look = f"import os; os.setuid(65534); print(os.listdir({str(top)!r}))"
    answer = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, timeout=60, check=False)
    assert answer.returncode != 0 and "PermissionError" in answer.stderr


def test_keys_are_never_on_a_command_line(four_ranks) -> None:
    import json

    security = four_ranks.connection.folder.path / "security"
    key = json.loads((security / "ipcontroller-client.json").read_text())["key"]
    for pid, mark in marked(MARK):
        if mark == str(four_ranks.connection.folder.path):
            assert key not in " ".join(psutil.Process(pid).cmdline())


@pytest.mark.long
def test_ten_starts_and_stops_leave_nothing(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("COURSE_RUNTIME", str(tmp_path))
    for _ in range(10):
        ranks = course.start(2)
        assert ranks.run(lambda comm: comm.allreduce(1)).results == [2, 2]
        ranks.stop()
    for fork_server in tmp_path.iterdir():  # it stays for the next ranks, as long as this process lives
        RanksFolder(fork_server).leave()
    assert list(tmp_path.iterdir()) == []
    assert [pid for pid, mark in marked(MARK) if mark.startswith(str(tmp_path))] == []
