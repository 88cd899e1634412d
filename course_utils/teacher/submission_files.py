"""Which notebooks were handed in, and what the table of marks calls them."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from course_utils.errors import CourseError


def notebooks_in(places: Iterable[Path]) -> list[Path]:
    """The notebooks named, and those in the folders named and in folders within these, each once.

    Raises:
        CourseError: a place does not exist, or is a folder without notebooks.
    """
    found: list[Path] = []
    for place in places:
        if not place.exists():
            raise CourseError(f"{place}: there is no such file.")
        inside = sorted(place.rglob("*.ipynb")) if place.is_dir() else [place]
        inside = [one for one in inside if ".ipynb_checkpoints" not in one.parts]
        if not inside:
            raise CourseError(f"There is no notebook in the folder {place}.")
        found += [Path(os.path.abspath(one)) for one in inside]
    return list(dict.fromkeys(found))


def names_of(notebooks: Sequence[Path]) -> list[str]:
    """A name for each, its path from the folder on that all have in common: `ada.ipynb`, `ada/07_overlap.ipynb`.

    In it are printable letters only, and no two are the same.
    """
    common = os.path.commonpath([one.parent for one in notebooks]) if notebooks else ""
    names: list[str] = []
    for one in notebooks:
        name = "".join(letter if letter.isprintable() else "?" for letter in str(one.relative_to(common)))
        while name in names:
            name = f"{len(names)} {name}"
        names.append(name)
    return names
