"""Refused with: Do you return the vector itself?"""


def exchange_without_deadlock(comm, vector, partner):
    return [comm.sendrecv(vector, dest=partner, source=partner)]
