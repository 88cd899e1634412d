"""What a contained rank imports in place of the lessons' modules: the copies without answers that `hiding` wrote."""

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from pathlib import Path


class CopiesFirst(importlib.abc.MetaPathFinder):
    """Finds the lessons' modules among the copies, before Python looks where they really are."""

    def __init__(self, folder: Path) -> None:
        self.copies = {file.stem: file for file in folder.glob("*.py")}

    def find_spec(self, name: str, path=None, target=None) -> importlib.machinery.ModuleSpec | None:
        """The copy's spec for a lesson's module, nothing for any other."""
        if name not in self.copies:
            return None
        return importlib.util.spec_from_file_location(name, self.copies[name])


def hide_in_this_process(folder: Path) -> None:
    """Runs in the rank, before anything of a submission does."""
    finder = CopiesFirst(folder)
    for module in finder.copies:
        package, _, name = module.rpartition(".")
        sys.modules.pop(module, None)
        if package in sys.modules:
            vars(sys.modules[package]).pop(name, None)
    sys.meta_path.insert(0, finder)
