"""The sum in the place of the weights."""


def local_sgd_round(comm, parameters, gradient, batches, rate):
    from mpi4py import MPI

    for batch in batches:
        parameters -= rate * gradient(parameters, batch)
    comm.Allreduce(MPI.IN_PLACE, parameters)
    parameters /= comm.size
