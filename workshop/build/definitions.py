"""Functions that a lesson's page defines, for its deck and its tests: nothing has to be written twice."""

import ast
from collections.abc import Callable, Iterable
from pathlib import Path

from workshop.build.sources import ROOT, AuthoringError, read_cells

FOREIGN = "__page__"
"""The module that such functions say they come from: none that can be imported, so ranks get them whole."""


def definitions(stem: str, names: Iterable[str], root: Path = ROOT) -> dict[str, Callable]:
    """The page's functions of these names; of its other code only the imports and capital constants are run.

    Raises:
        AuthoringError: the page has no such function.
    """
    space: dict = {"__name__": FOREIGN}
    wanted = set(names)
    for cell in read_cells(root / "notebooks" / "src" / f"{stem}.py"):
        if cell.cell_type == "code":
            kept = [node for node in ast.parse(cell.source).body if _is_kept(node, wanted)]
            exec(compile(ast.Module(kept, []), f"<{stem}>", "exec"), space)
    if missing := wanted - space.keys():
        raise AuthoringError(f"{stem} defines no {', '.join(sorted(missing))}")
    return {name: space[name] for name in names}


def _is_kept(node: ast.stmt, wanted: set[str]) -> bool:
    if isinstance(node, ast.Assign):
        return all(isinstance(one, ast.Name) and one.id.isupper() for one in node.targets)
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return node.name in wanted
    return isinstance(node, ast.Import | ast.ImportFrom)
