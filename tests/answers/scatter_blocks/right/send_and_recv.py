"""No collective at all: the root sends each rank its block."""


def scatter_blocks(comm, vector, root=0):
    if comm.rank != root:
        return comm.recv(source=root)
    quotient, rest = divmod(len(vector), comm.size)
    mine, start = None, 0
    for other in range(comm.size):
        end = start + quotient + (1 if other < rest else 0)
        if other == root:
            mine = vector[start:end]
        else:
            comm.send(vector[start:end], dest=other)
        start = end
    return mine
