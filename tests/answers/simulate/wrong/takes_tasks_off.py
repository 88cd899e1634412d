"""Refused with: What do you do with the list that you were given?"""


def simulate(tasks):
    free, spans = {}, []
    while tasks:
        task = tasks.pop(0)
        begin = max([free.get(task.device, 0)] + [spans[one][1] for one in task.after])
        free[task.device] = begin + task.nanoseconds
        spans.append((begin, free[task.device]))
    return spans
