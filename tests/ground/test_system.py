"""What is asked of the system, on Linux and by the way that other systems have; and that nothing else asks it."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator

import psutil
import pytest

from course_utils import system
from workshop.house import modules

LINUX_ALONE = {
    "course_utils.lessons.gpu_nodes.failures.advice": "tells the reader of a cluster's log where to look",
    "course_utils.lessons.gpu_nodes.failures.rules": "the words of other programs' logs",
    "course_utils.ranks.links.network": "emulated links are made of namespaces; `obstacle` says so elsewhere",
    "course_utils.ranks.links.delay": "its switch, which runs without the course",
    "course_utils.teacher.sandbox": "the teacher's box is a tool of Linux; `obstacle` says so elsewhere",
    "course_utils.teacher.system_calls": "what such a box may ask the kernel for",
    "course_utils.teacher.visible_files": "what such a box shows of the system's folders",
    "workshop.publish.paper": "the name of one of Chromium's options",
}
ASKS = re.compile(
    r"/proc\b|/sys/|/dev/shm|dev-shm|\bsched_|prctl|getaffinity|setns|memfd|F_SEAL|SO_PEERCRED|TCP_INFO|posix_fadvise"
    r"|sys\.platform|platform\.system"
)


def test_nobody_else_asks_the_system() -> None:
    asking = {module for module, file in modules().items() if ASKS.search(file.read_text(encoding="utf-8"))}
    assert asking == {"course_utils.system", *LINUX_ALONE}


def test_it_stands_on_nothing_of_the_course_and_loads_alone() -> None:
    code = "import sys; before = set(sys.modules); import system; print(*{*sys.modules} - before)"
    folder = os.path.dirname(system.__file__)
    loaded = subprocess.run([sys.executable, "-S", "-c", code], cwd=folder, capture_output=True, text=True, check=True)
    assert not {"course_utils", "psutil", "ctypes", "pathlib"} & {*loaded.stdout.split()}


@pytest.fixture(params=["Linux", "elsewhere"])
def way(request, monkeypatch) -> str:
    """The two ways to ask: here, and where psutil must answer."""
    if request.param == "elsewhere":
        monkeypatch.setattr(system, "LINUX", False)
    elif not system.LINUX:
        pytest.skip("this is not Linux")
    return request.param


@pytest.fixture
def child() -> Iterator[subprocess.Popen]:
    """A process with a mark, which a child of its own, a program of the system's, has not."""
    code = "import subprocess; subprocess.Popen(['/bin/sh', '-c', 'sleep 60 & wait'], env={}).wait()"
    process = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "MARK_OF_A_TEST": "a=b ü"})
    yield process
    for one in [*psutil.Process(process.pid).children(recursive=True), process]:
        one.kill()
    process.wait()


def test_a_process_is_named_by_its_number_and_its_start(way, child) -> None:
    start = system.started_at(child.pid)
    assert isinstance(start, int) and start >= 0 and start == system.started_at(child.pid)
    code = f"from course_utils import system; system.LINUX = {system.LINUX}; print(system.started_at({child.pid}))"
    assert int(subprocess.check_output([sys.executable, "-c", code])) == start  # whoever asks
    assert start != system.started_at(os.getpid())


def test_who_has_ended_has_no_start_even_before_somebody_waits_for_it(way) -> None:
    process = subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE)
    process.stdout.read()
    deadline = time.monotonic() + 20
    while system.started_at(process.pid) is not None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert system.started_at(process.pid) is None
    process.wait()
    assert system.started_at(process.pid) is None
    with pytest.raises(ProcessLookupError):
        system.cpu_seconds(process.pid)


def test_a_mark_is_found_with_its_value(way, child) -> None:
    deadline = time.monotonic() + 20
    while not (children := psutil.Process(child.pid).children()) and time.monotonic() < deadline:
        time.sleep(0.01)
    found = dict(system.marked("MARK_OF_A_TEST"))
    assert found.pop(child.pid) == "a=b ü"
    # Elsewhere a program may hide its environment: then it counts as its parent does.
    assert found == ({} if way == "Linux" else {children[0].pid: "a=b ü"})


def test_memory_that_is_left_is_some_of_the_machines(way) -> None:
    assert 0 < system.memory_available() < psutil.virtual_memory().total


def test_computing_is_counted(way) -> None:
    before = system.cpu_seconds(os.getpid())
    deadline = time.monotonic() + 20
    while system.cpu_seconds(os.getpid()) == before and time.monotonic() < deadline:
        sum(range(10_000))
    assert before < system.cpu_seconds(os.getpid()) <= time.process_time() + 0.05


def test_cores_are_all_where_no_process_is_bound(monkeypatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.delattr(os, "sched_setaffinity", raising=False)
    monkeypatch.delattr(os, "sched_yield", raising=False)
    assert system.cores() == list(range(os.cpu_count()))
    system.bind_to([0])
    system.let_others_run()


def test_what_linux_alone_knows_is_nothing_elsewhere(monkeypatch) -> None:
    monkeypatch.setattr(system, "LINUX", False)
    assert system.shared_names() == set()
    assert system.sent_by(None) is None


@pytest.mark.skipif(not system.LINUX, reason="Linux alone counts it")
def test_bytes_read_are_the_systems_own_count(tmp_path) -> None:
    (tmp_path / "io").write_text("rchar: 5\nread_bytes: 4096\nwrite_bytes: 7\n")
    assert system.own_io("read_bytes", tmp_path / "io") == 4096
    assert system.own_io("read_bytes", tmp_path / "nothing") == 0
    before = system.own_io("rchar")
    (tmp_path / "io").read_bytes()
    assert system.own_io("rchar") > before
