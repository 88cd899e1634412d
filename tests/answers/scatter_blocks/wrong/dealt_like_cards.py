"""Refused with: Are the elements of a block neighbours in the vector?"""


def scatter_blocks(comm, vector, root=0):
    blocks = [vector[other :: comm.size] for other in range(comm.size)] if comm.rank == root else None
    return comm.scatter(blocks, root=root)
