"""Refused with: Does each processor do all the work?"""


def brent_bounds(needs, processors):
    done, depth = set(), 0
    while len(done) < len(needs):
        done |= {task for task, others in needs.items() if done.issuperset(others)}
        depth += 1
    work = len(needs)
    return max(work, depth), work + depth
