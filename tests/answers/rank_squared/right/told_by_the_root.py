def rank_squared(comm):
    squares = [n**2 for n in range(comm.size)] if comm.rank == 0 else None
    return comm.scatter(squares, root=0)
