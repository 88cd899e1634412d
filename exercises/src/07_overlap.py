# The exercises of lesson 7. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Exercises: why is DDP faster than my loop?
#
# In this notebook you write the parts of `DistributedDataParallel` that [lesson 7](../notebooks/07_overlap.ipynb) only
# used: the function that fills buckets, and the hooks that send them during the backward pass. Four shorter exercises
# follow. All six together take about an hour and a half. The first two are enough to go on.
#
# The check looks at more than the results. It records when every all-reduce starts, how many there are, and how many
# bytes each rank sends.

# %%
import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy, pad
from torch.nn.parallel import DistributedDataParallel

import course_utils as course
from course_utils.lessons.data_parallel import BUCKET_BYTES
from course_utils.lessons.overlap import Bucket, dequantise, quantise

ranks = course.start(4)
ranks.load_torch()

# %% [markdown]
# ## 1 · Filling buckets
#
# The backward pass begins with the last layer, so the last gradient is ready first. Go through the gradients from the
# last to the first, and put each of them into the open bucket as long as it fits. If it doesn't fit, it begins a new
# bucket. Here are six gradients, with a limit of 10 bytes:
#
# ```text
# index         0      1      2      3      4      5
# bytes         8      5      4      3      2      6
#                                         └── A ───┘    6 + 2 = 8 bytes; with gradient 3 it would be 11
#                           └── B ───┘                  3 + 4 = 7 bytes; with gradient 1 it would be 12
#                    └ C ┘                              5 bytes; with gradient 0 it would be 13
#             └ D ┘                                     8 bytes
# ```
#
# The result is `[[5, 4], [3, 2], [1], [0]]`. A bucket that holds exactly 10 bytes is allowed. A gradient that is larger
# than the limit gets a bucket of its own.
#
# If `dtypes` is given, it lists the type of each gradient. A vector can hold only one type, so a bucket must be closed
# when the next gradient has a different type.

# %% tags=["exercise"]
# make_buckets

# %% [markdown]
# ## 2 · Buckets that leave during the backward pass
#
# PyTorch calls a hook each time a gradient is complete. You can watch it do so:


# %% tags=["nbval-check-output"]
def shapes_in_order():
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 4), nn.Linear(4, 5))
    shapes = []

    def ready(parameter):
        shapes.append(tuple(parameter.shape))

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(ready)
    model(torch.ones(1, 2)).sum().backward()
    return shapes


shapes_in_order()

# %% [markdown]
# In the lesson, the hook of every parameter started an all-reduce. Now it has to find out whether a bucket is complete,
# and start that. Your function registers the hooks once, and it returns the function `finish`, which is called after
# every backward pass:
#
# ```text
# processor   layer 3 │ layer 2 │ layer 1 │ layer 0 │ finish()    │ step
# link                └ bucket 0 ───┘└ bucket 1 ──┘ └ bucket 2 ───┘
#                                                     only this is exposed
# ```
#
# The class `Bucket` does the sending for you:
#
# - `Bucket(parameters)` takes a list of parameters, in the order in which their gradients become ready.
# - `bucket.missing` is the number of gradients that are still to come. Your hook has to reduce it by 1 for each
#   gradient.
# - `bucket.start()` starts the all-reduce and returns at once. Until then, `bucket.work` is `None`.
# - `bucket.finish()` waits for the all-reduce, writes the means into `parameter.grad`, and prepares the bucket for the
#   next backward pass, so that `bucket.work` is `None` again. Call it only for a bucket that has been started.
#
# In a real training, three more things can happen, and your function should deal with them:
#
# - On some rank, gradients may become ready in a different order. The first all-reduce on one rank is matched with the
#   first on every other, so all ranks have to start their buckets in the same order, namely bucket 0 first. A complete
#   bucket has to wait for an incomplete one before it.
# - A batch may not use some parameter. Then its gradient never arrives, and its bucket doesn't become complete. The
#   other ranks are waiting for it all the same, so `finish` has to start whatever hasn't been started.
# - Some parameters may be frozen, with `requires_grad` set to `False`. They get no gradient and belong to no bucket.
#   And a parameter may be listed twice, in which case only its first position counts.
#
# Use your own `make_buckets`, and give it the types as well. Until it is right, you can go on with `from
# course_utils.lessons.overlap import make_buckets`. If this notebook is marked, you need your own.

# %% tags=["exercise"]
# overlapped_allreduce

# %% [markdown]
# ## 3 · A large batch in small pieces
#
# This exercise belongs to the section on fewer messages in [Further](../notebooks/07_overlap_further.ipynb), but you
# can do it without. A batch of 1,024 images may not fit into memory, but four micro-batches of 256 images do, one after
# the other. Each `backward()` adds its gradients to those that are already there:
#
# ```text
# forward, backward │ forward, backward │ forward, backward │ forward, backward, all-reduce
#     no_sync       │     no_sync       │     no_sync       │
# ```
#
# `cross_entropy` returns the *mean* loss of a micro-batch. You want the mean over all examples. If there are
# micro-batches with 6, 6 and 2 examples, this is
#
# $$\tfrac{6}{14} L_1 + \tfrac{6}{14} L_2 + \tfrac{2}{14} L_3 ,$$
#
# so multiply each loss by its share of the examples before you call `backward()`. The function returns this sum as a
# `float`.
#
# During the forward pass, DDP makes a note of whether the next backward pass has to send. So both passes belong inside
# `with module.no_sync():`. The context manager `contextlib.nullcontext()` does nothing and is useful for the last
# micro-batch.

