"""Ranks without processes: greenlets of this kernel, each with a clock of its own. Read `virtual_time` first.

`virtual_time` is the scheduler, `virtual_network` when a message arrives. `communicator` is what a function is given:
`rank_in_communicator` says who a rank is in it, `virtual_messages` and `virtual_collectives` hold mpi4py's calls,
`virtual_requests` what is under way, `buffers` what is read and written, `collective_costs` what a collective takes.
`virtual_mpi` takes the place of `mpi4py.MPI`. `virtual_ranks` is what a notebook holds.
"""
