# The exercises of lesson 6. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Exercises: can P workers train as one?
#
# In these six exercises you write the training loop of [lesson 6](../notebooks/06_data_parallel.ipynb), and then the
# parts that a real program needs around it.
#
# Replace the line `raise NotImplementedError` with your code and run the cell. The next cell checks your function on
# real processes, with 1 to 4 ranks and new numbers each time.

# %%
import math

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy

import course_utils as course
from course_utils.lessons.data_parallel import all_reduce_sum

ranks = course.start(4)
ranks.load_torch()

# %% [markdown]
# All ranks make the same calls to `torch.distributed` in the same order. You need four of them: `dist.get_rank()`,
# `dist.get_world_size()`, `dist.all_reduce(tensor)` and `dist.broadcast(tensor, src=0)`. The last two write their
# result into the tensor that you give them. Try one:


# %% tags=["nbval-check-output"]
def sum_of_ranks():
    total = torch.tensor([float(dist.get_rank())])
    dist.all_reduce(total)
    return total.item()


ranks.run(sum_of_ranks, backend="gloo").results

# %% [markdown]
# ## 1 · The training loop
#
# Can you write the loop without looking at the page? Every rank calls your function with the same images and batches,
# but with a model whose weights are its own. In the end, all four models must be what one process would have trained
# from rank 0's weights, and the loss at every step must be that of one process, too.
#
# Each rank may compute only its own share of each batch. All shares have the same size. A step subtracts rate ×
# gradient from every parameter, and you can write it yourself, because `torch.no_grad()` lets you change a parameter in
# place. How you send the gradients is up to you. The losses and weights may differ in their last digits.

# %% tags=["exercise"]
# train_data_parallel

# %% [markdown]
# ## 2 · Which examples are mine?
#
# In the loop, the number of images could be divided evenly. Here it need not be. Every rank calls this function by
# itself, and all it has in common with the other ranks are the seed and the epoch.
#
# Work through a small case on paper first. With 10 examples and 4 ranks, how long is each shard? And which examples
# appear twice? Draw from a generator of your own, so that the random numbers of the rest of the program stay the same.

# %% tags=["exercise"]
# shard_indices

# %% [markdown]
# ## 3 · One model for all ranks
#
# Copy the model of rank 0 to all other ranks. The loop on the page did this for the parameters. Write a version that
# works for any model, including one with buffers. An optimizer may already hold the model's tensors, so don't replace
# them. Write new numbers into them. Each tensor takes one `dist.broadcast` of its own, and nothing else is sent. A
# tensor that belongs to two layers travels once.

# %% tags=["exercise"]
# broadcast_parameters

# %% [markdown]
# ## 4 · The mean of all gradients
#
# This function, too, must work for any model. Two cases need care. A parameter may be frozen, which means that it isn't
# trained. And in some batches a rank may have no gradient for a parameter, for example because its images didn't use
# that part of the network. What happens to the other ranks if it doesn't take part?
#
# Each trained parameter takes one `dist.all_reduce` of its own, and nothing else is sent. (In lesson 7, several
# gradients share one.) Other parts of a program may hold the tensor in `parameter.grad`, so write the mean into that
# tensor.

# %% tags=["exercise"]
# average_gradients

# %% [markdown]
# ## 5 · The rate for a larger batch
#
# This function needs no ranks. If the warm-up takes 4 steps and the rate rises from 0.1 to 0.5, the rates of steps 0 to
# 5 are 0.1, 0.2, 0.3, 0.4, 0.5 and 0.5.

# %% tags=["exercise"]
# scaled_learning_rate

# %% [markdown]
# ## 6 · Batch norm over all ranks
#
# (After the section *Layers that see the whole batch* of [Further](../notebooks/06_data_parallel_further.ipynb).)
#
# For each feature you need the mean and the variance over the examples of all ranks. With $N$ examples in total, they
# are
#
# $$\text{mean} = \frac1N\sum x \qquad\text{and}\qquad \text{variance} = \frac1N\sum x^2 - \text{mean}^2 .$$
#
# The ranks may have different numbers of examples, and one of them may have none.
#
# `dist.all_reduce` changes a tensor without telling autograd, so no gradient can flow back through it. Use
# `all_reduce_sum(tensor)` instead. It returns the sum over all ranks as a new tensor, and in the backward pass it adds
# up the gradients of all ranks. Call it only once, with everything that you need in one vector.
#
# Compute in `float64`. The check also tries numbers around 3,000 whose variance is 1. There, the two terms of the
# variance are about 9,000,000 and their difference is 1, which leaves no correct digit in `float32`.

# %% tags=["exercise"]
# sync_batch_norm

# %% [markdown]
# ## Done?
#
# Put your own function to work. Import `train_parallel` from `course_utils.lessons.data_parallel`, which is the loop of
# the page with more options, and call `ranks.run(train_parallel, course.data.digits("float64"),
# synchronise=average_gradients, backend="gloo")`. Compare the losses in its results with those of the same call without
# `synchronise=`, which uses the library's function.

# %%
course.progress()

# %%
ranks.stop()
