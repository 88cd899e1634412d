"""Refused with: Is every task listed after those that it needs?"""


def brent_bounds(needs, processors):
    depth = {}
    for task, others in needs.items():
        depth[task] = 1 + max((depth[other] for other in others), default=0)
    share, deepest = len(needs) / processors, max(depth.values(), default=0)
    return max(share, deepest), share + deepest
