"""A submitted function, as the grader holds it: a name and a text. On contained ranks it becomes a function."""

from inspect import Signature
from typing import Any

from course_utils.teacher.notebook_cells import Cells, answer_of


class Answer:
    """Stands for a submitted function where the checks are told of it; calling it here is an error."""

    def __init__(self, exercise: str, name: str, cells: Cells, signature: Signature | None) -> None:
        self.__name__ = name
        self._exercise, self._cells = exercise, cells
        if signature is not None:
            self.__signature__ = signature

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        raise RuntimeError("a submitted function runs on contained ranks only")

    def __reduce__(self) -> tuple:
        return answer_of, (self._exercise, self.__name__, self._cells)
