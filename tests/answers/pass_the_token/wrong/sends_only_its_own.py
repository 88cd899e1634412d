"""Refused with: Is what you pass on the token plus your number?"""


def pass_the_token(comm, number):
    if comm.size == 1:
        return number
    comm.send(number, dest=(comm.rank + 1) % comm.size)
    return comm.recv(source=(comm.rank - 1) % comm.size)
