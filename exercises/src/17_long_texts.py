# The exercises of lesson 17. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Exercises: what if the text does not fit?
#
# Attention in pieces: two parts put together, then block by block, then round a ring of ranks. In the
# end: who gets which tokens, and how many there may be. The exercises belong to
# [lesson 17](../notebooks/17_long_texts.ipynb).
#
# The check compares with attention to all keys at once, to ten digits, on 1 to 4 ranks. It counts
# bytes, those that are sent and those of the largest tensor.

# %%
import math
from collections.abc import Sequence

import torch
import torch.distributed as dist

import course_utils as course
from course_utils.errors import CourseError
from course_utils.lessons.allreduce import block_bounds
from course_utils.lessons.data_parallel import Group
from course_utils.lessons.long_texts import accumulator, blocks_seen, check_length
from course_utils.lessons.long_texts import check_positions, for_heads, masked_scores
from course_utils.lessons.long_texts import pass_on

ranks = course.start(4)
ranks.load_torch()

# %% [markdown]
# ## 1 · Two parts, one attention
#
# A query has scores $s_1 \dots s_n$. Its output is $\sum e^{s_i} v_i / \sum e^{s_i}$, and its
# **log-sum-exp** is $\log \sum e^{s_i}$. Somebody has done this with the first keys, somebody else
# with the others. You get both outputs and both log-sum-exps:
#
# ```
# keys      0  1  2  3  4  5 │ 6  7  8  9
#           out, lse         │ other_out, other_lse
# ```
#
# On paper first: what is each output multiplied by, and what is the sum divided by? Then the
# traps: scores of 3,000, and a query that sees no key (output 0, log-sum-exp -∞).

# %% tags=["exercise"]
# merge_attention

# %% [markdown]
# ## 2 · Block by block
#
# You may hold the scores of all queries and `block` keys at once, and no more. (The course's own
# answer cuts the queries into blocks, too.) After each block you have the attention to all keys so
# far. Ready for you:
#
# | | |
# |---|---|
# | `masked_scores(q, k, q_positions, k_positions)` | scores, -∞ where the key comes after the query |
# | `accumulator(dtype)` | the dtype in which sums are kept |
#
# You do not need `blocks_seen` and `for_heads`, which serve the course's own answer. Use your own
# `merge_attention`, or a running maximum and a running sum. Is your `merge_attention` not right yet?
# `from course_utils.lessons.long_texts import merge_attention` lets you go on.

# %% tags=["exercise"]
# block_attention

# %% [markdown]
# How long a text could you do now? All scores of 16,000 tokens would have 1 GB in float32:
#
# ```python
# q, k, v = torch.randn(3, 1, 1, 16_000, 8)
# positions = torch.arange(16_000)
# block_attention(q, k, v, positions, positions)[0].shape
# ```

# %% [markdown]
# ## 3 · Round the ring
#
# Each rank has the tokens at `positions[rank]`, and their q, k and v. Queries stay, keys and values
# go to the right:
#
# ```
# step    rank 0 has the keys of    rank 1    rank 2    rank 3
#   0                0                 1         2         3
#   1                3                 0         1         2
#   2                2                 3         0         1
#   3                1                 2         3         0
# ```
#
# `passing = pass_on(tensor, shape, group)` begins to send `tensor` to the right, and to receive a
# tensor of that shape from the left. `passing.wait()` gives you what has come. What can you do in
# between? And which shape comes, where ranks have different numbers of tokens?
#
# (`check_positions(q, positions, group)` raises what the docstring promises. Is your
# `block_attention` not right yet?
# `from course_utils.lessons.long_texts import block_attention` lets you go on.)

# %% tags=["exercise"]
# ring_attention

# %% [markdown]
# ## 4 · The same work for every rank
#
# In the order of the text the last rank sees nearly everything, and the first nearly nothing. So
# each rank gets two pieces. No messages are needed here: every rank works it out for itself.
#
# `block_bounds(length, parts)` of lesson 5 says where pieces begin and where the last one ends;
# `check_length(length, world_size)` rejects what cannot be dealt out.

# %% tags=["exercise"]
# zigzag

# %% [markdown]
# Does it help? Count, for each rank, the pairs of a query and a key that the query sees:
#
# ```python
# from course_utils.lessons.long_texts import pairs_seen
#
# print(pairs_seen(list(torch.arange(1024).chunk(4))))
# print(pairs_seen(zigzag(1024, 4)))
# ```

# %% [markdown]
# ## 5 · How long a text fits?
#
# A rank keeps something for each of *its* tokens. Ordinary attention keeps something for each
# pair of one of its tokens with a token anywhere, too. And parameters, gradients and optimizer
# are there whatever the length. Which is the longest text? Two cases to try on paper, with one
# rank: of 100 bytes 40 are fixed, and each token takes 5; and the same with 1 byte for each pair.

# %% tags=["exercise"]
# longest_text

# %%
course.progress()

# %% [markdown]
# That was the last exercise of this lesson. [The page](../notebooks/17_long_texts.ipynb) runs all
# of it beside one process.

# %%
ranks.stop()
