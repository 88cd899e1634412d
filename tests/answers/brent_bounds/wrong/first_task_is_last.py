"""Refused with: Is that the longest of all paths, from whichever task it starts?"""


def brent_bounds(needs, processors):
    known = {}

    def depth(task):
        if task not in known:
            known[task] = 1 + max((depth(other) for other in needs[task]), default=0)
        return known[task]

    work = len(needs)
    deepest = depth(next(iter(needs))) if needs else 0
    return max(work / processors, deepest), work / processors + deepest
