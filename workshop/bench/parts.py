"""The parts that a bench has, by name, and those of them that were asked for."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

from course_utils.errors import CourseError, nearest

Part = TypeVar("Part")


def chosen_parts(bench: str, parts: Mapping[str, Part], only: Sequence[str]) -> dict[str, Part]:
    """The parts of these names, in their own order; without any name, all.

    Raises:
        CourseError: there is no part of such a name; it would be left out in silence.
    """
    for name in only:
        if name not in parts:
            near = nearest(name, list(parts))
            raise CourseError(f"The bench {bench} has no part {name!r}.{near} It has {', '.join(parts)}.")
    return {name: part for name, part in parts.items() if not only or name in only}
