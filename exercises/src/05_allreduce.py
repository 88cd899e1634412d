# The exercises of lesson 5. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Exercises: how do P machines add up their vectors?
#
# Five ways to the same sum, and the formula that says which one is the fastest. They belong to
# [lesson 5](../notebooks/05_allreduce.ipynb).
#
# The check counts: rounds, messages, and the bytes that each rank sends. It runs your function with up to 64
# virtual ranks, then with your own, on vectors of any length and dtype. A correct sum that cost too much is rejected.

# %%
import numpy as np

import course_utils as course
from course_utils.lessons.allreduce import POSTED, SEGMENT_BYTES, Network, block_bounds
from course_utils.lessons.allreduce import blocks_of, check_operands, combine
from course_utils.lessons.allreduce import combined_bytes, fold_in, fold_out, named
from course_utils.lessons.allreduce import powers, segments_per_block

ranks = course.start(4)

# %% [markdown]
# Every function works **in place**: when it returns, `vector` holds the result, on every rank. Send memory, not
# pickles: `Send`, `Recv`, `Sendrecv`, `Isend`, `Irecv`.
#
# | Ready for you | |
# |---|---|
# | `combine(incoming, vector, op)` | adds, or whatever `op` says, into `vector` |
# | `blocks_of(vector, P)` | P blocks as views, as equal as possible |
# | `block_bounds(length, P)` | where they begin, and where the last ends |
#
# The `op` is `None` for the sum: hand it on to `combine`. `check_operands(vector, op)` rejects vectors that are not
# contiguous (whose numbers do not lie side by side in memory); you may leave it out.

# %% [markdown]
# Try a function on powers of ten before you check it. The sum of 1, 10, 100 and 1000 is 1111; a 2 in it means that
# somebody was added twice, a 0 that somebody was forgotten:
#
# ```python
# def sums(comm):
#     vector = np.full(8, 10.0**comm.rank)
#     tree_allreduce(comm, vector)
#     return vector
#
# run = ranks.run(sums)
# run.results, run.rounds, run.bytes_per_rank
# ```

# %% [markdown]
# ## 1 · Tree
#
# Picture a knock-out cup. In the first round 1 gives its vector to 0, and 3 to 2; in the second 2 gives its sum to 0.
# A rank that has given its vector is out. Then the result goes back the way it came.
#
# $2\lceil\log_2 P\rceil$ rounds, $2(P - 1)$ messages. Also for 3 ranks, where 2 has nobody to meet at first.

# %% tags=["exercise"]
# tree_allreduce

# %% [markdown]
# ## 2 · Recursive doubling
#
# Picture a dance: you swap sums with your neighbour, then with the pair next to you, then with the four beyond. After
# each round you know twice as many. Nobody waits for a rank 0, and there is no way back.
#
# $\log_2 P$ rounds, a whole vector in each. Where $P$ is not a power of two, surplus ranks do not dance. All ranks
# first call `active = fold_in(comm, vector, op)`: it adds the surplus vectors to those of ranks below `active`, who
# dance. Then all call `fold_out(comm, vector, active)`: it hands the surplus ranks the sum.

# %% tags=["exercise"]
# recursive_doubling_allreduce

# %% [markdown]
# ## 3 · Recursive halving and doubling
#
# Picture two people who share out a heap of bills: one adds up the upper half, the other the lower. Each shares out
# its half with somebody else, and so on until everybody has one block to finish. Then the finished blocks travel the
# same way back.
#
# $2\log_2 P$ rounds; all in all a rank sends $2(P - 1)/P$ of the vector. `fold_in` and `fold_out` as before.

# %% tags=["exercise"]
# halving_doubling_allreduce

# %% [markdown]
# ## 4 · Ring
#
# Picture P people at a round table, each with P sheets. In every step you pass one sheet to the right, and add what
# comes from the left to your own sheet of that number. After $P - 1$ steps each holds one finished sheet. Another
# $P - 1$ steps hand them round.
#
# $2(P - 1)$ steps, one block in each, for any $P$ and length; and it must not hang.

# %% tags=["exercise"]
# ring_allreduce

# %% [markdown]
# ## 5 · Asynchronous ring
#
# Picture a conveyor belt in the place of the sheets. Blocks are cut into segments of at most `segment_bytes`. Each
# goes on as soon as it has come and been added, while the next is still on its way.
#
# A rank sends as many bytes as in the ring. What an `Isend` sends must stay as it is until its `Wait`; what an `Irecv`
# brings is there only after its `Wait`. Cut each block into as few segments as will do:
# `segments_per_block(len(vector), vector.itemsize, P, segment_bytes)` says how many. (In the course's own answer,
# `POSTED` receives wait at any time.)

# %% tags=["exercise"]
# async_ring_allreduce

# %% [markdown]
# ## 6 · How long will it take?
#
# Picture the longest chain of messages, each of which waits for the one before. The time of the all-reduce is the sum
# of their times, and of the additions in between. `network.message_seconds(nbytes)` is the time of one message,
# `network.combine_seconds(nbytes)` that of adding, `combined_bytes(algorithm, P, nbytes)` how much is added.
#
# So you need the sizes of the messages in the chain. Here `network.shared` is False. `powers(P)` gives the largest
# power of two up to P, its logarithm, and the surplus ranks; `named(algorithm, table)` is `table[algorithm]`, or an
# error.

# %% [markdown]
# Six names: `gather-broadcast`, where rank 0 talks to one after the other; `tree`; `recursive doubling`;
# `halving-doubling`; `ring`; and `asynchronous ring`, where `segments_per_block(int(nbytes), 1, P)` messages make a
# block. $P$ may be 6 or 1000, too: what do surplus ranks do before and after?

# %% tags=["exercise"]
# allreduce_time

# %% [markdown]
# Right? Then ask it something that no laptop can run:
#
# ```python
# network = Network(alpha=20e-6, beta=1e-9)  # 20 microseconds, 1 GB/s
# for algorithm in "tree", "recursive doubling", "halving-doubling", "ring":
#     print(algorithm, allreduce_time(algorithm, 1024, 4_000_000, network))
# ```

# %% [markdown]
# ## How far are you?

# %%
course.progress()

# %% [markdown]
# Next: [lesson 6](../notebooks/06_data_parallel.ipynb), where such a sum trains a network.

# %%
ranks.stop()
