def rank_squared(comm):
    return comm.rank**2
