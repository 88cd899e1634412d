"""Who waits for whom: a parameter server's link against its prediction, and three ways of training with a straggler.

On eight nodes behind links: the server's step for 2, 4 and 7 workers (a network here has at most eight nodes, and one
serves), the staleness of gradients, seconds and epochs to 95% of the test images for synchronous, asynchronous and
local SGD with equal workers and with one that is five times slower (it sleeps), and the bytes of local SGD.
"""

import statistics
from typing import TYPE_CHECKING

from course_utils.data import digits_arrays
from course_utils.lessons.allreduce.allreduce_times import message_seconds
from course_utils.lessons.parameter_server.digits_trainings import Pace, train_asynchronously, train_locally
from course_utils.lessons.parameter_server.experiments import link_seconds, race
from course_utils.lessons.parameter_server.server import step_seconds
from workshop.bench.ranks import nodes_of
from workshop.bench.rows import Row, ratio_row, seconds_row, value_row

if TYPE_CHECKING:
    from course_utils.ranks.ranks import Ranks

RATE = 100  # Mbit/s
WORKERS = (2, 4, 7)
VECTOR = 400_000  # bytes
MESSAGES = (1, 100_000, 400_000)  # bytes
NEAR = 0.15  # how far predicted and measured may be apart
PACES = {"equal workers": Pace(0.005), "a straggler": Pace(0.005, straggler=2)}
TARGET = 0.95
FEWEST = 5  # runs
LOCAL_STEPS = (1, 4, 16, 64)


def run(runs: int) -> list[Row]:
    """Measure on eight nodes; at least five runs of each."""
    runs = max(runs, FEWEST)
    with nodes_of(8, RATE) as ranks:
        return [*link(ranks, runs), *stale(ranks, runs), *races(ranks, runs), *local(ranks)]


def link(ranks: "Ranks", runs: int) -> list[Row]:
    """The server's step and the ring, and the server's prediction ÷ measurement."""
    times = ranks.run(message_seconds, MESSAGES).results[0]
    rate = (MESSAGES[2] - MESSAGES[1]) / (times[2] - times[1])
    taken = link_seconds(ranks, WORKERS, VECTOR, runs)
    rows = []
    for position, workers in enumerate(WORKERS):
        where = f"{workers} workers, {VECTOR // 1000} KB at {RATE} Mbit/s"
        rows += [seconds_row("server", f"step, {name}, {where}", line[position]) for name, line in taken.items()]
        predicted = [step_seconds(workers, VECTOR, rate, times[0])] * runs
        for bound, better, target in (("at least", "higher", 1 - NEAR), ("at most", "lower", 1 + NEAR)):
            name = f"server's step, predicted / measured, {workers} workers ({bound})"
            rows.append(ratio_row("server", name, predicted, taken["server"][position], target=target, better=better))
    slow = [seconds / taken["server"][0][index] for index, seconds in enumerate(taken["server"][-1])]
    rows.append(value_row("server", "server's step, 7 workers / 2 workers (3.5 predicted)", slow, "×"))
    return rows


def stale(ranks: "Ranks", runs: int) -> list[Row]:
    """The mean staleness with seven workers, ÷ 6; the straggler must not change it."""
    images, rows = digits_arrays(), []
    for setting, pace in PACES.items():
        means = []
        for _ in range(runs):
            curve = ranks.run(train_asynchronously, images, 350, pace=pace).results[0]
            means.append(statistics.mean(curve.staleness))
        name = f"mean staleness / (workers − 1), 7 workers, {setting}"
        rows.append(ratio_row("server", name, means, [6.0] * runs, target=0.95, better="higher"))
    return rows


def races(ranks: "Ranks", runs: int) -> list[Row]:
    """Seconds and epochs to the target, of the runs that reached it; and how much longer a straggler makes them."""
    curves = race(ranks, digits_arrays(), PACES, runs)
    rows = []
    for setting, ways in curves.items():
        for name, taken in ways.items():
            where = f"{name}, {setting}"
            there = [curve for curve in taken if curve.reached(TARGET) is not None]
            rows.append(
                value_row(
                    "server", f"runs that reach {TARGET:.0%}: {where}", [100 * len(there) / runs], "%", better="higher"
                )
            )
            if there:
                rows.append(
                    seconds_row("server", f"seconds to {TARGET:.0%}: {where}", [c.reached(TARGET) for c in there])
                )
                rows.append(
                    value_row(
                        "server", f"epochs to {TARGET:.0%}: {where}", [c.epochs_to(TARGET) for c in there], "epochs"
                    )
                )
    for name in curves["equal workers"]:
        equal, slow = ([curve.seconds[-1] for curve in curves[setting][name]] for setting in PACES)
        name = f"seconds with a straggler / with equal workers, {name}"
        rows.append(ratio_row("server", name, slow, equal, target=1.6 if "async" in name else None))
    return rows


def local(ranks: "Ranks") -> list[Row]:
    """Bytes that a rank contributes in 64 steps: counted, so once is enough."""
    images, rows = digits_arrays(), []
    for steps in LOCAL_STEPS:
        taken = ranks.run(train_locally, images, 64 // steps, local_steps=steps, pace=Pace(0.0), ranks=4)
        rows.append(value_row("server", f"64 steps of local SGD, a mean every {steps}", [taken.bytes_per_rank[0]], "B"))
    return rows
