# The exercises of lesson 16. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Exercises: what if only some weights are used?
#
# Here you write the five functions behind [lesson 16](../notebooks/16_experts.ipynb). The first one is the gate. The
# next two send tokens to their experts and the answers back. Then you give each expert a limit, and at the end you add
# up gradients over the right ranks.
#
# Each check compares your function with one process that has all experts, and most of them do it on 1 to 4 ranks and in
# the backward pass, too.

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
# A gate has computed a score for every token and every expert. The *share* of an expert is its part of the softmax over
# all experts of the token:
#
# $$p_i = \frac{e^{s_i}}{e^{s_0} + e^{s_1} + \dots}$$
#
# Without a bias, a token goes to the $k$ experts with the largest $p_i$. With a bias, it goes to those with the largest
# $p_i + b_i$, but the weights that you return are the shares $p_i$ all the same. Here is one token with four experts:
#
# | | expert 0 | 1 | 2 | 3 | experts | weights |
# |---|---|---|---|---|---|---|
# | shares | 0.10 | 0.50 | 0.35 | 0.05 | | |
# | $k = 1$ | | ✓ | | | 1 | 0.50 |
# | $k = 2$ | | ✓ | ✓ | | 1, 2 | 0.50, 0.35 |
# | $k = 1$, bias 0.5 for expert 0 | ✓ | | | | 0 | 0.10 |
#
# If two experts are equal, the one with the lower number comes first. (`topk` doesn't promise that.) The scores may
# have any floating-point type. In float16, the share of an expert far behind the others is rounded to 0, so compute the
# shares in float32, or in float64 for scores in float64, and return the weights in the type of the scores.

# %% tags=["exercise"]
# route

# %% [markdown]
# ## 2 · Dispatch
#
# The lesson's `there_and_back` had one expert per rank and $k = 1$. Now there may be several of both. With two experts
# on each rank, experts 0 and 1 are on rank 0, experts 2 and 3 on rank 1, and so on.
#
# `experts` has a row for each token, with $k$ numbers in it. Flattened, it is a list of choices, in which choice number
# $i$ belongs to token $\lfloor i / k \rfloor$, in code `i // k`. Three tokens with $k = 2$ make six choices:
#
# ```
# experts            [[3, 0], [0, 2], [3, 1]]
# flat                 3  0    0  2    3  1
# sorted by expert     0  0  1 │ 2  3  3
# order                1  2  5 │ 3  0  4      positions in flat
#                    to rank 0 │ to rank 1
# ```
#
# Choices of the same expert keep their order. A choice of −1 was dropped, so nothing is sent for it.

# %%
from course_utils.lessons.data_parallel import Group
from course_utils.lessons.experts import Dispatched, check_choices, exchanged

# %% [markdown]
# A rank can't know how many rows will arrive, so the ranks first exchange counts. In `counts`, put the number of rows
# that this rank sends to each expert of all ranks. After `dist.all_to_all_single(theirs, counts, group=group)`, the
# tensor `theirs` contains the counts that each rank has sent for the experts of this one. You can use these functions:
#
# - `exchanged(rows, sent, received, group)` is an all-to-all of rows through which autograd can go backward. The lists
#   `sent` and `received` contain the number of rows for each rank, and from each rank.
# - `check_choices(tokens, experts, number)` raises the errors that the docstring promises; `number` is the number of
#   all experts on all ranks.
# - `Dispatched(rows, expert, order, sent, received)` is what you return. `rows` are those that have arrived, sorted by
#   the rank that sent them and then by expert. `expert` has a number for each of them, which of *this* rank's experts
#   it is for, counted from 0. `order` contains the choices that this rank has sent, as in the sketch.

# %% tags=["exercise"]
# dispatch

# %% [markdown]
# ## 3 · Combine
#
# The answers go back, and each token gets the weighted sum of its answers:
#
# $$y = \sum_{i \in \text{chosen}} p_i\, E_i(x)$$
#
# `dispatched` is what `dispatch` has returned, and `made` has an answer for each of its rows. If some of a token's
# choices were dropped, its remaining choices still count, and a token without any gets zeros.

# %% tags=["exercise"]
# combine

# %% [markdown]
# You can try both together with experts that do next to nothing. What has to come out if expert $i$ multiplies by $i$?
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
# ## 4 · A limit for each expert
#
# (After the section *A limit for each expert* of [Further](../notebooks/16_experts_further.ipynb), or without it.) From
# each rank, an expert accepts at most
#
# $$\left\lceil \text{factor} \cdot \frac{k \cdot \text{tokens}}{\text{experts}} \right\rceil$$
#
# rows, where *tokens* are those of the rank, and *experts* are those of all ranks together, `number` in the code. All
# first choices come before all second choices, and among them the tokens come in their order. A choice that finds its
# expert full is replaced by −1. Try it on paper first, with three tokens that choose among 3 experts, `[[0, 1], [0, 2],
# [1, 0]]`, and a factor of 1. How many rows does an expert accept? Which second choice is dropped?

# %% tags=["exercise"]
# capacity

# %% [markdown]
# ## 5 · Which gradients belong together?
#
# Four ranks form a mesh, data × expert = 2 × 2. Ranks 0 and 1 have one set of experts between them, and ranks 2 and 3
# have the same set once more:
#
# ```
#               expert 0   expert 1
# first set      rank 0     rank 1
# second set     rank 2     rank 3        ranks 0 and 2 are a group of `data`
# ```
#
# Each rank has run its backward pass from the mean loss of *its own* tokens. We want the gradient of the mean over the
# tokens of all ranks. Which losses does the gradient of rank 0's expert already contain?
#
# An expert that got no tokens may have a gradient of `None`. It counts as zeros, and its rank still has to take part in
# every sum, because the other ranks of the group wait for it.

# %% tags=["exercise"]
# expert_gradients

# %%
course.progress()

# %% [markdown]
# With these functions you have a layer whose weights grow with the number of ranks, while the work per token stays
# nearly the same.

# %%
ranks.stop()
