"""Refused with: Who needs this vector besides your partner?"""


def exchange_without_deadlock(comm, vector, partner):
    return comm.allgather(vector)[partner]
