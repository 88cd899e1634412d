"""Refused with: Who sends, while everybody waits for a message?"""


def who_is_there(comm, name):
    names = []
    for other in range(comm.size):
        names.append(comm.recv(source=other))
        comm.send(name, dest=other)
    return names
