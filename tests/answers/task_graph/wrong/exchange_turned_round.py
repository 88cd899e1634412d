"""Refused with: Gradients go from the reader to what it reads from: is it that what you ask `exchange` for?"""

from course_utils.lessons.strategy_search.simulator.program_steps import compute, exchange, gradient_sums, norm_sums
from course_utils.lessons.strategy_search.simulator.task_graph import Task


def task_graph(graph, strategy, costs):
    tasks = []
    last = {}

    def add(name, step):
        before = dict(last)
        for device, nanoseconds, partners in step:
            after = [before[one] for one in (device, *partners) if one in before]
            last[device] = len(tasks)
            tasks.append(Task(name, device, nanoseconds, tuple(after)))

    for operator, config in zip(graph.operators, strategy):
        for number in operator.inputs:
            source = graph.operators[number]
            add(
                f"{source.name} → {operator.name}",
                exchange(source, strategy[number], operator, config, costs, "forward"),
            )
        add(operator.name, compute(operator, config, costs, "forward"))
        add(f"{operator.name} norm", norm_sums(operator, config, costs))
    for operator, config in reversed(list(zip(graph.operators, strategy))):
        add(f"{operator.name} norm backward", norm_sums(operator, config, costs))
        add(f"{operator.name} backward", compute(operator, config, costs, "backward"))
        add(f"{operator.name} gradients", gradient_sums(operator, config, costs))
        for number in reversed(operator.inputs):
            source = graph.operators[number]
            add(
                f"{operator.name} → {source.name}",
                exchange(operator, config, source, strategy[number], costs, "backward"),
            )
    return tasks
