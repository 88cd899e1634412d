# The exercises of lesson 7. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Exercises: why is DDP faster than my loop?
#
# Here you take apart what `DistributedDataParallel` does and put it together again: buckets,
# hooks, messages behind the backward pass, and fewer of them. The exercises belong to
# [lesson 7](../notebooks/07_overlap.ipynb).
#
# The check looks at more than the numbers. It reads from the trace when every all-reduce left,
# how many there were, and how many bytes each rank sent.

# %%
import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

import course_utils as course
from course_utils.lessons.data_parallel import BUCKET_BYTES
from course_utils.lessons.overlap import Bucket

ranks = course.start(4)
ranks.load_torch()

# %% [markdown]
# ## 1 · Which gradients travel together?
#
# The backward pass begins with the last layer, so the last gradient is ready first. Fill
# buckets in that order; here with a limit of 10 bytes:
#
# ```
# place         0      1      2      3      4      5
# bytes         8      5      4      3      2      6
#                                         └── 0 ───┘    8 bytes (with place 3: 11)
#                           └── 1 ───┘                  7 bytes (with place 1: 12)
#                    └ 2 ┘
#             └ 3 ┘
# ```
#
# The result is `[[5, 4], [3, 2], [1], [0]]`. No ranks are needed.

# %% tags=["exercise"]
# make_buckets

# %% [markdown]
# ## 2 · Gradients that travel behind the backward pass
#
# A **hook** is a function of yours that torch calls when something has happened. This one is
# called each time a gradient has arrived in `parameter.grad`:
# `parameter.register_post_accumulate_grad_hook(function)`. Try it:


# %% tags=["nbval-check-output"]
def who_comes_first():
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 4), nn.Linear(4, 5))
    came = []
    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(
            lambda one: came.append(tuple(one.shape))
        )
    model(torch.ones(1, 2)).sum().backward()
    return came


who_comes_first()

# %% [markdown]
# Hang a hook on every gradient, and let each bucket leave as soon as all its gradients have come:
#
# ```
# computes   layer 3 │ layer 2 │ layer 1 │ layer 0 │ finish()    │ step
# sends              └ bucket 0 ───┘└ bucket 1 ──┘ └ bucket 2 ───┘
#                                                    ▲ only this has to be waited for
# ```
#
# `Bucket` is ready for you. `Bucket(parameters)` holds a list of parameters, in the order in
# which they become ready. `bucket.missing` says how many of their gradients have not come: *your*
# hook takes one off for each that comes. `bucket.start()` begins the all-reduce and returns at
# once, `bucket.work` is None until then, and `bucket.finish()` waits, puts the means into
# `parameter.grad` and sets `missing` back.

# %% [markdown]
# Three things to think of before you type:
#
# - An all-reduce adds the first vector of one rank to the first of the others, the second to
#   the second. If ranks start their buckets in different orders, what is added?
# - Some batch may leave a parameter out. Its gradient never comes.
# - Some parameters are frozen, and one may stand in the list twice.
#
# Use your own `make_buckets`. As long as it is not right, `from course_utils.lessons.overlap import
# make_buckets` lets you go on (not where you are marked: there you need your own).

# %% tags=["exercise"]
# overlapped_allreduce

# %% [markdown]
# ## 3 · A large batch in small pieces
#
# A batch of 1024 images may not fit into the memory. Four micro-batches of 256 do, one after
# the other: `backward()` adds to the gradients that are there.
#
# ```
# forward backward │ forward backward │ forward backward │ forward backward + all-reduce
#      quiet       │      quiet       │      quiet       │
# ```
#
# Inside `with module.no_sync():` a `DistributedDataParallel` sends nothing. Its forward pass
# notes whether the next backward pass is to send, so both belong inside.

# %% tags=["exercise"]
# accumulate_gradients

# %% [markdown]
# ## 4 · What is left of P ranks?
#
# One rank needs 8 s. Four ranks that share its work need 2.5 s each: you pay for 10 s, and 8 s
# were of use.
#
# ```
# alone      ████████████████     8 s
# rank 0     █████                2.5 s
# rank 1     █████                2.5 s    strong: 8 s ÷ 10 s = 0.8
# rank 2     █████                2.5 s
# rank 3     █████                2.5 s
# ```
#
# In weak scaling each of the four does as much as the single rank did: how much is of use then?

# %% tags=["exercise"]
# scaling_efficiency

# %% [markdown]
# ## 5 · Send the largest, owe the rest
#
# Most entries of a gradient are small. Send the k largest with their places; what is left is
# not thrown away but added to the next gradient. With k = 1:
#
# ```
# gradient        0.1   -2.0    0.3
# + error         0.4    0.0    0.1      what is owed from before
# = corrected     0.5   -2.0    0.4
# sent                  -2.0             index 1, value -2.0
# owed from now   0.5    0.0    0.4
# ```
#
# The function chooses; sending is the hook's task.

# %% tags=["exercise"]
# top_k_with_error_feedback

# %% [markdown]
# ## Does it train?
#
# Your `overlapped_allreduce` in a real training, on the handwritten digits. When it is right,
# the ranks end with equal weights:
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

# %%
course.progress()

# %% [markdown]
# Next: [lesson 8](../notebooks/08_parameter_server.ipynb), where nobody waits for anybody.

# %%
ranks.stop()
