"""The other way round: far messages first, as MPICH's binomial tree does."""


def tree_broadcast(comm, vector, root=0):
    size = comm.Get_size()
    place = (comm.Get_rank() - root) % size
    bit = 1
    while bit < size:
        if place & bit:
            comm.Recv(vector, source=(place - bit + root) % size)
            break
        bit <<= 1
    bit >>= 1
    while bit > 0:
        if place + bit < size:
            comm.Send(vector, dest=(place + bit + root) % size)
        bit >>= 1
