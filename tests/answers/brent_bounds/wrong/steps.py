"""Refused with: Do you count the tasks on the longest path, or the steps between them?"""


def brent_bounds(needs, processors):
    done, depth = set(), 0
    while len(done) < len(needs):
        done |= {task for task, others in needs.items() if done.issuperset(others)}
        depth += 1
    work = len(needs)
    depth -= 1
    return max(work / processors, depth), work / processors + depth
