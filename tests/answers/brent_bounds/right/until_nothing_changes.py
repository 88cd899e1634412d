"""Depths grow until they stay."""

import numpy as np


def brent_bounds(needs, processors):
    depth = dict.fromkeys(needs, 1)
    changed = True
    while changed:
        changed = False
        for task, others in needs.items():
            found = 1 + max([depth[other] for other in others] or [0])
            if found != depth[task]:
                depth[task], changed = found, True
    share = np.float64(len(needs)) / processors
    deepest = np.max(list(depth.values()) or [0])
    return np.maximum(share, deepest), share + deepest
