"""Refused with: Who has the same parameters, and what becomes of their gradients?"""

from course_utils.lessons.strategy_search.simulator.program_steps import compute, exchange, gradient_sums, norm_sums
from course_utils.lessons.strategy_search.simulator.task_graph import Task


def task_graph(graph, strategy, costs):
    tasks, last = [], {}

    def add(name, step):
        before = dict(last)
        for device, nanoseconds, partners in step:
            after = sorted({before[one] for one in (device, *partners) if one in before})
            last[device] = len(tasks)
            tasks.append(Task(name, device, nanoseconds, tuple(after)))

    pairs = list(zip(graph.operators, strategy))
    for operator, config in pairs:
        for number in operator.inputs:
            source, spread = pairs[number]
            add(f"{source.name} → {operator.name}", exchange(source, spread, operator, config, costs, "forward"))
        add(operator.name, compute(operator, config, costs, "forward"))
        add(f"{operator.name} norm", norm_sums(operator, config, costs))
    for operator, config in reversed(pairs):
        add(f"{operator.name} norm backward", norm_sums(operator, config, costs))
        add(f"{operator.name} backward", compute(operator, config, costs, "backward"))
        for number in reversed(operator.inputs):
            source, spread = pairs[number]
            add(f"{operator.name} → {source.name}", exchange(source, spread, operator, config, costs, "backward"))
    return tasks
