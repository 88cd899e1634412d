"""The house has a plan: arrows run down, rooms make no knots, names mean one thing, and docs/house.md says so truly."""

import ast
import importlib
import re
from collections import defaultdict

import pytest

from course_utils.syllabus import LESSONS, ROOT
from workshop.house import (
    PLAN,
    Arrow,
    brought_by,
    floor_of,
    knots,
    lesson_of,
    modules,
    offered,
    ours,
    part_of,
    room_of,
)

MACHINERY = ("trace", "draw", "ranks", "checks", "reporting")
"""Rooms that would serve another course."""
ALWAYS_THERE = {"course_utils.trace"}
"""Rooms that every part of a lesson may use, beside the ground."""


def test_every_module_is_on_a_floor_and_every_room_of_the_plan_exists() -> None:
    assert all(floor_of(module) >= 0 for module in modules())
    rooms = [room for floor in PLAN["floor"] for room in floor["rooms"]]
    assert sorted(rooms) == sorted(set(rooms)) and set(rooms) <= modules().keys()
    named = [name for part in PLAN["part"] for name in part.get("modules", ())]
    assert set(named) <= {module.rpartition(".")[2] for module in modules() if lesson_of(module) is not None}


def test_arrows_run_down() -> None:
    assert not [str(arrow) for arrow in ours() if floor_of(arrow.end) > floor_of(arrow.start)]


def test_a_lesson_uses_lessons_before_it_and_its_own_parts_in_order() -> None:
    assert not [f"{arrow}: {why}" for arrow in ours() if (why := wrong_in_a_lesson(arrow))]


def wrong_in_a_lesson(arrow: Arrow) -> str:
    """What is wrong with an arrow that starts in a lesson's room; "" where nothing is."""
    here, there = lesson_of(arrow.start), lesson_of(arrow.end)
    part = PLAN["part"][part_of(arrow.start)]
    if here is None:
        return ""
    if there is None:
        lowest, room = floor_of(arrow.end) == 0, ".".join(arrow.end.split(".")[:2])
        return "" if lowest or room in {*ALWAYS_THERE, *part.get("uses", ())} else f"{part['name']} may not use {room}"
    if there > here:
        return "a later lesson"
    if part_of(arrow.end) > part_of(arrow.start):
        return f"{part['name']} may not use {PLAN['part'][part_of(arrow.end)]['name']}"
    return (
        "the checks of another lesson"
        if part["name"] == "checks" == PLAN["part"][part_of(arrow.end)]["name"] and here != there
        else ""
    )


@pytest.mark.parametrize("place", [room_of, str], ids=["rooms", "modules"])
def test_there_are_no_knots(place) -> None:
    pairs = {(place(arrow.start), place(arrow.end)) for arrow in ours()}
    assert knots(pair for pair in pairs if pair[0] != pair[1]) == []


def test_a_knot_is_found() -> None:
    assert knots([("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("e", "a")]) == [["a", "b", "c"]]


def test_an_import_inside_a_function_makes_a_start_faster_or_says_why_it_is_there() -> None:
    late = [arrow for arrow in ours() if arrow.late]
    unexplained = [arrow for arrow in late if not brought_by(arrow.end) - brought_by(arrow.start)]
    assert {f"{arrow.start} > {arrow.end}" for arrow in unexplained} == PLAN["late"].keys()


@pytest.mark.parametrize("name", sorted(offered("course_utils")))
def test_what_a_notebook_calls_first_loads_no_picture_and_no_torch(name) -> None:
    home = offered("course_utils")[name]
    assert not brought_by(f"course_utils.{name}" if home == "course_utils" else home) & {
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
    """The last part of a module's name → the modules of that name; exercises' checks have the exercises' names."""
    found = defaultdict(set)
    for module in modules():
        name = module.rpartition(".")[2]
        if (
            ".checks." not in module.partition("lessons")[2]
            and module.startswith("course_utils.")
            and name not in COMMON
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
