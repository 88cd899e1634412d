"""Refused with: (3 ranks)"""


def who_is_there(comm, name):
    names = comm.allgather(name)
    return [names[rank] for rank in range(4)]
