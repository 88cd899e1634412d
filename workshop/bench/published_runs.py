"""Training runs that others have published, beside what the planner's formulas say of the same layout.

All ran on A100 GPUs, and one efficiency is assumed for all. Without ZeRO the formulas come near: `comparison` says how
near. With ZeRO 3 it depends on the program: the formulas hide its messages behind arithmetic and use every link of a
node, as FSDP does in the run of 2023; the program of 2021 was far from that.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from course_utils.lessons.hybrid_and_sharded.planner.gpu_clusters import A100, Cluster
from course_utils.lessons.hybrid_and_sharded.planner.language_models import MODELS
from course_utils.lessons.hybrid_and_sharded.planner.layout_search import Choice, judge
from course_utils.lessons.hybrid_and_sharded.planner.training_layout import FULL, SELECTIVE, Layout
from course_utils.lessons.hybrid_and_sharded.utilization import mfu


@dataclass(frozen=True)
class PublishedRun:
    """A layout and how long a step of it took.

    Attributes:
        model: its name in `MODELS`.
        layout: as published.
        seconds: measured by the authors; for a published rate, what follows from it.
        source: where it stands.
    """

    model: str
    layout: Layout
    seconds: float
    source: str

    @property
    def cluster(self) -> Cluster:
        """All of these ran on A100 GPUs."""
        return A100(self.layout.gpus)

    def predicted(self) -> Choice:
        """What the planner says of it."""
        model = MODELS[self.model]
        return judge(model, self.cluster, self.layout, model.context)

    def mfu(self) -> float:
        """Its model FLOPs utilization."""
        model, tokens = MODELS[self.model], self.layout.batch * MODELS[self.model].context
        forward = model.flops(1, model.context) / 3
        return mfu(forward, tokens, self.seconds, self.layout.gpus, self.cluster.flops)


def _with_rate(model: str, layout: Layout, teraflops: float, source: str) -> PublishedRun:
    """A run of which the arithmetic of each GPU in a second was published, with the second forward pass in it."""
    described = MODELS[model]
    flops = 4 / 3 * described.flops(layout.batch * described.context, described.context)
    return PublishedRun(model, layout, flops / (layout.gpus * teraflops * 1e12), source)


_TABLE_5 = "Korthikanti et al. 2022, tables 3 and 5"
_TABLE_1 = "Narayanan et al. 2021, table 1"
_TABLE_2 = "Narayanan et al. 2021, table 2"
_FSDP = 'Zhao et al. 2023, "PyTorch FSDP", §5.4'


PUBLISHED = [
    PublishedRun("Megatron 22B", Layout(1, 8, 1, 0, SELECTIVE, 4, 1), 1.10, _TABLE_5),
    PublishedRun("GPT-3 175B", Layout(1, 8, 8, 0, SELECTIVE, 1, 64, chunks=3), 13.75, _TABLE_5),
    PublishedRun("Megatron 530B", Layout(1, 8, 35, 0, SELECTIVE, 1, 280, chunks=3), 37.83, _TABLE_5),
    PublishedRun(
        "Megatron 530B", Layout(8, 8, 35, 0, SELECTIVE, 1, 280, chunks=3), 39.15, "Korthikanti et al. 2022, §6.3"
    ),
    PublishedRun("Megatron 1T", Layout(1, 8, 64, 0, SELECTIVE, 1, 512), 71.49, _TABLE_5),
    _with_rate("Megatron 145B", Layout(24, 8, 8, 0, FULL, 1, 96), 148, _TABLE_1),
    _with_rate("Megatron 530B", Layout(9, 8, 35, 0, FULL, 1, 280), 163, _TABLE_1),
    _with_rate("Megatron 1T", Layout(6, 8, 64, 0, FULL, 1, 512), 163, _TABLE_1),
    _with_rate("GPT-3 175B", Layout(4, 8, 12, 0, FULL, 1, 384), 153, _TABLE_2),
    _with_rate("GPT-3 175B", Layout(16, 8, 12, 0, FULL, 1, 96), 141, _TABLE_2),
]
"""Tensor and pipeline parallelism, with plain replicas. Tables 1 and 2 do not say how many texts a micro-batch has, and
whether stages are interleaved: one text and plain 1F1B are assumed."""


ZERO_3 = [
    _with_rate("GPT-3 175B", Layout(384, 1, 1, 3, FULL, 4, 1), 144, _TABLE_2),
    _with_rate("GPT-3 175B", Layout(768, 1, 1, 3, FULL, 2, 1), 88, _TABLE_2),
    _with_rate("GPT-3 175B", Layout(1536, 1, 1, 3, FULL, 1, 1), 44, _TABLE_2),
    _with_rate("GPT-3 175B", Layout(512, 1, 1, 3, FULL, 2, 1), 186, _FSDP),
]
"""Nothing but ZeRO 3: with the DeepSpeed of 2021, the last one with FSDP."""


def comparison(runs: Sequence[PublishedRun] = PUBLISHED) -> list[str]:
    """A line for each run: published, predicted, and how far apart."""
    lines = []
    for run in runs:
        chosen = run.predicted()
        difference = f"{100 * (chosen.step / run.seconds - 1):+.0f}%"
        lines.append(
            f"{run.model} on {run.layout.gpus} GPUs, {chosen}: "
            f"published {run.seconds:.1f} s, predicted {chosen.step:.1f} s ({difference}); {run.source}"
        )
    return lines
