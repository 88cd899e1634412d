"""Refused with: What is the maximum of nothing?"""


def simulate(tasks):
    free, spans = {}, []
    for task in tasks:
        begin = max(spans[one][1] for one in task.after)
        begin = max(begin, free.get(task.device, 0))
        free[task.device] = begin + task.nanoseconds
        spans.append((begin, free[task.device]))
    return spans
