"""On a busy machine every lesson that compares times prints one sentence, and nothing is judged.

The times are made up: calm ones, from which a finding follows, and wild ones, from which none does.
"""

import ast
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from course_utils.lessons.allreduce import sentences as allreduce
from course_utils.lessons.data_parallel import sentences as data_parallel
from course_utils.lessons.failures import sentences as failures
from course_utils.lessons.gpu_nodes import sentences as gpu_nodes
from course_utils.lessons.gpu_nodes.ladder import Climb
from course_utils.lessons.gpu_nodes.transformer_step import NetworkRates
from course_utils.lessons.hardware import layer_costs, reading_speed, step_shares
from course_utils.lessons.hardware import sentences as hardware
from course_utils.lessons.inference import sentences as inference
from course_utils.lessons.long_texts import sentences as long_texts
from course_utils.lessons.overlap import sentences as overlap
from course_utils.lessons.overlap.step_times import ALONE, StepTimes
from course_utils.lessons.parameter_server import sentences as parameter_server
from course_utils.lessons.parameter_server.digits_trainings import Served
from course_utils.lessons.pipeline import sentences as pipeline
from course_utils.lessons.pipeline.schedules import gpipe_schedule
from course_utils.lessons.pipeline.timing import simulate_schedule
from course_utils.lessons.profiling import sentences as profiling
from course_utils.lessons.profiling.feeding import Fed
from course_utils.lessons.profiling.lanes import Lanes
from course_utils.lessons.strategy_search import sentences as strategy_search
from course_utils.measuring import BUSY, Compared, Measured, is_busy
from course_utils.syllabus import ROOT

CALM, WILD = (1.0, 1.02, 0.98, 1.0, 1.01), (0.2, 3.0, 0.9, 0.4, 2.2)
TWICE = tuple(2 * seconds for seconds in CALM)
Text = Callable[[Sequence[float]], str]


def layer(seconds: Sequence[float]) -> layer_costs.Layer:
    """A layer that took these seconds, in some runs."""
    return layer_costs.Layer("relu1", "relu", 1, 10, 1.0, Measured(tuple(seconds)))


def training(seconds: Sequence[float]) -> step_shares.TimedTraining:
    """A training whose iterations took these seconds."""
    return step_shares.TimedTraining([step_shares.Iteration(0.3 * s, 0.6 * s, 0.1 * s) for s in seconds], images=10)


def reading(seconds: Sequence[float]) -> dict[str, reading_speed.Reading]:
    """Both kinds of storage, read in these seconds."""
    return {storage: reading_speed.Reading(Measured(tuple(seconds)), cold=True) for storage in reading_speed.WAYS}


def ladder(seconds: Sequence[float]) -> Climb:
    """Two rungs, of which the second took these seconds."""
    taken = {"float32": list(TWICE), "+ TF32": list(seconds)}
    return Climb("a GPU", "today", dict.fromkeys(taken, 1), 1.0, [1.0], taken, {})


def networks(seconds: Sequence[float]) -> NetworkRates:
    """Two networks with as many operations in a step, of which the second took these seconds."""
    return NetworkRates("a GPU", "today", {"a": 1.0, "b": 1.0}, {"a": list(TWICE), "b": list(seconds)}, [1.0])


def measured(seconds: Sequence[float]) -> Measured:
    """The seconds as a quantity."""
    return Measured(tuple(seconds))


def steps(seconds: Sequence[float]) -> StepTimes:
    """Steps without communication, which are calm, and with it; a busy machine makes the latter faster."""
    with_it = TWICE if seconds == CALM else [0.5 * alone for alone in CALM]
    return StepTimes({ALONE: list(CALM), "ours": list(with_it), "loop": list(with_it)})


def pipeline_run(seconds: Sequence[float], text: Callable) -> str:
    """What is said of a run as planned, or of one whose stages waited longer than planned."""
    plan = simulate_schedule(gpipe_schedule(4, 8), 0.02, 0.02, 0.02)
    unit = 0.02 if seconds == CALM else 0.03
    return text(plan, simulate_schedule(gpipe_schedule(4, 8), unit, unit, unit))


def profile(seconds: Sequence[float]) -> list[Lanes]:
    """Ranks that hide so much of ten seconds of communication."""
    return [Lanes(rank, 0, 20, [(0, 3 * hidden)], [(0, 10)], {}) for rank, hidden in enumerate(seconds)]


