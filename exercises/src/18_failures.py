# The exercises of lesson 18. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Exercises: what if a rank dies?
#
# Here you write the decisions of [lesson 18](../notebooks/18_failures.ipynb) yourself. You form a quorum and heal a
# newcomer. Then you find out which parts of a checkpoint a rank has to read, save in the background, and search for the
# rank with wrong weights.
#
# Two of the functions run on 1 to 4 ranks, and their messages are counted.

# %%
import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist

import course_utils as course
from course_utils.errors import CourseError
from course_utils.lessons.failures import StepReport

ranks = course.start(4)
ranks.load_torch()

# %% [markdown]
# ## 1 · Who takes part in the next step?
#
# The lighthouse has received these reports, it is second 100, and the timeout is 5 seconds:
#
# ```
# replica   step   at
#    3        0    98.0
#    0       41    99.5
#    1       41    90.0    too old
#    2       40    99.6
# ```
#
# Replicas 0, 2 and 3 take part. Replicas 2 and 3 are behind, and are healed from replica 0. So the result is `([0, 2,
# 3], {2: 0, 3: 0})`. A report has the attributes `replica`, `step` and `at`.
#
# A replica may have sent several reports, and then only the newest counts. If the newest has *fewer* steps than an
# older one, the replica has been started again in between. If several replicas have the newest state, the newcomers
# take turns: the first newcomer is healed from the first of them, the second from the second, and after the last it is
# the first one's turn again. If you have to reject a call, `raise CourseError("…")` with a sentence of your own.

# %% tags=["exercise"]
# quorum

# %% [markdown]
# ## 2 · A newcomer gets the state
#
# All ranks call `heal` together, and each of them knows who is healed from whom. With `heals = {3: 1, 2: 0}`, these are
# the messages:
#
# ```
# rank 0 ──────────▶ rank 2
# rank 1 ──────────▶ rank 3
# ```
#
# A message carries the whole state and the number of steps, so that there is one message per newcomer and not more. The
# newcomer's `state` must be overwritten in place, because its training goes on with this very tensor. `state = …` would
# only give a different tensor the same name. The tensor may be a transposed one, which isn't contiguous in memory.

# %% tags=["exercise"]
# heal

# %% [markdown]
# ## 3 · A checkpoint for other numbers of ranks
#
# Four ranks have saved a vector of 12 numbers, `saved = [(0, 3), (3, 6), (6, 9), (9, 12)]`. Now three ranks load it.
# Rank 1 of these three wants numbers 4 to 7, that is, `begin=4` and `end=8`:
#
# ```
# file        0 │ 0  1  2 │
#             1           │ 3  4  5 │
#             2                     │ 6  7  8 │
#             3                               │ 9 10 11 │
# wanted                       4  5   6  7
# ```
#
# From file 1 it needs the numbers 1 and 2, counted from the start of the file, and from file 2 numbers 0 and 1. So the
# result is `[(1, 1, 3), (2, 0, 2)]`. As always in Python, the end isn't included.

# %% tags=["exercise"]
# reshard

# %% [markdown]
# ## 4 · Saved while training goes on
#
# `save_async(file, state, write)` saves `state` in `file`, and must return before that is done. `write(path, array)`
# does the writing, into a file of any name, and the check gives you one that is as slow as it likes. A **future**
# stands for a result that isn't there yet. `ThreadPoolExecutor(max_workers=1).submit(function)` calls a function in a
# thread (lesson 3) and returns its future, and `saving.result()` waits until the function has ended.
#
# The check looks at the disk while your thread is writing. At that moment, `file` must still hold the previous
# checkpoint, or not exist if there was none.

# %% tags=["exercise"]
# save_async

# %% [markdown]
# ## 5 · The rank with wrong weights
#
# All ranks should have the same weights, bit by bit. Find those that don't. If three ranks have the checksums `A`, `A`
# and `B`, the result on *every* rank is `[2]`, and if there is no majority (`A` and `B`), every rank raises a
# `CourseError`. A sum of the weights is no good checksum, because a change in the last bit of a small weight can get
# lost in its rounding. `weights.tobytes()` gives you all the bits.

# %% tags=["exercise"]
# find_the_liar

# %%
course.progress()

# %% [markdown]
# That was the last exercise of this lesson. [The page](../notebooks/18_failures.ipynb) puts these parts together.

# %%
ranks.stop()
