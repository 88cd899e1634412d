"""Refused with: In which direction does the token travel?"""


def pass_the_token(comm, number):
    rank, world_size = comm.rank, comm.size
    if world_size == 1:
        return number
    if rank == 0:
        comm.send(number, dest=world_size - 1)
        return comm.recv(source=1)
    token = comm.recv(source=(rank + 1) % world_size)
    comm.send(token + number, dest=rank - 1)
    return token
