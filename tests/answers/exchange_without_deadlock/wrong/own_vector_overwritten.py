"""Refused with: Is your own vector still what it was?"""


def exchange_without_deadlock(comm, vector, partner):
    comm.Sendrecv_replace(vector, dest=partner, source=partner)
    return vector
