"""Refused with: How deep is a task that needs nothing?"""


def brent_bounds(needs, processors):
    def depth(task):
        return 1 + max([depth(other) for other in needs[task]])

    share, deepest = len(needs) / processors, max(depth(task) for task in needs)
    return max(share, deepest), share + deepest
