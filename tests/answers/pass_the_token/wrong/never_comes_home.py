"""Refused with: Did the token come back to rank 0?"""


def pass_the_token(comm, number):
    if comm.rank == 0:
        token = number
        if comm.size > 1:
            comm.send(token, dest=1)
        return token
    token = comm.recv(source=comm.rank - 1)
    if comm.rank < comm.size - 1:
        comm.send(token + number, dest=comm.rank + 1)
    return token
