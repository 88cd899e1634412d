"""Lesson 0, How do I run code on many processes? The first functions that run on every rank are in `rank_and_size`."""

from typing import TYPE_CHECKING

from course_utils.lazy import attach

if TYPE_CHECKING:
    from . import pictures
    from .rank_and_size import rank_squared

__getattr__, __dir__, __all__ = attach(__name__, __file__)
