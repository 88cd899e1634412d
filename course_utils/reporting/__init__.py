"""The CS744 report (task 1, 2a, 2b, 3; VGG-11 on 4 nodes) redone from one's own runs: made, kept, drawn, on one page.

`train_way(ranks, "DDP")` makes a run and keeps it; `course.report()` draws what is kept; `figures` draws any runs.
"""

import importlib

_HOME = {"TrainingRun": "run", "train_way": "run", "report": "page"}

__all__ = [*_HOME]


def __getattr__(name: str):
    if name in _HOME:
        return getattr(importlib.import_module(f"course_utils.reporting.{_HOME[name]}"), name)
    raise AttributeError(f"course_utils.reporting has no {name!r}")
