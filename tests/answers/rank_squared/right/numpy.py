import numpy as np


def rank_squared(comm):
    return np.square(np.int64(comm.rank))
