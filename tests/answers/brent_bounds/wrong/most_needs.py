"""Refused with: Is that the longest of all paths, from whichever task it starts?"""


def brent_bounds(needs, processors):
    share, depth = len(needs) / processors, max((len(others) for others in needs.values()), default=0)
    return max(share, depth), share + depth
