"""Refused with: Can two devices work at the same time?"""


def simulate(tasks):
    now, spans = 0, []
    for task in tasks:
        spans.append((now, now + task.nanoseconds))
        now += task.nanoseconds
    return spans
