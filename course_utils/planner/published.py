"""Training runs that others have published, beside what the planner's formulas say of the same layout."""

from dataclasses import dataclass

from course_utils.planner.clusters import A100, Cluster
from course_utils.planner.layout import FULL, SELECTIVE, Layout
from course_utils.planner.models import MODELS
from course_utils.planner.plan import Choice, judge


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


def _with_rate(model: str, layout: Layout, teraflops: float) -> PublishedRun:
    """A run of Narayanan et al., who give the arithmetic of each GPU in a second, the second forward pass included."""
    described = MODELS[model]
    flops = 4 / 3 * described.flops(layout.batch * described.context, described.context)
    return PublishedRun(model, layout, flops / (layout.gpus * teraflops * 1e12), "Narayanan et al. 2021, table 1")


_TABLE_5 = "Korthikanti et al. 2022, tables 3 and 5"

PUBLISHED = [
    PublishedRun("Megatron 22B", Layout(1, 8, 1, 0, SELECTIVE, 4, 1), 1.10, _TABLE_5),
    PublishedRun("GPT-3 175B", Layout(1, 8, 8, 0, SELECTIVE, 1, 64, chunks=3), 13.75, _TABLE_5),
    PublishedRun("Megatron 530B", Layout(1, 8, 35, 0, SELECTIVE, 1, 280, chunks=3), 37.83, _TABLE_5),
    PublishedRun("Megatron 1T", Layout(1, 8, 64, 0, SELECTIVE, 1, 512), 71.49, _TABLE_5),
    _with_rate("Megatron 145B", Layout(24, 8, 8, 0, FULL, 1, 96), 148),
    _with_rate("Megatron 530B", Layout(9, 8, 35, 0, FULL, 1, 280), 163),
    _with_rate("Megatron 1T", Layout(6, 8, 64, 0, FULL, 1, 512), 163),
]
