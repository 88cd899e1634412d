"""Whose ranks these are: each checkout, environment and version has its own, and sharing is told when it is true."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import course_utils as course
from course_utils.errors import RanksGone
from course_utils.ranks.processes import installation
from course_utils.ranks.processes.launch_ranks import find_mpiexec
from course_utils.ranks.processes.ranks_folder import RanksFolder, sweep, this_machine
from course_utils.ranks.sharing import other_installations_text
from course_utils.ranks.start import start_separate_ranks
from course_utils.syllabus import ROOT
from course_utils.system import LINUX, started_at

SHARED = "use the same ranks"
SHARED_BY_TWO = "Another open notebook uses the same ranks"

NOTEBOOK = """
import contextlib, io, json, sys
sys.path[:] = [part for part in sys.path if part]
import course_utils as course

def where(comm):
    import sys
    import course_utils, course_utils.lessons.experts
    return sys.executable, course_utils.__file__, course_utils.lessons.experts.__file__

for line in sys.stdin:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(line)
        found = {
            "file": course.__file__,
            "pids": ranks.pids,
            "where": sorted(set(ranks.run(where).results)) if ranks.connection else [],
        }
    print(json.dumps({**found, "printed": " ".join(printed.getvalue().split())}), flush=True)
"""


class Notebook:
    """A process that runs lines as a notebook runs cells, and tells what its ranks are."""

    def __init__(self, checkout: Path, python: str, **more: str) -> None:
        environment = {**os.environ, "PYTHONPATH": str(checkout), "TQDM_DISABLE": "1", **more}
        self.process = subprocess.Popen(
            [python, "-P", "-c", NOTEBOOK],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=more.get("PWD"),
        )

    def begin(self, line: str) -> None:
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()

    def result(self) -> dict:
        return json.loads(self.process.stdout.readline())

    def run(self, line: str) -> dict:
        self.begin(line)
        return self.result()


@pytest.fixture
def runtime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    runtime = tmp_path / "runtime"
    runtime.mkdir(mode=0o700)
    monkeypatch.setenv("COURSE_RUNTIME", str(runtime))
    return runtime


@pytest.fixture
def notebook(runtime: Path) -> Iterator[Callable[..., Notebook]]:
    opened: list[Notebook] = []

    def open_notebook(checkout: Path = ROOT, python: str = sys.executable, **more: str) -> Notebook:
        opened.append(Notebook(checkout, python, **more))
        return opened[-1]

    yield open_notebook
    for each in opened:
        each.process.stdin.close()
    for each in opened:
        each.process.wait(timeout=60)
        each.process.stdout.close()
    for folder in RanksFolder.all():
        folder.end()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the course, whose files are as old as the originals."""
    shutil.copytree(ROOT / "course_utils", tmp_path / "copy" / "course_utils")
    return tmp_path / "copy"


@pytest.fixture
def environment(tmp_path: Path) -> str:
    """The Python of a second environment, which has the same packages."""
    folder = tmp_path / "environment"
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").symlink_to(os.path.realpath(sys.executable))
    (folder / "bin" / Path(find_mpiexec()).name).symlink_to(find_mpiexec())
    (folder / "lib").symlink_to(Path(sys.prefix, "lib"))
    shutil.copy(Path(sys.prefix, "pyvenv.cfg"), folder)
    return str(folder / "bin" / "python")


def package(checkout: Path) -> list[str]:
    return [str(checkout / "course_utils" / "__init__.py"), str(checkout / "course_utils/lessons/experts/__init__.py")]


def test_two_checkouts_and_two_environments_have_their_own_ranks(notebook, checkout, environment) -> None:
    first = notebook().run("ranks = course.start(2)")
    second = notebook(checkout)
    third = notebook(python=environment)
    of_checkout, of_environment = (each.run("ranks = course.start(2)") for each in (second, third))
    assert first["where"] == [[sys.executable, *package(ROOT)]]
    assert of_checkout["where"] == [[sys.executable, *package(checkout)]]
    assert of_environment["where"] == [[environment, *package(ROOT)]]
    assert len({*first["pids"], *of_checkout["pids"], *of_environment["pids"]}) == 6
    assert SHARED not in of_checkout["printed"] + of_environment["printed"]
    assert f"2 ranks of the course in {ROOT}." in of_checkout["printed"]
    assert f"2 ranks of the environment of {Path(sys.executable).parent.resolve()}" in of_environment["printed"]
    assert second.run("ranks.stop()")["pids"] and not any(map(started_at, of_checkout["pids"]))
    assert all(map(started_at, [*first["pids"], *of_environment["pids"]])), "the others are left alone"


