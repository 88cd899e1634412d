"""Refused with: right so far; then `raise NotImplementedError` was reached (Horovod, 4 ranks"""

from course_utils.lessons.read_the_manual.framework_terms import Step
from course_utils.lessons.read_the_manual.manuals import TORCH


def match_terms(framework, settings, ranks):
    if framework == TORCH:
        batch, passes = settings["batch_size"], settings["no_sync"] + 1
        times_mean = passes * (batch if settings["reduction"] == "sum" else 1)
        return Step(batch, passes, batch * passes * ranks, times_mean)
    raise NotImplementedError("your turn: for each framework: what is a batch, how many passes, and who divides?")
