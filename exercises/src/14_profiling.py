# The exercises of lesson 14. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Exercises: where did the time go?
#
# In the first two exercises you count how much communication is hidden, and how long a rank is idle. Then you get five
# training programs, each of which is slow for one reason, and you make them faster without changing what they learn.
# All seven together take about an hour. They belong to [lesson 14](../notebooks/14_profiling.ipynb), and you can do
# them in any order.

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
# You are given when a rank computed and when its messages were in flight, as two lists of pairs (begin, end). Return
# the time with both, divided by the time with a message in flight. In both lists a pair may begin before a different
# one has ended, and time still counts only once:
#
# ```text
# time           0    1    2    3    4    5    6    7    8    9
# computing      ├─────────┤    ├──────────────┤                     (0, 2) and (3, 6)
# messages            ├──────────────┤                               (1, 4)
#                                    ├─────────────────────────┤     (4, 9)
#                                         ├─────────┤                (5, 7), at the same time as (4, 9)
# in flight           ├────────────────────────────────────────┤     8 in total
# hidden              ├────┤    ├──────────────┤                     1 + 3 in total
# ```
#
# So `overlap_share([(0, 2), (3, 6)], [(1, 4), (4, 9), (5, 7)])` is 4 / 8. If no message is in flight at any time, the
# share is 0. This function needs no ranks.

# %% tags=["exercise"]
# overlap_share

# %% [markdown]
# ## 2 · How long is a rank idle?
#
# Take the same rank, and suppose that its steps began at 0 and ended at 12. From 9 on it neither computes nor
# communicates, so it is idle for 3 / 12 of the time. Time before `begin` and after `end` doesn't count, even if a pair
# reaches into it.

# %% tags=["exercise"]
# idle_share

# %% [markdown]
# ## Five slow programs
#
# In each of the next five exercises you find the whole text of a program that works and is slow. First look at its
# profile and decide what the reason is, with the five questions of the page. This cell profiles program 1; change the
# number for the others:

# %%
from course_utils.lessons.profiling import pictures, profile_program

lanes = profile_program(ranks, 1).lanes
pictures.profile(lanes, "Slow program 1, a whole run")

# %% [markdown]
# Then delete the line `raise NotImplementedError` in the exercise and change the program below it. What you change is
# up to you. The check runs the slow program and yours in turn, with new data each time. Both have to return the same
# numbers, up to 1 part in 100,000, and yours has to be faster by the factor given with each exercise.
#
# ## 3 · Slow program 1
#
# One rank trains a small network on photos that it reads from files. `decode` turns the bytes of a JPEG file into a
# tensor. The epochs use the same photos in the same order:
#
# ```text
# epoch 0   read and decode │ train │ read and decode │ train │ …
# epoch 1   read and decode │ train │ read and decode │ train │ …
# ```
#
# Your program should be **1.5 times as fast**. We count the seconds for which the processor works, so it doesn't
# matter what else your computer is doing, and it doesn't help to spread the same work over several threads or
# processes. Every time the function is called, the files contain different photos.

# %% tags=["exercise"]
# speed_up_1

# %% [markdown]
# ## 4 · Slow program 2
#
# Every rank trains a network of its own, and there is a log. For each step it holds three numbers, which are means over
# all ranks. `.item()` turns a tensor into a number and has to wait until that number is known. On a GPU this means
# that it waits for all the work launched so far. Here it waits for the slowest rank:
#
# ```text
# rank 0   step │ wait wait wait │ step │ wait wait wait │ …
# rank 1     step │ wait wait wait │ step │ wait wait wait │ …
# ```
#
# Your program should be **1.5 times as fast**, on two ranks.

# %% tags=["exercise"]
# speed_up_2

# %% [markdown]
# ## 5 · Slow program 3
#
# One rank trains a network of 41 narrow layers, each with a weight matrix and a bias. That makes 82 small tensors. Adam
# updates them one after the other, and so does a running average of the weights:
#
# ```text
# tensor 0   · · · · · · · · · · · · · ·        each dot is an operation
# tensor 1   · · · · · · · · · · · · · ·        that takes microseconds to call, and hardly any time to compute
# …          × 82, in every step
# ```
#
# Your program should be **1.2 times as fast**, in seconds of the processor.

# %% tags=["exercise"]
# speed_up_3

# %% [markdown]
# ## 6 · Slow program 4
#
# Each batch has 16 texts, ordered from short to long, and each of four ranks takes a quarter of them. The time for a
# text is proportional to its number of letters. `gradient_of` waits for that long in place of a real computation, so
# that each rank seems to have a processor of its own:
#
# ```text
# rank 0   ▏ wait ─────────────────────────┐
# rank 1   ▍ wait ─────────────────────────┤
# rank 2   ██ wait ────────────────────────┤ all-reduce
# rank 3   ████████████████████████████████┘
# ```
#
# Your program should be **1.4 times as fast**, on all your ranks. Every text has to be computed once, by one rank.

# %% tags=["exercise"]
# speed_up_4

# %% [markdown]
# ## 7 · Slow program 5
#
# This is data-parallel training on two ranks. Each rank has a processor and a link that are emulated by waiting, and
# the link carries one gradient after the other. `link.all_reduce(tensor)` returns at once, and `wait()` on what it
# returns comes back when the sum has arrived:
#
# ```text
# computing  forward │ layer 7 │ layer 6 │ … │ layer 0 │
# link                                                 │ layer 0 │ layer 1 │ … │ layer 7 │ step
# ```
#
# Your program should be **1.3 times as fast**, on two ranks. Every gradient has to go over the link whole, and once in
# each step. You have written something like it in [exercise 2 of lesson 7](07_overlap.ipynb).

# %% tags=["exercise"]
# speed_up_5

# %%
course.progress()

# %% [markdown]
# Next is [lesson 15](../notebooks/15_read_the_manual.ipynb), in which you read the manual of a framework.

# %%
ranks.stop()
