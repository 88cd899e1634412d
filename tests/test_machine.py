"""What the doctor reads of a machine, on machines made of files."""

import os
from pathlib import Path

import pytest

import course_utils as course
from course_utils import diagnosis
from course_utils.machine import gpus, memory_bytes

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


def test_the_doctor_finds_this_machine_fit(capsys) -> None:
    assert course.doctor() is None
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in lines[:-1]] == [
        "Python",
        "packages",
        "MPI",
        "cores",
        "memory",
        "GPUs",
        "Slurm",
        "namespaces",
        "browser",
    ]
    assert lines[-1] == "The course can run here."


@pytest.mark.parametrize("name", ["ipyparallel", "mpi4py"])
def test_a_missing_package_is_named_with_the_command_that_brings_it(monkeypatch, capsys, name) -> None:
    found = diagnosis.importlib.util.find_spec
    monkeypatch.setattr(diagnosis.importlib.util, "find_spec", lambda one: None if one == name else found(one))
    course.doctor()
    output = capsys.readouterr().out
    [line] = [line for line in output.splitlines() if name in line and "missing" in line]
    assert line.startswith("✗") and "`make setup` installs" in line
    assert output.endswith("The course cannot run here yet: see the lines with ✗.\n")


def test_no_mpiexec_is_a_line_and_no_error(monkeypatch) -> None:
    def none() -> str:
        raise course.CourseError("There is no mpiexec here.")

    monkeypatch.setattr(diagnosis, "find_mpiexec", none)
    [line] = [str(finding) for finding in diagnosis.examine() if finding.what == "MPI"]
    assert line == "✗ MPI         There is no mpiexec here. `make setup` installs MPICH"


def test_what_is_only_useful_does_not_stop_the_course(monkeypatch, capsys) -> None:
    monkeypatch.setattr(diagnosis, "chromium", lambda: None)
    monkeypatch.setattr(diagnosis.network, "obstacle", lambda: "`tc` is missing: `apt install iproute2` brings it.")
    monkeypatch.setattr(diagnosis, "memory_bytes", lambda: GIB)
    findings = diagnosis.examine()
    diagnosis.tell(findings)
    output = capsys.readouterr().out
    assert diagnosis.ready(findings) and "The course can run here." in output
    assert "○ browser     no Chromium. `make lab` prints" in output
    assert "○ namespaces  no: `tc` is missing: `apt install iproute2` brings it. The lessons" in output
    assert "○ memory      1.0 GiB allowed. Four ranks" in output
