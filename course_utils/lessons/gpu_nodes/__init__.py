"""Lesson 13, From four processes to forty GPUs? Read `train_ddp` first: the program that three launchers run unchanged.

`settings` is what it is told, `resumable_training` what it needs on every rank; `launch` finds out who started it and
who the others are, `checkpoint` keeps what it needs to go on, `stop_signals` hears that the time is up. `slurm_script`
writes the batch script, `save_interval` says how often to save. `failures` are launches that went wrong.
"""
