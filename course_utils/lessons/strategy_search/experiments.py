"""Predicted against measured: strategies are simulated, become programs, and the programs are timed on ranks.

Source: Jia, Zaharia & Aiken 2018, §8.3.1 and figure 11, which compares simulated and real times in the same way.
"""

import importlib
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from course_utils.lessons.strategy_search.costs.described_costs import DeviceCosts, described_costs
from course_utils.lessons.strategy_search.costs.device_topology import describe
from course_utils.lessons.strategy_search.graph.configurations import Config
from course_utils.lessons.strategy_search.graph.operator_graph import OperatorGraph, Shape
from course_utils.lessons.strategy_search.graph.read_model import read_model
from course_utils.lessons.strategy_search.program.run_program import DDP, steps
from course_utils.lessons.strategy_search.program.write_program import program_text
from course_utils.lessons.strategy_search.simulator.simulate import makespan
from course_utils.lessons.strategy_search.simulator.task_graph import task_graph

if TYPE_CHECKING:
    from course_utils.ranks.ranks import Ranks


@dataclass(frozen=True)
class Workload:
    """A model and its batch.

    Attributes:
        name: in words.
        function: that makes the model, with the module that it is in.
        options: of that function.
        shape: of the whole batch.
        row_cuts: as for `read_model`.
        classes: among which the labels are drawn, one for each example, or for each position of a text.
    """

    name: str
    function: str
    options: dict[str, Any]
    shape: Shape
    classes: int = 10
    row_cuts: bool = False

    @property
    def build(self) -> str:
        """The call that makes the model, as `program` takes it."""
        return f"{self.function}({', '.join(f'{name}={value!r}' for name, value in self.options.items())})"

    def model(self) -> nn.Module:
        """A new model, the same each time."""
        module, _, name = self.function.rpartition(".")
        torch.manual_seed(0)
        return getattr(importlib.import_module(module), name)(**self.options)

    def graph(self) -> OperatorGraph:
        """Its operators."""
        return self.graph_of(self.model())

    def graph_of(self, model: nn.Module) -> OperatorGraph:
        """The operators of a model that `model` gave."""
        return read_model(model, self.shape, name=self.name, row_cuts=self.row_cuts)

    def batch(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Random inputs and labels of the whole batch, the same each time."""
        generator = torch.Generator().manual_seed(0)
        is_text = len(self.shape) == 3
        labels = torch.randint(self.classes, self.shape[: 2 if is_text else 1], generator=generator)
        return torch.randn(self.shape, generator=generator), labels


@dataclass(frozen=True)
class PredictedAndMeasured:
    """What was predicted for strategies, and what was measured.

    Attributes:
        predicted: seconds of a step, for each strategy.
        measured: seconds of a step on the rank that took longest, for each strategy round by round.
    """

    strategies: Sequence[Sequence[Config]]
    predicted: Sequence[float]
    measured: Sequence[Sequence[float]] = field(repr=False)

    @property
    def medians(self) -> list[float]:
        """The median measured step of each strategy, in seconds."""
        return [statistics.median(each) for each in self.measured]


def predicted_seconds(graph: OperatorGraph, strategy: Sequence[Config], costs: DeviceCosts) -> float:
    """How long one training step takes under a strategy by the simulator, in seconds; nothing is run."""
    return makespan(task_graph(graph, strategy, costs)) / 1e9


def measure_steps(
    ranks: "Ranks", case: Workload, strategies: Sequence[Sequence[Config] | str], rounds: int = 5
) -> list[list[float]]:
    """Seconds of a training step under each strategy, by turns, round by round: on the rank that took longest.

    Every strategy becomes a program, and all train the same model; `DDP` stands for torch's data parallelism.
    """
    graph, model = case.graph(), case.model()
    texts = [
        strategy if strategy == DDP else program_text(model, graph, strategy, case.build, ranks.world_size)
        for strategy in strategies
    ]
    found = ranks.run(steps, texts, case.model, case.batch, rounds, backend="gloo").results
    return [[max(each) for each in zip(*rounds, strict=True)] for rounds in zip(*found, strict=True)]


def compare(
    ranks: "Ranks", case: Workload, strategies: Sequence[Sequence[Config]], costs: DeviceCosts, rounds: int = 5
) -> PredictedAndMeasured:
    """Predict a step of each strategy, and measure it."""
    graph = case.graph()
    predicted = [predicted_seconds(graph, strategy, costs) for strategy in strategies]
    return PredictedAndMeasured(strategies, predicted, measure_steps(ranks, case, strategies, rounds))


# --- the experiment of the report on parallel strategies -------------------------------------------------------------

REPORT = Workload("AlexNet", "course_utils.lessons.strategy_search.graph.example_models.alexnet", {}, (64, 3, 224, 224))
"""AlexNet as it is, for images of its own size."""
GTX_1080_TI = {"flops_per_second": 11.3e12, "bytes_per_second": 484e9}
"""Single precision and memory, by NVIDIA's data sheet."""


WIDE_VGG11 = Workload("VGG-11", "course_utils.vgg.vgg11", {"norm": False}, (128, 3, 32, 32))
"""The course's VGG-11 in full width, for images of 32 × 32 pixels: a single linear layer."""


def report_costs(graph: OperatorGraph, devices: int = 2, speeds: Sequence[float] = ()) -> DeviceCosts:
    """GTX 1080 Ti that talk over PCIe 3.0 with 16 lanes: 12 GB/s; described, as nobody has them here.

    Args:
        devices: how many; the report has two.
        speeds: of each, as a factor on the data sheet's; none: all alike.
    """
    cards = describe({f"gpu{number}": 11 << 30 for number in range(devices)}, (10e-6, 12e9), speeds)
    return described_costs(graph, cards, **GTX_1080_TI)
