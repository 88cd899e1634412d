"""Records what happens on each rank: messages, collectives and phases.

`events` is what a run leaves behind, and what can be counted in it. `recorder` collects events and makes every wait one
that can be left; `mpi`, `collectives` and `requests` are a communicator that does so, `torch_distributed` does it for
torch. `activity` tells the notebook what a rank is doing, `kernel_counters` what the kernel has counted.
"""
