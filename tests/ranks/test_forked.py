"""Ranks that a fork server forks: what they are, whose they are, and that none is worse off than one started anew."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

import course_utils as course
from course_utils.errors import RankError, RanksGone
from course_utils.ranks.engine import fork_server
from course_utils.ranks.processes import forking
from course_utils.ranks.processes.fork_line import SERVING
from course_utils.system import started_at

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="ranks are forked on Linux alone")


def what_i_am(comm) -> dict:
    """What a rank can see of itself."""
    import os
    import random
    import resource

    import numpy as np

    mask = os.umask(0)
    os.umask(mask)
    return {
        "pid": os.getpid(),
        "parent": os.getppid(),
        "secret": os.environ.get("A_SECRET"),
        "folder": os.getcwd(),
        "mask": mask,
        "cores": sorted(os.sched_getaffinity(0)),
        "threads": os.environ["OMP_NUM_THREADS"],
        "files": resource.getrlimit(resource.RLIMIT_NOFILE),
        "chance": (random.random(), float(np.random.rand())),
        "sum": comm.allreduce(comm.rank),
    }


@contextlib.contextmanager
def started(number: int = 3):
    ranks = course.start(number)
    try:
        yield ranks
    finally:
        ranks.stop()


@pytest.fixture
def server():
    """The fork server, as soon as it forks."""
    folder = forking.fork_server()
    while not (folder.path / "engine").exists():
        time.sleep(0.02)
    return folder


def process_of(folder) -> int:
    return int((folder.path / SERVING).read_text().split("-")[0])


def children_of(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_a_forked_rank_has_what_its_notebook_has_and_numbers_of_its_own(server, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("A_SECRET", "swordfish")
    monkeypatch.chdir(tmp_path)
    with started() as ranks:
        seen = ranks.run(what_i_am).results
        marked = ranks.connection.folder.processes()
    family = {process_of(server), *children_of(process_of(server))}
    for one in seen:
        assert one["parent"] in family and one["pid"] in marked, "it is forked, and carries the mark of its set"
        assert one["secret"] == "swordfish" and one["folder"] == str(tmp_path)
        assert one["mask"] == 0o077 and one["cores"] == sorted(os.sched_getaffinity(0)) and one["sum"] == 3
    assert len({one["chance"] for one in seen}) == 3, "numbers drawn by chance differ from rank to rank"


def test_ranks_are_forked_where_every_child_has_lost_what_wakes_the_server(tmp_path, monkeypatch) -> None:
    """As asyncio has it from Python 3.12 on."""
    hook = "import os, signal; os.register_at_fork(after_in_child=lambda: signal.set_wakeup_fd(-1))"
    (tmp_path / "sitecustomize.py").write_text(hook)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    server = forking.fork_server()
    while not (server.path / "engine").exists():
        time.sleep(0.02)
    with started() as ranks:
        assert {one["parent"] for one in ranks.run(what_i_am).results} <= {process_of(server)}


def test_the_server_knows_no_secret_runs_one_thread_and_is_its_users_alone(server, monkeypatch) -> None:
    monkeypatch.setenv("A_SECRET", "swordfish")
    with started() as ranks:
        assert ranks.run(what_i_am).results[0]["secret"] == "swordfish"
        process = Path("/proc", str(process_of(server)))
        assert "swordfish" not in (process / "environ").read_text() and len(os.listdir(process / "task")) == 1
    assert server.path.stat().st_mode & 0o777 == 0o700


def test_no_file_of_forked_ranks_and_their_controller_can_be_read_by_others(server) -> None:
    before = os.umask(0o022)
    try:
        with started() as ranks:
            top = ranks.connection.folder.path
            readable = [path for path in [top, *top.rglob("*")] if path.lstat().st_mode & 0o077]
    finally:
        os.umask(before)
    assert [path for path in readable if path.parts[-2:] != ("startup", "README")] == []  # which IPython copies


@pytest.mark.skipif(os.getuid() != 0, reason="only root can ask as somebody else")
def test_another_user_is_not_served() -> None:
    ours, theirs = socket.socketpair()
    assert fork_server._may_ask(ours)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind("\0course-test")
    listener.listen(1)
    ask = "import os, socket, time; os.setuid(65534); socket.socket(socket.AF_UNIX).connect('\\0course-test')"
    subprocess.run([sys.executable, "-I", "-S", "-c", ask], check=True, timeout=30)
    assert not fork_server._may_ask(listener.accept()[0])


@pytest.mark.parametrize(
    ("end", "words"),
    [
        ("os.kill(os.getpid(), signal.SIGSEGV)", "rank 1 was ended by signal 11, SIGSEGV, at line "),
        ("os.kill(os.getpid(), signal.SIGKILL)", "rank 1 was ended by signal 9, SIGKILL."),
        ("os._exit(7)", "rank 1 ended itself, with exit code 7."),
    ],
)
@pytest.mark.parametrize("fork", ["1", "0"])
def test_the_end_of_a_rank_is_told_alike_whether_it_was_forked_or_not(monkeypatch, fork, end, words) -> None:
    monkeypatch.setenv("COURSE_FORK", fork)

    def dies(comm):

        if comm.rank == 1:
            exec(f"import os, signal; {end}")
        comm.barrier()

    with started() as ranks, pytest.raises(RanksGone) as error:
        ranks.run(dies)
    assert str(error.value).startswith(words)


def test_without_fork_a_rank_is_a_child_of_its_shell(monkeypatch) -> None:
    monkeypatch.setenv("COURSE_FORK", "0")
    with started() as ranks:
        shells = [one["shell"] for one in ranks.facts["ranks"]]
        assert [one["parent"] for one in ranks.run(what_i_am).results] == shells
    assert forking.fork_server() is None


def test_a_server_that_was_killed_is_replaced_and_its_ranks_live_on(server) -> None:
    with started() as ranks:
        killed = process_of(server)
        os.kill(killed, signal.SIGKILL)
        while started_at(killed):
            time.sleep(0.01)
        assert [one["sum"] for one in ranks.run(what_i_am).results] == [3] * 3
        ranks.restart()
        assert [one["sum"] for one in ranks.run(what_i_am).results] == [3] * 3
    assert process_of(server) != killed


def test_a_module_that_was_changed_is_imported_afresh(server, tmp_path, monkeypatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    module = tmp_path / "a_learners_own.py"

    def answer(comm):
        import a_learners_own

        return a_learners_own.ANSWER

    for number in (1, 22):  # of another length: compiled files are told apart by seconds and size
        module.write_text(f"ANSWER = {number}\n")
        with started() as ranks:
            assert ranks.run(answer).results == [number] * 3


def test_a_server_ends_when_nobody_asks_it_any_more_and_another_comes(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("COURSE_RUNTIME", str(tmp_path))
    folder = forking.fork_server()
    first = process_of(folder)
    os.kill(first, signal.SIGKILL)
    code = (
        "import sys; from pathlib import Path; from course_utils.ranks.engine import fork_server as f\n"
        "f.IDLE_SECONDS = 0.2; f.ForkServer(f.RanksFolder(Path(sys.argv[1])), 'engine').run()"
    )
    subprocess.run([sys.executable, "-c", code, folder.path], check=True, timeout=60)
    assert not (folder.path / "engine").exists() and not (folder.path / SERVING).exists()
    assert process_of(forking.fork_server()) != first
    folder.leave()


def test_a_server_goes_with_the_last_process_that_owns_it(tmp_path) -> None:
    """In a runtime folder of its own; the process that owns it is killed, and can tidy up nothing."""
    code = """
        import time
        from course_utils.ranks.processes import forking
        folder = forking.fork_server()
        while not (folder.path / "engine").exists():
            time.sleep(0.02)
        print(folder.path, (folder.path / "serving").read_text().split("-")[0], flush=True)
        time.sleep(60)
    """
    lines = "\n".join(line.strip() if "sleep(0" not in line else f"    {line.strip()}" for line in code.splitlines())
    owner = subprocess.Popen(
        [sys.executable, "-c", lines],
        env={**os.environ, "COURSE_RUNTIME": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    folder, pid = owner.stdout.readline().split()
    assert started_at(int(pid))
    owner.kill()
    owner.wait()
    deadline = time.monotonic() + 20
    while (started_at(int(pid)) or Path(folder).exists()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not started_at(int(pid)) and not Path(folder).exists()


def has_torch(comm) -> bool:
    """Whether a rank has torch before its code imports it."""
    return "torch" in sys.modules


def group_of_its_own_without_rank_0(comm) -> None:
    """A tutorial's process group, in which rank 0 leaves out the sum."""
    import torch
    import torch.distributed as dist

    port = comm.bcast(free_port() if comm.rank == 0 else None)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=comm.rank, world_size=comm.size)
    if comm.rank:
        dist.all_reduce(torch.ones(3))


def free_port() -> int:
    """A port on which nothing listens at this moment."""
    with socket.socket() as any_port:
        any_port.bind(("127.0.0.1", 0))
        return any_port.getsockname()[1]


def test_groups_on_ranks_that_had_torch_from_the_beginning_are_traced(server) -> None:
    forking.fork_server(torch=True)
    while not (server.path / "torch").exists():
        time.sleep(0.02)
    with started(2) as ranks:
        assert ranks.run(has_torch).results == [True, True]
        with pytest.raises(RankError, match=r"rank 1 is waiting .*all_reduce.*rank 0 has returned"):
            ranks.run(group_of_its_own_without_rank_0)
        assert ranks.run(lambda comm: comm.allreduce(1)).results == [2, 2]
