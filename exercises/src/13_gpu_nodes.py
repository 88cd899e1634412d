# The exercises of lesson 13. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Exercises: from four processes to forty GPUs?
#
# Here you write what a training run needs on a cluster. There are five exercises. In the first two you write a loop
# that can be killed, and the batch script that starts it. They belong to [lesson 13](../notebooks/13_gpu_nodes.ipynb).
# The third, the bus bandwidth, belongs to [part 2](../notebooks/13_gpu_nodes_part_2.ipynb). The last two ask how often
# to save, and let you find the cause of a failed launch in its log. They go with sections of
# [Further](../notebooks/13_gpu_nodes_further.ipynb).
#
# The checks look at more than the result. They kill your training run, send a signal to one rank only, run your script,
# and give your function logs that you have not seen.

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
# ## 1 · A training run that can be killed
#
# Take three epochs with four batches each, which makes twelve steps, and a checkpoint every five steps. A process is
# killed after step 7:
#
# ```
# first start    1  2  3  4 │ 5  6  7 ✗
#                             ▲ checkpoint after step 5: epoch 1, batch 1
# second start                   6  7  8 │ 9  10  11  12
# ```
#
# Epochs and batches are counted from 0, so after step 5 one batch of epoch 1 is done. Steps 6 and 7 are done twice.
# They give the same losses both times, because they begin with the same weights, the same optimizer and the same random
# numbers.
#
# `with training_of(settings) as training:` sets everything up on each rank. It lets the ranks meet and builds the
# network, the optimizer, the data and DDP, but it doesn't read a checkpoint. Then `training` has these attributes and
# methods:
#
# | Name | What it is |
# |---|---|
# | `model`, `optimizer` | both have `state_dict()` and `load_state_dict(…)` |
# | `sampler` | `set_epoch(epoch)` puts the images into the order of this epoch |
# | `batches()` | a list with this rank's share of each batch of the epoch |
# | `step(batch, progress)` | takes one step and adds 1 to `progress.batch` and to `progress.steps` |
# | `loss()` | the loss on all training images, for the end of an epoch |
# | `stop.agreed()` | asks all ranks, and returns whether any of them has heard a signal |
# | `stop.heard` | the signal that this rank has heard, or an empty string |
# | `trained(progress, resumed_at)` | the result that your function returns |
# | `rank`, `file` | the number of this rank, and the path of the checkpoint |

# %% [markdown]
# `progress = Place()` describes the beginning. Its `epoch`, `batch` and `steps` are 0, and its list `losses` is empty.
# After the last batch of an epoch you append the loss, add 1 to `epoch` and set `batch` back to 0.
#
# Four functions help you with the checkpoint:
#
# | Call | Which ranks call it | What it does |
# |---|---|---|
# | `read_checkpoint(file)` | all | returns the dict that was saved, or None if there is none yet |
# | `save_checkpoint(file, content)` | rank 0 | writes the dict, and then renames the file |
# | `gather_random_states()` | all | returns a list on rank 0, and None on the others |
# | `set_random_states(states)` | all | each rank takes its own state from the list |
#
# You choose what the dict contains. It may hold numbers, strings, lists, dicts, tensors, and what `state_dict()`
# returns. `asdict(progress)` turns your progress into a dict, and `Place(**…)` turns it back.
#
# Save at three points: after each step whose number is divisible by `settings.save_every`, after the step at which the
# ranks agree to stop, and at the end of the whole run. When the ranks have agreed and the checkpoint is written, all of
# them `raise Interrupted(training.stop.heard, progress.steps, training.file)`.
#
# **Before you type:** rank 0 takes a while to write. What could happen if the other ranks left the function at once?

# %% tags=["exercise"]
# train_ddp

# %% [markdown]
# You can also try your function by hand, on two ranks. The second call asks for more epochs, so it should resume where
# the first one ended:
#
# ```python
# import tempfile
#
# folder = tempfile.mkdtemp()
# for epochs in (2, 4):
#     run = ranks.run(train_ddp, Settings(folder, epochs), ranks=2, backend="gloo")
#     print(run.results[0].resumed_at, run.results[0].losses)
# ```

