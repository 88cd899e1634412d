"""Dockerfile, dev container and Apptainer definition: what they name is there, and they say the same.

No image is built here.
"""

import json
import re
import shutil
import subprocess
import tomllib

import pytest
from packaging.specifiers import SpecifierSet

from course_utils.lab import main as lab
from course_utils.syllabus import ROOT

DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
APPTAINER = (ROOT / "apptainer.def").read_text(encoding="utf-8")
COMMENTED = (ROOT / ".devcontainer" / "devcontainer.json").read_text(encoding="utf-8")
DEV_CONTAINER = json.loads(re.sub(r"^\s*//.*", "", COMMENTED, flags=re.M))


def packages(text: str) -> list[str]:
    """The Debian packages that a recipe installs."""
    return re.search(r"apt-get install --yes --no-install-recommends ([a-z0-9 ]+)", text)[1].split()


def test_all_are_made_from_one_image_of_debian_with_one_set_of_packages() -> None:
    image = re.search(r"^FROM (\S+) AS machine$", DOCKERFILE, re.M)[1]
    assert f"From: {image}\n" in APPTAINER
    version = re.fullmatch(r"python:(3\.\d+)-slim-trixie", image)[1]
    assert version in SpecifierSet(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"])
    assert packages(APPTAINER) == packages(DOCKERFILE) == sorted(packages(DOCKERFILE))


def test_debian_has_the_packages() -> None:
    if not shutil.which("apt-cache"):
        pytest.skip("this is no Debian")
    shown = subprocess.run(["apt-cache", "pkgnames"], capture_output=True, text=True, check=True).stdout.split()
    if len(shown) < 10_000:
        pytest.skip("this Debian's list of packages was never fetched: apt-get update")
    assert set(packages(DOCKERFILE)) <= set(shown)


def test_the_container_ends_in_make_lab_for_the_machine_around_it(capsys) -> None:
    *_, last = DOCKERFILE.strip().splitlines()
    assert json.loads(last.removeprefix("CMD ")) == ["make", "lab", "ADDRESS=0.0.0.0"]
    dry = subprocess.run(
        ["make", "-C", ROOT, "--dry-run", "lab", "ADDRESS=0.0.0.0"], capture_output=True, text=True, check=True
    )
    assert re.search(r"-m course_utils\.lab +--address 0\.0\.0\.0$", dry.stdout, re.M)
    assert lab(["--address", "192.0.2.1"]) == 2
    assert capsys.readouterr().err == "'192.0.2.1' is not an address of this machine. 0.0.0.0 means all of them.\n"


def test_what_the_dockerfile_says_one_types_is_what_the_page_on_installation_says() -> None:
    typed = re.findall(r"^#     (docker .*(?:\\\n#.*)*)", DOCKERFILE, re.M)
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    assert [" ".join(line.replace("\\\n#", " ").split()) for line in typed] == [
        " ".join(line.replace("\\\n", " ").split()) for line in re.findall(r"^ +(docker .*(?:\\\n.*)*)", page, re.M)
    ]


def test_the_dev_container_has_what_emulated_links_need_and_sets_up_by_make() -> None:
    assert "AS machine\n" in DOCKERFILE and DEV_CONTAINER["build"]["target"] == "machine"
    folder = ROOT / ".devcontainer"
    assert (folder / DEV_CONTAINER["build"]["dockerfile"]).samefile(ROOT / "Dockerfile")
    assert f"useradd --create-home --shell /bin/bash --uid 1000 {DEV_CONTAINER['remoteUser']}" in DOCKERFILE
    options = [f"--cap-add {one}" for one in DEV_CONTAINER["capAdd"]]
    options += [f"--security-opt {one}" for one in DEV_CONTAINER["securityOpt"]]
    options += [one.replace("=", " ") for one in DEV_CONTAINER["runArgs"]]
    assert len(options) == 4 and all(option in DOCKERFILE for option in options), "the same as `docker run` gets"
    assert DEV_CONTAINER["updateContentCommand"].startswith("make setup")


def test_what_git_leaves_out_stays_out_of_the_image() -> None:
    out = {line.strip("/*") for line in (ROOT / ".dockerignore").read_text().splitlines()}
    unneeded = {"dist", ".virtual_documents", "node_modules", "tests/screenshots"}
    ignored = {line.strip("/*") for line in (ROOT / ".gitignore").read_text().splitlines()}
    assert ignored - unneeded <= out


def test_the_apptainer_definition_runs_make_in_the_clone() -> None:
    sections = re.split(r"^%(\w+)$", APPTAINER, flags=re.M)[1::2]
    assert sections == ["help", "post", "runscript"]
    script = APPTAINER.partition("%runscript\n")[2]
    run = ["sh", "-c", script.replace("exec make", "echo make"), "apptainer"]
    said = [subprocess.run(run + words, capture_output=True, text=True, check=True).stdout for words in ([], ["setup"])]
    assert said == ["make lab PYTHON=python3\n", "make setup PYTHON=python3\n"]
