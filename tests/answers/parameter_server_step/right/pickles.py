"""Python objects instead of buffers."""


def parameter_server_step(comm, parameters, gradient, rate):
    if comm.rank == 0:
        gradients = [comm.recv(source=worker) for worker in range(1, comm.size)]
        if gradients:
            parameters[:] = parameters - rate * sum(gradients) / len(gradients)
        for worker in range(1, comm.size):
            comm.send(parameters, dest=worker)
    else:
        comm.send(gradient, dest=0)
        parameters[:] = comm.recv(source=0)
