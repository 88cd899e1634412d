"""The second capstone: the tasks that its checks give, and what its functions find."""

from dataclasses import replace
from itertools import islice, pairwise

import numpy as np
import pytest

from course_utils.errors import CourseError
from course_utils.lessons.hybrid_and_sharded.planner.layout_search import judge
from course_utils.lessons.hybrid_and_sharded.planner.training_layout import FULL, MODERN, NOTHING, Layout
from course_utils.lessons.read_the_manual.checks.find_bottleneck import lost_shares
from course_utils.lessons.read_the_manual.checks.go_on_without import gradient_distance
from course_utils.lessons.read_the_manual.checks.plan_run import TELLING
from course_utils.lessons.read_the_manual.large_training.bottleneck import Cause, find_bottleneck
from course_utils.lessons.read_the_manual.large_training.chosen_layout import plan_run
from course_utils.lessons.read_the_manual.large_training.lost_gpu import Recovery, go_on_without
from course_utils.lessons.read_the_manual.large_training.made_lanes import late_input_lanes, made_lanes
from course_utils.lessons.read_the_manual.large_training.training_tasks import (
    LARGEST,
    SMALLEST,
    TrainingTask,
    choices,
    drawn_tasks,
    llama_task,
)
from course_utils.lessons.read_the_manual.sentences import plan_text


def telling(seed: int) -> TrainingTask:
    return next(drawn_tasks(np.random.default_rng(seed)))


def layouts_that_reach(task: TrainingTask) -> list[Layout]:
    return [choice.layout for choice in choices(task) if choice.fits and choice.peak_share >= task.goal]


def test_a_plan_fits_and_reaches_the_goal_on_every_task() -> None:
    for task in [llama_task(), *islice(drawn_tasks(np.random.default_rng(0)), 3)]:
        choice = judge(task.model, task.cluster, plan_run(task), task.length)
        assert choice.fits and choice.peak_share >= task.goal > 0
        assert choice.layout.gpus == task.cluster.gpus and choice.layout.batch == task.batch


def test_drawn_models_have_7_to_30_billion_parameters() -> None:
    tasks = list(islice(drawn_tasks(np.random.default_rng(1)), 5))
    assert all(SMALLEST <= task.model.parameters <= LARGEST for task in tasks)
    assert len(set(tasks)) == 5


def test_the_telling_tasks_need_different_means() -> None:
    no_pipeline, every_other, everything = (layouts_that_reach(telling(seed)) for seed in TELLING)
    assert {layout.pipeline for layout in no_pipeline} == {1}
    assert NOTHING not in {layout.again for layout in every_other} and {layout.zero for layout in every_other} == {0}
    assert {layout.again for layout in everything} == {FULL} and min(layout.zero for layout in everything) >= 2


def test_neither_layout_of_the_text_is_a_plan() -> None:
    task = llama_task()
    for zero in (0, 3):
        choice = judge(task.model, task.cluster, Layout(16, 1, 1, zero, NOTHING, 1, 8, program=MODERN), task.length)
        assert not (choice.fits and choice.peak_share >= task.goal)


def test_a_model_that_fits_nowhere_is_named() -> None:
    task = replace(llama_task(), cluster=replace(llama_task().cluster, memory=1e9))
    with pytest.raises(CourseError, match="in no layout"):
        plan_run(task)


def test_a_plan_is_described_part_by_part() -> None:
    text = plan_text(llama_task(), Layout(16, 1, 1, 0, NOTHING, 1, 8, program=MODERN))
    assert "optimizer state             156 GB" in text and "of 72 GB that may be used" in text


MESH = {"data": 4, "pipeline": 2, "tensor": 2}


def test_the_recovery_is_that_of_the_exercises_text() -> None:
    recovery = go_on_without(MESH, [5], 16)
    assert recovery.stopped == [4, 5, 6, 7]
    assert recovery.batches == {0: [0, 3, 6, 9, 12, 15], 2: [1, 4, 7, 10, 13], 3: [2, 5, 8, 11, 14]}
    assert recovery.weights == {0: 6 / 16, 2: 5 / 16, 3: 5 / 16}
    assert all(rank % 4 == source % 4 and source not in recovery.stopped for rank, source in recovery.heals.items())


def test_two_lost_replicas_are_healed_by_two_others() -> None:
    recovery = go_on_without(MESH, [0, 6], 8)
    assert {source // 4 for source in recovery.heals.values()} == {2, 3}


def test_only_the_right_weights_give_the_gradient_of_the_whole_batch() -> None:
    recovery = go_on_without(MESH, [5], 16)
    assert gradient_distance(recovery, 16, seed=0) < 1e-15
    plain = Recovery(recovery.stopped, recovery.batches, dict.fromkeys(recovery.batches, 1 / 3), recovery.heals)
    assert gradient_distance(plain, 16, seed=0) > 1e-4


@pytest.mark.parametrize("dead", [[16], [-1], [0, 4, 8, 12]])
def test_a_training_that_cannot_go_on_is_rejected(dead) -> None:
    with pytest.raises(CourseError):
        go_on_without(MESH, dead, 16)


@pytest.mark.parametrize("cause", Cause)
def test_the_chosen_cause_costs_clearly_the_most_in_the_lanes_that_are_made_up(cause) -> None:
    rng = np.random.default_rng(5)
    for prefetched in (False, True) if cause is not Cause.INPUT else (False,):
        for _ in range(20):
            ranks = int(rng.integers(3, 9))
            slow = int(rng.integers(ranks))
            lanes = made_lanes(rng, cause, ranks, slow, prefetched)
            first, second, *_ = sorted(lost_shares(lanes).values(), reverse=True)
            assert first > 1.5 * second
            assert find_bottleneck(lanes) == (cause, slow if cause is Cause.STRAGGLER else None)


def test_a_rank_that_waits_for_input_alone_makes_all_others_wait() -> None:
    lanes = late_input_lanes(np.random.default_rng(0), ranks=4, slow_rank=1)
    assert find_bottleneck(lanes[::-1]) == (Cause.STRAGGLER, 1)


def test_made_up_lanes_have_what_lanes_of_a_trace_have() -> None:
    rng = np.random.default_rng(2)
    for cause in Cause:
        for own in made_lanes(rng, cause, 4):
            assert own.begin == own.each_step[0][0] and own.end == own.each_step[-1][1]
            for spans in (own.computing, own.communication):
                assert all(own.begin <= begin < end <= own.end + 1e-9 for begin, end in spans)
                assert all(before[1] < after[0] for before, after in pairwise(spans))
            assert {"forward", "backward", "optimizer"} <= own.phases.keys()


def test_input_that_is_loaded_ahead_costs_nothing() -> None:
    lanes = made_lanes(np.random.default_rng(1), Cause.AGAIN, 4, prefetched=True)
    assert all(own.phases["input"] for own in lanes) and lost_shares(lanes)[Cause.INPUT] == 0
