"""Refused with: Is the second number how long a task takes, or when it ends?"""


def simulate(tasks):
    ends, free, spans = [], {}, []
    for task in tasks:
        begin = max([free.get(task.device, 0)] + [ends[one] for one in task.after])
        free[task.device] = begin + task.nanoseconds
        ends.append(free[task.device])
        spans.append((begin, task.nanoseconds))
    return spans
