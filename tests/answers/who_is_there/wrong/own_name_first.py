"""Refused with: In which order do the names stand, and in which should they?"""


def who_is_there(comm, name):
    names = comm.allgather(name)
    return names[comm.rank :] + names[: comm.rank]
