# The exercises of lesson 13. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Exercises: from four processes to forty GPUs?
#
# Here you write what a training run needs on a cluster. There are five exercises. In the first two you write a loop
# that can be killed, and the batch script that starts it. They belong to [lesson 13](../notebooks/13_gpu_nodes.ipynb).
# The third, the bus bandwidth, belongs to [part 2](../notebooks/13_gpu_nodes_part_2.ipynb). The last two ask how often
# to save, and which of many complaints is the cause of a failed launch. They go with sections of
# [Further](../notebooks/13_gpu_nodes_further.ipynb).
#
# The checks look at more than the result. They kill your training run, send a signal to one rank only, run your script,
# and let your function explain failures that you have not seen.

# %%
import math
from collections.abc import Sequence
from dataclasses import asdict

import torch.distributed as dist

import course_utils as course
from course_utils.errors import CourseError
from course_utils.lessons.allreduce import algorithm_bandwidth
from course_utils.lessons.gpu_nodes import HOUR, TRY_AGAIN, FailureReport, Interrupted
from course_utils.lessons.gpu_nodes import Place, ReportKind, Settings, Story, Trained
from course_utils.lessons.gpu_nodes import check_job, gather_random_states, lines_of
from course_utils.lessons.gpu_nodes import read_checkpoint, recording, reports_of
from course_utils.lessons.gpu_nodes import save_checkpoint, set_random_states, training_of

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
# ## 5 · Which report is the cause?
#
# *After the section "When the launch fails" of [Further](../notebooks/13_gpu_nodes_further.ipynb).*
#
# When one rank of a launch fails, most of the others complain, and perhaps only one line of the log explains what
# happened. `course doctor --log` finds it in two steps. First it turns each line that is about a failure into a
# *report*. Then it puts the reports of all ranks together and decides which of them explains the others. The second
# step is yours, so you don't have to read any text. You only compare reports, which have these attributes:
#
# | Attribute | What it is |
# |---|---|
# | `failure` | the name of the failure, such as `"KeyError"`; reports with the same name are about the same failure |
# | `kind` | one of the three kinds below |
# | `rank` | the rank that the report is about, whoever wrote it, or None if it is about the whole job |
# | `time` | when it was written, as a number of seconds, which is never None |
# | `line` | the line of the log, which you don't need here |
#
# | Kind | Value | What such a report tells you |
# |---|---|---|
# | `ReportKind.CAUSE` | 0 | why the rank failed, such as an exception in its program |
# | `ReportKind.SIGN` | 1 | that the rank failed, but not why, such as an exit code |
# | `ReportKind.CONSEQUENCE` | 2 | that the rank couldn't go on because another rank failed, such as a timeout |
#
# You can compare kinds like numbers, and the smaller one explains more. For example, these are the reports of three
# ranks, in the order of the log. It isn't the order of their times, because the ranks are on different nodes, and their
# lines were collected node by node:
#
# | | Time | Rank | Failure | Kind |
# |---|---|---|---|---|
# | `reports[0]` | 12:10:10 | 0 | collective timeout | CONSEQUENCE |
# | `reports[1]` | 12:10:10 | 1 | collective timeout | CONSEQUENCE |
# | `reports[2]` | 12:00:07 | 2 | KeyError | CAUSE |
#
# Rank 2 had an exception, and ten minutes later the others gave up waiting for it. Your function returns a `Story`,
# which is this dataclass:
#
# ```python
# @dataclass(frozen=True)
# class Story:
#     cause: FailureReport
#     ranks: tuple[int, ...]
#     others: tuple[FailureReport, ...]
#     silent: tuple[int, ...]
# ```
#
# Here it is `Story(reports[2], (2,), (reports[0], reports[1]), ())`:
#
# | Field | Value | Why |
# |---|---|---|
# | `cause` | `reports[2]` | it has the smallest kind |
# | `ranks` | `(2,)` | no other rank has a KeyError |
# | `others` | `(reports[0], reports[1])` | all reports of other failures, of any kind, the earliest first |
# | `silent` | `()` | there is a report about each of the three ranks |
#
# Suppose instead that all three ranks have a KeyError. Then the cause is the earliest of these reports, `ranks` is
# `(0, 1, 2)`, and `others` is empty, because no other failure was reported. This makes a big difference to whoever
# reads the story. If one rank fails, they look at its node or its part of the data, and if all fail alike, they look at
# the program.
#
# In the next launch there are four ranks, and no report is a cause:
#
# | | Time | Rank | Failure | Kind |
# |---|---|---|---|---|
# | `reports[0]` | 12:10:03 | 3 | collective timeout | CONSEQUENCE |
# | `reports[1]` | 12:10:01 | 0 | collective timeout | CONSEQUENCE |
# | `reports[2]` | 12:10:02 | 1 | collective timeout | CONSEQUENCE |
#
# **Predict.** If several reports have the smallest kind, the earliest of them is the cause of the story. Which of these
# three is it, 0, 1 or 2? And which rank does no report mention?

# %%
course.predict("gpu_nodes_story", report=..., silent=...)

# %%
course.answer("gpu_nodes_story", report=1, silent=2)

# %% [markdown]
# A story always has a `cause`, even if it is only a complaint, as here. Its kind tells the reader that no rank gave a
# reason, and `silent` tells them where to look next, which is at the node of rank 2.
#
# The last example has two ranks. The launcher reports that rank 1 was killed. When the job has ended, Slurm adds that
# memory ran out (`oom_kill event in StepId=4711.0`). Its line names the job but no rank, so the `rank` of that report
# is None:
#
# | | Time | Rank | Failure | Kind |
# |---|---|---|---|---|
# | `reports[0]` | 12:00:05 | 0 | connection closed | CONSEQUENCE |
# | `reports[1]` | 12:00:06 | 1 | killed by signal 9 | SIGN |
# | `reports[2]` | 12:00:07 | None | out of memory | CAUSE |
#
# **Predict.** Which report is the cause, and what is `ranks`?

# %%
choices = {
    "a": "reports[0], because it is the earliest, and ranks is (0,)",
    "b": "reports[1], because its rank failed, and ranks is (1,)",
    "c": "reports[2], because it explains the most, and ranks is ()",
    "d": "reports[2], because it explains the most, and ranks is (None,)",
}
course.predict("gpu_nodes_kinds", answer=..., choices=choices)

# %%
course.answer("gpu_nodes_kinds", answer="c")

# %% [markdown]
# The kind counts more than the time. Rank 0 lost its connection, the launcher then noticed that rank 1 had ended, and
# Slurm gave the reason last. The clocks of two nodes may differ as well. So a report in `others` can be earlier than
# the cause. And the whole job is not a rank, so None is never in `ranks`.
#
# **Before you type:** what should your function do if two reports have the same kind and the same time? The docstring
# tells you.

# %% tags=["exercise"]
# explain_failure

# %% [markdown]
# You can also try your function on one of the recorded logs. `reports_of` is the first of the two steps.
#
# ```python
# reports = reports_of(lines_of(recording("out of memory").log))
# for report in reports:
#     print(report.kind.name, report.rank, report.failure, report.line.number)
# print(explain_failure(reports, world_size=2).cause.line.text)
# ```
#
# If you have the log of a failed launch, type `course doctor --log FILE` in a terminal. It reads the log in the same
# way and adds what you can do next.

# %%
course.progress()

# %% [markdown]
# Next comes [lesson 14](../notebooks/14_profiling.ipynb), which asks where the time goes.

# %%
ranks.stop()