# %% tags=["exercise"]
# accumulate_gradients

# %% [markdown]
# ## 4 · How efficient are P ranks?
#
# This exercise uses strong scaling, from the lesson, and weak scaling, which
# [Further](../notebooks/07_overlap_further.ipynb) explains and measures. Suppose that one rank needs 8 s for some work.
# If four ranks share it and need 2.5 s, you pay for 4 × 2.5 = 10 s, and one rank would have done the same in 8 s. The
# **efficiency** is the useful part of what you pay for:
#
# ```text
# one rank   ████████████████     8 s
#
# rank 0     █████                2.5 s
# rank 1     █████                2.5 s
# rank 2     █████                2.5 s
# rank 3     █████                2.5 s     strong scaling: 8 s ÷ 10 s = 0.8
# ```
#
# In weak scaling, each of the four ranks does as much work as the single rank did. If they need 10 s, you pay for 40 s,
# and one rank would have taken 4 × 8 = 32 s for the same work. The efficiency is again 0.8.

# %% tags=["exercise"]
# scaling_efficiency

# %% [markdown]
# ## 5 · Send the largest numbers and remember the rest
#
# This exercise belongs to the section on smaller messages in [Further](../notebooks/07_overlap_further.ipynb). Most
# numbers in a gradient are small. To save bytes, each rank sends only the $k$ numbers of the largest magnitude,
# together with their positions. What it leaves out is not lost, because it adds it to the next gradient. Here is an
# example with $k = 1$:
#
# ```text
# gradient         0.1   -2.0    0.3
# + error          0.4    0.0    0.1      left out in earlier steps
# = corrected      0.5   -2.0    0.4
#
# sent                   -2.0             index 1, value -2.0
# new error        0.5    0.0    0.4      left out so far
# ```
#
# Your function only chooses the numbers and returns them. If $k$ is larger than the length of the gradient, all of them
# are sent. The two arguments must keep their values.

# %% tags=["exercise"]
# top_k_with_error_feedback

# %% [markdown]
# ## 6 · An all-reduce with a byte for each number
#
# This exercise belongs to the section on one byte for each number in
# [Further](../notebooks/07_overlap_further.ipynb). Two functions are given:
#
# - `numbers, scales = quantise(values, block)` takes a vector of `float32`, whose length has to be a multiple of
#   `block`. It returns numbers of 8 bits, and a scale for each block.
# - `dequantise(numbers, scales, block)` makes a vector of `float32` from them.
#
# Such numbers can't be added, so the ranks first move them and then add in one place. Here are two ranks and a vector
# of four numbers, in blocks of two:
#
# ```text
#            vector             8 bits arrive          sum, float32    8 bits arrive
# rank 0     a0 a1 │ b0 b1      a0 a1 │ A0 A1          a0+A0 a1+A1     a0+A0 a1+A1 │ b0+B0 b1+B1
# rank 1     A0 A1 │ B0 B1      b0 b1 │ B0 B1          b0+B0 b1+B1     a0+A0 a1+A1 │ b0+B0 b1+B1
# ```
#
# The messages before the sum are an all-to-all, and those after it are an all-gather. Gloo doesn't know numbers of 8
# bits, so give it `numbers.view(torch.uint8)`, which is the same memory seen as bytes. All ranks have to return the
# same bits, so a rank has to use rounded numbers for the part that it has added up itself, too.
#
# A vector may have any length. Fill it up with zeros until it has one part for every rank, each of whole blocks, and
# return as many numbers as you were given.

# %% tags=["exercise"]
# float8_all_reduce

# %% [markdown]
# ## Does it train?
#
# When your `overlapped_allreduce` is right, you can train with it. The next lines train the handwritten digits of
# lesson 6 on four ranks. Each rank returns the share of test images that it recognises, and because all ranks have the
# same weights, the four shares must be equal:
#
# ```python
# from course_utils.lessons.data_parallel import Replica, train_replicas
#
# def mine(model):
#     return Replica(model, overlapped_allreduce(list(model.parameters()), 8192))
#
# data = course.data.digits()
# run = ranks.run(train_replicas, data, mine, epochs=3, rate=0.2, backend="gloo")
# [history.test_accuracy for history in run.results]
# ```

# %% [markdown]
# ## How far are you?

# %%
course.progress()

# %% [markdown]
# In [lesson 8](../notebooks/08_parameter_server.ipynb), no worker waits for the others any more.

# %%
ranks.stop()
