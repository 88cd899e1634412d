"""The updates before each entry as a running sum."""

import numpy as np


def measure_staleness(log):
    if not log:
        return []
    pushes = np.array([what == "push" for what, _ in log])
    before = np.cumsum(pushes) - pushes
    last = {}
    result = []
    for updates, (what, worker) in zip(before.tolist(), log):
        if what == "push":
            result.append(updates - last[worker])
        else:
            last[worker] = updates
    return result
