"""What set-up and fetch-wheels share: the settings and the output of pip and uv, and a set-up without a network."""

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from course_utils.syllabus import ROOT


def tool(name: str):
    """A program of tools/, as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # where dataclasses look
    spec.loader.exec_module(module)
    return module


TOOLS = ("installer_progress", "pip_settings", "wheel_list")
progress = tool("installer_progress")
pip_settings = tool("pip_settings")
wheel_list = tool("wheel_list")


def test_of_pips_settings_those_are_kept_that_say_where_packages_come_from() -> None:
    lines = [
        "global.find-links='/a\\n/b'",
        "global.index-url='https://one/simple'",
        "install.index-url='https://two/simple'",
        "global.user='true'",
        "install.no-binary=':all:'",
        "global.pre='false'",
        "download.dest='/c'",
        ":env:.disable-pip-version-check='1'",
        ":env:.timeout='9'",
        "install.timeout='60'",
    ]
    kept, aside = pip_settings.settings(lines)
    assert kept == {"PIP_FIND_LINKS": "/a /b", "PIP_INDEX_URL": "https://two/simple", "PIP_TIMEOUT": "9"}
    assert aside == ["no-binary", "user"]


def after(*lines: str, **known) -> "progress.Progress":
    """How far an installer is that has said these lines."""
    state = progress.Progress(**known)
    for line in lines:
        state.read(line)
    return state


OF_PIP = (
    "Collecting scipy==1.17.1 (from -r .venv/requirements.txt (line 1))",
    "  Downloading scipy-1.17.1-cp311-manylinux_2_28_x86_64.whl.metadata (62 kB)",
    "Downloading scipy-1.17.1-cp311-manylinux_2_28_x86_64.whl (40.0 MB)",
)


def test_how_far_pip_is_is_read_off_the_file_that_grows() -> None:
    assert after(*OF_PIP, wanted=4).state(10e6, 0) == (0.25, "scipy, 1 of 4 packages")
    assert after(*OF_PIP, wanted=4).state(40e6, 0) == (0.25, "1 of 4 packages")
    small = after("Using cached six-1.17.0-py2.py3-none-any.whl (11 kB)", *OF_PIP, wanted=4)
    assert small.state(40e6, 0) == (0.5, "2 of 4 packages"), "small packages count"
    unpacks = after(*OF_PIP, "Installing collected packages: six, scipy, a, b")
    assert unpacks.state(0, 3) == (0.5, "unpacking, 2 of 4"), "the third has a folder, and not yet all of its files"
    assert after("Collecting mpi4py", "  Preparing metadata (pyproject.toml): started").state(0, 0) == (
        None,
        "building mpi4py",
    )


def test_how_far_uv_is_is_the_sum_of_what_it_has() -> None:
    state = after("Resolved 9 packages in 1s", "Downloading a (10.0MB)", "Downloading b (30.0MB)", " Downloaded a")
    assert state.state(0, 0) == (0.25, "10 MB of 40 MB, waiting for b")


def test_what_is_no_progress_is_handed_on() -> None:
    assert progress.Progress().read("ERROR: No matching distribution found for torch") is None
    assert progress.Progress().read("Requirement already satisfied: six in .venv/lib") == ""


STAND_IN = """
import os, pathlib, sys, time
folder = pathlib.Path(os.environ["TMPDIR"], "pip-unpack-1")
folder.mkdir()
print("Downloading scipy-1.17.1-cp311.whl (4.0 MB)", flush=True)
with (folder / "scipy-1.17.1-cp311.whl").open("wb") as file:
    file.write(bytes(3_000_000))
while not pathlib.Path(sys.argv[1]).exists():
    time.sleep(0.05)
print("a word of pip's")
sys.exit(7)
"""


def test_a_log_gets_a_line_now_and_then(tmp_path) -> None:
    seen = tmp_path / "seen"
    command = [sys.executable, ROOT / "tools" / "installer_progress.py", sys.executable, "-c", STAND_IN, seen]
    environment = {**os.environ, "SET_UP_SILENCE": "0"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=environment, cwd=tmp_path, **pipes) as process:
        for line in process.stderr:
            if "75%, scipy, 1 packages, after" in line:
                break
        seen.touch()
        assert process.wait(30) == 7 and process.stdout.read() == "a word of pip's\n"


def test_the_list_for_another_machine_has_what_its_markers_admit() -> None:
    lines = [
        "appnope==1.0.0 ; sys_platform == 'darwin' \\\n",
        "    --hash=sha256:1\n",
        "overrides==7.7.0 ; python_full_version < '3.12' \\\n",
        "    --hash=sha256:2\n",
        "six==1.17.0 \\\n",
        "    --hash=sha256:3\n",
    ]
    for_mac = wheel_list.needed(lines, "3.13", "Darwin", "arm64")
    assert for_mac == ["appnope==1.0.0 \\\n", "    --hash=sha256:1\n", *lines[4:]]
    assert wheel_list.needed(lines, "3.11", "Linux", "x86_64")[0] == "overrides==7.7.0 \\\n"


@pytest.mark.parametrize(("words", "status"), [(["--help"], 0), ([], 2), (["--frob"], 2)])
def test_fetch_wheels_explains_itself(words, status) -> None:
    done = subprocess.run([ROOT / "tools" / "fetch-wheels", *words], capture_output=True, text=True, check=False)
    assert done.returncode == status and "make setup WHEELS=FOLDER" in done.stdout + done.stderr


def test_fetch_wheels_leaves_a_folder_of_something_else_alone(tmp_path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    command = [ROOT / "tools" / "fetch-wheels", tmp_path]
    environment = {**os.environ, "PYTHON": sys.executable}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 1 and "is not empty. Name a new folder." in done.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.txt"]


def write_wheel(folder: Path, name: str, version: str) -> str:
    """Put a wheel with nothing but a module into a folder, and return its SHA-256."""
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": f"__version__ = {version!r}\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{file},,\n" for file in [*files, f"{info}/RECORD"])
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for file, text in {**files, f"{info}/RECORD": record}.items():
            wheel.writestr(file, text)
    return hashlib.sha256(path.read_bytes()).hexdigest()


BACKEND = """
import pathlib, zipfile

