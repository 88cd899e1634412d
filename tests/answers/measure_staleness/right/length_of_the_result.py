"""The result itself counts the updates."""

from collections import defaultdict


def measure_staleness(log):
    staleness, fetched_at = [], defaultdict(int)
    for what, worker in log:
        match what:
            case "fetch":
                fetched_at[worker] = len(staleness)
            case "push":
                staleness += [len(staleness) - fetched_at[worker]]
    return tuple(staleness)
