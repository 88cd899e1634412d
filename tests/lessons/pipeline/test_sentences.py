"""Sentences about runs of pipelines are chosen by the numbers."""

import pytest

from course_utils.lessons.pipeline import pictures, sentences
from course_utils.lessons.pipeline.interleaved import interleaved_schedule
from course_utils.lessons.pipeline.schedules import bubble_fraction, gpipe_schedule, one_f_one_b_schedule
from course_utils.lessons.pipeline.sentences import Reason, Stashless
from course_utils.lessons.pipeline.timing import simulate_schedule
from course_utils.lessons.pipeline.zero_bubble import zb_h1_schedule, zb_h2_schedule
from course_utils.measuring import BUSY

PLAN = simulate_schedule(gpipe_schedule(4, 8), 0.02, 0.02, 0.02)


STRETCHED = simulate_schedule(gpipe_schedule(4, 8), 0.025, 0.025, 0.025)


def slower(latency: float, make=gpipe_schedule):
    """The same with messages that take their time."""
    return simulate_schedule(make(4, 8), 0.02, 0.02, 0.02, latency=latency)


def test_a_run_beside_its_plan() -> None:
    title, finding = sentences.plan_text("GPipe", PLAN, PLAN)
    assert title == "GPipe: 27% idle on 4 ranks, 27% on paper"
    assert finding == "The run took 660 ms. On paper it takes 660 ms"
    assert sentences.plan_text("", PLAN, slower(0.005))[1].endswith(", which ignores messages and delays")
    for plan, run in ((PLAN, STRETCHED), (PLAN, slower(0.1)), (slower(0.1), PLAN)):
        assert sentences.plan_text("", plan, run) == (BUSY, "")


def test_the_reason_for_what_is_not_as_on_paper() -> None:
    points = {0.0: Reason.NONE_NEEDED, 2.6: Reason.MESSAGES, -2.6: Reason.BUSY, 6.1: Reason.BUSY}
    assert {each: sentences.reason_for(each) for each in points} == points


def test_a_picture_in_words_tells_one_schedule_from_another() -> None:
    timings = {"1F1B": slower(0.0, one_f_one_b_schedule), "interleaved": simulate_schedule(interleaved_schedule(4, 8))}
    told = pictures.pipelines(timings, "Two schedules", "Planned").alt_text
    assert "Two schedules. Planned. 1F1B: idle 27%, at the start 4, 3, 2 and 1 forward passes; " in told
    assert told.endswith("2 stages on each rank, the first one darkest, at the start 11, 9, 7 and 5 forward passes.")


def test_a_busy_machine_answers_no_prediction() -> None:
    assert not sentences.disturbed(PLAN, slower(0.005))
    assert sentences.disturbed(PLAN, slower(0.1))
    assert sentences.disturbed(PLAN, STRETCHED)  # as idle as planned, but everything took longer


def test_what_cutting_brought() -> None:
    assert sentences.faster_text(slower(0.1), PLAN, 8) == (
        "Cut into 8 micro-batches, the same work is done 1.9 times faster"
    )
    assert "nothing" in sentences.faster_text(PLAN, PLAN, 8)


def test_what_each_rank_keeps_is_counted_step_by_step() -> None:
    gpipe, other = gpipe_schedule(2, 3), one_f_one_b_schedule(2, 3)
    assert sentences.steps_text("GPipe", gpipe) == "GPipe: 8 steps, and each rank keeps up to 3 micro-batches"
    assert sentences.steps_text("1F1B", other) == "1F1B: 8 steps; rank 0 keeps up to 2 micro-batches and rank 1 up to 1"


def test_the_formula_holds_or_not() -> None:
    ms = [1, 4, 16]
    formula = [bubble_fraction(4, m) for m in ms]
    assert sentences.formula_text(ms, [[share + 0.01] for share in formula], formula).endswith(
        "Idle 76% of the time with m = 1, 17% with m = 16; at most 1.0 percentage points from the formula"
    )
    off = [[formula[0]], [formula[1] + 0.05, 0.9, 0.1], [formula[2]]]
    assert sentences.farthest(ms, off, formula) == (pytest.approx(5.0), 4)
    assert sentences.formula_text(ms, off, formula).endswith(f"points from the formula{Reason.MESSAGES}")
    assert sentences.formula_text(ms, [[0.9], [0.9], [0.9]], formula) == BUSY


