"""Refused with: Did the ranks tell each other their names?"""


def who_is_there(comm, name):
    return name
