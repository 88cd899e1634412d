def who_is_there(comm, name):
    return comm.alltoall([name] * comm.size)
