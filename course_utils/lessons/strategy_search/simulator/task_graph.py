"""The task graph: everything that one training step does under a strategy, on which device, and after what.

Source: Jia, Zaharia & Aiken 2018, section 5.1; there communication is a device of its own, while here it keeps both
ends busy, as the blocking calls of the program do that is to be predicted.
"""

from typing import NamedTuple

from course_utils.lessons.strategy_search.graph.configurations import Strategy
from course_utils.lessons.strategy_search.graph.operator_graph import OperatorGraph
from course_utils.lessons.strategy_search.simulator.program_steps import (
    Costs,
    Step,
    compute,
    exchange,
    gradient_sums,
    output_sums,
)


class Task(NamedTuple):
    """Something that keeps one device busy.

    Attributes:
        name: "conv1", "conv1 backward", "conv1 → pool1", …
        nanoseconds: how long.
        after: the numbers of the tasks that must end before it begins: the latest one of its device and of each
            partner.
    """

    name: str
    device: int
    nanoseconds: int
    after: tuple[int, ...]


def task_graph(graph: OperatorGraph, strategy: Strategy, costs: Costs) -> list[Task]:
    """List all tasks of a training step in the order of the program.

    Forward, an operator gets its inputs ("conv1 → pool1"), is computed ("pool1"), and adds up over
    devices what its output needs ("pool1 sums"). Backward, from the last operator to the first,
    this is done again ("pool1 sums backward"), its gradients are computed ("pool1 backward"), those
    of its parameters are added up over devices ("pool1 gradients"), and those of its inputs go
    back, the last input's first ("pool1 → conv1").

    Args:
        strategy: a configuration for each operator.
        costs: know how long each task takes, in nanoseconds.
    """
    tasks: list[Task] = []
    last: dict[int, int] = {}  # device → its latest task

    def add(name: str, step: Step) -> None:
        # The tasks of a step start together:
        # each after what its device, and those it talks to, did before the step.
        before = dict(last)
        for device, nanoseconds, partners in step:
            after = sorted({before[member] for member in (device, *partners) if member in before})
            last[device] = len(tasks)
            tasks.append(Task(name, device, nanoseconds, tuple(after)))

    numbered = list(zip(graph.operators, strategy, strict=True))
    for operator, config in numbered:
        for number in operator.inputs:
            source, spread = numbered[number]
            add(f"{source.name} → {operator.name}", exchange(source, spread, operator, config, costs, "forward"))
        add(operator.name, compute(operator, config, costs, "forward"))
        add(f"{operator.name} sums", output_sums(operator, config, costs))
    for operator, config in reversed(numbered):
        add(f"{operator.name} sums backward", output_sums(operator, config, costs))
        add(f"{operator.name} backward", compute(operator, config, costs, "backward"))
        add(f"{operator.name} gradients", gradient_sums(operator, config, costs))
        for number in reversed(operator.inputs):
            source, spread = numbered[number]
            add(f"{operator.name} → {source.name}", exchange(source, spread, operator, config, costs, "backward"))
    return tasks
