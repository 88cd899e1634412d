# The exercises of lesson 5. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Exercises: how do P machines add up their vectors?
#
# In this notebook you write five all-reduces of [lesson 5](../notebooks/05_allreduce.ipynb) yourself, and at the end a
# function that tells you how long each method takes. All six together take nearly three hours, so do not try to do them
# in one evening. The first two, the ring and the tree, take about 50 minutes, and they are enough to go on to lesson 6.
# You can come back for the others at any time.

# %%
import numpy as np

import course_utils as course

ranks = course.start(4)

# %% [markdown]
# Each of the first five functions is called on every rank with that rank's vector. It has to write the sum **into this
# vector**, and it returns nothing. Use the calls that send the memory of an array, such as `Send`, `Recv`, `Sendrecv`,
# `Isend` and `Irecv`, but none of MPI's collectives.
#
# The check runs your function on up to 64 ranks, and with vectors of any length. A vector may have fewer numbers than
# there are ranks, or none at all. It may also hold whole numbers, so make room for a message with `np.empty_like`,
# which keeps the type. The check counts rounds, messages and bytes, and it rejects a correct sum that has cost too
# much.
#
# Try a function before you check it. If rank $r$ begins with the number $2^r$, four ranks must all end up with
# 1 + 2 + 4 + 8 = 15. A 13 would tell you that the vector of rank 1 is missing, and a 17 that it was added twice.
#
# ```python
# def try_out(comm, method):
#     vector = np.full(8, 2.0**comm.rank)
#     method(comm, vector)
#     return vector
#
# run = ranks.run(try_out, ring_allreduce)
# print(run.results, run.rounds, run.bytes_per_rank)
# run.blocks()
# ```
#
# The last line draws what every rank holds after each round, as in the lesson.

# %% [markdown]
# ## 1 · Ring
#
# The vector is cut into $P$ blocks. In every round each rank sends one block to its right neighbour, rank + 1, and
# receives one from its left neighbour. The ranks form a ring, so the right neighbour of the last rank is rank 0.
#
# Here are the first two rounds with three ranks, whose vectors are full of ones, tens and hundreds. Each block is a
# single number:
#
# ```text
#                       rank 0            rank 1            rank 2
# at first            1    1    1      10   10   10     100  100  100
#
# round 1   sends   block 2 to rank 1   block 0 to rank 2   block 1 to rank 0
#                     1  101    1      10   10   11     110  100  100
#
# round 2   sends   block 1 to rank 1   block 2 to rank 2   block 0 to rank 0
#                   111  101    1      10  111   11     110  100  111
# ```
#
# A block that arrives is added to the block with the same number. After $P-1$ rounds each rank has one complete block,
# and here rank $r$ has block $r$. In the next $P-1$ rounds the complete blocks travel on around the ring. Now a block
# that arrives takes the place of the one that was there, and in the end all three ranks hold 111, 111, 111. The blocks
# may be numbered differently, as long as every message goes to the right neighbour.
#
# The function `blocks_of(vector, P)` returns the blocks as a list. They are as equal as possible, and each is a part of
# the vector's own memory. If you write into a block, you write into the vector.

# %%
from course_utils.lessons.allreduce import blocks_of

numbers = np.arange(7)
blocks = blocks_of(numbers, 3)
blocks[1] += 10
print(blocks, numbers)

# %% [markdown]
# The whole all-reduce takes $2(P-1)$ rounds, and each rank sends one block in each of them. All ranks send at the same
# time, so remember the deadlock of lesson 4.

# %% tags=["exercise"]
# ring_allreduce

# %% [markdown]
# ## 2 · Tree
#
# This all-reduce works like a knock-out tournament. In each round, some ranks send their sum to another rank, which
# adds it to its own. A rank that has sent its sum takes no part in the rounds that follow. When rank 0 has added up
# everything, the result travels back along the same pairs. With five ranks it looks like this:
#
# ```text
# round 1   1 → 0   3 → 2                                  (4 has no partner)
# round 2   2 → 0                                          (4 has no partner)
# round 3   4 → 0     now rank 0 has the complete sum
# round 4   0 → 4
# round 5   0 → 2
# round 6   0 → 1   2 → 3
# ```
#
# If the vectors hold the numbers 1, 2, 4, 8 and 16, rank 0 has 3 after round 1, 15 after round 2 and 31 after round 3.
# In round 2, rank 2 sends 12, because it has already added the vector of rank 3.
#
# In general, the two ranks of a pair are 1 apart in the first round, then 2, then 4, and so on. For $P$ ranks this
# makes $2\lceil\log_2 P\rceil$ rounds and $2(P-1)$ messages, each of which carries a whole vector. The check accepts
# other pairs, too, if they need as few rounds and messages.

