# The exercises of lesson 17. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Exercises: what if the text does not fit?
#
# Here you write the parts of [lesson 17](../notebooks/17_long_texts.ipynb) yourself. You merge two parts of an
# attention, compute attention block by block, and send keys and values around a ring. Then you give all ranks the same
# work, and calculate how long a text may be.
#
# The checks compare your functions with attention to all keys at once, to ten digits, on 1 to 4 ranks. They also count
# the bytes that you send, and those of the largest tensor that you make.

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
# The output of a query with the scores $s_i$ and the values $v_i$ is
#
# $$\text{output} = \frac{\sum_i e^{s_i}\, v_i}{\sum_i e^{s_i}},$$
#
# and its **log-sum-exp** is $L = \log \sum_i e^{s_i}$. Suppose someone has computed both for the first keys, and
# someone else for the rest:
#
# ```
# keys      0  1  2  3  4  5 │ 6  7  8  9
#           out, lse         │ other_out, other_lse
# ```
#
# If we call the two parts $a$ and $b$, the merged output is
#
# $$\text{output} = \frac{e^{L_a}\,\text{output}_a + e^{L_b}\,\text{output}_b}{e^{L_a} + e^{L_b}},
# \qquad L = \log\left(e^{L_a} + e^{L_b}\right).$$
#
# In this form, $e^{L_a}$ would be infinite for a log-sum-exp of 3,000. But only the difference of the two log-sum-exps
# matters, because you can divide numerator and denominator by the same number. Your function should also work for a
# query that has seen no key of a set. Its output there is 0 and its log-sum-exp is -∞. If it has seen no key of either
# set, the merged result is again 0 and -∞.

# %% tags=["exercise"]
# merge_attention

# %% [markdown]
# ## 2 · Block by block
#
# Now compute attention without ever making all scores. Go through the keys in blocks of `block` keys each. For each
# block you get an output and a log-sum-exp, which you merge with what you have so far. You may hold the scores of all
# queries and one block of keys at the same time, but not more. If you like, you can cut the queries into blocks as
# well, as the course's own answer does.
#
# Two functions are ready for you:
#
# | | |
# |---|---|
# | `masked_scores(q, k, q_positions, k_positions)` | the scores of queries and keys, -∞ for keys after the query |
# | `accumulator(dtype)` | the dtype in which outputs and sums are kept, float32 for numbers of two bytes |
#
# `blocks_seen` and `for_heads` are used by the course's own answer, and you don't need them. In the first block, some
# queries may see no key at all, so begin with an output of 0 and a log-sum-exp of -∞. If your `merge_attention` isn't
# right yet, the line `from course_utils.lessons.long_texts import merge_attention` lets you go on.

# %% tags=["exercise"]
# block_attention

# %% [markdown]
# How long a text could you do now? All scores of 16,000 tokens would take 1 GB in float32:
#
# ```python
# q, k, v = torch.randn(3, 1, 1, 16_000, 8)
# positions = torch.arange(16_000)
# block_attention(q, k, v, positions, positions)[0].shape
# ```

# %% [markdown]
# ## 3 · Around the ring
#
# Each rank has the tokens at the positions `positions[rank]`, with their queries, keys and values. The queries stay
# where they are. The keys and values travel to the right:
#
# ```
# step    rank 0 has the keys of    rank 1    rank 2    rank 3
#   0                0                 1         2         3
#   1                3                 0         1         2
#   2                2                 3         0         1
#   3                1                 2         3         0
# ```
#
# `passing = pass_on(tensor, shape, group)` starts to send `tensor` to the right and to receive a tensor of this shape
# from the left. It doesn't wait, so you can compute in the meantime. `passing.wait()` returns what has arrived. Until
# then, don't change the tensor that you are sending.
#
# The ranks may have different numbers of tokens, so the tensor that arrives may have a different shape from the one you
# send. You know from whom it comes and therefore how many tokens it has. With one rank, nothing has to be sent at all.
# `check_positions(q, positions, group)` raises the error that the docstring promises. If your `block_attention` isn't
# right yet, `from course_utils.lessons.long_texts import block_attention` lets you go on.

# %% tags=["exercise"]
# ring_attention

# %% [markdown]
# ## 4 · The same work for every rank
#
# If the ranks have the pieces of the text in order, the last rank sees nearly all keys and the first one hardly any. In
# a zig-zag, each rank gets two pieces, one from the front and one from the back. With 4 ranks and 8 pieces:
#
# ```
# piece   0  1  2  3  4  5  6  7
# rank    0  1  2  3  3  2  1  0
# ```
#
# No messages are needed, because every rank can work out all positions for itself. `block_bounds(length, parts)` from
# lesson 5 returns where each piece begins, and at the end the length. So piece $b$ has the positions from `bounds[b]`
# up to, but not including, `bounds[b + 1]`. `check_length(length, world_size)` rejects a text that has fewer tokens
# than there are ranks.

# %% tags=["exercise"]
# zigzag

# %% [markdown]
# Does it help? For each rank, count the pairs of a query and a key that the query sees:
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
# (After the section *How long a text?* of [Further](../notebooks/17_long_texts_further.ipynb).)
#
# A text of $n$ tokens is shared by $P$ ranks, so each rank has $n / P$ tokens of its own. It keeps `per_token` bytes
# for each of them. If attention keeps its weights, it also keeps `per_pair` bytes for each pair of one of its own
# tokens with any of the $n$ tokens of the text. Parameters, gradients and optimizer state take `fixed` bytes on every
# rank, whatever the length. So a rank needs
#
# $$\text{fixed} + \frac{\text{per\_token} \cdot n + \text{per\_pair} \cdot n^2}{P}$$
#
# bytes. Find the longest text with which this isn't more than `memory`, rounded down to a multiple of $2P$, because a
# zig-zag has $2P$ pieces. Two cases to try on paper, with one rank and a memory of 100 bytes: 40 bytes are fixed and
# each token takes 5 (the answer is 12), and the same with 1 byte for each pair (the answer is 4, because 6 tokens would
# need 40 + 30 + 36 = 106 bytes).

# %% tags=["exercise"]
# longest_text

# %%
course.progress()

# %% [markdown]
# That was the last exercise of this lesson. [The page](../notebooks/17_long_texts.ipynb) compares all of it with one
# process.

# %%
ranks.stop()
