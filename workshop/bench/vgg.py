"""The CS744 report redone: VGG-11 in one process and data-parallel on 4 nodes, five ways, and on 1 to 4 workers.

The nodes share two cores: four ranks compute no faster than two. So that communication matters as it does there, the
network is 0.375 times as wide (1/7 of the parameters, 5.2 MB of gradients) and the links are slow, 200 Mbit/s. One
all-reduce then takes at least 0.31 s; on two cores the backward pass of 384 images takes about as long.
"""

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from course_utils.words import count
from workshop.bench.ranks import nodes_of
from workshop.bench.rows import Row, ratio_row, seconds_row, value_row

if TYPE_CHECKING:
    from course_utils.lessons.data_parallel.training_run import TrainingRun

NODES, RATE = 4, 200  # Mbit/s
WORK = {"width": 0.375, "images": 384, "steps": 3, "bucket_bytes": 1 << 19}
MOST = 1.1
"""Bytes that a node sends ÷ the least possible: frames and acknowledgements take about 5%."""
THROUGH_ROOT = 0.9
"""Of the (P − 1) times that rank 0 sends, in gather-scatter, what another rank sends."""


def run(runs: int, figures: Path | None = None) -> list[Row]:
    """Train every way by turns, `runs` times; with a folder, draw the report's figures 4–11 and tables 1–3 into it."""
    rounds = measure(runs)
    if figures:
        draw_all([run for each in rounds for run in each.values()], figures)
    return rows_of(rounds)


def measure(runs: int) -> list[dict[tuple[str, int], "TrainingRun"]]:
    """For each round the run of each way on each number of workers; a first short round warms the connections up."""
    from course_utils.lessons.data_parallel.replicas import WAYS
    from course_utils.lessons.data_parallel.timed_steps import ONE_PROCESS, Way, name_of
    from course_utils.lessons.data_parallel.train_way import train_way
    from course_utils.lessons.overlap.buckets import overlapped

    ways: tuple[Way, ...] = (*WAYS, overlapped)
    cases = [
        (ONE_PROCESS, 1),
        *((method, NODES) for method in ways),
        *(("DDP", workers) for workers in range(1, NODES)),
    ]
    with nodes_of(NODES, RATE) as ranks:
        train_way(ranks, "DDP", keep=False, **{**WORK, "steps": 1})
        return [
            {
                (name_of(method), workers): train_way(ranks, method, world_size=workers, keep=False, **WORK)
                for method, workers in cases
            }
            for _ in range(runs)
        ]


def rows_of(rounds: Sequence[dict[tuple[str, int], "TrainingRun"]]) -> list[Row]:
    """The rows: stages of a step, bytes, CPU; the order of the ways; epochs by workers beside the published ones."""
    rows = []
    for method, workers in rounds[0]:
        if method != "DDP" or workers == NODES:
            rows += rows_of_way(f"{method}, P = {workers}", [each[method, workers] for each in rounds])
    return [*rows, *order_rows(rounds), *worker_rows(rounds)]


def rows_of_way(name: str, runs: Sequence["TrainingRun"]) -> list[Row]:
    """Seconds of a step and of its stages, bytes of each node, CPU of each rank."""
    from course_utils.lessons.data_parallel.report_sentences import GATHER, ONE_PROCESS
    from course_utils.lessons.data_parallel.timed_steps import PARTS

    first = runs[0]
    rows = [seconds_row("vgg", f"{name}: step", [run.step.median for run in runs])]
    for part in PARTS:
        part_name = "exposed communication" if part == "communication" else part
        rows.append(seconds_row("vgg", f"{name}: {part_name}", [run.part(part).median for run in runs]))
    for node in range(first.world_size):
        sent = [run.sent[node] / run.steps / run.gradient_bytes for run in runs]
        target = None
        if first.way not in (ONE_PROCESS, GATHER):
            target = round(MOST * 2 * (first.world_size - 1) / first.world_size, 6)
        rows.append(value_row("vgg", f"{name}: sent by node {node} in a step", sent, "gradients", target=target))
    for rank in range(first.world_size):
        rows.append(value_row("vgg", f"{name}: CPU of rank {rank}", [100 * run.cpu[rank] for run in runs], "%"))
    return rows


