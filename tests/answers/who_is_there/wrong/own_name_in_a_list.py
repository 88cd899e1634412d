"""Refused with: returned 1 entry, expected 4 (4 ranks). Did the ranks tell each other their names?"""


def who_is_there(comm, name):
    return [name]
