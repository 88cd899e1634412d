"""Refused with: Where does the time go in which a device waits?"""


def simulate(tasks):
    free, spans = {}, []
    for task in tasks:
        begin = max([free.get(task.device, 0)] + [spans[one][1] for one in task.after])
        free[task.device] = free.get(task.device, 0) + task.nanoseconds
        spans.append((begin, begin + task.nanoseconds))
    return spans
