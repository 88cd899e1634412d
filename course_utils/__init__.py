"""The face of the course: `import course_utils as course`.

Everything is imported when it is first used, so that the import itself takes a few milliseconds.
"""

import importlib
import os
import sys

_HOME = {
    "start": "ranks.start",
    "Ranks": "ranks.ranks",
    "Run": "ranks.run",
    "per_rank": "ranks.run",
    "check": "checks",
    "hint": "checks",
    "progress": "checks",
    "predict": "checks",
    "measured": "checks",
    "doctor": "diagnosis",
    "report": "reporting.page",
    "CourseError": "errors",
    "RankError": "errors",
}
_MODULES = ("draw", "data", "trace", "checks")

__all__ = [*_HOME, *_MODULES]


def __getattr__(name: str):
    if name in _HOME:
        return getattr(importlib.import_module(f"course_utils.{_HOME[name]}"), name)
    if name in _MODULES:
        return importlib.import_module(f"course_utils.{name}")
    raise AttributeError(f"course_utils has no {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


def _keep_mpi_out_of_kernels() -> None:
    """Let `from mpi4py import MPI` be harmless in a notebook: the kernel is no rank and must not start MPI."""
    if "ipykernel" in sys.modules and "COURSE_RANK" not in os.environ:
        import mpi4py

        mpi4py.rc.initialize = False
        mpi4py.rc.finalize = False


_keep_mpi_out_of_kernels()
