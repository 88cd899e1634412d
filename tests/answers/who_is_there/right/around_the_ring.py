def who_is_there(comm, name):
    names = {comm.rank: name}
    passing = (comm.rank, name)
    for _ in range(comm.size - 1):
        request = comm.isend(passing, dest=(comm.rank + 1) % comm.size)
        passing = comm.recv(source=(comm.rank - 1) % comm.size)
        request.wait()
        names[passing[0]] = passing[1]
    return [names[rank] for rank in range(comm.size)]
