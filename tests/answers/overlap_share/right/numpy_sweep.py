"""Changes sorted with NumPy, and running sums."""

import numpy as np


def overlap_share(computing, communication):
    computing, communication = (np.array(list(one), float).reshape(-1, 2) for one in (computing, communication))
    at = np.concatenate([computing.ravel(), communication.ravel()])
    change = np.zeros((len(at), 2))
    change[: computing.size, 0] = np.tile([1, -1], len(computing))
    change[computing.size :, 1] = np.tile([1, -1], len(communication))
    order = np.argsort(at, kind="stable")
    under_way = np.cumsum(change[order], axis=0)[:-1] > 0
    lengths = np.diff(at[order])
    whole = lengths[under_way[:, 1]].sum()
    return float(lengths[under_way.all(axis=1)].sum() / whole) if whole else 0.0
