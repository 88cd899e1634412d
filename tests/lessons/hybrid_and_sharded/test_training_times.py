"""Whole trainings on paper: what follows from the planner, and how near that is to what the real ones took."""

import subprocess
import sys
from dataclasses import replace

import pytest

from course_utils.errors import CourseError
from course_utils.lessons.hybrid_and_sharded.planner.gpu_clusters import H100
from course_utils.lessons.hybrid_and_sharded.planner.language_models import OPEN
from course_utils.lessons.hybrid_and_sharded.planner.layout_search import judge
from course_utils.lessons.hybrid_and_sharded.planner.pictures import why_many, why_many_finding
from course_utils.lessons.hybrid_and_sharded.planner.training_times import (
    GPUS,
    TRAININGS,
    estimate_training,
    training_time,
)
from course_utils.words import LONG_TIMES, bytes_text, days_text


@pytest.fixture(scope="module")
def estimate():
    return estimate_training("Olmo 3 32B")


@pytest.mark.parametrize("name", OPEN)
def test_models_are_as_large_as_published(name) -> None:
    assert OPEN[name].parameters == pytest.approx(OPEN[name].published, rel=0.02)
    assert TRAININGS[name].model is OPEN[name]


@pytest.mark.parametrize(("name", "faster", "share"), [("Olmo 3 32B", 0.11, 0.69), ("Olmo 3 7B", 0.06, 0.87)])
def test_the_planner_is_a_little_faster_than_the_real_training(name: str, faster: float, share: float) -> None:
    """While it runs; the published hours hold interruptions, too."""
    training = TRAININGS[name]
    time = training_time(training, H100(512))
    assert training.tokens / (time.seconds * time.gpus) / training.speed - 1 == pytest.approx(faster, abs=0.01)
    assert time.gpu_hours / training.gpu_hours == pytest.approx(share, abs=0.01)
    running = training.tokens / training.speed / LONG_TIMES["hour"]
    assert running < training.gpu_hours, "the two published numbers agree: there were interruptions"


def test_the_memory_is_sixteen_bytes_for_each_parameter_and_activations(estimate) -> None:
    parts, parameters = estimate.memory.parts(), estimate.training.model.parameters
    activations = parts.pop("activations")
    assert list(parts) == ["parameters", "gradients", "optimizer state"]
    for amount, each in zip(parts.values(), (2, 2, 12), strict=True):
        assert amount == pytest.approx(each * parameters, rel=1e-6)
    assert 0 < activations < sum(parts.values()) < estimate.memory.total


def test_times_are_those_of_the_planners_steps(estimate) -> None:
    training = estimate.training
    assert [time.gpus for time in estimate.times] == list(GPUS)
    for time in estimate.times:
        assert time.choice.layout.gpus == time.gpus
        again = judge(training.model, H100(time.gpus), time.choice.layout, training.length)
        tokens = training.batch * training.length
        assert time.seconds == pytest.approx(again.step * training.tokens / tokens)
        assert again.fits == time.fits


def test_it_cannot_be_quicker_than_the_arithmetic_at_the_peak(estimate) -> None:
    """6 operations for each parameter and token; no GPU does more than its data sheet promises."""
    least = 6 * (estimate.training.model.parameters - estimate.training.model.token_parameters)
    for time in estimate.times:
        assert time.seconds > least * estimate.training.tokens / (time.gpus * H100(1).flops)
    hours = [time.gpu_hours for time in estimate.times]
    assert min(hours) == hours[0] and max(hours) == hours[-1], "more GPUs, more messages"


def test_one_gpu_has_too_little_memory_and_eight_need_their_nodes_own(estimate) -> None:
    assert [time.fits for time in estimate.times] == [False, True, True, True]
    assert [time.choice.layout.offload for time in estimate.times] == [False, True, False, False]
    large = estimate_training("Olmo 3 32B", [1, 8], lambda gpus: replace(H100(gpus), memory=1e12))
    assert not any(time.note for time in large.times)


def test_the_picture_says_all_amounts(estimate) -> None:
    picture = why_many(estimate)
    amounts = [*estimate.memory.parts().values(), estimate.memory.total, estimate.cluster.memory]
    for text in [
        *map(bytes_text, amounts),
        *map(str, estimate.times),
        "On paper",
        "0.72 million GPU hours",
        "used 1.05 million",
    ]:
        assert text in picture.alt_text
    assert why_many_finding(estimate) in picture.alt_text
    written = [text.get_text() for ax in picture.axes for text in ax.texts]
    for time in estimate.times:
        assert str(time) in written or {days_text(time.seconds), time.note} <= {*written}
    hatched = [bar.get_y() for bar in picture.axes[1].patches if bar.get_hatch()]
    assert len(hatched) == sum(not time.fits for time in estimate.times)


def test_the_title_speaks_of_memory_only_where_that_is_so(estimate) -> None:
    small = estimate_training("Olmo 3 7B", [8, 64])
    assert all(time.fits for time in small.times)
    assert "enough memory" in why_many_finding(estimate)
    assert "enough memory" not in why_many_finding(small)


def test_the_table_has_a_row_for_each_part_and_each_number_of_gpus(estimate) -> None:
    lines = str(estimate).splitlines()
    for name, amount in estimate.memory.parts().items():
        assert any(line.startswith(name) and line.endswith(bytes_text(amount)) for line in lines)
    for time in estimate.times:
        assert any(line.split()[:1] == [str(time.gpus)] and line.endswith(str(time)) for line in lines)


def test_a_training_that_is_not_known_is_named() -> None:
    with pytest.raises(CourseError, match="Olmo 3 7B, Olmo 3 32B"):
        estimate_training("Olmo 4")


def test_a_notebooks_first_picture_waits_for_neither_torch_nor_mpi() -> None:
    module = why_many.__module__
    lines = f"import sys, {module}; print(sorted({{'torch', 'mpi4py', 'scipy', 'pandas'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