# %% tags=["exercise"]
# tree_allreduce

# %% [markdown]
# ## 3 · Recursive doubling for any number of ranks
#
# The function `recursive_doubling` of the lesson needs a power of two. With six ranks only four of them can meet in
# pairs, so ranks 4 and 5 are left over. The usual solution is to let these surplus ranks hand over their vectors before
# the first round and get the result after the last one. Two functions do that for you, and all ranks have to call them:
#
# - `active = fold_in(comm, vector)` returns how many ranks go on, which is the largest power of two up to $P$. Each
#   surplus rank sends its vector to the rank that is `active` below it, and that rank adds it.
# - `fold_out(comm, vector, active)` sends the result to the surplus ranks.
#
# Suppose that the vectors of six ranks hold 1, 2, 4, 8, 16 and 32:
#
# ```text
#                    rank 0   rank 1   rank 2   rank 3   rank 4   rank 5
# after fold_in        17       34        4        8       16       32
# after round 1        51       51       12       12
# after round 2        63       63       63       63
# after fold_out       63       63       63       63       63       63
# ```

# %%
from course_utils.lessons.allreduce import fold_in, fold_out

# %% [markdown]
# Between the two calls, the surplus ranks have nothing to do. The whole takes $\log_2 P$ rounds if $P$ is a power of
# two. Otherwise it takes $\log_2 A + 2$ rounds, where $A$ is the number of active ranks. In each round, the two ranks
# of a pair send their whole vectors to each other. It does not matter whether the near pairs meet first or the far
# ones.

# %% tags=["exercise"]
# recursive_doubling_allreduce

# %% [markdown]
# ## 4 · Halving-doubling
#
# Here each rank becomes responsible for a smaller and smaller part of the vector. The partners are $P/2$ apart in the
# first round, then $P/4$, and finally 1. With four ranks, the first phase looks like this:
#
# ```text
#                     rank 0             rank 1             rank 2             rank 3
# round 1   keeps     blocks 0, 1        blocks 0, 1        blocks 2, 3        blocks 2, 3
#           sends     2, 3 to rank 2     2, 3 to rank 3     0, 1 to rank 0     0, 1 to rank 1
#
# round 2   keeps     block 0            block 1            block 2            block 3
#           sends     1 to rank 1        0 to rank 0        3 to rank 3        2 to rank 2
# ```
#
# Each rank adds what it receives to the blocks that it keeps. If the vectors of the four ranks are full of 1, 10, 100
# and 1000, rank 0 holds 101, 101, 1, 1 after round 1, and 1111, 101, 1, 1 after round 2.
#
# In the second phase the partners meet in the opposite order, first the near ones and then the far ones. Each sends all
# the complete blocks that it has, and receives the complete blocks of its partner. In round 3, rank 0 receives block 1
# from rank 1, and in round 4 it receives blocks 2 and 3 from rank 2. The check accepts other halves and other partners,
# too, if they need as few rounds and bytes.
#
# To get several neighbouring blocks at once, ask `block_bounds(length, P)` for the $P+1$ positions at which blocks
# begin and end:

# %%
from course_utils.lessons.allreduce import block_bounds

numbers = np.arange(10)
bounds = block_bounds(len(numbers), 4)
print(bounds, numbers[bounds[2] : bounds[4]])  # blocks 2 and 3 together

# %% [markdown]
# For a power of two there are $2\log_2 P$ rounds, and a rank sends $2\,\frac{P-1}{P}$ of the vector. For any other $P$,
# use `fold_in` and `fold_out` as before, and cut the vector into as many blocks as there are active ranks.

# %% tags=["exercise"]
# halving_doubling_allreduce

