"""The form of all benches: rows, comparisons by turns, a table and JSON."""

import functools
import importlib
import json
from pathlib import Path

import pytest
import torch

from course_utils.checks.registry import chosen, declared, find
from course_utils.checks.sample_answers import Program
from course_utils.errors import CourseError
from course_utils.lessons.overlap.buckets import overlapped
from course_utils.lessons.overlap.played_hardware import Wait
from course_utils.lessons.overlap.step_times import ALONE, StepTimes
from workshop.bench import (
    BENCHES,
    checks,
    cluster,
    context,
    experts,
    grader,
    inference,
    memory,
    overlap,
    pipeline,
    profiling,
    recovery,
    sharded,
    strategy,
    strategy_search,
)
from workshop.bench.__main__ import bench
from workshop.bench.clean_runs import clean_rows
from workshop.bench.overlap_ranks import plain_steps, plain_vgg, waiting_vgg
from workshop.bench.pipeline_ranks import TrainedStages
from workshop.bench.rows import Row, ratio_row, seconds_row, spread, table

KEYS = ["bench", "metric", "value", "unit", "better", "target", "spread", "runs", "ok"]


@pytest.mark.parametrize(
    ("better", "target", "ok"),
    [("lower", 1.0, False), ("lower", 2.0, True), ("higher", 2.0, True), ("higher", 3.0, False), ("lower", None, True)],
)
def test_a_row_knows_whether_its_target_is_reached(better, target, ok) -> None:
    assert Row("b", "m", 2.0, "s", better, target, 0.1, 5).ok is ok


def test_a_row_as_json_has_the_agreed_keys() -> None:
    row = json.loads(seconds_row("cluster", "stop", [3.0, 1.0, 2.0]).as_json())
    assert sorted(row) == sorted(KEYS)
    assert (row["value"], row["unit"], row["better"], row["target"], row["runs"]) == (2.0, "s", "lower", None, 3)


def test_nothing_but_rows_is_printed_to_where_rows_go(monkeypatch, capsys) -> None:
    def measured(runs: int) -> list[Row]:
        print("4 ranks on this machine")
        return [seconds_row("cluster", "stop", [1.0] * runs)]

    monkeypatch.setattr(cluster, "run", measured)
    bench("cluster", runs=2, json=True)
    printed = capsys.readouterr()
    assert json.loads(printed.out)["metric"] == "stop" and printed.err == "4 ranks on this machine\n"


def test_a_ratio_is_the_median_of_the_ratios_and_not_of_the_times() -> None:
    row = ratio_row("b", "m", [2.0, 30.0, 4.0], [1.0, 10.0, 1.0], target=3.0)
    assert row.value == 3.0 and row.ok
    assert ratio_row("b", "m", [2.0, 2.0, 10.0], [1.0, 2.0, 5.0]).value == 2.0


def test_the_spread_is_half_the_distance_between_the_quartiles() -> None:
    assert spread([1.0]) == 0.0
    assert spread([1.0, 2.0, 3.0, 4.0, 5.0]) == 1.0


def test_the_table_says_which_target_is_missed() -> None:
    lines = table([Row("b", "speed", 2.5, "×", "higher", 3.0, 0.1, 5), Row("b", "time", 1, "s", "lower", None, 0, 5)])
    head, speed, time = lines.splitlines()
    assert head.split() == ["metric", "value", "spread", "target", "runs", "verdict"]
    assert speed.endswith("≥ 3     5  ✗ missed") and time.endswith("–")


def test_every_bench_can_be_run() -> None:
    for name in BENCHES:
        assert callable(importlib.import_module(f"workshop.bench.{name}").run)


@pytest.mark.long
def test_the_cluster_is_measured_against_raw_mpiexec() -> None:
    rows = {row.metric: row for row in cluster.run(1)}
    for name, target in cluster.TARGETS.items():
        ratio = rows[f"{name} / raw mpiexec"]
        assert ratio.target == target and ratio.better == "lower"
        assert ratio.value == pytest.approx(rows[name].value / rows["raw mpiexec"].value)


