"""Refused with: Does work count tasks, or what they need?"""


def brent_bounds(needs, processors):
    done, depth = set(), 0
    while len(done) < len(needs):
        done |= {task for task, others in needs.items() if done.issuperset(others)}
        depth += 1
    work = sum(len(others) for others in needs.values())
    return max(work / processors, depth), work / processors + depth
