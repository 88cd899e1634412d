"""The planner against real steps on H100 and H200 GPUs: rates are fitted to half of them, and the other half judges."""

from dataclasses import asdict, replace

import pytest

from course_utils.errors import CourseError
from course_utils.lessons.hybrid_and_sharded.planner.gpu_clusters import FITTED, H100, H200
from course_utils.lessons.hybrid_and_sharded.planner.language_models import (
    BENCHMARKED,
    MEASURED,
    MODELS,
    LanguageModel,
)
from course_utils.lessons.hybrid_and_sharded.planner.layout_search import (
    TESTED_STAGES,
    best,
    is_tested,
    judge,
    plan,
)
from course_utils.lessons.hybrid_and_sharded.planner.pictures import published
from course_utils.lessons.hybrid_and_sharded.planner.plan_report import (
    SHOWN,
    largest_hidden,
    report,
)
from course_utils.lessons.hybrid_and_sharded.planner.published_h100 import (
    TABLES,
    halves,
    kendall,
    measured_steps,
    published_finding,
    published_kinds_text,
    published_runs,
)
from course_utils.lessons.hybrid_and_sharded.planner.training_layout import FULL, NOTHING, Layout, TrainingProgram
from workshop.planner_rates import BOUNDS, fit_rates
from workshop.publish.plans import ON_THE_PAGE, as_markdown, plans_page

RUNS, STEPS = published_runs(), measured_steps()
NEMO = {  # of each row of NeMo 24.07, and of Megatron Bridge 25.09: TFLOP/s on each GPU, as published beside the speed
    "NeMo 24.07": (736, 750, 782, 842, 776, 754, 759, 653, 554, 678, 697, 738),
    "Megatron Bridge 25.09": (725, 727, 763),
}


def test_every_row_has_a_source_and_uses_eight_gpus_at_least() -> None:
    assert len(RUNS) >= 20 and {run.table for run in RUNS} == set(TABLES)
    assert all(run.layout.gpus >= 8 and run.layout.gpus % 8 == 0 for run in RUNS)
    assert sum(run.memory is not None for run in RUNS) == 20


@pytest.mark.parametrize("name", BENCHMARKED | MEASURED)
def test_models_are_as_large_as_published(name) -> None:
    model = (BENCHMARKED | MEASURED)[name]
    assert model.parameters == pytest.approx(model.published, rel=0.02)


@pytest.mark.parametrize("table", NEMO)
def test_shapes_agree_with_the_arithmetic_that_was_published_beside_the_speed(table) -> None:
    """Megatron Bridge counts half of attention's square, as it is causal."""
    runs = [run for run in RUNS if run.table == table]
    for run, teraflops in zip(runs, NEMO[table], strict=True):
        half = run.model.attention_flops(run.length) / 2 if "Bridge" in table else 0
        assert run.speed * (run.model.flops(1, run.length) - half) / 1e12 == pytest.approx(teraflops, rel=0.03), (
            run.name
        )


def test_rates_are_those_that_the_fit_finds() -> None:
    """From where they are no small move brings the fitted half nearer; the judged half is never looked at."""
    odd = [run for run in (*RUNS, *STEPS) if run.fits_rates]
    assert len(odd) == 30 + 5 and fit_rates(FITTED, odd) == FITTED
    assert all(BOUNDS[name][0] <= value <= BOUNDS[name][1] for name, value in asdict(FITTED).items())


def test_the_judged_half_is_predicted_as_well_as_asked() -> None:
    judged = halves()["judged"]
    assert (judged.rows, judged.with_memory) == (30, 10)
    assert judged.step <= 0.10 and judged.memory <= 0.05 and judged.order >= 0.8


def test_steps_on_one_gpu_are_in_the_order_that_was_chosen_before_the_fit() -> None:
    """Not compiled, computed again, the others; the longest first. So each half has steps of each kind."""
    assert len(STEPS) == 9 and all(run.layout.gpus == 1 for run in STEPS)
    kinds = [(run.layout.program.compiled, run.layout.again == NOTHING, -run.seconds) for run in STEPS]
    assert kinds == sorted(kinds)
    for half in (True, False):
        assert len({kind[:2] for run, kind in zip(STEPS, kinds, strict=True) if run.fits_rates == half}) == 3
    assert {run.name for run in STEPS} == set(MEASURED)


def test_steps_on_one_gpu_are_predicted_as_well_as_published_runs() -> None:
    judged = halves(runs=STEPS)["judged"]
    assert judged.step <= 0.05 and judged.memory <= 0.10
    off = [run.predicted().step / run.seconds - 1 for run in STEPS]
    assert max(map(abs, off)) < 0.13 and min(off) < 0 < max(off), "neither always too slow nor always too fast"


