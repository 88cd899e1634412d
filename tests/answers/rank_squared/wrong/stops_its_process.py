"""Refused with: rank 1"""

import os


def rank_squared(comm):
    if comm.rank == 1:
        os._exit(3)
    return comm.rank**2
