"""Cut the ranks in two halves, send to the first rank of the other half, and do the same in each half."""


def tree_broadcast(comm, vector, root=0):
    size = comm.size
    me = (comm.rank - root) % size

    def fill(first, end):
        if end - first < 2:
            return
        middle = (first + end + 1) // 2
        if me == first:
            comm.Send(vector, dest=(middle + root) % size)
        if me == middle:
            comm.Recv(vector, source=(first + root) % size)
        fill(first, middle) if me < middle else fill(middle, end)

    fill(0, size)
