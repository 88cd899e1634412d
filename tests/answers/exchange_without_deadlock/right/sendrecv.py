"""MPI's own operation for it."""


def exchange_without_deadlock(comm, vector, partner):
    theirs = vector.copy()
    comm.Sendrecv(vector, dest=partner, recvbuf=theirs, source=partner)
    return theirs
