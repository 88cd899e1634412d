"""The plan of the house: its rooms, the imports between them, and the floors that pyproject.toml gives them.

A room is a folder of modules; of what lies directly in `course_utils`, each module is a room of its own. import-linter
holds the imports to the floors; this module reads them, and the graph of all imports, for the picture of the house
and for tests. Imports under `if TYPE_CHECKING:` load nothing, and are left out.
"""

import ast
import copy
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import grimp

from course_utils.lazy import homes
from course_utils.syllabus import LESSONS, ROOT

PACKAGES = ("course_utils", "workshop")
PARTS = tomllib.loads((ROOT / "docs" / "parts.toml").read_text(encoding="utf-8"))
_LINTER = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]


def contract(name: str) -> dict:
    """The contract of import-linter that has this id."""
    return next(contract for contract in _LINTER["contracts"] if contract["id"] == name)


@cache
def floors() -> tuple[tuple[str, ...], ...]:
    """The rooms of each floor, from the ground up: those of the contract, the face of the course, and the workshop."""
    layers = [layer.split(":") for layer in reversed(contract("floors")["layers"])]
    *below, doors = [tuple(f"course_utils.{name.strip()}" for name in layer) for layer in layers]
    return (*below, ("course_utils", *doors), ("workshop",))


@cache
def modules() -> dict[str, Path]:
    """Every module of ours by its name; a package by its own."""
    files = [file for package in PACKAGES for file in sorted((ROOT / package).rglob("*.py"))]
    return {".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): file for file in files}


@cache
def graph() -> grimp.ImportGraph:
    """The imports of all modules, inside functions too; packages of other people are single modules in it."""
    options = {"include_external_packages": True, "exclude_type_checking_imports": True}
    return grimp.build_graph(*PACKAGES, cache_dir=None, **options)


def imports() -> Iterator[tuple[str, str]]:
    """Each import between modules of ours: (the module that imports, the module that is imported)."""
    for start in modules():
        for end in graph().find_modules_directly_imported_by(start) & modules().keys():
            yield start, end


@cache
def at_once() -> grimp.ImportGraph:
    """What loading a module loads: what it imports outside its functions, and the packages that it lies in."""
    found = copy.deepcopy(graph())
    for start, end in late_imports():
        found.remove_import(importer=start, imported=end)
    for name in modules():
        if "." in name:
            found.add_import(importer=name, imported=name.rpartition(".")[0])
    return found


@cache
def late_imports() -> tuple[tuple[str, str], ...]:
    """The imports that stand inside functions, and nowhere else in their module."""
    found = []
    for start, file in modules().items():
        inside = set(_lines_inside_functions(ast.parse(file.read_text(encoding="utf-8"))))
        for end in graph().find_modules_directly_imported_by(start):
            lines = {each["line_number"] for each in graph().get_import_details(importer=start, imported=end)}
            if lines <= inside:
                found.append((start, end))
    return tuple(found)


def _lines_inside_functions(tree: ast.Module) -> Iterator[int]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)


@cache
def brought_by(module: str) -> frozenset[str]:
    """The slow packages that importing a module loads at once."""
    return frozenset(at_once().find_upstream_modules(module) & PARTS["slow"].keys())


@cache
def offered(package: str) -> dict[str, str]:
    """Each name that a package loads when it is first used, and the module that then is loaded; none elsewhere."""
    file = modules().get(package)
    if file is None or "attach(__name__, __file__)" not in file.read_text(encoding="utf-8"):
        return {}
    return {name: _module_of(*home) for name, home in homes(package, file).items()}


def _module_of(module: str, name: str) -> str:
    """The module that `from module import name` loads: the name may be that of a module in a package."""
    return f"{module}.{name}" if f"{module}.{name}" in modules() else module


def floor_of(module: str) -> int:
    """The number of a module's floor, from 0.

    Raises:
        KeyError: it has none.
    """
    for number, rooms in enumerate(floors()):
        for room in rooms:
            if module == room or room != "course_utils" and module.startswith(f"{room}."):
                return number
    raise KeyError(f"{module} is on no floor: pyproject.toml names them all")


def lesson_of(module: str) -> int | None:
    """The number of the lesson to whose room a module belongs."""
    numbers = {lesson.package: lesson.number for lesson in LESSONS}
    return next((number for package, number in numbers.items() if f"{module}.".startswith(f"{package}.")), None)


def part_of(module: str) -> int:
    """The number of a module's part of its lesson's room, from 0 for the taught library."""
    names = module.split(".")[3:]
    for number, part in enumerate(PARTS["part"]):
        if set(part.get("modules", ())) & {"checks" if "checks" in names else "", *names[-1:]}:
            return number
    return 0


def first_line(package: str) -> str:
    """The first line of a package's or a module's docstring."""
    return (ast.get_docstring(ast.parse(modules()[package].read_text(encoding="utf-8"))) or "").partition("\n")[0]
