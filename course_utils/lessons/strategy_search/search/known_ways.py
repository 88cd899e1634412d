"""Strategies for convolutional networks that people have published, to be put beside what a search finds."""

from course_utils.lessons.strategy_search.graph.configurations import Config
from course_utils.lessons.strategy_search.graph.operator_graph import Operator, OperatorGraph
from course_utils.lessons.strategy_search.graph.plain_strategies import data_parallel, on_one_device

SHARED = ("conv", "pool")
"""What has few weights and much to compute."""


def known_ways(graph: OperatorGraph, devices: int = 2) -> dict[str, list[Config]]:
    """Four strategies by name: one device, data parallel, the student report's, and Krizhevsky's.

    The report's shares convolutions and pools by sample and leaves the rest to device 0 (its figure 10b). Krizhevsky's
    cuts fully connected layers by parameter (2014, "One weird trick for parallelizing convolutional neural networks").
    """
    everywhere = tuple(range(devices))
    by_sample, by_parameter = Config(sample=devices, devices=everywhere), Config(parameter=devices, devices=everywhere)

    def trick(operator: Operator) -> Config:
        return by_parameter if operator.kind == "linear" else by_sample

    rest = graph.operators[1:]
    return {
        "one device": on_one_device(graph),
        "data parallel": data_parallel(graph, devices),
        "the report's": [Config(), *(by_sample if operator.kind in SHARED else Config() for operator in rest)],
        "fc by parameter": [Config(), *(trick(operator) for operator in rest)],
    }
