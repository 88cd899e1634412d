"""Refused with: Does it begin at `root`?"""


def tree_broadcast(comm, vector, root=0):
    step = 1
    while step < comm.size:
        if comm.rank < step and comm.rank + step < comm.size:
            comm.Send(vector, dest=comm.rank + step)
        elif step <= comm.rank < 2 * step:
            comm.Recv(vector, source=comm.rank - step)
        step *= 2
