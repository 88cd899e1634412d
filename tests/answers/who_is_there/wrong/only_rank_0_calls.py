"""Refused with: Do all ranks make the same call?"""


def who_is_there(comm, name):
    if comm.rank == 0:
        return comm.allgather(name)
    return []
