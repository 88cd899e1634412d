"""Python's own topological order."""

from graphlib import TopologicalSorter


def brent_bounds(needs, processors):
    depth = {}
    for task in TopologicalSorter(needs).static_order():
        depth[task] = max((depth[other] for other in needs[task]), default=0) + 1
    work, deepest = len(needs) / processors, max(depth.values(), default=0)
    return [max(work, deepest), work + deepest]
