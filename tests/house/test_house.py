"""The house has a plan: imports go down and never in circles, names mean one thing, and docs/house.md says so truly."""

import ast
import importlib
import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from course_utils.syllabus import LESSONS, ROOT
from workshop.house import (
    PARTS,
    brought_by,
    contract,
    floor_of,
    floors,
    imports,
    late_imports,
    lesson_of,
    modules,
    offered,
    part_of,
)

MACHINERY = ("trace", "draw", "ranks", "checks", "reporting")
"""Rooms that would serve another course."""
ALWAYS_THERE = {"course_utils.trace"}
"""Rooms that every part of a lesson may use, besides the ground."""


def linted(folder: Path) -> subprocess.CompletedProcess:
    """What import-linter says of the modules in a folder, by the contracts of pyproject.toml."""
    command = [Path(sys.executable).with_name("lint-imports"), "--no-cache", "--no-logo", ROOT / "pyproject.toml"]
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def copied(tmp_path_factory) -> Path:
    """A copy of the house, to be spoilt."""
    folder = tmp_path_factory.mktemp("house")
    for package in ("course_utils", "workshop"):
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__", "*.md", "*.log"))
    return folder


SPOILT = {
    "floors": ("course_utils/words.py", "def f():\n    from course_utils.trace import recorder\n"),
    "circles": ("course_utils/trace/activity.py", "from course_utils.trace import recorder\n"),
    "workshop": ("course_utils/cli.py", "def f():\n    import workshop.house\n"),
    "face": ("course_utils/checks/judge.py", "import course_utils as course\n"),
    "lesson-faces": ("workshop/bench/server.py", "from course_utils.lessons.sgd import sgd_step\n"),
    "lessons": ("course_utils/lessons/messages/ping_pong.py", "from course_utils.lessons.allreduce import ring\n"),
    "lesson-checks": (
        "course_utils/lessons/allreduce/checks/pace.py",
        "from course_utils.lessons.messages.checks import common\n",
    ),
}


def test_the_contracts_hold(copied) -> None:
    done = linted(copied)
    assert done.returncode == 0 and f"{len(SPOILT)} kept, 0 broken" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("broken", SPOILT)
def test_a_contract_that_is_broken_is_named(broken, copied) -> None:
    file, line = SPOILT[broken]
    before = (copied / file).read_text(encoding="utf-8")
    (copied / file).write_text(f"{before}\n{line}", encoding="utf-8")
    try:
        done = linted(copied)
    finally:
        (copied / file).write_text(before, encoding="utf-8")
    name = contract(broken)["name"].partition(",")[0]
    assert done.returncode == 1 and f"{name}" in re.sub(r"\s+", " ", done.stdout.partition("Broken contracts")[2])


def test_the_order_of_lessons_is_that_of_the_syllabus() -> None:
    assert contract("lessons")["layers"] == [lesson.package.rpartition(".")[2] for lesson in reversed(LESSONS)]


def test_every_module_is_on_a_floor_and_every_name_of_the_plan_is_used() -> None:
    assert all(floor_of(module) >= 0 for module in modules())
    assert {room for rooms in floors() for room in rooms} <= modules().keys()
    named = [name for part in PARTS["part"] for name in part.get("modules", ())]
    assert set(named) <= {module.rpartition(".")[2] for module in modules() if lesson_of(module) is not None}


def test_a_lessons_parts_use_those_before_them_and_the_rooms_that_they_may() -> None:
    assert not [f"{start} imports {end}: {why}" for start, end in imports() if (why := wrong_in_a_lesson(start, end))]


def wrong_in_a_lesson(start: str, end: str) -> str:
    """What is wrong with an import in a lesson's room; "" where nothing is."""
    if lesson_of(start) is None:
        return ""
    part, used = PARTS["part"][part_of(start)], PARTS["part"][part_of(end)]
    if lesson_of(end) is not None:
        return f"{part['name']} may not use {used['name']}" if part_of(end) > part_of(start) else ""
    room = ".".join(end.split(".")[:2])
    allowed = floor_of(end) == 0 or room in {*ALWAYS_THERE, *part.get("uses", ())}
    return "" if allowed else f"{part['name']} may not use {room}"


def test_an_import_inside_a_function_makes_a_start_faster_or_says_why_it_is_there() -> None:
    late = [(start, end) for start, end in late_imports() if end in modules()]
    unexplained = {f"{start} > {end}" for start, end in late if not brought_by(end) - brought_by(start)}
    assert unexplained == PARTS["late"].keys()


@pytest.mark.parametrize("name", sorted(offered("course_utils")))
def test_what_a_notebook_calls_first_loads_no_picture_and_no_torch(name) -> None:
    assert not brought_by(offered("course_utils")[name]) & {
        *("matplotlib", "torch", "torchvision"),
        *("mpi4py", "nbformat", "nbclient"),
    }


def test_machinery_knows_no_lesson() -> None:
    words = re.compile(
        r"\blessons? \d|course_utils\.lessons\.|" + "|".join(rf"\b{one.stem}\b" for one in LESSONS), re.I
    )
    found = [
        f"{module}: {line.strip()}"
        for module, file in modules().items()
        if module.startswith(tuple(f"course_utils.{room}" for room in MACHINERY))
        for line in file.read_text(encoding="utf-8").splitlines()
        if words.search(line)
    ]
    assert found == ['course_utils.checks.exercise: lesson: the lesson\'s stem, "04_messages".']


