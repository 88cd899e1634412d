def who_is_there(comm, name):
    names = comm.gather(name, root=0)
    return comm.bcast(names, root=0)