# %% [markdown]
# ## 5 · Asynchronous ring
#
# In the ring of the first exercise, a rank waits for a whole block, adds it, and only then sends it on. While it adds,
# its link is idle, and while it waits, its processor is. It is better to cut every block into **segments** and to send
# each of them on as soon as it has arrived and has been added:
#
# ```text
# ring            | receive block           | add    | send block            |
#
# asynchronous    | receive 1 | receive 2 | receive 3 |
#                             | add, send 1 | add, send 2 | add, send 3 |
# ```
#
# A message may carry at most `segment_bytes`, but always at least one number. Cut each block into as few segments as
# possible. The function `segments_per_block(length, itemsize, P, segment_bytes)` tells you how many the longest block
# needs, and you may cut every block into so many. `blocks_of` cuts a block as well as a whole vector. With 1,000
# numbers of 8 bytes on 4 ranks, for example, a block has 250 numbers. If a message may carry 1,000 bytes, that is 125
# numbers, so each block is cut into 2 segments. Every rank then sends 12 messages, 2 for each block of the ring, and
# 12,000 bytes in total. That is as many bytes as in the ring.

# %%
from course_utils.lessons.allreduce import SEGMENT_BYTES, segments_per_block

print(segments_per_block(1000, 8, 4, segment_bytes=1000), "segments per block")
print(f"Without that argument, a segment has at most {SEGMENT_BYTES:,} bytes.")

# %% [markdown]
# Start every message with a call that does not wait, `Isend` or `Irecv`. Two rules follow from that. You must not
# change what an `Isend` is sending before its `Wait`, and you must not read what an `Irecv` is filling before its
# `Wait`. In the second phase, for example, you may receive a complete sum into the vector only after the partial sum in
# the same place has been sent. When the function ends, all requests have to be complete.

# %% tags=["exercise"]
# async_ring_allreduce

# %% [markdown]
# ## 6 · How long will it take?
#
# A message of $k$ bytes takes $\alpha + \beta k$ seconds. In the lesson we left out the time that a processor needs to
# add up numbers. Let us say that it is $\gamma$ seconds for each byte. Then a round in which $k$ bytes are sent and
# added takes $\alpha + \beta k + \gamma k$, and a round in which they are only sent takes $\alpha + \beta k$. The time
# of an all-reduce is the sum over its rounds. These are the rounds for a vector of $n$ bytes:
#
# | `algorithm` | rounds in which bytes are sent and added | rounds in which bytes are only sent |
# |---|---|---|
# | `"through one rank"` | $P-1$ rounds with $n$ bytes | $P-1$ rounds with $n$ bytes |
# | `"tree"` | $\lceil\log_2 P\rceil$ rounds with $n$ bytes | $\lceil\log_2 P\rceil$ rounds with $n$ bytes |
# | `"recursive doubling"` | $\log_2 A$ rounds with $n$ bytes | none |
# | `"halving-doubling"` | $\log_2 A$ rounds with $\frac n2, \frac n4, \dots, \frac nA$ bytes | the same again |
# | `"ring"` | $P-1$ rounds with $\frac nP$ bytes | $P-1$ rounds with $\frac nP$ bytes |
#
# $A$ is the largest power of two up to $P$. If $P$ itself is not a power of two, recursive doubling and
# halving-doubling have two more rounds. In one of them the surplus ranks send their vectors, which are added, and in
# the other they only receive the result.
#
# For example, let $\alpha$ be 10 µs, $\beta$ 0.01 µs and $\gamma$ 0.001 µs per byte, and take 1,000 bytes on 6 ranks.
# Recursive doubling begins with a round for ranks 4 and 5, which takes 10 + 10 + 1 = 21 µs. There follow $\log_2 4 = 2$
# rounds of 21 µs each, and a last one of 10 + 10 = 20 µs. The sum is 83 µs.
#
# Python calculates the logarithms exactly. For a whole number `P`, the expression `P.bit_length() - 1` is $\log_2 P$
# rounded down, and `(P - 1).bit_length()` is $\log_2 P$ rounded up. For 6 ranks these are 2 and 3.

# %% tags=["exercise"]
# allreduce_time

# %% [markdown]
# If your function is right, you can ask it something that no laptop can run. Here are 4 MB on 1,024 machines, with a
# latency of 20 µs and links of 1 GB/s:
#
# ```python
# for algorithm in "tree", "recursive doubling", "halving-doubling", "ring":
#     print(algorithm, allreduce_time(algorithm, 1024, 4_000_000, alpha=20e-6, beta=1e-9, gamma=0))
# ```

# %% [markdown]
# ## How far are you?

# %%
course.progress()

# %%
ranks.stop()
