"""Refused with: Who else holds the vector after the first round?"""


def tree_broadcast(comm, vector, root=0):
    if comm.rank == root:
        for other in range(comm.size):
            if other != root:
                comm.Send(vector, dest=other)
    else:
        comm.Recv(vector, source=root)
