# The exercises of lesson 13. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Exercises: from four processes to forty GPUs?
#
# Here you write what a training needs to live on nodes that are not yours: a loop that can be
# killed, the batch script that starts it, the figure that says how full the links are, how
# often to save, and the reader of logs for the day when it does not start. The exercises belong
# to [lesson 13](../notebooks/13_gpu_nodes.ipynb).
#
# The check looks at more than the result: it kills your training, lets one rank alone hear a
# signal, runs your script, and gives your reader logs that you have not seen.

# %%
import math
import re
from dataclasses import asdict

import torch.distributed as dist

import course_utils as course
from course_utils.errors import CourseError
from course_utils.lessons.allreduce import algorithm_bandwidth
from course_utils.lessons.gpu_nodes import CONSEQUENCE, ERROR, HOUR, RULES, TRY_AGAIN
from course_utils.lessons.gpu_nodes import UNKNOWN, Cause, Interrupted, Place, Settings
from course_utils.lessons.gpu_nodes import Trained, beside, check_job
from course_utils.lessons.gpu_nodes import gather_random_states, in_time, read_checkpoint
from course_utils.lessons.gpu_nodes import recording, save_checkpoint, set_random_states
from course_utils.lessons.gpu_nodes import training_of

ranks = course.start(4)
ranks.load_torch()

# %% [markdown]
# ## 1 · A training that can be killed
#
# Twelve steps, three epochs of four, a checkpoint every five. After step 7 a node dies:
#
# ```
# first start    1  2  3  4 │ 5  6  7 ✗
#                             ▲ checkpoint: epoch 1, batch 1
# second start                   6  7  8 │ 9  10  11  12    the same batches, the same losses
# ```
#
# Steps 6 and 7 are done twice. That is no harm: the second time they begin with the weights,
# the optimizer and the random numbers of the first.

# %% [markdown]
# `with training_of(settings) as training:` sets everything up on every rank and reads no
# checkpoint. `training` then has
#
# | name | what it is |
# |---|---|
# | `model`, `optimizer` | both with `state_dict()` and `load_state_dict(…)` |
# | `sampler` | `set_epoch(epoch)` makes it deal the images out anew |
# | `batches()` | this rank's share of all batches of the sampler's epoch |
# | `step(batch, progress)` | one step; moves `progress.batch` and `progress.steps` on |
# | `loss()` | the loss on all training images, at the end of an epoch |
# | `stop.agreed()`, `stop.heard` | whether any rank was asked to stop; what this one heard |
# | `trained(progress, resumed_at)` | the result |
# | `rank`, `file` | of this process; of the checkpoint, for all |

# %% [markdown]
# `progress = Place()` is the beginning; its `epoch`, `batch`, `steps` and `losses` say how far a
# training has come. At the end of an epoch you move it on: another loss in `losses`, the next
# `epoch`, and `batch` 0. For the checkpoint, which holds what you put into it:
#
# | call | on which ranks | what it does |
# |---|---|---|
# | `read_checkpoint(file)` | all | what `save_checkpoint` wrote, or None |
# | `save_checkpoint(file, content)` | one | a dict; the old file or the new one, never a half |
# | `gather_random_states()` | all | a list on rank 0, None elsewhere |
# | `set_random_states(states)` | all | every rank takes its own |
#
# The dict may hold numbers, texts, lists, tensors, what `state_dict()` gives, and a `Place`.
#
# What you raise when the ranks agree to stop: `Interrupted(stop.heard, progress.steps, file)`.
#
# **Before you type:** what must not happen between `save_checkpoint` on rank 0 and the moment
# when the other ranks leave?

# %% tags=["exercise"]
# train_ddp

# %% [markdown]
# Your loss, uninterrupted and interrupted, on two ranks. (`die_at` would end a rank for good,
# so here the second start simply asks for more epochs.)
#
# ```python
# import tempfile
#
# folder = tempfile.mkdtemp()
# for epochs in (2, 4):
#     run = ranks.run(train_ddp, Settings(folder, epochs), backend="gloo")
#     print(run.results[0].resumed_at, run.results[0].losses)
# ```

