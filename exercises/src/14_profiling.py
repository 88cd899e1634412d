# The exercises of lesson 14. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Exercises: where did the time go?
#
# First you count two shares in lists of times. Then you are given five training programs that
# are slow, each for one reason, and you make them faster without changing what they learn. The
# exercises belong to [lesson 14](../notebooks/14_profiling.ipynb).
#
# The check runs the slow program and yours by turns, A B A B, on other data each time. It wants
# the same numbers, and a factor between the two times.

# %%
from collections.abc import Iterable, Sequence
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy, mse_loss

import course_utils as course
from course_utils.lessons.data_parallel import Sgd
from course_utils.lessons.hardware import SHRUNK, decode
from course_utils.lessons.profiling import ADAM_RATE, BATCH, KEEP_AVERAGE, KEEP_MEAN
from course_utils.lessons.profiling import KEEP_SQUARE, LETTERS, SIZE, TINY, VECTOR_RATE
from course_utils.lessons.profiling import Interval, deep_network, gradient_of, own_link
from course_utils.lessons.profiling import own_network, right_share, waiting_network

ranks = course.start(4)
ranks.load_torch()

# %% [markdown]
# ## 1 · How much communication is hidden?
#
# A rank's profile, as times from begin to end. An operation may begin before another one has
# ended, in both lanes:
#
# ```
# time           0    1    2    3    4    5    6    7    8    9
# computing      ├─────────┤    ├──────────────┤                     (0, 2) and (3, 6)
# messages            ├──────────────┤                               (1, 4)
#                                    ├─────────────────────────┤     (4, 9) …
#                                         ├─────────┤                (5, 7) at the same time
# under way           ├────────────────────────────────────────┤     8
# hidden              ├────┤    ├──────────────┤                     1 + 3
# ```
#
# `overlap_share([(0, 2), (3, 6)], [(1, 4), (4, 9), (5, 7)])` is 4 / 8. No ranks are needed.

# %% tags=["exercise"]
# overlap_share

# %% [markdown]
# ## 2 · How long does a rank do nothing?
#
# The same rank: its steps began at 0 and ended at 12. From 9 on it neither computes nor
# communicates, so it is idle for 3 / 12 of the time. An event may begin before the first moment
# that counts, and end after the last.

# %% tags=["exercise"]
# idle_share

# %% [markdown]
# ## Five slow programs
#
# Below you find each program's whole text: it works, and it is slow. Guess first, then measure:
#
# ```python
# from course_utils.lessons.profiling import pictures
# from course_utils.lessons.profiling import profile_program
#
# found = profile_program(ranks, 1)
# pictures.profile(found.lanes, "slow program 1")
# ```
#
# Then take out the line `raise NotImplementedError` and change what is below it. Your program must
# give the same losses, within 1 in 100,000, and be faster by the factor that is wanted; how is up
# to you.

# %% [markdown]
# ## 3 · Slow program 1
#
# Photos in files, a small network, one rank. `decode` turns the bytes of a JPEG file into a
# tensor. In each call the files hold other photos.
#
# ```
# epoch 0   read decode │ train │ read decode │ train │ …
# epoch 1   read decode │ train │ read decode │ train │ …
# ```
#
# **Wanted: 1.5 times as fast.** The seconds of the processor are counted, so that what else runs
# on this machine does not matter; threads or processes that do the same work do not lessen them.

# %% tags=["exercise"]
# speed_up_1

# %% [markdown]
# ## 4 · Slow program 2
#
# Every rank trains a network of its own. The log holds three means over all ranks for each
# step. `.item()` waits until the number is there; on a GPU, until everything that was asked of it
# is done.
#
# ```
# rank 0   step │ wait wait wait │ step │ wait wait wait │ …
# rank 1     step │ wait wait wait │ step │ wait wait wait │ …
# ```
#
# **Wanted: 1.5 times as fast**, on two ranks.

# %% tags=["exercise"]
# speed_up_2

# %% [markdown]
# ## 5 · Slow program 3
#
# 41 narrow layers have 82 parameters, tensors with few numbers each. Adam, and a running average
# of the weights, change these tensors one after the other, on one rank:
#
# ```
# tensor 0   · · · · · · · · · · · · · ·        a dot is one operation: a few microseconds
# tensor 1   · · · · · · · · · · · · · ·        to call it, next to nothing to compute it
# …          ×  82, in every step
# ```
#
# **Wanted: 1.2 times as fast**, in seconds of the processor.

# %% tags=["exercise"]
# speed_up_3

# %% [markdown]
# ## 6 · Slow program 4
#
# Each batch has 16 texts, from short to long. The time for a text grows with its letters;
# `gradient_of` plays it by waiting. Every rank takes a quarter of the texts:
#
# ```
# rank 0   ▏ wait ─────────────────────────┐
# rank 1   ▍ wait ─────────────────────────┤
# rank 2   ██ wait ────────────────────────┤ all-reduce
# rank 3   ████████████████████████████████┘
# ```
#
# **Wanted: 1.4 times as fast**, on all your ranks. Every letter has to be computed once.

# %% tags=["exercise"]
# speed_up_4

# %% [markdown]
# ## 7 · Slow program 5
#
# Data parallel training with a link and a processor for each rank, both played by waiting.
# `link.all_reduce(tensor)` returns at once; its `wait()` returns when the sum has come.
#
# ```
# computes   forward │ layer 7 │ layer 6 │ … │ layer 0 │
# link                                                 │ layer 0 │ layer 1 │ … │ layer 7 │ step
# ```
#
# **Wanted: 1.3 times as fast**, on two ranks. Every gradient has to go over the link, whole and
# once in each step. (You have written something like it: [exercise 2 of lesson 7](07_overlap.ipynb).)

# %% tags=["exercise"]
# speed_up_5

# %%
course.progress()

# %% [markdown]
# Next: lesson 15, where you read the manual of a framework and know what it says.

# %%
ranks.stop()
