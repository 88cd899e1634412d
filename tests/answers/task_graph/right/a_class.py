from course_utils.lessons.strategy_search.simulator.program_steps import compute, exchange, gradient_sums, norm_sums
from course_utils.lessons.strategy_search.simulator.task_graph import Task


class Plan:
    def __init__(self):
        self.tasks = []
        self.latest = {}

    def add(self, name, step):
        latest = {}
        for work in reversed(step):
            after = set()
            for one in [work.device, *work.partners]:
                if one in self.latest:
                    after.add(self.latest[one])
            latest[work.device] = len(self.tasks)
            self.tasks.append(Task(name=name, device=work.device, nanoseconds=work.nanoseconds, after=after))
        self.latest.update(latest)


def task_graph(graph, strategy, costs):
    plan, operators = Plan(), graph.operators
    for i, operator in enumerate(operators):
        for j in operator.inputs:
            ends = operators[j], strategy[j], operator, strategy[i]
            plan.add(f"{operators[j].name} → {operator.name}", exchange(*ends, costs, "forward"))
        plan.add(operator.name, compute(operator, strategy[i], costs, "forward"))
        plan.add(f"{operator.name} norm", norm_sums(operator, strategy[i], costs))
    for i in range(len(operators) - 1, -1, -1):
        operator = operators[i]
        plan.add(f"{operator.name} norm backward", norm_sums(operator, strategy[i], costs))
        plan.add(f"{operator.name} backward", compute(operator, strategy[i], costs, "backward"))
        plan.add(f"{operator.name} gradients", gradient_sums(operator, strategy[i], costs))
        for j in operator.inputs[::-1]:
            ends = operators[j], strategy[j], operator, strategy[i]
            plan.add(f"{operator.name} → {operators[j].name}", exchange(*ends, costs, "backward"))
    return plan.tasks
