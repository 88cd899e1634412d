"""Records what happens on each rank: messages, collectives and phases.

`events` is what a run leaves behind, and what can be counted in it. `recorder` collects events and makes every wait one
that can be left; `mpi`, `traced_messages`, `collectives`, `requests` and `windows` do so for MPI, `torch_distributed`
and `waits_in_backward` for torch. `ledger` knows what is on its way, `wait_graph` who waits for whom. `activity` shows
the notebook what a rank is doing, `kernel_counters` what the kernel has counted, and `nvtx_ranges` NVIDIA's profilers
what a phase is called.
"""