# %% [markdown]
# ## 2 · The batch script
#
# Write the function that made the batch script of the lesson. At its top are lines of the form `#SBATCH
# --option=value`, which sbatch reads until the first command. The commands below them run once, on the first node of
# the job, and `srun` starts the tasks on all nodes:
#
# ```
# #!/bin/bash
# #SBATCH --nodes=2                     node 1               node 2
# #SBATCH --ntasks-per-node=4
# …                                     this script
# export MASTER_ADDR=…                    │
# srun … python train.py                  ├─► 4 tasks          4 tasks
# status=$?                               │   (75: stopped in time, may resume)
# …                                       ▼
# ```
#
# The docstring lists what the script must do. The lesson explains most of its lines, so keep the printed script at
# hand. Some lines depend on the arguments, and a line that asks for GPUs, memory or a partition must be missing if none
# was given. To start with, call `check_job([nodes, tasks_per_node, cores_per_task, minutes], gpus_per_node,
# warn_seconds, [name, partition, memory])`. It raises the errors that the docstring promises.
#
# A word about Python: in a string `f"…"` you have to double each brace that belongs to the shell, as in
# `${{MASTER_ADDR:-…}}`. (In the shell, `${NAME:-value}` is the variable, or `value` if it isn't set.)
#
# **Before you type:** the script continues when `srun` has ended. What can it find out then, and what is left to do?
#
# The check reads your script as sbatch does. Then it runs the script with an `srun` that starts nothing and only notes
# its arguments. If there is a Slurm here, the check also asks `sbatch --test-only`.

# %% tags=["exercise"]
# slurm_script

# %% [markdown]
# Have a look at your script with `print(slurm_script("python train.py", nodes=2))`.
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
# *After the section "How often should you save?" of [Further](../notebooks/13_gpu_nodes_further.ipynb).*
#
# Writing a checkpoint takes $C$ seconds, during which nothing is trained. A failure throws the run back to the last
# checkpoint. If the time between two failures is $M$ seconds on average, the interval
#
# $$t = \sqrt{2\,C M}$$
#
# loses the least time. You are given the mean time between failures of *one* node, and in hours. A run on $n$ nodes
# stops if any of them fails, so its $M$ is only an $n$-th of that.
#
# | $C$ in seconds | hours of one node | nodes | $M$ in seconds | best interval |
# |---|---|---|---|---|
# | 50 | 1 | 1 | 3,600 | 600 s |
# | 50 | 4 | 4 | 3,600 | 600 s |
# | 50 | 1 | 4 | 900 | 300 s |

# %% tags=["exercise"]
# best_interval

# %% [markdown]
# ## 5 · Why did it not start?
#
# *After the section "When the launch fails" of [Further](../notebooks/13_gpu_nodes_further.ipynb).*
#
# Read this log of two ranks on two nodes first. One of its lines gives the cause, and the rest follows from it.

# %%
print(recording("no shared files").log)

# %%
choices = {
    "a": "line 65 of train.py is wrong",
    "b": "the two nodes don't share the folder /mnt/runs",
    "c": "rank 1 was killed",
}
course.predict("gpu_nodes_log", answer=..., choices=choices)

# %% [markdown]
# Further up, a line says that rank 0 *wrote* the file, and rank 1 on the other node can't find it. The error alone
# would not be enough, because a mistyped path looks just the same. That is why a rule in `RULES` may ask for a second
# line in addition to the one that shows the cause:

# %%
course.answer("gpu_nodes_log", answer="b")
for rule in RULES:
    print(f"{rule.cause:24}{rule.shows:.62}")
    if rule.beside:
        print(f"{'   and elsewhere':24}{rule.beside}")

# %% [markdown]
# The order of `RULES` matters. A job may run into its time limit *because* a rank ran out of memory while the others
# waited for it, so "out of memory" is above "time limit". Your function therefore goes through the rules from top to
# bottom, and for each rule through the lines of the log:
#
# 1. `in_time(log.splitlines())` gives you the lines in the order of time, without empty ones.
# 2. `found = re.search(rule.shows, line)` is None if the line doesn't show this cause. If it does, and `rule.beside` is
#    not empty, then `beside(rule, found, log)` must be true as well. The first line that passes is the answer,
#    `Cause(rule.cause, (line,))`.
# 3. If no rule fits, the cause is `UNKNOWN`. Then the reader of your answer should at least see where to look. An error
#    like `Connection closed by peer` only follows from another one, so show up to three lines that `ERROR` finds and
#    `CONSEQUENCE` does not. If there is no such line, take those that `ERROR` finds, and if there are none either, the
#    last line of the log.
#
# `ERROR` and `CONSEQUENCE` are compiled regular expressions, so you write `ERROR.search(line)`.

# %% tags=["exercise"]
# explain_failure

# %% [markdown]
# If you have a log of a failed launch, `course doctor --log FILE` reads it in the same way.

# %%
course.progress()

# %% [markdown]
# Next comes [lesson 14](../notebooks/14_profiling.ipynb), which asks where the time goes.

# %%
ranks.stop()
