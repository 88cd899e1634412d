"""Refused with: Does the function return what it found?"""


def simulate(tasks):
    free, spans = {}, []
    for task in tasks:
        begin = max([free.get(task.device, 0)] + [spans[one][1] for one in task.after])
        free[task.device] = begin + task.nanoseconds
        spans.append((begin, free[task.device]))
        print(task.name, begin, free[task.device])