def test_every_lesson_has_a_room_and_every_room_a_lesson() -> None:
    rooms = {file.parent for file in (ROOT / "course_utils" / "lessons").glob("*/__init__.py")}
    assert rooms == {lesson.room for lesson in LESSONS}
    for lesson in LESSONS:
        assert (ast.get_docstring(ast.parse((lesson.room / "__init__.py").read_text())) or "").startswith(
            f"Lesson {lesson.number}, {lesson.title}"
        )


# --- names ----------------------------------------------------------------------------------------------------------


def defined(kind: type) -> dict[str, list[str]]:
    """Name → the modules in which a class or function of this name is defined, at any depth."""
    found = defaultdict(list)
    for module, file in modules().items():
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, kind):
                found[node.name].append(module)
    return found


def test_no_class_name_stands_for_two_things() -> None:
    assert {name: where for name, where in defined(ast.ClassDef).items() if len(where) > 1} == {}


def test_a_function_is_named_for_what_it_returns() -> None:
    assert [name for name in defined(ast.FunctionDef) if name.endswith(("_said", "_told")) or name == "said"] == []


COMMON = {"__main__", "checks", "common", "experiments", "pictures", "report", "sentences"}
"""Names that a module has for its part in a room, and may have in several."""
ENDINGS = re.compile(r"(ings?|ers?|ed|es|s|ions?|ments?)$")


def own_names() -> dict[str, set[str]]:
    """The last part of a module's name → the modules of that name.

    Exercises' checks have the exercises' names, and lessons' rooms those of their pages.
    """
    rooms = {lesson.package for lesson in LESSONS}
    found = defaultdict(set)
    for module in modules():
        name = module.rpartition(".")[2]
        if (
            ".checks." not in module.partition("lessons")[2]
            and module.startswith("course_utils.")
            and name not in COMMON
            and module not in rooms
        ):
            found[name].add(module)
    return found


def test_no_two_modules_have_one_name_but_a_rooms_chief_module() -> None:
    twice = {name: where for name, where in own_names().items() if len(where) > 1}
    assert [where for name, where in twice.items() if not is_chief(name, where)] == []


def is_chief(name: str, where: set[str]) -> bool:
    """Whether two modules of one name are a folder and the module in it that is named after it."""
    return len(where) == 2 and max(where, key=len) == f"{min(where, key=len)}.{name}"


def test_no_two_modules_differ_by_an_ending() -> None:
    stems = defaultdict(set)
    for name in own_names():
        if not name.startswith("_"):
            stems[ENDINGS.sub("", name).rstrip("e")].add(name)
    assert [names for names in stems.values() if len(names) > 1] == []


@pytest.mark.parametrize("package", ["course_utils", "course_utils.draw"])
def test_what_a_package_offers_is_there_and_no_module_hides_it(package) -> None:
    face = importlib.import_module(package)
    assert all(getattr(face, name) is not None for name in face.__all__)
    modules_in_it = {f"{package}.{name}" for name in face.__all__} & modules().keys()
    assert modules_in_it <= {"course_utils.data", "course_utils.draw"}


IMPORT_LINE = re.compile(r"from ((?:course_utils|workshop)[\w.]*) import (\w+(?:, \w+)*)")
TEXTS = ("course_utils/**/*.py", "workshop/**/*.py", "*/src/*.py", "*/src/*.md", "docs/*.md", "ondemand/**/*.*", "*.md")


def test_an_import_that_a_text_tells_to_write_can_be_written() -> None:
    lines = {
        (module, name): file
        for pattern in TEXTS
        for file in ROOT.glob(pattern)
        for module, names in IMPORT_LINE.findall(file.read_text(encoding="utf-8", errors="replace"))
        for name in names.split(", ")
    }
    assert len(lines) > 1000
    assert {f"{file.name}: {line}" for line, file in lines.items() if not can_be_imported(*line)} == set()


def can_be_imported(module: str, name: str) -> bool:
    """Whether `from module import name` works."""
    return f"{module}.{name}" in modules() or module in modules() and hasattr(importlib.import_module(module), name)


# --- docs/house.md --------------------------------------------------------------------------------------------------

PAGE = ROOT / "docs" / "house.md"


def test_the_page_and_the_picture_are_those_of_this_house() -> None:
    house = importlib.import_module("docs.house")
    again = "run: .venv/bin/python -m docs.house"
    assert house.with_table(PAGE.read_text(encoding="utf-8")) == PAGE.read_text(encoding="utf-8"), again
    assert house.alt_text().encode("latin-1") in (ROOT / "docs" / "house.png").read_bytes(), again


def test_what_the_page_names_is_there() -> None:
    text = PAGE.read_text(encoding="utf-8")
    linked = re.findall(r"\]\(\.\./([\w/.]+)\)", text)
    assert len(linked) == 5 and all((ROOT / path).is_file() for path in linked)
    named = re.findall(r"`((?:course_utils|workshop|tests|docs|notebooks|exercises|slides)/[\w/.*]+)`", text)
    assert [path for path in named if not re.search(r"[A-Z]{4}", path) and not list(ROOT.glob(path))] == []


def test_readme_and_contributing_lead_to_the_page() -> None:
    for document in ("README.md", "CONTRIBUTING.md"):
        assert "(docs/house.md)" in (ROOT / document).read_text(encoding="utf-8"), document
