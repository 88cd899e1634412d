"""Places where ranks have it hard: a disk that is full or knows no locks, a machine on which no name resolves."""

import errno
import fcntl
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from course_utils import download
from course_utils.errors import CourseError
from course_utils.ranks.call_lock import call_lock
from course_utils.ranks.processes import forking, launch_ranks
from course_utils.ranks.processes.ranks_folder import RanksFolder
from course_utils.ranks.start import start_separate_ranks
from tests.teacher.submissions import needs_a_box


def run_in(box: list[str], runtime: Path, code: str) -> str:
    """What a program prints in which the course is imported, and `says` prints the one line of what a call rejects."""
    begin = """
        import os, sys
        import course_utils as course
        from pathlib import Path

        def says(call, *arguments):
            try:
                call(*arguments)
            except course.CourseError as error:
                print(type(error).__name__, *str(error).splitlines())
    """
    command = ["bwrap", "--die-with-parent", "--dev-bind", "/", "/", *box, "--setenv", "COURSE_RUNTIME", str(runtime)]
    command += ["--setenv", "TQDM_DISABLE", "1", sys.executable, "-c", textwrap.dedent(begin) + textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.long
@needs_a_box
def test_ranks_start_where_no_name_resolves_not_even_localhost(tmp_path: Path) -> None:
    (tmp_path / "hosts").write_text("")
    code = """
        import socket
        for name in ("localhost", socket.gethostname()):
            try:
                print(name, "is", socket.gethostbyname(name))
            except OSError:
                print("unknown")
        ranks = course.start(2)
        print(ranks.run(lambda comm: comm.allreduce(1)).results)
        print(ranks.run(lambda: __import__("torch").distributed.get_world_size(), backend="gloo").results)
        ranks.stop()
    """
    box = [
        "--unshare-net",
        "--unshare-uts",
        "--hostname",
        "a-machine",
        "--ro-bind",
        f"{tmp_path}/hosts",
        "/etc/hosts",
    ]
    printed = run_in(box, tmp_path / "runtime", code).splitlines()
    assert printed[:2] == ["unknown", "unknown"] and printed[-2:] == ["[2, 2]", "[2, 2]"]


@needs_a_box
def test_a_disk_that_fills_up_is_told_in_a_line_and_loses_nothing(tmp_path: Path) -> None:
    code = """
        runtime = Path(os.environ["COURSE_RUNTIME"])
        filler = runtime / "filler"

        def fill():
            with filler.open("wb", buffering=0) as file:
                try:
                    while True:
                        file.write(bytes(4096))
                except OSError:
                    pass

        def add() -> None:
            print(ranks.run(lambda comm: comm.allreduce(1)).results)

        fill()
        says(course.start, 2)
        filler.unlink()
        ranks = course.start(2)
        fill()
        says(add)
        filler.unlink()
        add()
        fill()
        add()
        filler.unlink()
        ranks.stop()
        print([path.name for path in runtime.glob("ranks-*") if "fork" not in path.name])
    """
    printed = run_in(["--size", str(4 << 20), "--tmpfs", str(tmp_path)], tmp_path, code).splitlines()
    full = f"CourseError Nothing can be written to {tmp_path} (No space left on device). Make room, or set"
    said = [line.partition(" COURSE_RUNTIME")[0] for line in printed if not line.startswith("2 ranks on this machine")]
    assert said == [full, full, "[2, 2]", "[2, 2]", "[]"]


@pytest.fixture
def no_locks(monkeypatch) -> None:
    """As a home that comes from another machine by NFS, and is mounted without locks."""

    def reject(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", reject)


def test_a_disk_without_locks_is_told_with_the_variable_that_names_another(no_locks, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("COURSE_RUNTIME", str(tmp_path))
    here = f"The disk of {tmp_path}.* cannot lock files \\(No locks available\\).* Set COURSE_%s to a folder on a"
    with pytest.raises(CourseError, match=here % "RUNTIME"), call_lock(RanksFolder.new()):
        pass
    if forking.can_fork():
        with pytest.raises(CourseError, match=here % "RUNTIME"):
            forking.fork_server()
    monkeypatch.setenv("COURSE_SHARED", str(tmp_path))
    with pytest.raises(CourseError, match=here % "SHARED"), call_lock(RanksFolder.new(tmp_path)):
        pass
    with pytest.raises(CourseError, match=here % "DATA"):
        download.fetch("http://127.0.0.1:9/data", tmp_path / "data", "0" * 32)


@pytest.fixture
def taken_ports(monkeypatch) -> list[int]:
    """Ports that another program takes after ranks have chosen them, for the first starts."""
    options, ports = launch_ranks._CONTROLLER, []
    launch_controller = launch_ranks.launch_controller

    def with_a_taken_port(*given, **more) -> None:
        own = (f"--IPController.engine_ports={ports.pop()}",) if ports else ()
        monkeypatch.setattr(launch_ranks, "_CONTROLLER", options + own)
        launch_controller(*given, **more)

    monkeypatch.setattr(launch_ranks, "launch_controller", with_a_taken_port)
    return ports


def test_ranks_start_again_where_another_program_takes_their_port(taken_ports) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken_ports += [other.getsockname()[1]] * 2
        ranks = start_separate_ranks(2)
        assert not taken_ports and ranks.run(lambda comm: comm.allreduce(1)).results == [2, 2]
        ranks.stop()
        taken_ports += [other.getsockname()[1]] * 3
        with pytest.raises(CourseError, match=r"Run this cell again(.|\n)*Address already in use"):
            start_separate_ranks(2)
        assert not taken_ports
