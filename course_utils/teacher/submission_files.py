"""What the table of marks calls notebooks that are named one by one."""

import os
from collections.abc import Sequence
from pathlib import Path

from course_utils.teacher.handed_in.hand_ins import printable_name


def names_of(notebooks: Sequence[Path]) -> list[str]:
    """A name for each, its path from the folder on that all have in common: `ada.ipynb`, `ada/07_overlap.ipynb`.

    In it are printable letters only, and no two are the same.
    """
    common = os.path.commonpath([notebook.parent for notebook in notebooks]) if notebooks else ""
    names: list[str] = []
    for notebook in notebooks:
        name = printable_name(str(notebook.relative_to(common)))
        while name in names:
            name = f"{len(names)} {name}"
        names.append(name)
    return names
