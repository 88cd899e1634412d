"""Refused with: Can you do it with send and recv alone?"""


def pass_the_token(comm, number):
    numbers = comm.allgather(number)
    return sum(numbers) if comm.rank == 0 else sum(numbers[: comm.rank])
