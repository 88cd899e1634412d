"""Strategies that people choose without a search: one device, data parallelism, model parallelism."""

from dataclasses import replace

from course_utils.lessons.strategy_search.graph.configurations import ROW, Config, configurations, part_numbers
from course_utils.lessons.strategy_search.graph.operator_graph import Operator, OperatorGraph


def choices_of(graph: OperatorGraph, devices: int) -> list[tuple[Config, ...]]:
    """The configurations of each operator; of the input only one, as every device reads its own data."""
    return [
        (Config(),) if operator.kind == "input" else configurations(operator, devices) for operator in graph.operators
    ]


def on_one_device(graph: OperatorGraph, device: int = 0) -> list[Config]:
    """Everything on one device."""
    return [Config(devices=(device,)) for _ in graph.operators]


def data_parallel(graph: OperatorGraph, devices: int) -> list[Config]:
    """Every operator by sample over all devices; one that cannot be cut so stays on the first."""
    return _cut_everywhere(graph, devices, "sample")


def model_parallel(graph: OperatorGraph, devices: int) -> list[Config]:
    """Every operator by parameter over all devices; one that cannot be cut so stays on the first."""
    return _cut_everywhere(graph, devices, "parameter")


def megatron(graph: OperatorGraph, devices: int) -> list[Config]:
    """A transformer block as Megatron-LM cuts it: column cut, what lies between, row cut; the rest by position.

    Args:
        graph: of a transformer block, read with `row_cuts`.

    Source: Shoeybi et al. 2019, "Megatron-LM"; by position Korthikanti et al. 2022, "Reducing Activation
    Recomputation in Large Transformer Models".
    """
    everywhere = tuple(range(devices))
    by_column = Config(parameter=devices, devices=everywhere)
    by_position = Config(attribute=devices, devices=everywhere)
    by_row = replace(by_position, row_cut=True)

    def cut(operator: Operator) -> Config:
        if operator.kind in ("linear", "attention"):
            return by_row if ROW in operator.cuts and not follows_norm(operator) else by_column
        return by_position if "attribute" in operator.cuts else Config()

    def follows_norm(operator: Operator) -> bool:
        return graph.operators[operator.inputs[0]].kind == "norm"

    return [cut(operator) for operator in graph.operators]


def _cut_everywhere(graph: OperatorGraph, devices: int, cut: str) -> list[Config]:
    """Each operator in as many parts along one kind of dimension as there are devices, or as it has there."""
    strategy = []
    for operator in graph.operators:
        parts = 1 if operator.kind == "input" else part_numbers(operator, cut, devices)[-1]
        strategy.append(Config(**{cut: parts}, devices=tuple(range(parts))))
    return strategy