@pytest.mark.timeout(120)
def test_the_grader_is_graded_by_answers_and_mutants(four_ranks) -> None:
    rows = grader.grade("rank_squared", four_ranks, runs=1)
    assert [row.metric for row in rows] == [f"rank_squared: {what}" for what in grader.TARGETS]
    assert all(row.ok and row.unit == "%" and row.runs >= 3 for row in rows), table(rows)


SOMEBODY_MAY_HELP = """
import threading
import time

def who_is_there(comm, name):
    threading.Thread(target=time.sleep, args=(10,), daemon=True).start()
    comm.recv(source=comm.rank)
"""


@pytest.mark.timeout(120)
def test_a_verdict_is_timed_and_one_that_had_to_wait_is_told_apart(four_ranks) -> None:
    right, stuck = find("rank_squared").written.right[0], find("who_is_there").written.program("waits_for_itself")
    hanging = Program("who_is_there", "somebody_may_help", SOMEBODY_MAY_HELP)
    assert [checks.timed(program, four_ranks)[1] for program in (right, stuck, hanging)] == [False, False, True]


def test_parts_of_the_course_are_chosen_by_exercise_or_lesson() -> None:
    assert [one.name for one in chosen(["tree_broadcast", "00"])] == ["rank_squared", "who_is_there", "tree_broadcast"]
    assert len(chosen()) == len(declared())
    with pytest.raises(CourseError, match="Did you mean"):
        chosen(["tree_broadcats"])


@pytest.mark.parametrize(
    "bench", [context, experts, inference, memory, pipeline, profiling, recovery, sharded, strategy]
)
def test_every_bench_rejects_parts_that_it_has_not(bench) -> None:
    name = bench.__name__.rpartition(".")[2]
    with pytest.raises(CourseError, match=f"The bench {name} has no part 'weather'"):
        bench.run(1, ["weather"])


def test_a_killed_replica_costs_a_step_and_a_restart_of_all_more() -> None:
    rows = {row.metric: row for row in recovery.run(1, ["lost"])}
    assert [rows[f"{name}: steps lost"].value for name in recovery.LOST] == [1, 4]
    assert all(row.ok for row in rows.values())


def test_a_part_of_a_bench_that_there_is_not_is_rejected() -> None:
    with pytest.raises(CourseError, match=r"no part 'honest'\. Did you mean 'honesty'\? It has honesty, .* search\."):
        strategy.run(1, ["report", "honest"])


def test_the_graphs_on_which_the_search_arrives_are_counted(monkeypatch) -> None:
    monkeypatch.setattr(strategy_search, "is_hit", lambda seed: seed % 10 > 0)
    [row] = strategy.run(5, ["hits"])
    assert (row.bench, row.value, row.unit, row.target, row.ok) == ("strategy", 90, "of 100", 95, False)


def test_exposed_communication_is_compared_with_the_least_possible_or_with_the_step() -> None:
    row = overlap.exposed_row("m", [0.11, 0.12, 0.13], 0.1, [1.0, 1.0, 1.0])
    assert (row.metric, row.value, row.target) == ("m / least possible", pytest.approx(1.2), overlap.EXPOSED)
    hidden = overlap.exposed_row("m", [0.01, 0.02, 0.06], 0.0, [1.0, 1.0, 2.0])
    assert (hidden.metric, hidden.value, hidden.target) == ("m / step", pytest.approx(0.02), overlap.HIDDEN)


def test_a_case_of_overlap_pairs_its_rounds() -> None:
    seconds = {ALONE: [1.0, 2.0, 1.0], "flat": [1.5, 2.5, 1.6]}
    seconds |= {overlap.OURS: [1.2, 2.3, 1.2], overlap.DDP: [1.4, 2.4, 1.4]}
    rows = overlap.case_rows("case", 3, [0.5, 0.6, 0.7], [0.4, 0.4], StepTimes(seconds))
    values = {row.metric: row.value for row in rows}
    assert values["case: exposed, all after the backward pass"] == pytest.approx(0.5)
    assert values[f"case: exposed, {overlap.OURS}"] == pytest.approx(0.2)
    assert values[f"case: exposed, {overlap.OURS} / least possible"] == pytest.approx(0.2 / (0.6 - 0.4))
    assert values[f"case: step, {overlap.OURS} / {overlap.DDP}"] == pytest.approx(1.2 / 1.4)