# %% [markdown]
# ## 2 · The batch script
#
# What sbatch must know is in comments at the top, one `#SBATCH --option=value` on each line; sbatch
# reads them until the first command. The commands below them run once, on the first node:
#
# ```
# #!/bin/bash
# #SBATCH --nodes=2                     node 1               node 2
# #SBATCH --ntasks-per-node=4
# …                                     this script
# export MASTER_ADDR=…                    │
# srun … python train.py                  ├─► 4 tasks          4 tasks
# status=$?                               │   (75: stopped in time, may go on)
# …                                       ▼
# ```
#
# `check_job([nodes, tasks_per_node, cores_per_task, minutes], gpus_per_node, warn_seconds,
# [name, partition, memory])` is ready: it raises what the docstring promises.

# %% [markdown]
# Three things to think of before you type:
#
# - In a Python string `f"…"`, a brace of the shell is written twice: `${{MASTER_ADDR:-…}}`.
# - Which lines must not be there at all when there is no GPU, and no partition or memory was named?
# - The script goes on after `srun`. What does it know then, and what is left to do?
#
# The check reads your script as sbatch does and runs it with an `srun` that starts nothing and
# notes what it is told. Where a Slurm answers, it asks `sbatch --test-only` as well.

# %% tags=["exercise"]
# slurm_script

# %% [markdown]
# Look at what you have written: `print(slurm_script("python train.py", nodes=2))`.
#
# ## 3 · How full were the links?
#
# In [part 2](../notebooks/13_gpu_nodes_part_2.ipynb) of the lesson you turned the algorithm bandwidth of an all-reduce
# into the bus bandwidth, which is the rate at which bytes pass through each link. Now write the function for all
# collectives.
#
# For example, four ranks add up a vector of 1 GB in half a second, so the algorithm bandwidth is 2 GB/s. In a ring,
# each rank sends 3 of the 4 blocks in the reduce-scatter and 3 of 4 in the all-gather:
#
# ```
#              reduce-scatter     all-gather
# each rank    3 blocks of 4      3 blocks of 4      6/4 of the vector
# ```
#
# So 1.5 GB pass through each link in half a second, and the bus bandwidth is 3 GB/s. In general it is
#
# $$\text{share} \cdot \frac{n}{t},$$
#
# where the vector has $n$ bytes, the operation takes $t$ seconds, and the *share* is what the busiest rank has to send
# or receive in one direction at least, as a part of the vector. For a broadcast, think of the rank that has the vector
# at the beginning, and for a reduce of the rank that has the sum at the end. As in nccl-tests, $n$ counts the *whole*
# vector, which is what each rank has after an all-gather and before a reduce-scatter.

# %% tags=["exercise"]
# bus_bandwidth

# %% [markdown]
# ## 4 · How often to save?
#
# A checkpoint takes $C$ seconds in which nobody trains. A failure throws the training back to the last one. The data
# sheet says how many *hours* one node lives from failure to failure; you have many nodes, and each that fails breaks
# off all.
#
# | seconds of a checkpoint | hours of a node | nodes | best interval |
# |---|---|---|---|
# | 50 | 1 | 1 | 600 s |
# | 50 | 4 | 4 | 600 s |

# %% tags=["exercise"]
# best_interval

# %% [markdown]
# ## 5 · Why did it not start?
#
# Read this log first. One line of it says why; the rest follows from it.

# %%
print(recording("no shared files").log)

# %%
choices = {
    "a": "train.py, line 65, has a mistake",
    "b": "node02 has a folder /mnt/runs of its own",
    "c": "rank 1 was killed",
}
course.predict("gpu_nodes_log", answer=..., choices=choices)

# %% [markdown]
# Rank 0 *wrote* the file, says a line further up, and rank 1 on another node cannot find it. One
# line alone would not tell: a mistyped path looks the same. `RULES` knows this:

# %%
course.answer("gpu_nodes_log", answer="b")
for rule in RULES:
    print(f"{rule.cause:24}{rule.shows:.62}")
    if rule.beside:
        print(f"{'   and beside it':24}{rule.beside}")

# %% [markdown]
# In `RULES` a cause stands above what can follow from it: a job may run into its time limit
# *because* a rank ran out of memory and the others wait.
#
# `in_time(lines)` brings lines into the order of time, and leaves empty ones out. `found =
# re.search(rule.shows, line)` is None where the rule does not fit; `beside(rule, found, log)` looks
# for what a rule wants to see beside it. `ERROR` and `CONSEQUENCE` are compiled already:
# `ERROR.search(line)`.

# %% tags=["exercise"]
# explain_failure

# %% [markdown]
# Have you a log of your own that failed? `course doctor --log FILE` reads it in the same way.

# %%
course.progress()

# %% [markdown]
# Next: lesson 14, where the time goes.

# %%
ranks.stop()
