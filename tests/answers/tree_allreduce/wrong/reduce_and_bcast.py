"""Refused with: Can you do it with messages from one rank to another alone?"""


def tree_allreduce(comm, vector, op=None):
    from mpi4py import MPI

    total = vector.copy()
    comm.Reduce(vector, total, op=op or MPI.SUM, root=0)
    vector[:] = total
    comm.Bcast(vector, root=0)
