"""Refused with: Is there a rank at that distance when P is not a power of two?"""


def tree_broadcast(comm, vector, root=0):
    place = (comm.rank - root) % comm.size
    step = 1
    while step < comm.size:
        if place < step:
            comm.Send(vector, dest=(place + step + root) % comm.size)
        elif place < 2 * step:
            comm.Recv(vector, source=(place - step + root) % comm.size)
        step *= 2
