"""pyproject.toml, constraints.txt, requirements.lock and environment.yml name one set; `make setup` makes it once."""

import ast
import importlib.metadata
import re
import subprocess
import sys
import tomllib

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from course_utils.syllabus import ROOT

CONDA_NAMES = {
    **{"torch": "pytorch", "matplotlib": "matplotlib-base", "playwright": "playwright-python"},
    "jupyter-core": "jupyter_core",
}
"""Packages that conda-forge calls something else."""
OWN = "course-utils"
CUDA = re.compile("nvidia-|cuda-|triton$")
"""What a torch for CUDA brings along: it decides their versions itself."""


def declared(*, without: tuple[str, ...] = ()) -> dict[str, Requirement]:
    """What pyproject.toml asks for, with all extras, or all but some."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = {name: lines for name, lines in project["optional-dependencies"].items() if name not in without}
    lines = [*project["dependencies"], *(one for extra in extras.values() for one in extra)]
    requirements = [Requirement(line) for line in lines]
    assert len({one.name for one in requirements}) == len(requirements), "a package is declared twice"
    return {canonicalize_name(one.name): one for one in requirements}


def pinned() -> dict[str, str]:
    """Name and version of every line of constraints.txt."""
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line and line[0] != "#"]
    pairs = [line.split("==") for line in lines]
    return {canonicalize_name(name): version for name, version in pairs}


def conda() -> dict[str, str]:
    """Name and condition of every package of environment.yml, those of its pip section too."""
    found = {}
    for entry in yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]:
        for line in entry["pip"] if isinstance(entry, dict) else [entry]:
            name, condition = re.fullmatch(r"(-e \.|[-\w.]+)\s*(.*)", line).groups()
            found[name] = condition
    return found


EVERYBODYS = declared(without=("hta", "lightning", "nbgrader", "site", "tensorboard"))
"""Only some want those extras; environment.yml leaves it to them."""


@pytest.mark.parametrize("name", sorted(EVERYBODYS))
def test_conda_declares_the_same(name: str) -> None:
    assert conda().get(CONDA_NAMES.get(name, name)) == str(declared()[name].specifier)


def test_conda_declares_nothing_else() -> None:
    expected = {CONDA_NAMES.get(name, name) for name in EVERYBODYS} | {"python", "pip", "-e ."}
    assert set(conda()) == expected


def test_conda_asks_for_the_same_python() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert conda()["python"] == project["requires-python"]


@pytest.mark.parametrize("name", sorted(declared()))
def test_the_pinned_version_is_an_allowed_one(name: str) -> None:
    assert declared()[name].specifier.contains(pinned()[name])


ONE_SYSTEM_ALONE = {"appnope"}
"""Packages that a Linux does not have, so `pip freeze` never names them for constraints.txt."""


def locked() -> dict[str, dict[str, tuple[str, int]]]:
    """Version and number of hashes of every package of requirements.lock, by section."""
    sections: dict[str, dict[str, tuple[str, int]]] = {}
    for part in re.split(r"^# \[", (ROOT / "requirements.lock").read_text(), flags=re.MULTILINE)[1:]:
        name, _, entries = part.partition("]\n")
        found = re.findall(r"^(\S+)==(\S+).*((?:\n    --hash=sha256:[0-9a-f]{64}.*)*)", entries, flags=re.MULTILINE)
        sections[name] = {canonicalize_name(name): (version, hashes.count("--hash")) for name, version, hashes in found}
    return sections


def test_the_lock_file_has_the_pinned_versions_and_hashes_for_them() -> None:
    versions = {name: version for section in locked().values() for name, (version, _) in section.items()}
    assert {name: versions.get(name) for name in pinned()} == pinned(), "renew it with tools/lock.py"
    others = {name for name in versions.keys() - pinned() if not CUDA.match(name)}
    assert others == {"pip", "cython", *ONE_SYSTEM_ALONE}
    assert all(count for section in locked().values() for _, count in section.values())


def test_the_lock_file_has_a_section_for_everything_that_is_installed() -> None:
    sections = locked()
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(sections) == {"pip", "course", "torch", "mpi4py", "cython", "mpich", *extras} - {"dev", "mpi"}
    assert {"torch", "torchvision"} == {name for name in sections["torch"] if not CUDA.match(name)}
    for name in EVERYBODYS:
        assert any(name in sections[section] for section in ("course", "torch", "mpi4py", "mpich")), name
    for extra in extras.keys() - {"dev", "mpi"}:
        for line in extras[extra]:
            assert canonicalize_name(Requirement(line).name) in sections[extra]
    builds = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    assert {Requirement(line).name for line in builds} <= set(sections["course"]), (
        "the course is built with what it has"
    )


def needed() -> set[str]:
    """Every package that the course needs here, directly or through another one."""
    found: set[str] = set()
    own_mpi = any(importlib.metadata.distributions(name="mpich"))  # a site's MPI is not a package
    waiting = [(OWN, extra) for extra in ("", "dev", *(["mpi"] if own_mpi else []))]
    while waiting:
        name, extra = waiting.pop()
        for line in importlib.metadata.requires(name) or []:
            one = Requirement(line)
            key = canonicalize_name(one.name)
            if CUDA.match(key) or not (one.marker is None or one.marker.evaluate({"extra": extra})):
                continue
            waiting += [(key, wanted) for wanted in one.extras]
            if key not in found:
                found.add(key)
                waiting.append((key, ""))
    return found


def test_everything_the_course_needs_is_pinned_as_it_is_installed() -> None:
    if sys.prefix != str(ROOT / ".venv"):
        pytest.skip("this Python is not the .venv that `make setup` made")
    pins = pinned()
    installed = {name: importlib.metadata.version(name).partition("+")[0] for name in needed()}
    assert installed == {name: pins.get(name) for name in installed}


def test_what_the_package_imports_is_declared() -> None:
    names = {"sklearn": "scikit-learn", "IPython": "ipykernel", "jupyter_server": "jupyterlab", "yaml": "pyyaml"}
    names |= {"PIL": "pillow", "packaging": "matplotlib", "traitlets": "ipykernel", "zmq": "ipyparallel"}
    names |= {"markupsafe": "jinja2"}
    imported = set()
    for file in (ROOT / "course_utils").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            imported |= {one.name.partition(".")[0] for one in node.names} if isinstance(node, ast.Import) else set()
            of_others = isinstance(node, ast.ImportFrom) and not node.level
            imported |= {node.module.partition(".")[0]} if of_others else set()
    own = {"course_utils", "system"}  # the second is loaded alone, without its package, by what stands under mpiexec
    foreign = imported - own - sys.stdlib_module_names
    missing = {name for name in foreign if canonicalize_name(names.get(name, name)) not in declared()}
    assert not missing


def test_a_second_set_up_does_nothing(tmp_path) -> None:
    if not (ROOT / ".venv" / "made-for").exists():
        pytest.skip("this environment was not made by `make setup`")
    before = (ROOT / ".venv" / "made-for").stat().st_mtime_ns
    done = subprocess.run([ROOT / "tools" / "set-up"], capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (ROOT / ".venv" / "made-for").stat().st_mtime_ns == before


def test_every_jupyterlab_of_the_environment_has_the_settings_of_the_course() -> None:
    if not (ROOT / ".venv" / "made-for").exists():
        pytest.skip("this environment was not made by `make setup`")
    settings = "jupyter_server_config.json"
    assert (ROOT / ".venv" / "etc" / "jupyter" / settings).samefile(ROOT / ".jupyter" / settings)
