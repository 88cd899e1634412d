"""A learner's own runs, kept among the records of their progress, and read back with care.

A record holds one run as `{"training_run": {"form": 1, …}}`. What another version of the course has written, or
what is broken, is left out and counted; nothing is ever changed or deleted.
"""

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

from course_utils.checks.progress_records import SESSION, read
from course_utils.lessons.data_parallel.timed_steps import PARTS
from course_utils.lessons.data_parallel.training_run import Series, TrainingRun
from course_utils.words import count

FORM = 1
"""The version of this form; one with other meanings of its fields has another number."""
KEY = "training_run"


@dataclass(frozen=True)
class KeptRuns:
    """What was found.

    Attributes:
        runs: the earlier ones first.
        newer, broken: how many are of a newer version of the course, and how many not whole.
        unread: what else could not be read, a plain line each.
    """

    runs: list[TrainingRun]
    newer: int = 0
    broken: int = 0
    unread: tuple[str, ...] = ()

    @property
    def notes(self) -> list[str]:
        """What is not shown, a plain line each."""
        why = {"of a newer version of the course": self.newer, "could not be read": self.broken}
        left = [
            f"{count(many, 'run')} {words}: not shown, and left as they are." for words, many in why.items() if many
        ]
        return [*self.unread, *left]


def keep_run(run: TrainingRun) -> None:
    """Write a run to the records, under $COURSE_HOME; where that is not possible, a line says so."""
    SESSION.write(**{KEY: {"form": FORM, **dataclasses.asdict(run)}})


def kept_runs() -> KeptRuns:
    """All runs that can be read."""
    kept = read()
    runs, broken, newer = [], 0, 0
    for record in kept.records:
        if KEY not in record:
            continue
        try:
            runs.append(run_from(record[KEY]))
        except (KeyError, TypeError, ValueError, AttributeError):
            content = record[KEY]
            later = isinstance(content, dict) and type(content.get("form")) is int and content["form"] > FORM
            newer, broken = newer + later, broken + (not later)
    return KeptRuns(runs, newer, broken, tuple(kept.notes))


def run_from(record: dict[str, Any]) -> TrainingRun:
    """The run that a record holds; fields that are not known are left out.

    Raises:
        KeyError, TypeError, ValueError, AttributeError: it holds none, or not a whole one.
    """
    if record["form"] != FORM:
        raise ValueError("another form")
    fields = {field.name: record.get(field.name) for field in dataclasses.fields(TrainingRun)}
    if fields["series"] is not None:
        fields["series"] = Series(**{field.name: fields["series"][field.name] for field in dataclasses.fields(Series)})
    run = TrainingRun(**fields)
    check(run)
    return run


def check(run: TrainingRun) -> None:
    """Is everything there, and of the right size?

    Raises:
        TypeError, ValueError, KeyError: it is not.
    """
    ranks = run.world_size
    if not isinstance(run.way, str) or type(ranks) is not int or ranks < 1 or not run.losses[0]:
        raise ValueError("no run")
    whole = (run.images, run.gradient_bytes, run.cores)
    if any(type(number) is not int or number < 1 for number in whole) or not 0 < run.seconds < math.inf:
        raise ValueError("no such work")
    if run.bucket_bytes is not None and type(run.bucket_bytes) is not int:
        raise ValueError("no such buckets")
    per_rank = [*(run.parts[part] for part in PARTS), run.user, run.system, run.losses]
    if run.rates or run.sent or run.received or run.series:
        per_rank += [run.rates, run.sent, run.received]
    if any(len(values) != ranks for values in per_rank) or any(rate <= 0 for rate in run.rates):
        raise ValueError("not a value for each rank")
    steps = [seconds for part in PARTS for seconds in run.parts[part]]
    if any(len(seconds) != run.steps for seconds in steps) or not run.step.median > 0:
        raise ValueError("not a value for each step")
    numbers = [
        run.width,
        *run.user,
        *run.system,
        *run.sent,
        *run.received,
        *(value for seconds in steps for value in seconds),
    ]
    if any(isinstance(number, bool) or not 0 <= number < math.inf for number in numbers):
        raise ValueError("no such numbers")
    if run.series is not None:
        check_series(run.series, ranks)


def check_series(series: Series, nodes: int) -> None:
    """Is there a value for every node and time?

    Raises:
        TypeError, ValueError: there is not.
    """
    counted = (series.sent, series.received, series.cpu)
    lines = [series.seconds, *(line for kind in counted for line in kind)]
    if len(series.seconds) < 2 or any(len(kind) != nodes for kind in counted):
        raise ValueError("not a line for each node")
    if any(len(line) != len(series.seconds) for line in lines):
        raise ValueError("not a value at each time")
    if not all(math.isfinite(value) for line in lines for value in line):
        raise ValueError("no such numbers")
