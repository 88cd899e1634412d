"""Refused with: Does more depth make the upper bound higher?"""


def brent_bounds(needs, processors):
    done, depth = set(), 0
    while len(done) < len(needs):
        done |= {task for task, others in needs.items() if done.issuperset(others)}
        depth += 1
    work = len(needs)
    bound = max(work / processors, depth)
    return bound, bound
