"""Refused with: Who adds up what all the clinics bring?"""


def federated_average(comm, parameters, examples):
    everybody = comm.allreduce(examples)
    if everybody:
        parameters[:] = parameters * examples / everybody
