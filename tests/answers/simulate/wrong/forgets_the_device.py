"""Refused with: Can a device do two tasks at the same time?"""


def simulate(tasks):
    spans = []
    for task in tasks:
        begin = max((spans[one][1] for one in task.after), default=0)
        spans.append((begin, begin + task.nanoseconds))
    return spans
