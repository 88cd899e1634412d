"""Refused with: Must what a task is after have begun, or ended?"""


def simulate(tasks):
    free, spans = {}, []
    for task in tasks:
        begin = max([free.get(task.device, 0)] + [spans[one][0] for one in task.after])
        free[task.device] = begin + task.nanoseconds
        spans.append((begin, free[task.device]))
    return spans