@pytest.mark.parametrize("fork", ["1", pytest.param("0", marks=pytest.mark.weekly)])
def test_ranks_are_of_the_notebooks_checkout_in_the_folder_of_another(notebook, checkout, fork) -> None:
    """As for a program that is started in the folder of the new version, and imports the old one."""
    found = notebook(checkout, COURSE_FORK=fork, PWD=str(ROOT)).run("ranks = course.start(2)")
    assert found["file"] == package(checkout)[0] and found["where"] == [[sys.executable, *package(checkout)]]
    assert "were changed" not in found["printed"]


def test_after_a_pull_a_notebook_keeps_its_ranks_and_the_next_one_starts_its_own(notebook, checkout) -> None:
    old, new, newer = notebook(checkout), notebook(checkout), notebook(checkout)
    before = old.run("ranks = course.start(2)")
    changed = checkout / "course_utils" / "ranks" / "start.py"
    changed.write_text(changed.read_text() + "\n")
    own = new.run("ranks = course.start(2)")
    assert not set(own["pids"]) & set(before["pids"])
    assert "2 ranks of a different version of these files." in own["printed"]
    again = old.run("ranks = course.start(2)")
    assert again["pids"] == before["pids"] and "were changed" not in again["printed"]
    other = old.run("ranks = course.start(3)")
    assert "The files of the course were changed after this notebook had begun" in other["printed"]
    shared = newer.run("ranks = course.start(2)")
    assert shared["pids"] == own["pids"] and SHARED_BY_TWO in shared["printed"]


@pytest.mark.parametrize("other", ["HOME", pytest.param("COURSE_DATA", marks=pytest.mark.weekly)])
def test_who_has_another_home_or_set_something_else_gets_other_ranks(notebook, tmp_path, other) -> None:
    first = notebook().run("ranks = course.start(2)")
    second = notebook(**{other: str(tmp_path)}).run("ranks = course.start(2)")
    assert not set(first["pids"]) & set(second["pids"]) and SHARED not in second["printed"]


def test_a_notebooks_own_ranks_stay_its_own_whatever_it_sets(notebook) -> None:
    own = notebook()
    pids = own.run("ranks = course.start(2)")["pids"]
    assert (
        own.run("import os; os.environ['LD_MINE'] = os.environ['COURSE_DATA'] = '/tmp'; ranks = course.start(2)")[
            "pids"
        ]
        == pids
    )


def test_notebooks_that_start_at_once_share_and_all_of_them_are_told(notebook) -> None:
    three = [notebook() for _ in range(3)]
    for each in three:
        each.begin("ranks = course.start(3)")
    started = [each.result() for each in three]
    assert len({tuple(each["pids"]) for each in started}) == 1
    assert sum(SHARED in each["printed"] or SHARED_BY_TWO in each["printed"] for each in started) >= 2
    again = [each.run("ranks = course.start(3)")["printed"] for each in three]
    assert all("2 other open notebooks use the same ranks" in printed for printed in again)
    assert "keep running" in three[0].run("ranks.stop()")["printed"]
    assert SHARED_BY_TWO in three[1].run("ranks = course.start(3)")["printed"]
    three[2].run("ranks.stop()")
    assert SHARED_BY_TWO not in three[1].run("ranks = course.start(3)")["printed"]


def test_the_first_notebook_is_told_once_when_another_begins_to_use_its_ranks(notebook) -> None:
    first, second = notebook(), notebook()
    assert SHARED_BY_TWO not in first.run("ranks = course.start(2)")["printed"]
    second.run("ranks = course.start(2)")
    assert SHARED_BY_TWO in first.run("pass")["printed"]
    assert SHARED_BY_TWO not in first.run("pass")["printed"]
    leaves = second.run("ranks = course.start(3)")["printed"]
    assert leaves.startswith(
        "Another notebook is still using these ranks, so they keep running. 3 ranks on this machine"
    )
    assert "Stopped" not in leaves and SHARED_BY_TWO not in first.run("ranks = course.start(2)")["printed"]


def test_a_notebook_takes_its_turn_when_the_one_that_starts_ranks_dies(notebook) -> None:
    first, second = notebook(), notebook()
    first.begin("ranks = course.start(2)")
    while not [folder for folder in RanksFolder.all() if "offered" in folder.facts()]:
        time.sleep(0.01)
    second.begin("ranks = course.start(2)")
    first.process.kill()
    found = second.result()
    assert len(found["pids"]) == 2 and SHARED_BY_TWO not in found["printed"]


