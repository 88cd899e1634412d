"""Refused with: How often do you look at the same task? How many paths lead to it?"""


def brent_bounds(needs, processors):
    def depth_of(task):
        return 1 + max((depth_of(other) for other in needs[task]), default=0)

    share, depth = len(needs) / processors, max((depth_of(task) for task in needs), default=0)
    return max(share, depth), share + depth
