"""One training program, and three ways to start it: torchrun, a batch job of Slurm, a notebook's ranks on the nodes.

`train_ddp` is the program, a file that all three run unchanged, `settings` what it is told, and `training` what it
needs on every rank. `where` finds out who started it and who the others are, `checkpoint` keeps what a training needs
to go on, `stopping` hears that the time is up, `slurm_script` writes the batch script, and `bandwidth` says how fast a
collective operation was.
"""
