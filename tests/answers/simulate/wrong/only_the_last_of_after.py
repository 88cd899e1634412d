"""Refused with: For how many of those in `after` does the task wait?"""


def simulate(tasks):
    free, spans = {}, []
    for task in tasks:
        begin = free.get(task.device, 0)
        if task.after:
            begin = max(begin, spans[task.after[0]][1])
        free[task.device] = begin + task.nanoseconds
        spans.append((begin, free[task.device]))
    return spans
