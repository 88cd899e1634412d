"""Training runs on H100 and H200 GPUs, beside what the planner says of the same layout.

Others have published those in `h100_runs.csv`. A row has what its source says, and where that is silent what `TABLES`
says is assumed. `h200_steps.csv` has steps that were measured on one GPU for this course, see `ONE_GPU`. The rows of
each table are numbered from 1: `workshop.planner_rates` fits the rates to the odd ones, and the even ones judge them.
"""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from math import isnan, nan
from pathlib import Path
from statistics import mean, median

from course_utils.lessons.hybrid_and_sharded.planner.gpu_clusters import H100, H100_500W, H200, Cluster, Rates
from course_utils.lessons.hybrid_and_sharded.planner.language_models import LanguageModel, model_named
from course_utils.lessons.hybrid_and_sharded.planner.layout_search import TESTED_STAGES, Choice, is_tested, judge
from course_utils.lessons.hybrid_and_sharded.planner.training_layout import Layout, TrainingProgram
from course_utils.words import join, percent

GIB = 2**30
_TITAN = "pytorch/torchtitan, benchmarks/llama3_h100_202412_torchtitan.md (commit 31a17bf), December 2024, table "
_BRIDGE = "NVIDIA-NeMo/Megatron-Bridge, docs/performance-summary.md, DGX-H100, container "
_NEMO = "NVIDIA/NeMo, docs/source/performance/performance_summary.md (commit 070a0bb), DGX-H100, FP8, container 24.07"
_MOSAIC = "mosaicml/llm-foundry, scripts/train/benchmarking/README.md (commit 061f2c7), H100 80GB BF16"
_TRAINY = "pytorch/torchtitan, benchmarks/llama3-8b_h200_202506_trainy-whitefiber.md (commit 1af2937), June 2025"

TABLES = {
    **{f"torchtitan {number}": _TITAN + str(number) for number in range(1, 7)},
    "Trainy H200": _TRAINY,
    "NeMo 24.07": _NEMO,
    "Megatron Bridge 25.09": _BRIDGE + "25.09",
    "Megatron Bridge 25.11": _BRIDGE + "25.11 (commit 00b7660)",
    "MosaicML": _MOSAIC,
}
"""Where each table's rows stand. What the sources do not say is assumed: attention is fused everywhere. torchtitan cuts
a step into as many micro-batches as there are stages of all ranks, and leaves parameters gathered where there is a
pipeline (its pipelining_utils.py and parallelize_llama.py); its selective checkpointing is the one by operations; from
2025 on torch.compile takes the loss, too (its components/loss.py).
Megatron's runs compute nothing again, divide the optimizer's state, hide messages of tensor parallelism, and have
attention's kernel from cuDNN. MosaicML's nodes have the links of a DGX H100. Left out: models with experts whose heads
together are not as wide as the model, and MPT below 7B."""
ONE_GPU = "one H200"
"""The table of steps measured on a single H200 in November 2026, with torch 2.11, CUDA 13.0 and the fused AdamW, three
times ten steps of random tokens each. Weights are in float32 with bfloat16 in products, or in bfloat16 throughout; the
blocks, and the last layer with the loss, are compiled or not. Memory is what torch's allocator held.

Its order was chosen before the fit: first the steps that nothing was compiled for, then those that compute again, then
the others, each time the longest step first. So both halves have steps of each kind."""
KEPT = {"float32": (4, 4, 8), "bfloat16": (2, 2, 4)}
"""Bytes of a number, its gradient and Adam's state, where an option says in what format they are."""


@dataclass(frozen=True)
class H100Run:
    """A row of either table: what was trained how, and what was measured.

    Attributes:
        number: from 1, in the order of the file.
        speed: tokens in a second on each GPU.
        memory: bytes at the peak, as torch's allocator holds them; None where it was not published.
    """

    number: int
    table: str
    name: str
    layout: Layout
    length: int
    speed: float
    memory: float | None

    @property
    def fits_rates(self) -> bool:
        """Whether the rates are fitted to this row; otherwise it judges them."""
        return self.number % 2 == 1

    @property
    def seconds(self) -> float:
        """Of a step."""
        return self.layout.batch * self.length / (self.speed * self.layout.gpus)

    @property
    def model(self) -> LanguageModel:
        """What was trained."""
        return model_named(self.name)

    def cluster(self, rates: Rates | None = None) -> Cluster:
        """On which GPUs; with the fitted rates or others."""
        make = {"torchtitan": H100_500W, "Trainy": H200, "one": H200}.get(self.table.split()[0], H100)
        cluster = make(self.layout.gpus)
        if rates is None:
            return cluster
        return replace(cluster, rates=rates, clock=rates.capped if make is H100_500W else 1.0)

    def predicted(self, rates: Rates | None = None) -> Choice:
        """What the planner says of it."""
        return judge(self.model, self.cluster(rates), self.layout, self.length)


Prediction = tuple[H100Run, Choice]
"""A row, and what the planner says of it."""


@cache
def published_runs() -> tuple[H100Run, ...]:
    """All rows that others have published."""
    return tuple(_published(number, row) for number, row in enumerate(_rows("h100_runs.csv"), start=1))


@cache
def measured_steps() -> tuple[H100Run, ...]:
    """All steps that were measured on one GPU."""
    return tuple(_measured(number, row) for number, row in enumerate(_rows("h200_steps.csv"), start=1))


