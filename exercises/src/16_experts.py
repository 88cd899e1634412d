# The exercises of lesson 16. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Exercises: what if only some weights work?
#
# First the gate's choice. Then rows travel to their experts and back, and an expert has a limit. In the end: whose
# gradients belong together? The exercises belong to [lesson 16](../notebooks/16_experts.ipynb).
#
# The check compares with one process that has all experts, forward and backward, on 1 to 4 ranks.

# %%
import math
from collections.abc import Iterable

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import one_hot

import course_utils as course
from course_utils.errors import CourseError

ranks = course.start(4)
ranks.load_torch()

# %% [markdown]
# ## 1 · Which experts, and how much does each count?
#
# A gate has given every expert a score. An expert's *share* is its part in the softmax over all experts.
#
# ```
#              expert 0    1    2    3
# shares           0.10 0.50 0.35 0.05
# k = 1                 0.50                    expert 1, weight 0.50
# k = 2                 0.50 0.35               experts 1 and 2, weights 0.50 and 0.35
# bias             +0.5                         k = 1: expert 0, weight 0.10
# ```
#
# Float16 is a trap: next to a large share, small shares become 0 in it, and so equal. The answer's weights still have
# the scores' dtype.

# %% tags=["exercise"]
# route

# %% [markdown]
# ## To the experts
#
# With two experts on each rank, experts 0 and 1 are on rank 0, 2 and 3 on rank 1, and so on. `experts` has a row for
# each token, k numbers in it. Flat, choice number i belongs to token i // k:
#
# ```
# experts            [[3, 0], [0, 2], [3, 1]]
# flat                 3  0    0  2    3  1
# sorted by expert     0  0  1 │ 2  3  3
# order                1  2  5 │ 3  0  4      places in flat
#                    to rank 0 │ to rank 1
# ```

# %% [markdown]
# What is ready for you:
#
# - `exchanged(rows, sent, received, group)`: an all-to-all of rows that the backward pass goes through. `sent` and
#   `received` are lists: how many rows to, and from, each rank;
# - `check_choices(tokens, experts, number)`: raises what the docstring promises; `number` is that of all experts;
# - `Dispatched(rows, expert, order, sent, received)`: what you return. `rows` are those that came: sorted by the rank
#   that sent them, then by expert. `expert`: for each of them, the number (from 0) of its expert among *this* rank's.
#   `order`: the choices that this rank sent, as in the sketch.

# %%
from course_utils.lessons.data_parallel import Group
from course_utils.lessons.experts import Dispatched, check_choices, exchanged

# %% [markdown]
# Nobody knows how many rows are coming: the other ranks have to say so first. `dist.all_to_all_single(theirs, counts,
# group=group)` fills `theirs`. `counts` has a number for each expert of all ranks: how many rows this rank sends it.
#
# ## 2 · Dispatch

# %% tags=["exercise"]
# dispatch

# %% [markdown]
# ## 3 · Combine
#
# The same way back. `dispatched` is what `dispatch` returned. Some of a token's choices may have been dropped; then its
# other choices still count, and a token without any gets zeros.

# %% tags=["exercise"]
# combine

# %% [markdown]
# Both together, with experts that do next to nothing. What must come out, if expert i multiplies by i?
#
# ```python
# def there_and_back():
#     tokens = torch.ones(4, 2)
#     experts = torch.tensor([[0], [1], [2], [3]])
#     dispatched = dispatch(tokens, experts, 1)
#     return combine(dispatched.rows * dist.get_rank(), torch.ones(4, 1), dispatched)
#
# ranks.run(there_and_back, backend="gloo").results[0]
# ```

# %% [markdown]
# ## 4 · Full
#
# An expert takes at most a fixed number of rows from each rank. On paper first: three tokens choose among 3 experts,
# `[[0, 1], [0, 2], [1, 0]]`, and the factor is 1. How many rows may an expert take? Whose second choice is dropped?

# %% tags=["exercise"]
# capacity

# %% [markdown]
# ## 5 · Whose gradient?
#
# Four ranks, data × expert = 2 × 2. Ranks 0 and 1 share one set of experts, ranks 2 and 3 have the same once more:
#
# ```
#             expert 0   expert 1
# replica 0    rank 0     rank 1
# replica 1    rank 2     rank 3        ranks 0 and 2 are a group of `data`
# ```
#
# Each rank went backward from the mean loss of *its* tokens. What did the backward pass of dispatch bring rank 0's
# expert already? And over how many ranks' tokens is the mean that you want?

# %% tags=["exercise"]
# expert_gradients

# %%
course.progress()

# %% [markdown]
# You have a layer whose weights grow with the ranks, and whose work for each token does not.

# %%
ranks.stop()
