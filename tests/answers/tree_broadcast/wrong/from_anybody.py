"""Refused with: Whose message does your receive take?"""


def tree_broadcast(comm, vector, root=0):
    distance = (comm.rank - root) % comm.size
    step = 1
    while step < comm.size:
        if distance < step and distance + step < comm.size:
            comm.Send(vector, dest=(comm.rank + step) % comm.size)
        elif step <= distance < 2 * step:
            comm.Recv(vector)
        step *= 2
