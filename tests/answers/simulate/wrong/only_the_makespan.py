"""Refused with: Is it one pair for each task, in the order of the tasks?"""


def simulate(tasks):
    free, ends = {}, []
    for task in tasks:
        begin = max([free.get(task.device, 0)] + [ends[one] for one in task.after])
        free[task.device] = begin + task.nanoseconds
        ends.append(free[task.device])
    return max(ends, default=0)