def order_rows(rounds: Sequence[dict[tuple[str, int], "TrainingRun"]]) -> list[Row]:
    """DDP < all-reduce < gather-scatter in time; gather-scatter's load goes through rank 0."""
    from course_utils.lessons.data_parallel.report_sentences import GATHER, ORDER

    seconds = {method: [each[method, NODES].step.median for each in rounds] for method in ORDER}
    rows = [
        ratio_row("vgg", f"{fast} / {slow}, step", seconds[fast], seconds[slow], target=1.0)
        for fast, slow in zip(ORDER, ORDER[1:], strict=False)
    ]
    sent = [each[GATHER, NODES].sent for each in rounds]
    through = [nodes[0] for nodes in sent]
    others = [statistics.fmean(nodes[1:]) for nodes in sent]
    target = THROUGH_ROOT * (NODES - 1)
    name = "gather-scatter: bytes of node 0 / another's"
    return [*rows, ratio_row("vgg", name, through, others, target=target, better="higher")]


def worker_rows(rounds: Sequence[dict[tuple[str, int], "TrainingRun"]]) -> list[Row]:
    """Tables 1 to 3: DDP on 1, 2, 3, 4 workers, and what the report says, which nobody measured here."""
    from course_utils.lessons.data_parallel import published_numbers
    from course_utils.lessons.data_parallel.training_run import epoch

    rows = []
    for workers in range(1, NODES + 1):
        runs = [each["DDP", workers] for each in rounds]
        name = f"DDP, {count(workers, 'worker')}"
        rows.append(seconds_row("vgg", f"{name}: epoch", [epoch([run]).median for run in runs]))
        rows.append(value_row("vgg", f"{name}: CPU of a rank", [100 * statistics.fmean(run.cpu) for run in runs], "%"))
        sent = [statistics.fmean(run.sent) / run.seconds / 1e6 for run in runs]
        rows.append(value_row("vgg", f"{name}: sent by a node", sent, "MB/s"))
        theirs = f"{name}, {published_numbers.REPORT}, not measured here"
        rows.append(seconds_row("vgg", f"{theirs}: epoch", published_numbers.EPOCH_SECONDS[workers]))
        cpu = [user + system for user, system in published_numbers.CPU[workers]]
        rows.append(value_row("vgg", f"{theirs}: CPU of a node", cpu, "%"))
        if workers in published_numbers.SENT_PER_SECOND:
            rows.append(
                value_row("vgg", f"{theirs}: sent by a node", published_numbers.SENT_PER_SECOND[workers], "MB/s")
            )
    return rows


def draw_all(runs: Sequence["TrainingRun"], folder: Path) -> list[Path]:
    """Draw the report's figures 4 to 11 and tables 1 to 3 as PNG files; returns them."""
    from course_utils.lessons.data_parallel import report_figures

    folder.mkdir(parents=True, exist_ok=True)
    latest = {method: each[-1] for method, each in report_figures.parallel(runs).items()}
    pictures = {
        "figure_04": report_figures.total_time(runs),
        "figure_05": report_figures.backward_split(runs),
        "figure_06": report_figures.stages(runs),
        "figure_07": report_figures.over_time(latest["gather-scatter"]),
        "figure_08": report_figures.over_time(latest["all-reduce, each"]),
        "figure_09": report_figures.over_time(latest["DDP"]),
        "figure_10": report_figures.mean_cpu(runs),
        "figure_11": report_figures.mean_send(runs),
        "table_1": report_figures.time_by_workers(runs),
        "table_2": report_figures.cpu_by_workers(runs),
        "table_3": report_figures.traffic_by_workers(runs),
    }
    files = []
    for name, picture in pictures.items():
        files.append(folder / f"{name}.png")
        files[-1].write_bytes(picture._repr_png_())
    return files
