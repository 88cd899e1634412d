"""Names that a package offers and loads when they are first used, so that importing the package takes milliseconds.

The names stand once, as imports under `if TYPE_CHECKING:` in the package's `__init__`. Editors read them there to lead
to a definition, and so does this module. (The package `lazy-loader` would do the same from a second file; the checks in
`tests/gpu` run on machines that have torch and nothing else.)
"""

import ast
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any


def attach(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """The `__getattr__`, `__dir__` and `__all__` of a package.

    Args:
        package, file: its `__name__` and `__file__`.
    """
    home = homes(file)

    def get(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"{package} has no {name!r}")
        if home[name] == package:
            return importlib.import_module(f"{package}.{name}")
        return getattr(importlib.import_module(home[name]), name)

    return get, lambda: sorted(home), [*home]


def homes(file: str | Path) -> dict[str, str]:
    """Name → the module that holds it, or for a module the package that it belongs to."""
    body = ast.parse(Path(file).read_text(encoding="utf-8")).body
    [offered] = [node for node in body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    return {alias.name: line.module for line in offered.body for alias in line.names}
