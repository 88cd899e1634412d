"""A replica is killed: equal to one process after every step, steps lost, and how long the training stands still.

The program is that of lesson 18's page. Chosen by words: `course bench recovery equal`, `lost`, `stall`.
"""

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from course_utils.lessons.failures.experiments import beside_one_process
from course_utils.lessons.failures.replica_processes import ReplicaRun, run_replicas
from course_utils.measuring import by_turns
from course_utils.syllabus import ROOT
from workshop.bench.parts import chosen_parts
from workshop.bench.rows import Row, ratio_row
from workshop.publish.sources import read_cells

SAME = 1e-12
STEPS, DIES_AT, SAVE_EVERY = 12, 8, 5
LOST = {"going on": 1, "restarting all": 4}
"""Steps that are lost: the one under way, and for a restart those since the checkpoint after five steps."""
FASTER = 0.5
"""Seconds in which the training stands still: going on ÷ restarting all."""
MAGIC = "%%writefile {folder}/replica.py\n"


def run(runs: int, only: Sequence[str] = ()) -> list[Row]:
    """Measure every part, or those of these names."""
    parts: dict[str, Callable[[int], list[Row]]] = {"equal": equal, "lost": lost, "stall": stall}
    return [row for part in chosen_parts("recovery", parts, only).values() for row in part(runs)]


def program_of_the_page() -> str:
    """The program that the page writes into a file."""
    [found] = [cell.source for cell in read_cells(ROOT / "notebooks/src/18_failures.py") if MAGIC in cell.source]
    return found.partition(MAGIC)[2]


def killed(restart_all: bool) -> ReplicaRun:
    """A training in which replica 2 dies."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "replica.py"
        file.write_text(program_of_the_page(), encoding="utf-8")
        if restart_all:
            more = {"min_replicas": 4, "restart_all": True, "save_every": SAVE_EVERY}
            return run_replicas(file, STEPS, dies={2: DIES_AT}, **more)
        return run_replicas(file, STEPS, dies={2: DIES_AT}, joins={2: DIES_AT + 2})


def going_on() -> ReplicaRun:
    """The others go on, and a new replica 2 is healed."""
    return killed(restart_all=False)


def restarting_all() -> ReplicaRun:
    """All are ended, and started again."""
    return killed(restart_all=True)


WAYS: dict[str, Callable[[], ReplicaRun]] = {"going on": going_on, "restarting all": restarting_all}


def equal(runs: int) -> list[Row]:
    """States and losses after every step beside one process."""
    gaps = {name: beside_one_process(train()) for name, train in WAYS.items()}
    label = "{}: far from one process, at most"
    return [Row("recovery", label.format(name), gap, "", "lower", SAME, 0.0, 1) for name, gap in gaps.items()]


def lost(runs: int) -> list[Row]:
    """Steps that are lost, which are the same in every run."""
    return [
        Row("recovery", f"{name}: steps lost", train().lost_steps, "steps", "lower", LOST[name], 0.0, 1)
        for name, train in WAYS.items()
    ]


def stall(runs: int) -> list[Row]:
    """How long the training stands still, by turns."""
    seconds = by_turns({name: lambda train=train: train().stall for name, train in WAYS.items()}, runs)
    ours, theirs = seconds.values()
    return [ratio_row("recovery", "seconds of standstill, going on / restarting all", ours, theirs, target=FASTER)]