def fed(seconds: Sequence[float]) -> Fed:
    """Steps of these seconds, whoever makes the batches."""
    makers = ("made by this process", "made by 4 workers", "made before", "on the GPU from the beginning")
    return Fed("a GPU", "today", 32, {maker: {"pinned": list(seconds)} for maker in makers})


TEXTS: dict[str, Text] = {
    "3 moved": lambda s: hardware.moved_sentence({"sum": measured(s), "copy": measured(s)}),
    "3 batches": lambda s: hardware.batches_text({n: measured(s) for n in (1, 4, 16)})[0],
    "3 layers, title": lambda s: hardware.layers_title([layer(s), layer(s)], 10),
    "3 small layers": lambda s: hardware.small_layers_sentence([layer(s), layer(s)], 0.1, 10.0),
    "3 layers": lambda s: hardware.layers_sentence([layer(s), layer(s)], 10),
    "3 reading": lambda s: hardware.reading_sentence(reading(s), reading(s)),
    "3 workers": lambda s: hardware.workers_sentence({"packed": {n: measured(s) for n in (0, 1, 2)}}, 2),
    "3 shares": lambda s: hardware.shares_sentence(training(s)),
    "3 epoch": lambda s: hardware.epoch_sentence({"CPU": measured(s)}, 2),
    "3 threads": lambda s: hardware.threads_sentence({n: measured(s) for n in (1, 2, 4)}, 2),
    "3 hyperthreads": lambda s: hardware.hyperthreads_sentence(
        {2: measured(CALM), 4: measured(s)}, 2, 2, 2
    ).splitlines()[1],
    "3 bounds": lambda s: hardware.brent_sentence({1: (0.5, 1.1)}, {1: 1.0 if s == CALM else 2.0}),
    "5 formula": lambda s: allreduce.formula_text(s, 1.0, 2.0),
    "5 errors": lambda s: allreduce.error_text([1.0], [s]),
    "5 kept": lambda s: allreduce.kept_text({"2 ranks": {"ring": [s]}, "4 ranks": {"ring": [s]}}),
    "6 exchange": lambda s: data_parallel.exchange_text({"six": s, "one": s}),
    "6 backends": lambda s: data_parallel.fastest_text([1], {"MPI": [s], "gloo": [s]}),
    "7 hiding": lambda s: overlap.hiding_text(steps(s), "ours", "loop"),
    "7 batch": lambda s: overlap.batch_text({32: steps(CALM), 64: steps(s)}, "ours"),
    "7 loopback": lambda s: overlap.loopback_text(
        StepTimes({"flat": list(CALM), "ours": list(s)}), "flat", "ours", 2, 2
    ),
    "8 link": lambda s: parameter_server.link_text({"server": [s]}, {"server": [1.0]}),
    "8 server and ring": lambda s: parameter_server.link_title([1], [s], [s]),
    "8 served": lambda s: parameter_server.served_text(
        [Served(3, 10.0, 2.0, 0.9)], [Served(3, 10.0 if s == CALM else 5.0, 2.0, 0.9)]
    )[1],
    "8 straggler": lambda s: parameter_server.straggler_text({"synchronous": 4, "asynchronous": 1}, busy=s == WILD),
    "10 plan": lambda s: pipeline_run(s, lambda plan, run: pipeline.plan_text("GPipe", plan, run)[0]),
    "10 formula": lambda s: pipeline.formula_text([4], [[0.4 if s == CALM else 0.8]], [0.4]),
    "10 flush": lambda s: pipeline_run(CALM, lambda plan, run: pipeline.flush_text(run, 0.5 if s == CALM else 0.1)),
    "12 ratio": lambda s: strategy_search.ratio_text(Compared(CALM, TWICE if s == CALM else s), 2.0),
    "12 timed": lambda s: strategy_search.timed_text(7, Measured(tuple(s)).spread).rpartition(". ")[2],
    "13 bandwidth": lambda s: gpu_nodes.bandwidth_text([2, 4], [s, s], [s, s]),
    "13 sizes": lambda s: gpu_nodes.sweep_text([1, 2], {"all_reduce": [s, s]}, "gloo", 2)[0],
    "13 switches": lambda s: gpu_nodes.widths_text({64: {"float32": CALM, "bfloat16": s}}, "float32"),
    "13 ladder": lambda s: gpu_nodes.gains_text(ladder(s)),
    "13 networks": lambda s: gpu_nodes.networks_text(networks(s))[0],
    "13 compiling": lambda s: gpu_nodes.compiling_text(1.0, {"float32": s, "compiled": s}, "float32", "compiled"),
    "14 overlap": lambda s: profiling.overlap_text(profile(CALM), profile(s), "buckets"),
    "14 feeding": lambda s: profiling.fed_text(fed(s)),
    "18 stall": lambda s: failures.stall_text(SimpleNamespace(stall=1.0), SimpleNamespace(stall=9.0), is_busy([s])),
    "19 reading": lambda s: inference.reading_text({1: Measured(s), 64: Measured(tuple(3 * v for v in s))}),
    "19 step": lambda s: inference.step_text({"with": [9 * v for v in s], "without": s}, 8.0),
    "17 exposed": lambda s: long_texts.exposed_text({"ring": s, "in turn": [4 * v for v in s], "alone": s}, *TOLD),
}
TOLD = "ring", "in turn", "alone"


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_busy_run_prints_the_sentence_and_a_calm_one_its_finding(text: Text) -> None:
    assert text(WILD).rstrip(".") == BUSY
    assert BUSY not in text(CALM) and text(CALM)


