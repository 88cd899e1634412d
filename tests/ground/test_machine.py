"""What the doctor reads of a machine, on machines made of files."""

import contextlib
import errno
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

import course_utils as course
from course_utils import diagnosis, smoke_tests, system
from course_utils.errors import CourseError
from course_utils.machine import gpus, memory_bytes, memory_left
from course_utils.ranks import launch_sites
from course_utils.ranks.start import current
from course_utils.syllabus import ROOT

GIB = 1 << 30


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


@pytest.fixture
def group(tmp_path) -> tuple[Path, Path]:
    """A control group's file of this process, and the file system of all groups."""
    return tmp_path / "cgroup", tmp_path / "fs"


def test_memory_is_the_least_that_any_group_on_the_way_up_allows(group) -> None:
    proc, root = group
    write(proc, "0::/user/session\n")
    write(root / "user" / "session" / "memory.max", "max\n")
    write(root / "user" / "memory.max", f"{GIB // 4}\n")
    assert memory_bytes(root, proc) == GIB // 4


def test_memory_of_a_version_1_group(group) -> None:
    proc, root = group
    write(proc, "5:cpu,cpuacct:/a\n4:memory:/a\n")
    write(root / "memory" / "a" / "memory.limit_in_bytes", f"{GIB // 8}\n")
    assert memory_bytes(root, proc) == GIB // 8


@pytest.mark.parametrize("content", [None, "", "0::/\n"])
def test_memory_without_a_limit_is_the_machines(group, content) -> None:
    proc, root = group
    if content is not None:
        write(proc, content)
    assert memory_bytes(root, proc) == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def test_memory_left_is_the_least_of_machine_and_groups(group, monkeypatch) -> None:
    proc, root = group
    monkeypatch.setattr(system, "memory_available", lambda: 3_000_000)
    assert memory_left(root, proc) == 3_000_000
    write(proc, "0::/user\n")
    write(root / "user" / "memory.max", f"{GIB // 512}\n")
    write(root / "user" / "memory.current", "1500000\n")
    write(root / "user" / "memory.stat", "anon 1\ninactive_file 500000\n")
    assert memory_left(root, proc) == GIB // 512 - 1_000_000


