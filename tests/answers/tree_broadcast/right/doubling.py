"""The holders double every round, counted from the root."""


def tree_broadcast(comm, vector, root=0):
    distance = (comm.rank - root) % comm.size
    holders = 1
    while holders < comm.size:
        if distance < holders:
            if distance + holders < comm.size:
                comm.Send(vector, dest=(comm.rank + holders) % comm.size)
        elif distance < 2 * holders:
            comm.Recv(vector, source=(comm.rank - holders) % comm.size)
        holders *= 2
