"""Names that a package offers and loads when they are first used, so that importing the package takes milliseconds.

The names stand once, as imports under `if TYPE_CHECKING:` in the package's `__init__`. Editors read them there to lead
to a definition, and so does this module. (The package `lazy-loader` would do the same from a second file; the checks in
`tests/gpu` run on machines that have torch and nothing else.)
"""

import ast
import importlib
import sys
from collections.abc import Callable
from importlib.util import resolve_name
from pathlib import Path
from types import ModuleType
from typing import Any


def attach(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return the `__getattr__`, `__dir__` and `__all__` of a package.

    Args:
        package, file: its `__name__` and `__file__`.
    """
    home = homes(package, file)

    def get(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"{package} has no {name!r}")
        module, attribute = home[name]
        if module == package:
            return importlib.import_module(f"{package}.{attribute}")
        return getattr(__import__(module, fromlist=[attribute]), attribute)  # as `from module import attribute` does

    sys.modules[package].__class__ = Face
    return get, lambda: sorted(home), [*home]


class Face(ModuleType):
    """A package whose offered names mean what it offers, even where a module in it has the same name.

    Whoever imports the module `pipeline.run_schedule` makes Python bind it in `pipeline`, under its own name. From then
    on `from pipeline import run_schedule` would give the module where the package offers the function in it.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        own = isinstance(value, ModuleType) and value.__name__ == f"{self.__name__}.{name}"
        if not (own and name in self.__dict__.get("__all__", ())):
            super().__setattr__(name, value)

    def __reduce__(self) -> tuple[Callable, tuple[str]]:
        """Pickle by name, as cloudpickle does with plain modules: functions that use a package are sent to ranks."""
        return importlib.import_module, (self.__name__,)


def homes(package: str, file: str | Path) -> dict[str, tuple[str, str]]:
    """Name → the module or package that it is imported from, and its name there."""
    body = ast.parse(Path(file).read_text(encoding="utf-8")).body
    [offered] = [node for node in body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    return {
        alias.asname or alias.name: (resolve_name(f"{'.' * line.level}{line.module or ''}", package), alias.name)
        for line in offered.body
        if isinstance(line, ast.ImportFrom)
        for alias in line.names
    }
