"""Refused with: When is a device free that has done nothing yet?"""


def simulate(tasks):
    free, spans = {0: 0, 1: 0}, []
    for task in tasks:
        begin = max([free[task.device]] + [spans[one][1] for one in task.after])
        free[task.device] = begin + task.nanoseconds
        spans.append((begin, free[task.device]))
    return spans
