"""The plan of the house: its rooms, the arrows between them, and the floors that `docs/floors.toml` gives them.

A room is a folder of modules; of what lies directly in `course_utils`, each module is a room of its own. An arrow is an
import, wherever it stands. Those under `if TYPE_CHECKING:` are apart: they load nothing.
"""

import ast
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from course_utils.lazy import homes
from course_utils.syllabus import LESSONS, ROOT

PACKAGES = ("course_utils", "workshop")
PLAN = tomllib.loads((ROOT / "docs" / "floors.toml").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Arrow:
    """One import.

    Attributes:
        start, end: modules, such as "course_utils.draw.style"; `end` may be a package of somebody else's.
        line: where it stands.
        late: whether it is inside a function.
    """

    start: str
    end: str
    line: int
    late: bool = False

    def __str__(self) -> str:
        return f"{self.start}:{self.line} imports {self.end}"


@cache
def modules() -> dict[str, Path]:
    """Every module of ours by its name; a package by its own."""
    files = [file for package in PACKAGES for file in sorted((ROOT / package).rglob("*.py"))]
    return {".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): file for file in files}


@cache
def arrows() -> tuple[Arrow, ...]:
    """Every import of every module, types apart; of names from a package, the module that each is, or comes from."""
    return tuple(arrow for module in modules() for arrow in _of_module(module))


def ours() -> list[Arrow]:
    """The arrows between modules of ours."""
    return [arrow for arrow in arrows() if arrow.end in modules() and arrow.end != arrow.start]


def _of_module(module: str) -> Iterator[Arrow]:
    tree = ast.parse(modules()[module].read_text(encoding="utf-8"))
    for node, late in _imports(tree, late=False):
        for name in _imported(node):
            yield Arrow(module, name, node.lineno, late)


def _imports(node: ast.AST, late: bool) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, late
        inside = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        yield from _imports(child, late or inside)


def _imported(node: ast.Import | ast.ImportFrom) -> set[str]:
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names}
    home = offered(node.module)
    return {home.get(alias.name) or _module_of(node.module, alias.name) for alias in node.names}


def _module_of(module: str, name: str) -> str:
    """The module that `from module import name` loads: the name may be that of a module in a package."""
    return f"{module}.{name}" if f"{module}.{name}" in modules() else module


@cache
def offered(package: str) -> dict[str, str]:
    """Each name that a package loads when it is first used, and the module that then is loaded; none elsewhere."""
    file = modules().get(package)
    if file is None or "attach(__name__, __file__)" not in file.read_text(encoding="utf-8"):
        return {}
    return {name: _module_of(*home) for name, home in homes(package, file).items()}


def room_of(module: str) -> str:
    """The folder that a module is in, as a package's name; a module directly in `course_utils` is its own room."""
    folder = ".".join(modules()[module].parent.relative_to(ROOT).parts)
    return module if folder == "course_utils" else folder


def floor_of(module: str) -> int:
    """The number of a module's floor, from 0.

    Raises:
        KeyError: it has none.
    """
    for number, floor in enumerate(PLAN["floor"]):
        for room in floor["rooms"]:
            if module == room or room != "course_utils" and module.startswith(f"{room}."):
                return number
    raise KeyError(f"{module} is on no floor: docs/floors.toml names them all")


def lesson_of(module: str) -> int | None:
    """The number of the lesson to whose room a module belongs."""
    numbers = {lesson.package: lesson.number for lesson in LESSONS}
    return next((number for package, number in numbers.items() if f"{module}.".startswith(f"{package}.")), None)


def part_of(module: str) -> int:
    """The number of a module's part of its lesson's room, from 0 for the taught library."""
    names = module.split(".")[3:]
    for number, part in enumerate(PLAN["part"]):
        if set(part.get("modules", ())) & {"checks" if "checks" in names else "", *names[-1:]}:
            return number
    return 0


def knots(arrows: Iterable[tuple[str, str]]) -> list[list[str]]:
    """Groups of places that all reach each other: the strongly connected components with more than one place.

    Source: Tarjan 1972, "Depth-first search and linear graph algorithms".
    """
    after: dict[str, set[str]] = {}
    for start, end in arrows:
        after.setdefault(start, set()).add(end)
        after.setdefault(end, set())
    seen: dict[str, int] = {}
    lowest: dict[str, int] = {}
    path: list[str] = []
    found: list[list[str]] = []

    def visit(place: str) -> None:
        seen[place] = lowest[place] = len(seen)
        path.append(place)
        for other in after[place]:
            if other not in seen:
                visit(other)
            if other in path:
                lowest[place] = min(lowest[place], lowest[other])
        if lowest[place] == seen[place]:
            group = [path.pop()]
            while group[-1] != place:
                group.append(path.pop())
            if len(group) > 1:
                found.append(sorted(group))

    for place in after:
        if place not in seen:
            visit(place)
    return found


@cache
def brought_by(module: str) -> frozenset[str]:
    """The slow packages that importing a module loads at once."""
    after: dict[str, list[str]] = {}
    for arrow in arrows():
        if not arrow.late:
            after.setdefault(arrow.start, []).append(arrow.end)
    seen: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting += after.get(name, ())
            waiting += [name.rpartition(".")[0]] if name in modules() and "." in name else []
    return frozenset(name.partition(".")[0] for name in seen) & PLAN["slow"].keys()


def first_line(package: str) -> str:
    """The first line of a package's or a module's docstring."""
    return (ast.get_docstring(ast.parse(modules()[package].read_text(encoding="utf-8"))) or "").partition("\n")[0]