def _rows(name: str) -> Iterator[dict[str, str]]:
    return csv.DictReader(Path(__file__).with_name(name).read_text().splitlines())


def _published(number: int, row: dict[str, str]) -> H100Run:
    options = row["options"].split()
    whole = ("data", "tensor", "pipeline", "context", "chunks", "zero", "micro_batch", "micro_batches")
    layout = Layout(
        **{name: int(row[name]) for name in whole},
        again=row["again"],
        program=_program(options, (4, 4, 8) if row["zero"] == "3" else (2, 4, 12)),
        gathered="gathered" in options,
    )
    memory = float(row["memory_gib"]) * GIB if row["memory_gib"] else None
    speed = float(row["tokens_per_second_per_gpu"])
    return H100Run(number, row["table"], row["model"], layout, int(row["length"]), speed, memory)


def _measured(number: int, row: dict[str, str]) -> H100Run:
    number_format, *options = row["options"].split()
    texts, length = int(row["micro_batch"]), int(row["length"])
    program = _program([*options, "hopper"], KEPT[number_format])
    layout = Layout(1, 1, 1, 0, row["again"], texts, 1, program=program)
    speed = texts * length / (float(row["milliseconds"]) / 1000)
    return H100Run(number, ONE_GPU, row["model"], layout, length, speed, float(row["memory_gb"]) * 1e9)


def _program(options: Sequence[str], kept: tuple[float, float, float]) -> TrainingProgram:
    names = ("hopper", "compiled", "float8", "hidden", "fused_loss", "dtensor")
    return TrainingProgram(fused=True, kept=kept, **{name: name in options for name in names})


@dataclass(frozen=True)
class Errors:
    """How far predictions are from what was published: medians of |predicted / published - 1|, and the order.

    Attributes:
        rows, with_memory: how many.
        order: Kendall's τ of speed, over all pairs of rows of the same table.
        layouts: the same over pairs that train the same model, so that only the layout, the length of a text and what
            the program does are different; not a number if there is no such pair.
    """

    rows: int
    step: float
    with_memory: int
    memory: float
    order: float
    layouts: float

    def __str__(self) -> str:
        same = "" if isnan(self.layouts) else f", of the same model's rows {self.layouts:.2f}"
        return (
            f"{self.rows} rows: step {100 * self.step:.0f}%, order τ = {self.order:.2f}{same}; "
            f"memory ({self.with_memory} rows) {100 * self.memory:.0f}%"
        )


def predictions(runs: Sequence[H100Run], rates: Rates | None = None) -> list[Prediction]:
    """Each row with what the planner says of it."""
    return [(run, run.predicted(rates)) for run in runs]


def errors(runs: Sequence[H100Run], rates: Rates | None = None) -> Errors:
    """Of these rows."""
    return errors_of(predictions(runs, rates))


def errors_of(found: Sequence[Prediction]) -> Errors:
    """Of rows whose predictions are there already."""
    step = [abs(choice.step / run.seconds - 1) for run, choice in found]
    memory = [abs(choice.memory.total / run.memory - 1) for run, choice in found if run.memory]
    speeds = [(run.table, run.speed, run.speed * run.seconds / choice.step) for run, choice in found]
    same = [(f"{run.table} {run.name}", *pair) for (run, _), (_, *pair) in zip(found, speeds, strict=True)]
    return Errors(len(step), median(step), len(memory), median(memory), kendall(speeds), kendall(same))


def kendall(speeds: Sequence[tuple[str, float, float]]) -> float:
    """Kendall's τ of (table, published, predicted): of the pairs of a table, those in order less those out of order.

    Source: Kendall 1938, "A new measure of rank correlation".
    """
    pairs = [(a[1] - b[1]) * (a[2] - b[2]) for a, b in combinations(speeds, 2) if a[0] == b[0] and a[1] != b[1]]
    return mean((product > 0) - (product < 0) for product in pairs) if pairs else nan


def halves(rates: Rates | None = None, runs: Sequence[H100Run] | None = None) -> dict[str, Errors]:
    """Errors of the rows that the rates were fitted to, and of those that judge them; of the published runs, or of
    those given.
    """
    runs = published_runs() if runs is None else runs
    return {
        "fitted": errors([run for run in runs if run.fits_rates], rates),
        "judged": errors([run for run in runs if not run.fits_rates], rates),
    }


def published_finding() -> str:
    """How far the planner is from the published runs that its rates were not fitted to."""
    judged = halves()["judged"]
    step, memory = percent(judged.step), percent(judged.memory)
    return f"On the test set, the median error is {step} in step time and {memory} in memory"


def published_kinds_text() -> str:
    """Say what the published runs test, and what none of them does.

    Raises:
        AssertionError: a run does what `is_tested` takes for untested.
    """
    runs = published_runs()
    assert all(is_tested(run.layout) for run in runs)
    texts = []
    for stage in TESTED_STAGES:
        programs = [run.layout.program for run in runs if run.layout.zero == stage]
        low = sum(program.float8 for program in programs)
        which = "all" if low == len(programs) else str(low)
        texts.append(f"{len(programs)} use ZeRO {stage} ({which} of them with 8-bit numbers)")
    runs_text = f"Of {len(runs)} published runs, {join(texts)}"
    return f"{runs_text}. None offloads the optimizer state or uses ZB-V or HSDP."
