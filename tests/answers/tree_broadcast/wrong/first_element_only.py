"""Refused with: Did the whole vector travel?"""


def tree_broadcast(comm, vector, root=0):
    place = (comm.rank - root) % comm.size
    step = 1
    while step < comm.size:
        if place < step and place + step < comm.size:
            comm.Send(vector[:1], dest=(comm.rank + step) % comm.size)
        elif step <= place < 2 * step:
            comm.Recv(vector[:1], source=(comm.rank - step) % comm.size)
        step *= 2
