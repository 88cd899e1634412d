"""Every variable COURSE_… is declared in one module, read through it, and explained on docs/settings.md."""

import ast
import importlib
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from course_utils import diagnosis, settings
from course_utils.errors import CourseError
from course_utils.syllabus import ROOT

NAMES = {setting.name for setting in settings.SETTINGS}
VARIABLE = re.compile(r"COURSE_[A-Z_]*[A-Z]")
NO_SETTINGS = {"COURSE_SECRET", "COURSE_MODULE", "COURSE_HOEM", "COURSE_WEATHER"}
"""Names that tests make up."""


def tracked(*patterns: str) -> list[Path]:
    """The repository's files of these patterns."""
    listed = subprocess.run(["git", "ls-files", "-z", *patterns], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


# --- the declarations -----------------------------------------------------------------------------------------------


def test_a_setting_is_called_in_code_as_in_the_environment() -> None:
    declared = {name: value for name, value in vars(settings).items() if isinstance(value, settings.Setting)}
    assert {name: value.name.removeprefix(settings.PREFIX) for name, value in declared.items()} == {
        name: name for name in declared
    }
    assert list(declared.values()) == list(settings.SETTINGS) and len(NAMES) == len(declared)


@pytest.mark.parametrize("setting", settings.SETTINGS, ids=lambda setting: setting.name)
def test_a_setting_that_is_not_set_has_its_default_and_all_are_explained(setting) -> None:
    assert setting.value({}) == setting.value({setting.name: ""})
    assert setting.meaning.endswith(".") and setting.set_by and not setting.otherwise.endswith(".")


VALUES = [
    (settings.HOME, "~/notes", Path.home() / "notes"),
    (settings.OFFLINE, "0", False),
    (settings.FORK, "0", False),
    (settings.NODES, "1", True),
    (settings.SEED, "0", 0),
    (settings.PORTS, "50000-50002", range(50000, 50003)),
    (settings.INTERFACE, "br-lan.100", "br-lan.100"),
]


@pytest.mark.parametrize(("setting", "text", "value"), VALUES, ids=lambda part: getattr(part, "name", None))
def test_a_value_has_its_type(setting, text, value) -> None:
    found = setting.value({setting.name: text})
    assert found == value and type(found) is type(value)


WRONG = [
    (settings.OFFLINE, "yes", "0 or 1"),
    (settings.SEED, "-1", "a whole number of at least 0"),
    (settings.SEED, "1\n", "a whole number of at least 0"),
    (settings.PORTS, "50000", "a range of ports, such as 50000-50099"),
    (settings.PORTS, "50-40", "a range of ports, such as 50000-50099"),
    (settings.PORTS, "0-70000", "a range of ports, such as 50000-50099"),
    (settings.HOME, "~no_such_user/notes", "a folder"),
    (settings.ADDRESS, "two words", "a word without spaces"),
]


@pytest.mark.parametrize(("setting", "text", "allowed"), WRONG, ids=lambda part: getattr(part, "name", None))
def test_a_value_that_is_not_allowed_is_named_with_what_is(setting, text, allowed, monkeypatch) -> None:
    monkeypatch.setenv(setting.name, text)
    with pytest.raises(CourseError) as error:
        setting.value()
    assert str(error.value) == f"{setting.name}={text} is not {allowed}. docs/settings.md explains this variable."


@pytest.mark.parametrize("before", [None, "before"])
def test_a_value_for_a_while_leaves_what_was_there(before, monkeypatch) -> None:
    monkeypatch.setenv("COURSE_INTERFACE", before or "")
    if before is None:
        monkeypatch.delenv("COURSE_INTERFACE")
    with pytest.raises(KeyError), settings.INTERFACE.temporarily("ib0"):
        assert settings.INTERFACE.value() == "ib0"
        raise KeyError
    assert os.environ.get("COURSE_INTERFACE") == before


# --- who reads them -------------------------------------------------------------------------------------------------


def read_in(tree: ast.AST) -> Iterator[str]:
    """The variables COURSE_… that this code reads from `os.environ` by itself."""
    for node in ast.walk(tree):
        match node:
            case ast.Subscript(value=source, slice=ast.Constant(value=str(name)), ctx=ast.Load()):
                pass
            case ast.Call(func=ast.Attribute(value=source), args=[ast.Constant(value=str(name)), *_]):
                pass
            case ast.Compare(left=ast.Constant(value=str(name)), ops=[ast.In() | ast.NotIn()], comparators=[source]):
                pass
            case _:
                continue
        if VARIABLE.fullmatch(name) and ast.unparse(source) in ("os", "os.environ", "environ"):
            yield name


def texts_in(tree: ast.AST) -> Iterator[str]:
    """The texts in this code that are nothing but the name of a variable COURSE_…"""
    constants = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return (text for text in constants if isinstance(text, str) and VARIABLE.fullmatch(text))


@pytest.mark.parametrize(
    "code",
    [
        'os.environ["COURSE_X"]',
        'os.environ.get("COURSE_X", "")',
        'os.getenv("COURSE_X")',
        'environ.pop("COURSE_X")',
        'if "COURSE_X" in os.environ: pass',
    ],
)
def test_a_variable_that_is_read_is_seen(code) -> None:
    assert list(read_in(ast.parse(code))) == list(texts_in(ast.parse(code))) == ["COURSE_X"]


def test_a_variable_that_is_handed_on_is_not_taken_for_one_that_is_read() -> None:
    assert list(read_in(ast.parse('os.environ["COURSE_X"] = environment({"COURSE_X": "1"})'))) == []


HOUSE = ("course_utils", "workshop", "docs", "ondemand")
"""Here a variable's name is in no other module at all, except in sentences; tests and tools may set it by its name."""


def test_no_other_module_reads_a_variable_by_itself() -> None:
    own = ROOT / "course_utils" / "settings.py"
    texts = {file: file.read_text(encoding="utf-8") for file in tracked("*.py") if file not in (own, Path(__file__))}
    found = {}
    for file, text in texts.items():
        seen = texts_in if file.relative_to(ROOT).parts[0] in HOUSE else read_in
        if settings.PREFIX in text and (names := list(seen(ast.parse(text)))):
            found[str(file.relative_to(ROOT))] = names
    assert len(texts) > 500 and found == {}


def test_whatever_names_a_variable_names_one_that_there_is() -> None:
    kinds = ["*.py", "*.md", "*.erb", "*.rb", "*.yml", "*.def", "*.txt", "Dockerfile", "Makefile", "tools/*"]
    found = {name for file in tracked(*kinds) for name in VARIABLE.findall(file.read_text(encoding="utf-8"))}
    assert found - NO_SETTINGS - {"COURSE_X"} == NAMES


# --- the doctor, and the page ---------------------------------------------------------------------------------------


def told(monkeypatch, **variables: str) -> list[str]:
    """The doctor's lines on settings where only these are set."""
    for name in [name for name in os.environ if name.startswith(settings.PREFIX)]:
        monkeypatch.delenv(name)
    for name, text in variables.items():
        monkeypatch.setenv(name, text)
    return [str(finding) for finding in diagnosis.examine(quick=True) if finding.what == "settings"]


def test_the_doctor_lists_what_is_set(monkeypatch) -> None:
    assert told(monkeypatch) == ["✓ settings    none is set, and none is needed"]
    long = {"COURSE_PASSWORD": "secret", "COURSE_ROOM": "-" * 8192, "COURSE_FORK": "0", "COURSE_SEED": ""}
    [line] = told(monkeypatch, **long)
    assert line.startswith("✓ settings    COURSE_FORK=0, COURSE_PASSWORD=(not shown), COURSE_ROOM=---")
    assert len(line) < 200


def test_the_doctor_names_what_is_no_setting_and_what_is_not_allowed(monkeypatch) -> None:
    lines = told(monkeypatch, COURSE_HOEM="/notes", COURSE_WEATHER="good", COURSE_FORK="no")
    assert lines == [
        "✓ settings    COURSE_FORK=no",
        "○ settings    COURSE_FORK=no is not 0 or 1. docs/settings.md explains this variable",
        "○ settings    COURSE_HOEM is set, but the course has no such setting. Did you mean COURSE_HOME?",
        "○ settings    COURSE_WEATHER is set, but the course has no such setting. docs/settings.md lists them",
    ]


def test_the_page_is_that_of_these_settings() -> None:
    page = importlib.import_module("docs.settings")
    text = page.PAGE.read_text(encoding="utf-8")
    assert page.with_tables(text) == text, "run: .venv/bin/python -m docs.settings"
    assert all(f"| `{name}` |" in text for name in NAMES)


DOCUMENTS = [
    "README.md",
    "CONTRIBUTING.md",
    "docs/clusters.md",
    "docs/install.md",
    "ondemand/README.md",
    "tests/README.md",
]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_who_looks_for_a_setting_is_led_to_the_page(document) -> None:
    assert re.search(r"\(((\.\./)?docs/)?settings\.md\)", (ROOT / document).read_text(encoding="utf-8"))
