"""Refused with: Are the times still whole numbers?"""


def simulate(tasks):
    free, spans = {}, []
    for task in tasks:
        begin = max([free.get(task.device, 0.0)] + [spans[one][1] for one in task.after])
        free[task.device] = begin + task.nanoseconds * 1e-9
        spans.append((begin, free[task.device]))
    return spans