NAME, VERSION = {name!r}, {version!r}

def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    wheel_name, info = f"{{NAME}}-{{VERSION}}-py3-none-any.whl", f"{{NAME}}-{{VERSION}}.dist-info"
    files = {{
        f"{{NAME}}.pth": str(pathlib.Path.cwd()),
        f"{{info}}/METADATA": f"Metadata-Version: 2.1\\nName: {{NAME}}\\nVersion: {{VERSION}}\\n",
        f"{{info}}/WHEEL": "Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
    }}
    files[f"{{info}}/RECORD"] = "".join(f"{{file}},,\\n" for file in [*files, f"{{info}}/RECORD"])
    with zipfile.ZipFile(pathlib.Path(wheel_directory, wheel_name), "w") as wheel:
        for file, text in files.items():
            wheel.writestr(file, text)
    return wheel_name

build_editable = build_wheel
"""
PROJECT = """
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]

[project]
name = "{name}"
version = "{version}"
requires-python = ">=3.11,<3.15"
"""


def write_project(folder: Path, name: str, version: str) -> None:
    """Put the sources of a package into a folder. It builds itself, without setuptools."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text(PROJECT.format(name=name, version=version))
    (folder / "backend.py").write_text(BACKEND.format(name=name, version=version))
    (folder / "PKG-INFO").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


@pytest.mark.long
def test_a_set_up_without_a_network_from_a_folder_that_was_fetched(tmp_path) -> None:
    """With pip itself, and packages of one line each: the wheels are fetched, carried over and installed."""
    index, course, folder = tmp_path / "index", tmp_path / "course", tmp_path / "the wheels"
    index.mkdir()
    write_project(course, "course_utils", "0.1.0")
    (course / "tools").mkdir()
    for name in ("set-up", "fetch-wheels", "packages.sh", *(f"{name}.py" for name in TOOLS)):
        shutil.copy(ROOT / "tools" / name, course / "tools")
    write_project(tmp_path / "mpi4py-4.1.2", "mpi4py", "4.1.2")
    with tarfile.open(index / "mpi4py-4.1.2.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "mpi4py-4.1.2", "mpi4py-4.1.2")
    sections = {
        "pip": ("pip", "26.0"),
        "course": ("numpy", "2.4.6"),
        "mpi4py": ("mpi4py", "4.1.2"),
        "mpich": ("mpich", "5.0.2"),
    }
    lock, pins = "", "torch==2.13.0\ntorchvision==0.28.0\n"
    for section, (name, version) in sections.items():
        write_wheel(index, name, version)
        lock += f"# [{section}]\n{name}=={version} \\\n    --hash=sha256:{0:064}\n"
        pins += f"{name}=={version}\n"
    write_wheel(index, "torch", "2.13.0+cpu")
    write_wheel(index, "torchvision", "0.28.0")
    (course / "requirements.lock").write_text(lock)
    (course / "constraints.txt").write_text(pins)

    outer = ("PIP_", "UV_", "PYTHON", "WHEELS", "TORCH", "SITE_MPI", "HASHES")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(outer)}
    environment |= {"PYTHON": sys.executable, "HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "TORCH": "cpu"}
    here = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(index)}

    def run(*words: str | Path, **variables: str) -> str:
        done = subprocess.run(
            words, env={**environment, **variables}, capture_output=True, text=True, check=False, timeout=200
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stderr

    said = run(course / "tools" / "fetch-wheels", folder, **here)
    assert "holds 7 files of " in said, said
    assert "already" not in run(course / "tools" / "fetch-wheels", folder, **here), "a second time goes on"
    index.rename(tmp_path / "far away")
    packages = "import numpy, torch; print(numpy.__version__, torch.__version__)"
    for choice in ({}, {"SITE_MPI": "1"}):
        assert run(course / "tools" / "set-up", WHEELS=str(folder), **choice).endswith("Ready. Next: make lab\n")
        done = subprocess.run([course / ".venv" / "bin" / "python", "-c", packages], capture_output=True, text=True)
        assert done.stdout == "2.4.6 2.13.0+cpu\n"
        installed = {path.name.partition("-")[0] for path in course.glob(".venv/lib/*/site-packages/*.dist-info")}
        assert {"course_utils", "mpi4py", "torchvision"} <= installed and ("mpich" in installed) == (not choice)

    # A file that changed on the way is found.
    write_wheel(folder, "numpy", "2.4.6")
    with (folder / "numpy-2.4.6-py3-none-any.whl").open("ab") as file:
        file.write(b" ")
    shutil.rmtree(course / ".venv")
    done = subprocess.run(
        [course / "tools" / "set-up"], env={**environment, "WHEELS": str(folder)}, capture_output=True, text=True
    )
    assert done.returncode == 1 and "missing or damaged, copy that folder again" in done.stderr
