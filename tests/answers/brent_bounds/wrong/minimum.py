"""Refused with: With one processor, can it be done in D? With a thousand, in less than D?"""


def brent_bounds(needs, processors):
    done, depth = set(), 0
    while len(done) < len(needs):
        done |= {task for task, others in needs.items() if done.issuperset(others)}
        depth += 1
    work = len(needs)
    return min(work / processors, depth), work / processors + depth