def test_what_is_kept_is_counted_in_the_run() -> None:
    one = slower(0.0, one_f_one_b_schedule)
    assert sentences.kept_by_rank(PLAN) == [8] * 4
    assert sentences.kept_by_rank(one) == [4, 3, 2, 1]
    assert sentences.kept_text(PLAN, one) == "With 1F1B, rank 0 keeps 4 micro-batches instead of 8"


def test_how_much_of_the_bubble_is_left() -> None:
    one, h1, h2 = (slower(0.0, make) for make in (one_f_one_b_schedule, zb_h1_schedule, zb_h2_schedule))
    assert sentences.idle_seconds(h1) / sentences.idle_seconds(one) == pytest.approx(1 / 3)
    assert sentences.bubble_text(one, h1, 1 / 3, "ZB-H1") == ("ZB-H1 leaves 33% of 1F1B's bubble, and 33% on paper")
    assert "saved nothing" in sentences.bubble_text(one, one, 1 / 3, "ZB-H1")
    assert "on paper" not in sentences.window_text(h2, [7])
    assert sentences.window_text(slower(0.01, zb_h2_schedule), [7]) == (
        "Between its first action and its last, a rank is idle 11% of the time, and never on paper. "
        "Rank 0 keeps 7 micro-batches"
    )


def test_what_isend_hides() -> None:
    fast, slow = [slower(0.0)] * 3, [slower(0.01)] * 3
    assert sentences.hidden_text(fast, slow) == "Ranks are idle 27% of the time with isend, and 33% if sends wait"
    assert sentences.hidden_text(fast, fast).startswith("No clear difference")
    wild = [slower(late) for late in (0.0, 0.2, 0.005)]
    assert sentences.hidden_text(wild, [slower(late) for late in (0.1, 0.0, 0.3)]) == BUSY


def test_what_running_on_without_a_flush_brought() -> None:
    assert sentences.flush_text(PLAN, 0.5) == "Without a flush, ranks are idle 27% of the time"
    assert sentences.flush_text(PLAN, 0.2) == BUSY


def test_what_stashing_brought() -> None:
    def said(no_delay, stashed, plain):
        return sentences.stashing_text({"fresh": [no_delay], "stashed": [stashed], "plain": [plain]}, last=1)

    assert said(1.0, 1.2, 1.4) == f"In this run, the loss ends higher with the delay; {Stashless.WORSE}"
    assert said(1.0, 1.01, 1.02) == f"In this run, the loss ends no higher with the delay; {Stashless.SAME}"
    assert said(1.0, 1.0, float("nan")) == f"In this run, the loss ends higher with the delay; {Stashless.BROKEN}"
    ends = {1.3: Stashless.WORSE, 1.25: Stashless.SAME, 1.0: Stashless.BETTER, 30.0: Stashless.BROKEN}
    assert {plain: sentences.not_to_stash(1.0, 1.2, plain) for plain in ends} == ends
    assert sentences.not_to_stash(1.0, 1.2, float("nan")) == Stashless.BROKEN


def test_a_schedule_is_called_proved_only_with_a_proof() -> None:
    known = "the best known takes 4 s, and "
    proof = "a proof of 12 steps, found in 500 ms, shows that none is faster"
    assert sentences.proved_text(4.0, 3.9, 12, 0.5) == known + proof
    gap = "none takes less than 3 s: a gap of 25% is open"
    assert sentences.proved_text(4.0, 3.0) == known + gap


def test_a_rank_that_needs_as_long_as_the_best_known_proves_it() -> None:
    parts = [(1.0, 2.0, 1.0), (2.0, 2.0, 1.0)]
    least = "Because of rank 1, every schedule takes at least 5 s"
    assert sentences.stretches_text(parts, 6.0) == f"{least}; the best known takes 6 s"
    assert sentences.stretches_text(parts, 5.0) == f"{least}, and the best known takes no more"


def test_puzzles_are_told_with_the_gaps_that_are_open() -> None:
    seconds = {"even": 10.0, "tight": 20.0}
    assert sentences.open_gaps(seconds, seconds) == {}
    assert "it is proved" in sentences.proofs_text(seconds, seconds)
    assert sentences.proofs_text(seconds, {"even": 10.0, "tight": 19.0}) == (
        "In 1 of 2 puzzles, the best known is proved to be the best; the gap is still 5.0% in tight"
    )
