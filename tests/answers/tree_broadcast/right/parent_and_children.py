"""Who is my parent, who are my children? Receive once, then send to each child; pickled."""


def tree_broadcast(comm, vector, root=0):
    place = (comm.rank - root) % comm.size
    if place:
        parent = place - 2 ** (place.bit_length() - 1)
        vector[...] = comm.recv(source=(parent + root) % comm.size, tag=5)
    step = 2 ** place.bit_length()
    while place + step < comm.size:
        comm.send(vector, dest=(place + step + root) % comm.size, tag=5)
        step *= 2
