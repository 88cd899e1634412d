"""The depth of each task, remembered."""

from functools import cache


def brent_bounds(needs, processors):
    @cache
    def depth_of(task):
        return 1 + max(map(depth_of, needs[task]), default=0)

    depth = max(map(depth_of, needs), default=0)
    return max(len(needs) / processors, depth), len(needs) / processors + depth
