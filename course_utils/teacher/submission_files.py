"""Which notebooks were handed in, and what the table of marks calls them."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from course_utils.errors import CourseError


def notebooks_in(paths: Iterable[Path]) -> list[Path]:
    """The notebooks named, and those in the folders named and in folders within these, each once.

    Raises:
        CourseError: a path does not exist, or is a folder without notebooks.
    """
    found: list[Path] = []
    for path in paths:
        if not path.exists():
            raise CourseError(f"{path}: there is no such file.")
        inside = sorted(path.rglob("*.ipynb")) if path.is_dir() else [path]
        inside = [file for file in inside if ".ipynb_checkpoints" not in file.parts]
        if not inside:
            raise CourseError(f"There is no notebook in the folder {path}.")
        found += [Path(os.path.abspath(file)) for file in inside]
    return list(dict.fromkeys(found))


def names_of(notebooks: Sequence[Path]) -> list[str]:
    """A name for each, its path from the folder on that all have in common: `ada.ipynb`, `ada/07_overlap.ipynb`.

    In it are printable letters only, and no two are the same.
    """
    common = os.path.commonpath([notebook.parent for notebook in notebooks]) if notebooks else ""
    names: list[str] = []
    for notebook in notebooks:
        name = "".join(letter if letter.isprintable() else "?" for letter in str(notebook.relative_to(common)))
        while name in names:
            name = f"{len(names)} {name}"
        names.append(name)
    return names
