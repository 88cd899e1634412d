# The exercises of lesson 6. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Exercises: can P workers train as one?
#
# Five functions, and with them you have written the core of a data-parallel library. They belong to
# [lesson 6](../notebooks/06_data_parallel.ipynb).
#
# Replace the line `raise NotImplementedError`, run the cell, and the next one checks it on real processes: with 1 to
# 4 ranks and new numbers each time.

# %%
import math

import torch
import torch.distributed as dist
from torch import nn

import course_utils as course
from course_utils.lessons.data_parallel import all_reduce_sum

ranks = course.start(4)
ranks.load_torch()

# %% [markdown]
# In `torch.distributed` every rank makes the same calls in the same order, and there is no `comm`:
# `dist.get_rank()`, `dist.get_world_size()`, `dist.all_reduce(tensor)`, `dist.broadcast(tensor, src=0)`. The last two
# change the tensor in place. Try one:


# %% tags=["nbval-check-output"]
def sum_of_ranks():
    total = torch.tensor([float(dist.get_rank())])
    dist.all_reduce(total)
    return total.item()


ranks.run(sum_of_ranks, backend="gloo").results

# %% [markdown]
# ## 1 · Which examples are mine?
#
# Every rank calls this by itself and must get a shard that fits those of the others. Seed and epoch are all they have
# in common. On paper first: 10 examples, 4 ranks. How long is each shard? Which examples occur twice?

# %% tags=["exercise"]
# shard_indices

# %% [markdown]
# ## 2 · One model for all
#
# Make every replica equal to rank 0's. The optimizer already holds the model's tensors: do not replace them, fill
# them.

# %% tags=["exercise"]
# broadcast_parameters

# %% [markdown]
# ## 3 · The mean of all gradients
#
# The heart of it. Two traps are in the docstring: one parameter is frozen, and one rank has nothing to contribute.
# What happens to the others if it stays away?

# %% tags=["exercise"]
# average_gradients

# %% [markdown]
# ## 4 · The rate for a larger batch
#
# No ranks needed here, only a straight line. At which step is it at `base`, and at which has it arrived?

# %% tags=["exercise"]
# scaled_learning_rate

# %% [markdown]
# ## 5 · Batch norm over all ranks
#
# `dist.all_reduce` changes a tensor behind autograd's back: no gradient would find its way through it.
# `all_reduce_sum(tensor)` returns the sum over all ranks as a new tensor and knows the way back: one collective
# forward, one backward. Call it only once in the function.
#
# Ranks have different numbers of examples, and one may have none. Compute in float64: the check
# tries numbers around 3000 whose variance is 1.

# %% tags=["exercise"]
# sync_batch_norm

# %% [markdown]
# ## Done?
#
# Put *your* function to work: import `train_parallel` from `course_utils.lessons.data_parallel` and call
# `ranks.run(train_parallel, course.data.digits("float64"), synchronise=average_gradients, backend="gloo")`. Are
# the losses in its results those of the same call without `synchronise`, which takes ours?

# %%
course.progress()

# %%
ranks.stop()
