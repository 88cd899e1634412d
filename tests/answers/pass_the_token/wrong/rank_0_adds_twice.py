"""Refused with: Did rank 0 add its number twice?"""


def pass_the_token(comm, number):
    if comm.size == 1:
        return number
    if comm.rank == 0:
        comm.send(number, dest=1)
        return comm.recv(source=comm.size - 1) + number
    token = comm.recv(source=comm.rank - 1)
    comm.send(token + number, dest=(comm.rank + 1) % comm.size)
    return token
