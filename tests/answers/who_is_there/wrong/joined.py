"""Refused with: rank 0 returned a string, expected a list"""


def who_is_there(comm, name):
    return ", ".join(comm.allgather(name))
