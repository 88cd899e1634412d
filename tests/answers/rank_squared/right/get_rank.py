def rank_squared(comm):
    me = comm.Get_rank()
    return me * me