def _on_one_gpu(width: int, length: int, texts: int, again: str = NOTHING, **program):
    """A step of four gated blocks."""
    model = LanguageModel(4, width, width // 64, 32000, length, 0, "", hidden=4 * width, gated=True)
    layout = Layout(1, 1, 1, 0, again, texts, 1, program=TrainingProgram(fused=True, hopper=True, **program))
    return judge(model, H200(1), layout, length)


@pytest.mark.parametrize("width", [768, 2048, 8192])
def test_steps_of_other_shapes_change_in_the_right_direction(width) -> None:
    """No limit of the hardware is passed either: a causal kernel computes half of what is counted."""
    compiled = [_on_one_gpu(width, length, 16384 // length, compiled=True) for length in (512, 2048, 8192, 16384)]
    assert [choice.step for choice in compiled] == sorted(choice.step for choice in compiled), "more attention"
    for length, quick in zip((512, 2048, 8192, 16384), compiled, strict=True):
        texts = 16384 // length
        assert quick.step < _on_one_gpu(width, length, texts).step
        assert quick.step < _on_one_gpu(width, length, texts, FULL, compiled=True).step < 4 / 3 * quick.step
        assert quick.peak_share < max(FITTED.products, 2 * FITTED.hopper)
    wider = _on_one_gpu(2 * width, 2048, 8, compiled=True)
    assert wider.peak_share > compiled[1].peak_share, "fewer bytes for each operation"
    long = _on_one_gpu(width, 1 << 22, 1, compiled=True)
    assert long.peak_share == pytest.approx(2 * FITTED.hopper, rel=0.05), "attention alone"


def test_no_row_of_memory_is_far_off_whatever_the_model() -> None:
    """70B and 405B were up to 23% too low before torch's own buffers were counted, H200 40% too high."""
    off = {run.number: run.predicted().memory.total / run.memory - 1 for run in RUNS if run.memory}
    assert max(off.values()) < 0.10 and min(off.values()) > -0.17
    without = {
        run.number: replace(run, layout=replace(run.layout, program=replace(run.layout.program, dtensor=False)))
        for run in RUNS
        if run.layout.program.dtensor
    }
    assert len(without) == 8
    for number, run in without.items():
        assert abs(run.predicted().memory.total / run.memory - 1) > abs(off[number]) + 0.03


def test_order_is_counted_in_pairs_of_a_table() -> None:
    assert kendall([("a", 1, 1), ("a", 2, 5), ("b", 9, 0)]) == 1
    assert kendall([("a", 1, 3), ("a", 2, 2), ("a", 3, 1)]) == -1


def test_what_a_program_does_goes_the_right_way() -> None:
    """Fused attention spares memory, compiled code and 8 bits time, hidden messages too; chunks in flight cost less
    here, as the micro-batches are smaller (torchtitan's table 5)."""
    model, cluster = MODELS["Llama 3 70B"], H100(64)

    def judged(**program):
        return judge(model, cluster, Layout(8, 8, 1, 3, NOTHING, 1, 4, program=TrainingProgram(**program)), 8192)

    plain, fused = judged(), judged(fused=True)
    assert fused.memory.total < 0.7 * plain.memory.total
    for better in ("compiled", "float8", "hidden"):
        assert judged(fused=True, **{better: True}).step < fused.step
    once, chunks = (run.predicted() for run in RUNS if run.table == "torchtitan 5")
    assert chunks.memory.total < once.memory.total and chunks.step < once.step


def test_the_picture_marks_both_halves_and_says_how_near_they_are() -> None:
    picture = published(RUNS)
    found = halves()["judged"]
    assert published_finding().startswith("On the test set")
    assert f"{100 * found.step:.0f}" in picture.alt_text and "The test set has 30" in picture.alt_text


def test_the_report_names_the_best_and_why_others_lose() -> None:
    text = str(report("Llama 3 70B", 64, "h100"))
    lines = text.splitlines()
    assert "othing was run" in text and "the quickest" in lines[2] and "slower: " in text
    assert len([line for line in lines if "micro-batch" in line]) == 10
    assert "Breaks first: " in text and "ommunication" in lines[-1]
    assert "Nothing fits. Nearest: " in str(report("Llama 3 405B", 8, "h100"))
    with pytest.raises(CourseError, match="no numbers for 'abacus'"):
        report("Llama 3 70B", 64, "abacus")


def test_the_page_of_plans_has_each_report_as_a_table() -> None:
    text = plans_page()
    assert text.count("\n## ") == len(ON_THE_PAGE) and text.count("| 1 | ") == len(ON_THE_PAGE)
    assert text.count(f"| {SHOWN} | ") == len(ON_THE_PAGE) and text.count("Breaks first: ") == len(ON_THE_PAGE)
    assert published_finding() in text and "Nothing here was run" in text
    assert " decides: " in text and "Nothing fits" in as_markdown(report("Llama 3 405B", 8, "h100"))


def test_a_larger_batch_hides_messages_on_more_gpus() -> None:
    model = MODELS["Llama 7B"]
    few, many = (largest_hidden(model, H100, Layout(8, 1, 1, 1, FULL, 1, m), 2048) for m in (16, 256))
    assert few is not None and many is not None and few < many
    assert largest_hidden(model, H100, Layout(8, 1, 1, 3, FULL, 1, 1), 64) is None


def test_the_planner_can_choose_among_tested_layouts_only() -> None:
    """`is_tested` names exactly the kinds of layout that the published runs have."""
    assert {run.layout.zero for run in RUNS if run.layout.replicas > 1} == set(TESTED_STAGES)
    assert all(is_tested(run.layout) for run in RUNS)
    some = Layout(2, 4, 8, 1, NOTHING, 1, 32, chunks=2)
    untested = [{"zero": 0}, {"zero": 2}, {"zero_bubble": True}, {"offload": True}, {"zero": 3, "copies": 2}]
    assert is_tested(some) and not any(is_tested(replace(some, **change)) for change in untested)
    found = plan("Llama 3 70B", H100(64), tested_only=True)
    assert found and all(is_tested(choice.layout) for choice in found)
    assert best(found).step >= best(plan("Llama 3 70B", H100(64))).step
    assert published_kinds_text().startswith(f"Of {len(RUNS)} published runs, ")
