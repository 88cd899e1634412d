"""The pictures of deck 10: schedules as planned and as run, idle shares beside the formula, and weights that move."""

from collections.abc import Callable
from functools import cache, partial

import numpy as np
from matplotlib.figure import Figure

import course_utils as course
from course_utils.lessons.pipeline import pictures
from course_utils.lessons.pipeline.actions import Schedule, parse_schedule
from course_utils.lessons.pipeline.digits_pipeline import step_by_step, step_by_step_alone, timed_runs
from course_utils.lessons.pipeline.interleaved import interleaved_schedule
from course_utils.lessons.pipeline.puzzle.puzzle import PUZZLES
from course_utils.lessons.pipeline.schedules import bubble_fraction, gpipe_schedule, one_f_one_b_schedule
from course_utils.lessons.pipeline.sentences import (
    bubble_text,
    faster_text,
    formula_text,
    idle_seconds,
    kept_by_rank,
    kept_text,
    plan_text,
    stashing_text,
    window_text,
)
from course_utils.lessons.pipeline.timing import Timing, simulate_schedule
from course_utils.lessons.pipeline.zero_bubble import zb_h1_schedule, zb_h2_schedule
from course_utils.words import count, percent

RANKS, MICRO_BATCHES = 4, 8
STAGE = 0.04  # seconds that a forward pass waits, and each half of a backward pass
SWEEP = (1, 2, 4, 8, 16)  # micro-batches
RUNS = 3  # of each
STEPS = 200  # without a flush
DRAFT = {"STAGE": 0.002, "SWEEP": (1, 4), "RUNS": 1, "STEPS": 30}


@cache
def ranks():
    """The ranks that all pictures of this deck run on."""
    return course.start(RANKS)


def planned(schedule: Schedule, chunks: int = 1) -> Timing:
    """The schedule by the simulator."""
    return simulate_schedule(schedule, *[STAGE / chunks] * 3)


@cache
def run_of(make: Callable[[int, int], Schedule]) -> Timing:
    """One run of a schedule of these sizes."""
    return timed_runs(ranks(), make(RANKS, MICRO_BATCHES), STAGE)[0]


def pieces() -> Figure:
    """A batch in one piece, and in micro-batches."""
    whole = parse_schedule([f"{rank}F0 {rank}B0" for rank in range(RANKS)])
    one, many = timed_runs(ranks(), whole, MICRO_BATCHES * STAGE)[0], run_of(gpipe_schedule)
    both = {"one piece": one, f"{MICRO_BATCHES} micro-batches": many}
    return pictures.pipelines(both, faster_text(one, many, MICRO_BATCHES), in_seconds=list(both))


def bubble() -> Figure:
    """The idle share over the number of micro-batches, beside the formula."""
    runs = [[run.idle_share for run in timed_runs(ranks(), gpipe_schedule(RANKS, m), STAGE, RUNS)] for m in SWEEP]
    formula = [bubble_fraction(RANKS, m) for m in SWEEP]
    title, found = formula_text(SWEEP, runs, formula), f"GPipe on {RANKS} ranks, {count(RUNS, 'run')} for each m"
    look = {"across": "micro-batches m", "up": "idle share", "unit": percent, "limits": (0, 1)}
    return course.draw.over_numbers(SWEEP, {"GPipe": runs}, title, found, predicted={"GPipe": formula}, **look)


def beside_its_plan(name: str, make: Callable[[int, int], Schedule], chunks: int = 1) -> Figure:
    """A schedule as planned, and as run."""
    plan, run = planned(make(RANKS, MICRO_BATCHES), chunks), run_of(make)
    return pictures.plan_and_run(name, plan, run, *plan_text(name, plan, run))


def kept() -> Figure:
    """What each rank keeps, with GPipe and with 1F1B."""
    plain, other = run_of(gpipe_schedule), run_of(one_f_one_b_schedule)
    counted = {"GPipe": kept_by_rank(plain), "1F1B": kept_by_rank(other)}
    theory = {"GPipe": [MICRO_BATCHES] * RANKS, "1F1B": [min(RANKS - rank, MICRO_BATCHES) for rank in range(RANKS)]}
    found = "Counted in the two runs; the lines are m and min(p − r, m)"
    look = {"across": "rank", "up": "micro-batches kept, at most", "limits": (0, MICRO_BATCHES + 1)}
    return course.draw.over_numbers(range(RANKS), counted, kept_text(plain, other), found, predicted=theory, **look)


def zb_h1() -> Figure:
    """ZB-H1, with what it leaves of 1F1B's bubble."""
    plan, run = planned(zb_h1_schedule(RANKS, MICRO_BATCHES)), run_of(zb_h1_schedule)
    left = idle_seconds(plan) / idle_seconds(planned(one_f_one_b_schedule(RANKS, MICRO_BATCHES)))
    title = bubble_text(run_of(one_f_one_b_schedule), run, left, "ZB-H1")
    return pictures.plan_and_run("ZB-H1", plan, run, title, plan_text("ZB-H1", plan, run)[1])


def zb_h2() -> Figure:
    """ZB-H2, with what it leaves idle within a rank's own work."""
    plan, run = planned(zb_h2_schedule(RANKS, MICRO_BATCHES)), run_of(zb_h2_schedule)
    title, found = plan_text("ZB-H2", plan, run)[0], window_text(run, kept_by_rank(run))
    return pictures.plan_and_run("ZB-H2", plan, run, title, found)


def stashing() -> Figure:
    """The same training without a delay, with weight stashing, and without it."""
    losses = {"no delay": step_by_step_alone(STEPS)}
    for name, stash in {"stashed": True, "not stashed": False}.items():
        losses[name] = ranks().run(step_by_step, STEPS, stash).results[-1].losses
    window = np.ones(20) / 20
    smooth = {name: np.convolve(line, window, "valid") for name, line in losses.items()}
    return course.draw.loss_curves(smooth, stashing_text(losses), x="step", y="loss (mean of 20)")


def puzzle() -> Figure:
    """1F1B on a puzzle of the class."""
    timing = PUZZLES["uneven"].one_f_one_b()
    title = f"1F1B on uneven stages: {percent(timing.idle_share)} idle"
    return pictures.pipelines({"1F1B": timing}, title, "Simulated, by the puzzle's times", in_seconds=["1F1B"])


FIGURES = {
    "10_pieces": pieces,
    "10_bubble": bubble,
    "10_1f1b": partial(beside_its_plan, "1F1B", one_f_one_b_schedule),
    "10_kept": kept,
    "10_interleaved": partial(beside_its_plan, "interleaved", interleaved_schedule, 2),
    "10_zb_h1": zb_h1,
    "10_zb_h2": zb_h2,
    "10_stashing": stashing,
    "10_puzzle": puzzle,
}