def test_a_network_that_waits_has_the_weights_and_the_values_of_the_one_that_computes() -> None:
    plain, waiting = plain_vgg(0, 0.05), waiting_vgg(0, 0.05, 0.0, 0.0)
    x = torch.randn(2, 3, 32, 32)
    assert torch.equal(plain(x), waiting(x))
    assert [one.shape for one in plain.parameters()] == [one.shape for one in waiting.parameters()]
    waits = [layer.seconds[0] for layer in waiting_vgg(0, 0.05, 1.0, 2.0) if isinstance(layer, Wait)]
    assert len(waits) == 9 and sum(waits) == pytest.approx(1.0), "a layer with weights waits for its share of the work"


def test_a_bench_without_figures_says_so() -> None:
    with pytest.raises(CourseError, match="draws no figures"):
        bench("network", figures=Path("figures"))


def steps_and_what_is_left(build) -> tuple[dict[str, list[float]], bool]:
    """Steps with torch's own all-reduce; and whether calls are recorded again afterwards."""
    ways = {"overlapped": functools.partial(overlapped, bucket_bytes=1000)}
    before = torch.distributed.all_reduce
    taken = plain_steps(ways, 2, 2, build, 1)
    return taken, before is torch.distributed.all_reduce


def test_steps_are_timed_without_being_recorded(four_ranks) -> None:
    run = four_ranks.run(steps_and_what_is_left, functools.partial(plain_vgg, width=0.05), ranks=2, backend="gloo")
    assert not [event for event in run.events if event.name == "all_reduce"]
    assert all(len(taken["overlapped"]) == 2 and same for taken, same in run.results)


def test_a_pipeline_that_does_what_is_planned_is_idle_as_the_formula_says() -> None:
    planned = pipeline.simulate_schedule(pipeline.SCHEDULES["1F1B"](pipeline.P, 8))
    idle, off, kept = pipeline.rows_of("1F1B, m = 8", "1F1B", 8, [planned] * 3)
    assert idle.value == pytest.approx(100 * 3 / 11) and off.value == pytest.approx(0) and kept.value == 0
    other = pipeline.rows_of("m", "1F1B", 8, [pipeline.simulate_schedule(pipeline.SCHEDULES["GPipe"](pipeline.P, 8))])
    assert other[2].value == 7 and not other[2].ok, "the last rank kept eight in place of one"


def test_runs_are_clean_that_neither_die_nor_are_off(capsys) -> None:
    gaps = {"one": lambda: 1e-12, "two": lambda: 1.0, "three": lambda: 1 / 0}
    rows = clean_rows("sharded", gaps, 1e-10, repeats=3)
    assert [(row.metric, row.value, row.ok) for row in rows] == [
        ("one: clean runs", 3, True),
        ("two: clean runs", 0, False),
        ("three: clean runs", 0, False),
    ]
    assert capsys.readouterr().err.count("three: division by zero") == 3


def test_a_pipeline_is_as_far_from_one_process_as_its_farthest_stage() -> None:
    def trained(weight: float, rank: int) -> TrainedStages:
        losses = [2.0, 1.0] if rank == 1 else [0.0, 0.0]
        return TrainedStages(losses, {rank: [torch.tensor([weight], dtype=torch.float64)]})

    serial = TrainedStages([2.0, 1.0], {0: [torch.tensor([3.0]).double(), torch.tensor([4.0]).double()]})
    assert pipeline.difference_to_serial([trained(3.0, 0), trained(4.0, 1)], serial) == 0
    assert pipeline.difference_to_serial([trained(3.0, 0), trained(4.1, 1)], serial) == pytest.approx(0.1)
