"""Refused with: Is one text asked for, or a list of names?"""


def who_is_there(comm, name):
    return comm.bcast(name)
