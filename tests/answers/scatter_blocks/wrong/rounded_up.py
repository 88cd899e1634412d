"""Refused with: Are your blocks as equal as possible?"""


def scatter_blocks(comm, vector, root=0):
    blocks = None
    if comm.rank == root:
        share = -(-len(vector) // comm.size)
        blocks = [vector[share * other : share * (other + 1)] for other in range(comm.size)]
    return comm.scatter(blocks, root=root)
