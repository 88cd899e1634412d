"""The second capstone: the tasks that its checks give, and what its functions find."""

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from course_utils.errors import CourseError
from course_utils.lessons.hybrid_and_sharded.planner.layout_search import judge
from course_utils.lessons.hybrid_and_sharded.planner.training_layout import FULL, MODERN, NOTHING, Layout
from course_utils.lessons.read_the_manual.checks.plan_run import TELLING
from course_utils.lessons.read_the_manual.large_training.chosen_layout import plan_run
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
