"""Refused with: What are work and depth of nothing?"""

from functools import cache


def brent_bounds(needs, processors):
    @cache
    def depth_of(task):
        return 1 + max([depth_of(other) for other in needs[task]], default=0)

    share, depth = len(needs) / processors, max([depth_of(task) for task in needs])
    return max(share, depth), share + depth
