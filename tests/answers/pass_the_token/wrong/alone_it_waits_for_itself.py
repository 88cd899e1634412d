"""Refused with: What is there to send when a rank is alone?"""


def pass_the_token(comm, number):
    left, right = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
    if comm.rank == 0 and comm.size > 1:
        comm.send(number, dest=right)
    token = comm.recv(source=left)
    if comm.rank > 0:
        comm.send(token + number, dest=right)
    return token
