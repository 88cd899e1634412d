"""Refused with: Is there a `return`?"""


def who_is_there(comm, name):
    comm.allgather(name)
