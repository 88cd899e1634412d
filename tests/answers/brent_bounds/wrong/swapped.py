"""Refused with: Which of the two bounds comes first?"""


def brent_bounds(needs, processors):
    done, depth = set(), 0
    while len(done) < len(needs):
        done |= {task for task, others in needs.items() if done.issuperset(others)}
        depth += 1
    work = len(needs)
    return work / processors + depth, max(work / processors, depth)
