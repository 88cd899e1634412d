"""Refused with: Is the time a whole number here?"""


def brent_bounds(needs, processors):
    done, depth = set(), 0
    while len(done) < len(needs):
        done |= {task for task, others in needs.items() if done.issuperset(others)}
        depth += 1
    work = len(needs)
    share = -(-work // processors)
    return max(share, depth), share + depth
