"""The lower-case relative of Sendrecv, which pickles."""


def exchange_without_deadlock(comm, vector, partner):
    return comm.sendrecv(vector, dest=partner, source=partner)
