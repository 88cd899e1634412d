def who_is_there(comm, name):
    return [comm.bcast(name, root=rank) for rank in range(comm.size)]