@pytest.fixture
def two_gpus(tmp_path, monkeypatch) -> tuple[Path, Path]:
    """The driver's files of two GPUs, and the device files beside others that are no GPU."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    proc, dev = tmp_path / "gpus", tmp_path / "dev"
    write(proc / "0000:01:00.0" / "information", "Model: \t\t NVIDIA H100\nIRQ: 3\nDevice Minor: \t 1\n")
    write(proc / "0000:02:00.0" / "information", "Model: \t\t NVIDIA A100\nDevice Minor: \t 0\n")
    for name in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm"):
        write(dev / name, "")
    return proc, dev


@pytest.mark.parametrize(
    ("visible", "expected"),
    [
        (None, ["NVIDIA A100", "NVIDIA H100"]),
        ("0,1", ["NVIDIA A100", "NVIDIA H100"]),
        ("1", ["NVIDIA H100"]),
        ("GPU-8932f937", ["NVIDIA GPU"]),
        ("", []),
        ("-1", []),
        ("0,-1,1", ["NVIDIA A100"]),
    ],
)
def test_gpus_are_those_this_process_may_use(two_gpus, monkeypatch, visible, expected) -> None:
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert gpus(*two_gpus) == expected


def test_a_container_without_the_drivers_files_still_counts_its_gpus(two_gpus, tmp_path) -> None:
    assert gpus(tmp_path / "nothing", two_gpus[1]) == ["NVIDIA GPU", "NVIDIA GPU"]


def test_a_gpu_this_container_was_not_given_is_not_counted(two_gpus) -> None:
    (two_gpus[1] / "nvidia1").unlink()
    assert gpus(*two_gpus) == ["NVIDIA A100"]


ROWS = [
    "Python",
    "packages",
    "MPI",
    "ranks",
    "gloo",
    "settings",
    "folders",
    "names",
    "cores",
    "memory",
    "GPUs",
    "Slurm",
]
ROWS += ["links", "browser", "grading"]
TRIED = {"ranks", "gloo"}


def of(what: str, quick: bool = True) -> diagnosis.Probed:
    """What the doctor finds of one thing."""
    [finding] = [finding for finding in diagnosis.examine(quick) if finding.what == what]
    return finding


def test_the_doctor_tries_this_machine_out_and_finds_it_fit(capsys) -> None:
    running = current()
    assert course.doctor() is None
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines[:-1]] == ROWS
    found = {line.split()[1]: line for line in lines[:-1]}
    assert re.search(r"two, started in [\d.]+ s; 3 MB sent in [\d.]+ ", found["ranks"])
    assert found["gloo"].startswith("✓ gloo")
    if diagnosis.network.obstacle() is None:
        carried = re.fullmatch(r"[✓○] links       a link of 100 Mbit/s carried (\d+).*", found["links"])
        assert 10 < int(carried[1]) < 105  # less where the machine is busy
    assert lines[-1] == "The course can run here."
    assert current() is running, "its own ranks are gone, and those that were there before stay"


def test_a_quick_look_starts_nothing(monkeypatch, capsys) -> None:
    for name in ("two_ranks", "ask_torch", "carried_by_a_link"):
        monkeypatch.setattr(smoke_tests, name, lambda *_: pytest.fail("it started something"))
    course.doctor(quick=True)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines[:-1]] == [row for row in ROWS if row not in TRIED]
    assert lines[-1] == diagnosis.CAN_RUN


def test_the_doctors_ranks_are_not_the_notebooks(four_ranks) -> None:
    with smoke_tests.two_ranks() as ranks:
        assert ranks.world_size == 2 and not set(ranks.pids) & set(four_ranks.pids)
        assert current() is four_ranks
    assert ranks.connection is None and four_ranks.run(lambda comm: comm.rank).results == [0, 1, 2, 3]


def test_ranks_that_do_not_start_are_a_line_with_what_they_wrote(monkeypatch, tmp_path, capsys) -> None:
    launcher, reason = tmp_path / "mpiexec", "no shared memory left"
    launcher.write_text(f"#!/bin/sh\necho {reason} >&2\n")
    launcher.chmod(0o755)
    monkeypatch.setenv("COURSE_MPIEXEC", str(launcher))
    monkeypatch.setattr(launch_sites, "START_SECONDS", 3.0)
    monkeypatch.setattr(diagnosis, "_computing_gpus", diagnosis._gpus)
    findings = list(diagnosis.examine())
    assert not diagnosis.print_findings(findings)
    [ranks] = [finding for finding in findings if finding.what == "ranks"]
    assert not ranks.well and ranks.found.endswith(reason)
    assert not ranks.remedy and not ranks.command, "nothing was left behind that a sweep would end"
    *_, line, last = [line for line in capsys.readouterr().out.splitlines() if line.startswith(("✗", "The"))]
    assert line == str(ranks) and reason in line
    assert last == diagnosis.CANNOT_RUN


@pytest.mark.parametrize("name", ["ipyparallel", "mpi4py"])
def test_a_missing_package_is_named_with_the_command_that_brings_it(monkeypatch, capsys, name) -> None:
    found = diagnosis.importlib.util.find_spec
    monkeypatch.setattr(diagnosis.importlib.util, "find_spec", lambda one: None if one == name else found(one))
    monkeypatch.setattr(smoke_tests, "two_ranks", lambda *_: pytest.fail("ranks cannot start"))
    monkeypatch.setattr(diagnosis, "_computing_gpus", diagnosis._gpus)
    course.doctor()
    output = capsys.readouterr().out
    [line] = [line for line in output.splitlines() if name in line and "missing" in line]
    assert line.startswith("✗") and "`make setup` installs" in line
    assert output.endswith(f"{diagnosis.CANNOT_RUN}\n")


@pytest.mark.parametrize(("root", "how"), [(False, "only with --trusted"), (True, "root may not grade without it")])
def test_without_a_sandbox_the_line_on_grading_says_what_is_left(monkeypatch, root, how) -> None:
    monkeypatch.setattr(
        diagnosis.sandbox, "obstacle", lambda: "`bwrap` is missing: `apt install bubblewrap` brings it."
    )
    monkeypatch.setattr(diagnosis.os, "geteuid", lambda: 0 if root else 1000)
    monkeypatch.setattr(diagnosis.sandbox, "is_root", lambda: root)
    found = of("grading")
    assert not found.well and not found.needed and how in found.found and "apt install bubblewrap" in found.found
    monkeypatch.setattr(diagnosis.sandbox, "obstacle", lambda: None)
    assert of("grading").well


def test_a_sweep_is_advised_only_if_ranks_were_left_behind(monkeypatch) -> None:
    @contextlib.contextmanager
    def no_ranks():
        raise CourseError("The ranks did not start.")
        yield

    monkeypatch.setattr(smoke_tests, "two_ranks", no_ranks)
    [found] = diagnosis._ranks()
    assert not found.well and not found.remedy and found.values == {"processes_left_behind": 0}
    monkeypatch.setattr(diagnosis, "_left_behind", lambda: 3)
    [found] = diagnosis._ranks()
    assert "`course sweep`" in found.remedy and found.command == "course sweep"


def test_who_may_not_write_to_a_release_is_not_told_to_set_it_up(monkeypatch) -> None:
    monkeypatch.setattr(diagnosis, "may_write", lambda: False)
    text, command = diagnosis._set_up("installs them")
    assert text.startswith(f"Ask whoever installed {ROOT}") and not command


def test_no_mpiexec_is_a_line_and_no_error(monkeypatch) -> None:
    reason = "There is no mpiexec here. `pip install mpich` installs one"

    def none() -> str:
        raise course.CourseError(f"{reason}.")

    monkeypatch.setattr(diagnosis, "find_mpiexec", none)
    assert of("MPI") == diagnosis.Probed("MPI", reason, well=False, needed=True)


def test_what_is_only_useful_does_not_stop_the_course(monkeypatch, capsys) -> None:
    obstacle = "`tc` is missing: `apt install iproute2` brings it"
    monkeypatch.setattr(diagnosis, "chromium", lambda: None)
    monkeypatch.setattr(diagnosis.network, "obstacle", lambda: f"{obstacle}.")
    monkeypatch.setattr(diagnosis, "memory_bytes", lambda: GIB)
    monkeypatch.setenv("COURSE_HOME", "/proc/course")
    findings = {finding.what: finding for finding in diagnosis.examine(quick=True)}
    assert diagnosis.print_findings(findings.values())
    output = capsys.readouterr().out.splitlines()
    assert output[-1] == diagnosis.CAN_RUN
    parts = {"browser": ("", "`make lab`"), "links": (obstacle, "emulate slow links"), "memory": ("1.0 GiB", "2 GiB")}
    for what, (found, remedy) in (parts | {"folders": ("notes", "COURSE_HOME")}).items():
        finding = findings[what]
        assert not finding.well and not finding.needed and found in finding.found and remedy in finding.remedy
        assert f"○ {what:<11} {finding.found}. {finding.remedy}" in output


@pytest.mark.parametrize("tool", ["ip", "unshare"])
def test_a_tool_that_links_need_is_named_with_its_package(tool, monkeypatch, tmp_path) -> None:
    for name in {"unshare", "nsenter", "ip", "tc"} - {tool}:
        (tmp_path / name).touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(diagnosis.network, "_SBIN", ())
    links = of("links")
    assert not links.well and not links.needed and re.search(rf"`{tool}`.* `apt install [a-z0-9-]+`", links.found)


@pytest.mark.parametrize(
    ("release", "obstacle", "row"),
    [
        ("6.6.87.2-microsoft-standard-WSL2", None, "✓ WSL2        kernel 6.6.87.2-microsoft-standard-WSL2 can emulate"),
        (
            "5.15.90.1-microsoft-standard-WSL2",
            "no tbf",
            "○ WSL2        kernel 5.15.90.1-microsoft-standard-WSL2 cannot emulate",
        ),
        (
            "4.4.0-19041-Microsoft",
            "no unshare",
            "○ WSL         version 1, kernel 4.4.0-19041-Microsoft, which cannot emulate links",
        ),
        ("6.12.0-amd64", None, None),
    ],
)
def test_under_windows_a_row_says_whether_links_can_be_shaped(release, obstacle, row, monkeypatch) -> None:
    monkeypatch.setattr(diagnosis.platform, "release", lambda: release)
    monkeypatch.setattr(diagnosis.network, "obstacle", lambda: obstacle)
    rows = [str(finding) for finding in diagnosis.examine(quick=True) if finding.what.startswith("WSL")]
    assert len(rows) == (row is not None) and all(line.startswith(row) for line in rows)
    assert all("`wsl --" in line for line in rows if "✓" not in line)


# --- GPUs: what the driver shows, and what torch computes on ----------------------------------------------------------

PYTHON = "#!/bin/sh\n{wait}\necho '{said}'\necho 'RuntimeError: {error}' >&2\nexit {status}\n"


@pytest.fixture
def torch_says(monkeypatch, tmp_path):
    """Let the Python of ranks be one whose torch says so."""

    def says(names=(), cuda: str | None = "13.0", error: str = "", wait: str = "") -> None:
        version = "2.13.0" if cuda else "2.13.0+cpu"
        said = "" if error else json.dumps({"version": version, "cuda": cuda, "names": list(names)})
        python = tmp_path / "python"
        python.write_text(PYTHON.format(said=said, error=error, status=int(bool(error)), wait=wait))
        python.chmod(0o755)
        monkeypatch.setattr(smoke_tests, "ranks_python", lambda: str(python))

    return says


def drivers(monkeypatch, *names: str) -> None:
    monkeypatch.setattr(diagnosis, "gpus", lambda: list(names))
    monkeypatch.setenv("PATH", "/nowhere")


def test_torch_computes_on_what_the_driver_shows(torch_says, monkeypatch) -> None:
    drivers(monkeypatch, "Tesla T4", "Tesla T4")
    torch_says(["Tesla T4", "Tesla T4"])
    finding = diagnosis._computing_gpus()
    assert finding.well and finding.found.endswith(" Tesla T4, Tesla T4") and finding != diagnosis._gpus()


def test_no_gpu_is_needed(torch_says, monkeypatch) -> None:
    drivers(monkeypatch)
    torch_says(cuda=None)
    assert diagnosis._computing_gpus() == diagnosis._gpus() and diagnosis._gpus().well


@pytest.mark.parametrize(
    ("torch", "row"),
    [
        (
            {"cuda": None},
            "Tesla T4; torch 2.13.0+cpu computes on 0 of them. This build of torch cannot use GPUs. `TORCH=auto",
        ),
        ({}, "Tesla T4; torch 2.13.0 computes on 0 of them. Is the driver older than torch's CUDA? Then `TORCH=auto"),
        ({"error": "no kernel image"}, "Tesla T4; torch fails: RuntimeError: no kernel image. Is the driver older"),
    ],
)
def test_a_gpu_that_torch_does_not_use_is_told_with_what_to_do(torch, row, torch_says, monkeypatch) -> None:
    drivers(monkeypatch, "Tesla T4")
    torch_says(**torch)
    assert str(diagnosis._computing_gpus()).startswith(f"○ GPUs        {row}")


def test_a_torch_that_cannot_be_imported_stops_the_course(torch_says, monkeypatch) -> None:
    drivers(monkeypatch)
    error = "libtorch.so is cut off"
    torch_says(error=error)
    finding = diagnosis._computing_gpus()
    assert finding.needed and not finding.well
    assert finding.found.endswith(f": RuntimeError: {error}") and "`make setup`" in finding.remedy


def test_a_torch_that_does_not_answer_is_ended_and_stops_nothing(torch_says, monkeypatch) -> None:
    drivers(monkeypatch)
    monkeypatch.setattr(smoke_tests, "GPU_SECONDS", 0.3)
    torch_says(wait="exec /bin/sleep 100")
    began = time.monotonic()
    finding = diagnosis._computing_gpus()
    assert time.monotonic() - began < 60 and not finding.needed and "no answer" in str(finding)


def test_where_the_driver_has_no_files_its_command_is_asked(monkeypatch, tmp_path) -> None:
    drivers(monkeypatch)
    smi = tmp_path / "nvidia-smi"
    smi.write_text("#!/bin/sh\necho 'GPU 0: NVIDIA RTX 4090 (UUID: GPU-2f1c)'\n")
    smi.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert of("GPUs").found == "NVIDIA RTX 4090"
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert of("GPUs").found == "none, and none is needed"


# --- folders and names ------------------------------------------------------------------------------------------------


def test_a_home_on_another_machine_is_named(monkeypatch, tmp_path) -> None:
    mounts = [SimpleNamespace(mountpoint="/", fstype="ext4"), SimpleNamespace(mountpoint=str(tmp_path), fstype="nfs4")]
    monkeypatch.setattr("psutil.disk_partitions", lambda all: mounts)
    monkeypatch.setenv("COURSE_HOME", str(tmp_path / "home"))
    finding = of("folders")
    assert finding.well and finding.found.endswith(f"notes in {tmp_path}/home (nfs4)") and finding.found.count("(") == 1


def test_a_folder_for_ranks_that_takes_no_lock_stops_the_course(monkeypatch) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(diagnosis.fcntl, "flock", no_locks)
    folders = of("folders")
    assert folders.needed and not folders.well
    assert folders.found.startswith("ranks' files") and folders.found.endswith(os.strerror(errno.ENOLCK))
    assert "COURSE_RUNTIME" in folders.remedy


def test_a_home_without_locks_is_no_obstacle_and_one_without_room_for_jupyterlab_is(monkeypatch, tmp_path) -> None:
    locked = []

    def locks_once(*_: object) -> None:
        locked.append(None)
        if len(locked) > 1:
            raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(diagnosis.fcntl, "flock", locks_once)
    folders = of("folders")
    assert not folders.well and not folders.needed and folders.found.startswith("notes cannot be stored")
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "file" / "runtime"))
    locked.clear()
    folders = of("folders")
    assert not folders.well and folders.needed and folders.found.startswith("JupyterLab's files cannot be stored")


@pytest.mark.parametrize("known", [None, "10.0.0.7"])
def test_a_localhost_that_is_unknown_or_another_machine_is_told(known, monkeypatch) -> None:
    def ask(name: str, *_: object) -> list:
        if known is None:
            raise OSError("Name or service not known")
        return [(0, 0, 0, "", (known, 0))]

    monkeypatch.setattr(diagnosis.socket, "getaddrinfo", ask)
    names = of("names")
    assert not names.well and not names.needed and (known or "unknown") in names.found
    assert "`127.0.0.1 localhost`" in names.remedy and "/etc/hosts" in names.remedy


def test_with_proc_hidden_the_doctor_says_so_and_starts_nothing() -> None:
    """In a box of bubblewrap's, whose /proc is empty."""
    box = ["bwrap", "--dev-bind", "/", "/", "--tmpfs", "/proc"]
    if not shutil.which("bwrap") or subprocess.run([*box, "true"], capture_output=True, check=False).returncode:
        pytest.skip("bubblewrap cannot make a box here")
    command = [*box, sys.executable, "-m", "course_utils.cli", "doctor"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=200, check=False)
    assert done.returncode == 1 and not done.stderr.strip().startswith("Traceback")
    rows = {line.split()[1]: line for line in done.stdout.splitlines()}
    assert rows["processes"].startswith("✗") and f"`{system.SHOW_PROCESSES}`" in rows["processes"]
    assert "ranks" not in rows and rows["links"].startswith("○") and "processes are hidden" in rows["links"]
