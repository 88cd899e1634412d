from course_utils.lessons.strategy_search.simulator.program_steps import compute, exchange, gradient_sums, norm_sums
from course_utils.lessons.strategy_search.simulator.task_graph import Task


def steps_of(graph, strategy, costs):
    pairs = list(zip(graph.operators, strategy))
    for operator, config in pairs:
        for source, spread in [pairs[number] for number in operator.inputs]:
            yield f"{source.name} → {operator.name}", exchange(source, spread, operator, config, costs, "forward")
        yield operator.name, compute(operator, config, costs, "forward")
        yield operator.name + " norm", norm_sums(operator, config, costs)
    for operator, config in pairs[::-1]:
        yield operator.name + " norm backward", norm_sums(operator, config, costs)
        yield operator.name + " backward", compute(operator, config, costs, "backward")
        yield operator.name + " gradients", gradient_sums(operator, config, costs)
        for source, spread in [pairs[number] for number in operator.inputs][::-1]:
            yield f"{operator.name} → {source.name}", exchange(source, spread, operator, config, costs, "backward")


def task_graph(graph, strategy, costs):
    tasks = []
    for name, step in steps_of(graph, strategy, costs):
        new = []
        for work in step:
            waits = {work.device, *work.partners}
            after = [place for place, task in enumerate(tasks) if task.device in waits]
            new.append(Task(name, work.device, work.nanoseconds, after))
        tasks.extend(new)
    return tasks
