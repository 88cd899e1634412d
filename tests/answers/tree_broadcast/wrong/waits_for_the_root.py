"""Refused with: Who sends to this rank in this round?"""


def tree_broadcast(comm, vector, root=0):
    place = (comm.rank - root) % comm.size
    step = 1
    while step < comm.size:
        if place < step and place + step < comm.size:
            comm.Send(vector, dest=(comm.rank + step) % comm.size)
        elif step <= place < 2 * step:
            comm.Recv(vector, source=root)
        step *= 2
