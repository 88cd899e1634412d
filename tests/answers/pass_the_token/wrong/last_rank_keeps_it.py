"""Refused with: Who sends the message that is waited for, and to whom?"""


def pass_the_token(comm, number):
    if comm.size == 1:
        return number
    if comm.rank == 0:
        comm.send(number, dest=1)
        return comm.recv(source=comm.size - 1)
    token = comm.recv(source=comm.rank - 1)
    if comm.rank + 1 < comm.size:
        comm.send(token + number, dest=comm.rank + 1)
    return token
