"""Dockerfile, dev container and Apptainer definition: what they name is there, and they say the same.

No image is built here.
"""

import json
import os
import re
import shutil
import subprocess
import tomllib
import urllib.request
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

from course_utils.lab import FIRST_PORT
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
    image = re.search(r"^ARG BASE=(\S+)\nFROM \$\{BASE\} AS machine$", DOCKERFILE, re.M)[1]
    assert f"From: {image}\n" in APPTAINER
    version = re.fullmatch(r"python:(3\.\d+)-slim-trixie@sha256:[0-9a-f]{64}", image)[1]
    assert version in SpecifierSet(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"])
    assert packages(APPTAINER) == packages(DOCKERFILE) == sorted(packages(DOCKERFILE))


def test_debian_has_the_packages() -> None:
    if not shutil.which("apt-cache"):
        pytest.skip("this is no Debian")
    shown = subprocess.run(["apt-cache", "pkgnames"], capture_output=True, text=True, check=True).stdout.split()
    if len(shown) < 10_000:
        pytest.skip("this Debian's list of packages was never fetched: apt-get update")
    assert set(packages(DOCKERFILE)) <= set(shown)


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile's instructions, each with what it is given."""
    whole = re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", DOCKERFILE, flags=re.M))
    return [
        (word, " ".join(given.split()))
        for word, _, given in (line.partition(" ") for line in whole.splitlines())
        if word
    ]


def test_the_course_is_the_images_and_the_notebooks_are_the_users() -> None:
    (folder,) = [given for word, given in instructions() if word == "WORKDIR"]
    (variables,) = [given for word, given in instructions() if word == "ENV"]
    environment = dict(pair.split("=", 1) for pair in variables.split())
    words = [word for word, _ in instructions()]
    assert folder == "/opt/course" and environment["PATH"].startswith(f"{folder}/.venv/bin:")
    assert environment["COURSE_COPY"] == f"{environment['HOME']}/course" == "/home/learner/course"
    assert ("COPY", ". .") in instructions() and words.index("USER") > words.index("COPY"), "all but the home is root's"
    assert words.count("USER") == 1 and "VOLUME" not in words


def test_the_container_ends_in_make_lab_for_the_machine_around_it(capsys) -> None:
    *_, (last, command) = instructions()
    assert last == "CMD" and json.loads(command) == ["make", "lab", "ADDRESS=0.0.0.0"]
    dry = subprocess.run(
        ["make", "-C", ROOT, "--dry-run", "lab", "ADDRESS=0.0.0.0"], capture_output=True, text=True, check=True
    )
    assert re.search(r"-m course_utils\.lab +--address 0\.0\.0\.0 *$", dry.stdout, re.M)
    assert lab(["--address", "192.0.2.1"]) == 2
    assert capsys.readouterr().err == "'192.0.2.1' is not an address of this machine. 0.0.0.0 means all of them.\n"


def test_the_container_is_healthy_when_jupyterlab_answers(monkeypatch) -> None:
    (check,) = [given for word, given in instructions() if word == "HEALTHCHECK"]
    python, option, code = json.loads(check.partition(" CMD ")[2])
    asked = []
    monkeypatch.setattr(urllib.request, "urlopen", asked.append)
    exec(code, {})
    assert (python, option) == ("python", "-c") and asked == [f"http://127.0.0.1:{FIRST_PORT}/api"]


def typed(text: str, margin: str) -> list[str]:
    """The lines that begin with `docker` behind a margin, as one types them, with what continues them."""
    found = re.findall(rf"^{margin} +(docker [^\\\n]*(?:\\\n{margin}[^\\\n]*)*)", text, re.M)
    return [" ".join(line.replace(f"\\\n{margin}", " ").split()) for line in found]


def test_what_the_dockerfile_says_one_types_is_what_the_page_on_installation_says() -> None:
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    assert typed(DOCKERFILE, "#")[:3] == typed(page, "") and len(typed(page, "")) == 3


def test_what_emulated_links_need_is_not_in_the_line_that_all_copy() -> None:
    _, plain, with_links, *_ = typed(DOCKERFILE, "#")
    rights = "--cap-add NET_ADMIN --cap-add SYS_ADMIN --security-opt apparmor=unconfined"
    assert with_links == f"{plain.removesuffix(' course')} {rights} course"


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


def part(name: str) -> str:
    """A part of the Apptainer definition."""
    return re.search(rf"^%{name}\n(.*?)(?=^%|\Z)", APPTAINER, re.M | re.S)[1]


def test_the_apptainer_image_gets_the_course_as_git_has_it(tmp_path) -> None:
    assert re.findall(r"^%(\w+)$", APPTAINER, re.M) == [
        "arguments",
        "help",
        "setup",
        "post",
        "environment",
        "runscript",
    ]
    if not (ROOT / ".git").exists():
        pytest.skip("this course is no clone")
    environment = {**os.environ, "APPTAINER_ROOTFS": str(tmp_path)}
    subprocess.run(["sh", "-e", "-c", part("setup")], cwd=ROOT, env=environment, check=True)
    course = tmp_path / "opt" / "course"
    assert (course / "notebooks" / "00_first_steps.ipynb").is_file() and (course / "tools" / "set-up").is_file()
    assert not (course / ".venv").exists() and not (course / ".git").exists()
    assert part("environment").strip() == f'export PATH="/{course.relative_to(tmp_path)}/.venv/bin:$PATH"'


def test_apptainer_runs_make_in_a_clone_and_elsewhere_the_course_of_the_image(tmp_path) -> None:
    script = part("runscript").replace("exec make", "pwd; echo make").replace("/opt/course", str(tmp_path / "image"))
    (tmp_path / "image").mkdir()

    def done(folder: Path, *words: str) -> list[str]:
        command = ["sh", "-c", script, "apptainer", *words]
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout.splitlines()

    python = "PYTHON=/usr/local/bin/python3"
    assert done(ROOT) == [str(ROOT), f"make lab {python}"] and done(ROOT, "setup")[1] == f"make setup {python}"
    assert done(tmp_path) == [str(tmp_path / "image"), f"make lab {python}"]
