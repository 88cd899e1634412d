"""Refused with: For which of them does a task wait: the first that ends, or the last?"""


def simulate(tasks):
    spans, done = [], {}
    for task in tasks:
        waits = [spans[one][1] for one in task.after] + done.get(task.device, [])
        begin = min(waits) if waits else 0
        spans.append((begin, begin + task.nanoseconds))
        done.setdefault(task.device, []).append(begin + task.nanoseconds)
    return spans
