"""Refused with: Is there a `return` on every way through the function?"""


def pass_the_token(comm, number):
    if comm.rank == 0:
        comm.send(number, dest=1 % comm.size) if comm.size > 1 else None
        token = comm.recv(source=comm.size - 1) if comm.size > 1 else number
    else:
        token = comm.recv(source=comm.rank - 1)
        comm.send(token + number, dest=(comm.rank + 1) % comm.size)
