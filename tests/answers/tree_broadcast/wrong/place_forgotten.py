"""Refused with: Do sender and receiver count from the same rank?"""


def tree_broadcast(comm, vector, root=0):
    place = (comm.rank - root) % comm.size
    step = 1
    while step < comm.size:
        if place < step and place + step < comm.size:
            comm.Send(vector, dest=place + step)
        elif step <= place < 2 * step:
            comm.Recv(vector, source=place - step)
        step *= 2
