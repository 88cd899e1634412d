"""A hosted notebook, simulated: a kernel with the versions that Colab pins, where no links can be made."""

import json
import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from course_utils import settings
from course_utils.machine import ranks_python
from course_utils.ranks import start
from course_utils.ranks.processes import launch_ranks
from course_utils.syllabus import LESSONS, ROOT

PINNED = (  # Colab's, where the course's own notebooks have others
    *("ipython==7.34.0", "ipykernel==6.17.1", "jupyter_client==7.4.9", "tornado==6.5.1", "traitlets==5.7.1"),
    *(
        "pyzmq==26.2.1",
        "decorator==4.4.2",
        "numpy==2.0.2",
        "psutil==5.9.5",
        "matplotlib==3.10.0",
        "scikit-learn==1.6.1",
    ),
    *("tqdm==4.67.1",),
)
TORCH = (
    "torch",
    "torchgen",
    "torchvision",
    "sympy",
    "mpmath",
    "networkx",
    "jinja2",
    "markupsafe",
    "fsspec",
    "filelock",
)
FIRST_CELL = f"%run {ROOT}/tools/hosted.py"
LAST_CELL = """
import IPython, ipykernel, ipyparallel, json
ranks = course.start(2)
theirs = ranks.run(lambda comm: __import__("IPython").__version__).results
ours = [IPython.__version__, ipykernel.__version__]
ranks.stop()
print(json.dumps({"ours": ours, "theirs": theirs, "from": ipyparallel.__file__}))
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory) -> dict[str, str]:
    """Of a process that starts hosted kernels: their Python, a PATH without `unshare`, folders of their own."""
    if sys.prefix != str(ROOT / ".venv"):
        pytest.skip("the ranks' environment is the .venv that `make setup` makes")
    folder = tmp_path_factory.mktemp("hosted")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    python = str(folder / "venv" / "bin" / "python")
    pip = ["uv", "pip", "install", "--python", python]
    if not shutil.which("uv"):
        pip = [sys.executable, "-m", "pip", "--python", python, "install", "--disable-pip-version-check"]
    subprocess.run([*pip, "--quiet", *PINNED], check=True)
    packages = Path("lib", f"python3.{sys.version_info.minor}", "site-packages")
    for name in (*TORCH, "typing_extensions.py"):  # a host has a torch of its own; ours stands in, for it is large
        if not (folder / "venv" / packages / name).exists():
            (folder / "venv" / packages / name).symlink_to(sys.prefix / packages / name)
    commands = folder / "bin"
    commands.mkdir()
    for place in ("/usr/bin", "/bin", "/usr/local/bin"):
        for file in Path(place).glob("*"):
            if file.name != "unshare" and not (commands / file.name).is_symlink():
                (commands / file.name).symlink_to(file)
    spec = folder / "jupyter" / "kernels" / "hosted" / "kernel.json"
    spec.parent.mkdir(parents=True)
    argv = [python, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec.write_text(json.dumps({"argv": argv, "display_name": "hosted", "language": "python"}))
    unwanted = ("PYTHONPATH", "VIRTUAL_ENV", "JPY_SESSION_NAME")
    kept = {name: value for name, value in os.environ.items() if name not in unwanted}
    own = {"PATH": str(commands), "TQDM_DISABLE": "1", "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
    return kept | own | {"JUPYTER_PATH": str(folder / "jupyter")}


@pytest.mark.long
@pytest.mark.timeout(900)  # the first of them has the kernel's environment made
@pytest.mark.parametrize("number", [0, *(pytest.param(number, marks=pytest.mark.weekly) for number in (4, 5, 6))])
def test_a_lesson_runs_in_a_hosted_notebook(number: int, environment, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("JUPYTER_PATH", environment["JUPYTER_PATH"])
    page = nbformat.read(LESSONS[number].notebook, nbformat.NO_CONVERT)
    first, last = (nbformat.v4.new_code_cell(source) for source in (FIRST_CELL, LAST_CELL))
    page.cells = [first, *page.cells, last]
    client = NotebookClient(page, kernel_name="hosted", timeout=300, resources={"metadata": {"path": str(tmp_path)}})
    client.execute(env=environment)
    assert "Ready: the cells of any lesson can run now." in printed(first)
    seen = json.loads(printed(last).splitlines()[-1])
    assert seen["ours"] == ["7.34.0", "6.17.1"]
    assert set(seen["theirs"]) != {"7.34.0"} and seen["from"].startswith(str(ROOT / ".venv" / "lent"))
    said = "\n".join(printed(cell) for cell in page.cells)
    assert ("No links here: `unshare` is missing" in said) == ("link=" in "".join(cell.source for cell in page.cells))


def printed(cell: nbformat.NotebookNode) -> str:
    """What a cell wrote to its standard output."""
    return "".join(one.text for one in cell.get("outputs", ()) if one.output_type == "stream" and one.name == "stdout")


def test_ranks_have_a_python_and_packages_of_their_own_where_one_is_named(monkeypatch, tmp_path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "mpiexec").touch(mode=0o755)
    packages, beside = tmp_path / "dist-packages", tmp_path / "beside"
    packages.mkdir()
    beside.mkdir()
    monkeypatch.setattr(sys, "path", [str(packages), str(beside)])
    assert ranks_python() == sys.executable and start._import_paths() == [str(packages), str(beside)]
    monkeypatch.setenv("COURSE_PYTHON", str(tmp_path / "bin" / "python"))
    assert launch_ranks.find_mpiexec() == str(tmp_path / "bin" / "mpiexec")
    assert start._import_paths() == [str(beside)]


@pytest.fixture
def clone(tmp_path, monkeypatch) -> Path:
    """A folder with the first cell's script, on a machine that has uv; what its `tools/set-up` does, a test says."""
    tools = tmp_path / "tools"
    tools.mkdir()
    shutil.copy(ROOT / "tools" / "hosted.py", tools)
    for name in ("uv", "set-up"):
        (tools / name).touch(mode=0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    monkeypatch.delenv("MPI4PY_LIBMPI", raising=False)
    monkeypatch.setenv("COURSE_PYTHON", "none yet")
    monkeypatch.setattr(sys, "path", list(sys.path))
    return tmp_path


def test_the_first_cell_says_what_the_set_up_says_and_changes_nothing_where_it_fails(clone, capsys) -> None:
    (clone / "tools" / "set-up").write_text("#!/bin/sh\necho No network >&2\nexit 1\n")
    before = list(sys.path)
    runpy.run_path(str(clone / "tools" / "hosted.py"), run_name="__main__")
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "No network" and said[1].startswith("The course is not set up") and len(said) == 2
    assert sys.path == before and settings.PYTHON.value() == "none yet"


def test_the_first_cell_can_run_twice_and_lends_four_packages(clone, capsys) -> None:
    packages = clone / ".venv" / "lib" / "python3.12" / "site-packages"
    lines = ("#!/bin/sh", 'echo "for $PYTHON"', f"mkdir -p {packages}/ipyparallel", "echo Ready. Next: make lab", "")
    (clone / "tools" / "set-up").write_text("\n".join(lines))
    for _ in range(2):
        runpy.run_path(str(clone / "tools" / "hosted.py"), run_name="__main__")
    said = capsys.readouterr().out.splitlines()
    assert said[0] == f"for {sys.executable}" and said[1].startswith("Ready: the cells") and said[2:] == said[:2]
    lent = clone / ".venv" / "lent"
    assert sys.path.count(str(lent)) == sys.path.count(str(clone)) == 1
    assert sorted(file.name for file in lent.iterdir()) == ["cloudpickle", "greenlet", "ipyparallel", "mpi4py"]
    assert (lent / "ipyparallel").resolve() == packages / "ipyparallel"
    assert settings.PYTHON.value() == str(clone / ".venv" / "bin" / "python")
