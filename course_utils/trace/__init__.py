"""Records what happens on each rank: messages, collectives and phases.

`events` is what a run leaves behind, and what can be counted in it. `recorder` collects events and makes every wait one
that can be left; the folders `mpi` and `torch` do so for the calls of each. `ledger` knows what is on its way,
`wait_graph` who waits for whom, and `learner_threads` which threads may still send. `latent_errors` and
`wait_explanations` put into words what went wrong. `activity` shows the notebook what a rank is doing, `standing` in
which call, `kernel_counters` what the kernel has counted, and `nvtx_ranges` NVIDIA's profilers what a phase is called.
"""