def test_what_was_counted_is_said_on_a_busy_machine_too() -> None:
    said = pipeline_run(
        WILD, lambda plan, run: pipeline.kept_text(plan, simulate_schedule(gpipe_schedule(4, 8), 1, 1, 1, 1))
    )
    assert said == "With 1F1B, rank 0 keeps 8 micro-batches instead of 8"


def test_runs_of_trainings_that_scatter_are_no_race() -> None:
    class Run:
        def __init__(self, seconds: float) -> None:
            self.seconds = [seconds]

    def rows(values):
        return {setting: {"synchronous": [Run(value) for value in values]} for setting in ("equal", "slow")}

    assert parameter_server.is_busy_race(rows(WILD)) and not parameter_server.is_busy_race(rows(CALM))


TIMED = {
    "02_autodiff_and_optimizers": {"backward_price"},
    "03_hardware_further": {"moved", "threads", "files", "workers"},
    "06_data_parallel": {"straggler"},
    "06_data_parallel_further": {"same_backend"},
    "07_overlap": {"overlap_ddp"},
    "08_parameter_server": {"server_ms", "server_late"},
    "09_model_parallel": {"model_idle"},
    "09_model_parallel_further": {"model_pruning"},
    "10_pipeline": {"pipeline_idle", "pipeline_interleaved", "pipeline_zero"},
    "13_gpu_nodes_part_2": {"links"},
    "14_profiling_further": {"gpu_fed"},
    "16_experts": {"experts_crowd"},
    "18_failures_further": {"least_waiting"},
}
"""What pages measure by the clock: nothing of it is judged on a busy machine.

Not in it are shares of a single profile or recording in lesson 14, of which nothing could scatter.
"""


def with_busy(page: Path) -> set[str]:
    """The predictions of a page that are judged only where the machine was not busy."""
    found = set()
    for node in ast.walk(ast.parse(page.read_text(encoding="utf-8"))):
        match node:
            case ast.Call(ast.Attribute(ast.Name("course"), "measured"), [ast.Constant(name)], keywords):
                found |= {name} if any(word.arg == "busy" for word in keywords) else set()
    return found


@pytest.mark.parametrize("page", TIMED)
def test_what_a_page_measures_by_the_clock_is_not_judged_on_a_busy_machine(page: str) -> None:
    assert with_busy(ROOT / "notebooks" / "src" / f"{page}.py") == TIMED[page]


GUESSES = "is the machine busy", "is the computer busy", "kept the computer busy", "kept this machine busy"


@pytest.mark.parametrize(
    "room", sorted((ROOT / "course_utils" / "lessons").glob("*/sentences.py")), ids=lambda path: path.parent.name
)
def test_no_sentence_guesses_whether_the_machine_is_busy(room: Path) -> None:
    text = room.read_text(encoding="utf-8").lower()
    assert not [guess for guess in GUESSES if guess in text]
