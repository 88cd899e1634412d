"""Predicted against measured: strategies are simulated, become programs, and the programs are timed on ranks.

Source: Jia, Zaharia & Aiken 2018, §8.3.1 and figure 11, which compares simulated and real times in the same way.
"""

import importlib
import random
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from course_utils.errors import CourseError
from course_utils.lessons.strategy_search.costs.described_costs import DeviceCosts, described_costs
from course_utils.lessons.strategy_search.costs.device_topology import describe
from course_utils.lessons.strategy_search.costs.measured_costs import measure_costs
from course_utils.lessons.strategy_search.costs.measured_links import measured_topology
from course_utils.lessons.strategy_search.graph.configurations import Config, configurations
from course_utils.lessons.strategy_search.graph.operator_graph import OperatorGraph, Shape
from course_utils.lessons.strategy_search.graph.plain_strategies import data_parallel, on_one_device
from course_utils.lessons.strategy_search.graph.read_model import read_model
from course_utils.lessons.strategy_search.program.run_program import DDP, steps
from course_utils.lessons.strategy_search.program.write_program import program_text
from course_utils.lessons.strategy_search.search.many_walks import find_strategy
from course_utils.lessons.strategy_search.simulator.simulate import makespan
from course_utils.lessons.strategy_search.simulator.task_graph import task_graph

if TYPE_CHECKING:
    from course_utils.ranks.ranks import Ranks

SLOWEST = 5.0
"""Strategies that are predicted to take longer than this many times the best are not run."""


@dataclass(frozen=True)
class Workload:
    """A model and its batch.

    Attributes:
        name: in words.
        function: that makes the model, with the module that it is in.
        options: of that function.
        shape: of the whole batch.
        classes: among which the labels are drawn.
    """

    name: str
    function: str
    options: dict[str, Any]
    shape: Shape
    classes: int = 10

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
        return read_model(model, self.shape, name=self.name)

    def batch(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Random inputs and labels of the whole batch, the same each time."""
        generator = torch.Generator().manual_seed(0)
        labels = torch.randint(self.classes, self.shape[:1], generator=generator)
        return torch.randn(self.shape, generator=generator), labels


ALEXNET = Workload(
    "AlexNet",
    "course_utils.lessons.strategy_search.graph.example_models.alexnet",
    {"width": 0.25, "linear": 0.125, "pixels": 160},
    (128, 3, 160, 160),
)
VGG11 = Workload("VGG-11", "course_utils.vgg.vgg11", {"width": 0.25, "norm": False}, (128, 3, 32, 32))


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
    texts = [one if one == DDP else program_text(model, graph, one, case.build, ranks.world_size) for one in strategies]
    found = ranks.run(steps, texts, case.model, case.batch, rounds, backend="gloo").results
    return [[max(each) for each in zip(*rounds, strict=True)] for rounds in zip(*found, strict=True)]


def compare(
    ranks: "Ranks", case: Workload, strategies: Sequence[Sequence[Config]], costs: DeviceCosts, rounds: int = 5
) -> PredictedAndMeasured:
    """Predict a step of each strategy, and measure it."""
    graph = case.graph()
    predicted = [predicted_seconds(graph, strategy, costs) for strategy in strategies]
    return PredictedAndMeasured(strategies, predicted, measure_steps(ranks, case, strategies, rounds))


def measured_costs(ranks: "Ranks", graph: OperatorGraph, fresh: bool = False) -> DeviceCosts:
    """What parts and messages cost on these ranks: the links measured now, the parts now or, if not `fresh`, before."""
    return measure_costs(graph, measured_topology(ranks), ranks, fresh=fresh)


def compared_strategies(
    ranks: "Ranks", case: Workload, rounds: int = 5, number: int = 20, seed: int = 0, fresh: bool = False
) -> PredictedAndMeasured:
    """Predict and measure the strategy found and others up to `SLOWEST` times as slow as the best.

    Args:
        fresh: times of parts that were kept from before do not count: the machine may have been busy then.
    """
    graph, devices = case.graph(), ranks.world_size
    costs = measured_costs(ranks, graph, fresh)
    found = find_strategy(graph, costs, devices, seed=seed).strategy
    known = {"found": found, "data": data_parallel(graph, devices), "one": on_one_device(graph)}
    others = varied_strategies(graph, costs, devices, number - 1, known, seed)
    return compare(ranks, case, [found, *others], costs, rounds)


def varied_strategies(
    graph: OperatorGraph,
    costs: DeviceCosts,
    devices: int,
    number: int,
    among: Mapping[str, Sequence[Config]],
    seed: int = 0,
    tries: int = 600,
) -> list[list[Config]]:
    """Strategies whose predicted times lie evenly, as ratios, between the shortest and `SLOWEST` times it.

    They are some random changes away from those given: entirely random ones nearly all send too much.

    Args:
        among: strategies to begin from; they are not in the result, and no two have equal predictions.
        tries: how many are drawn to choose from.

    Raises:
        CourseError: fewer than `number` of those drawn have predictions of their own.
    """
    chosen, pool = random.Random(seed), []
    choices = [configurations(operator, devices) for operator in graph.operators]
    for _ in range(tries):
        strategy = list(chosen.choice(list(among.values())))
        for number_of in chosen.sample(range(1, len(graph)), chosen.randint(1, len(graph) // 2)):
            strategy[number_of] = chosen.choice(choices[number_of])
        pool.append((predicted_seconds(graph, strategy, costs), strategy))
    taken = {predicted_seconds(graph, one, costs) for one in among.values()}
    shortest, found = min(taken), list[list[Config]]()
    for goal in np.geomspace(shortest, SLOWEST * shortest, number):
        pool = [one for one in pool if one[0] not in taken]  # such as its mirror image on the other devices
        if not pool:
            raise CourseError(
                f"{graph.name}: of {tries} strategies tried only {len(found)} differ in their predicted times, and "
                f"{number} are asked for. Ask for fewer, or take a larger model or more devices."
            )
        seconds, strategy = min(pool, key=lambda one: abs(np.log(one[0] / goal)))
        taken.add(seconds)
        found.append(strategy)
    return found


# --- the experiment of the report on parallel strategies -------------------------------------------------------------

REPORT = Workload("AlexNet", "course_utils.lessons.strategy_search.graph.example_models.alexnet", {}, (64, 3, 224, 224))
"""AlexNet as it is, for images of its own size."""
GTX_1080_TI = {"flops_per_second": 11.3e12, "bytes_per_second": 484e9}
"""Single precision and memory, by NVIDIA's data sheet."""


WIDE_VGG11 = Workload("VGG-11", "course_utils.vgg.vgg11", {"norm": False}, (128, 3, 32, 32))
"""VGG-11 in full width."""


def report_costs(graph: OperatorGraph, devices: int = 2, speeds: Sequence[float] = ()) -> DeviceCosts:
    """GTX 1080 Ti that talk over PCIe 3.0 with 16 lanes: 12 GB/s; described, as nobody has them here.

    Args:
        devices: how many; the report has two.
        speeds: of each, as a factor on the data sheet's; none: all alike.
    """
    cards = describe({f"gpu{number}": 11 << 30 for number in range(devices)}, (10e-6, 12e9), speeds)
    return described_costs(graph, cards, **GTX_1080_TI)