@pytest.mark.parametrize("milliseconds", [5, *(pytest.param(other, marks=pytest.mark.weekly) for other in (1, 10))])
def test_after_an_interrupted_stop_nobody_else_is_said_to_use_the_ranks(notebook, milliseconds) -> None:
    alone = notebook()
    before = alone.run("ranks = course.start(2)")
    press = f"import os, signal, threading; threading.Timer({milliseconds / 1000}, os.kill, (os.getpid(), 2)).start()"
    alone.begin(
        f"{press}; import time\\ntry:\\n ranks.stop(); time.sleep(1)\\nexcept KeyboardInterrupt: pass".join(
            ("exec('", "')")
        )
    )
    alone.result()
    after = alone.run("ranks = course.start(2)")
    assert SHARED_BY_TWO not in after["printed"]
    stopped = alone.run("ranks.stop()")["printed"]
    assert stopped == "" and not any(map(started_at, [*before["pids"], *after["pids"]]))


@pytest.mark.weekly
def test_without_the_watchdog_a_notebook_is_still_alone(runtime) -> None:
    from psutil import process_iter

    ranks = course.start(2)
    mine = str(ranks.folder.path)
    for process in process_iter(["cmdline"]):
        if mine in (process.info["cmdline"] or []) and "course_utils.ranks.processes.watchdog" in process.cmdline():
            process.kill()
            process.wait(10)
    os.kill(ranks.pids[0], signal.SIGKILL)
    with pytest.raises(RanksGone):
        ranks.run(lambda comm: comm.allreduce(1))
    again = course.start(2)
    assert again.other_notebooks() == 0 and again.folder != ranks.folder
    again.stop()
    assert not RanksFolder(again.folder.path).path.exists()


@pytest.mark.weekly
def test_separate_ranks_are_nobody_elses(notebook) -> None:
    separate = start_separate_ranks(2)
    try:
        assert not set(notebook().run("ranks = course.start(2)")["pids"]) & set(separate.pids)
        assert other_installations_text(separate.folder) is None
    finally:
        separate.stop()


def test_nobody_joins_ranks_that_are_being_ended_and_nobody_ends_those_that_somebody_joined(runtime) -> None:
    folder = RanksFolder.new()
    assert not folder.join(), "nobody owns it"
    folder.own()
    assert folder.join() and not folder.end_unless_owned()
    folder.disown()
    (folder.path / "ending").touch()
    folder.own()
    assert not folder.join()
    folder.disown()
    assert folder.end_unless_owned() and not folder.path.exists() and not folder.join()


@pytest.mark.skipif(not LINUX, reason="Linux alone has namespaces")
def test_a_folder_of_another_container_or_machine_is_left_alone(runtime) -> None:
    for facts in ({"host": "elsewhere"}, {"process_namespace": "pid:[1]"}):
        folder = RanksFolder.new()
        folder.write_facts(**facts)
        os.utime(folder.path, (1, 1))
        assert sweep() == [] and folder.path.exists() and folder not in RanksFolder.all()
        folder.write_facts(**this_machine())
        os.utime(folder.path, (1, 1))
        assert len(sweep()) == 1 and not folder.path.exists()


def test_an_installation_has_a_python_a_checkout_a_version_and_its_surroundings(tmp_path, monkeypatch) -> None:
    own = installation.installation()
    assert (
        own["checkout"] == str(ROOT.resolve()) and Path(own["python"]).parent == Path(sys.executable).parent.resolve()
    )
    key = installation.installation_key()
    assert installation.installation_key({**os.environ, "A_SECRET": "1"}) == key
    assert installation.installation_key({**os.environ, "LD_LIBRARY_PATH": "/elsewhere"}) != key
    (tmp_path / "python3").symlink_to(sys.executable)
    monkeypatch.setenv("COURSE_PYTHON", str(tmp_path / "python3"))
    other = installation.installation()
    assert {name for name in own if own[name] != other[name]} == {"python"}
    monkeypatch.setattr(installation, "version", lambda: "another")
    assert installation.installation_key() != key


def test_the_settings_of_ranks_are_those_that_somebody_has_set_and_whose_home_it_is() -> None:
    given = {"HOME": "/a", "COURSE_DATA": "/b", "COURSE_OFFLINE": "", "COURSE_SEED": "1", "CUDA_VISIBLE_DEVICES": "1"}
    assert installation.ranks_settings({**given, "COURSE_RANK": "0", "TERM": "x"}) == {
        "HOME": "/a",
        "CUDA_VISIBLE_DEVICES": "1",
        "COURSE_DATA": "/b",
    }


def test_a_version_is_of_all_modules_and_stays_what_it_was_in_a_process(tmp_path, monkeypatch) -> None:
    module = tmp_path / "course_utils" / "lessons" / "one.py"
    module.parent.mkdir(parents=True)
    module.write_text("1")
    monkeypatch.setattr(installation, "CHECKOUT", tmp_path)
    look = installation.version_of_files
    before = look()
    assert look() == before
    (tmp_path / "course_utils" / "page.html").write_text("no module")
    assert look() == before
    os.utime(module, (1, 1))
    assert look() != before
    module.unlink()
    assert look() != before and installation.version() != look()
