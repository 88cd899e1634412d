# The exercises of lesson 4. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Exercises: how do processes talk?
#
# Five functions that move something between ranks, or say what that costs. They belong to
# [lesson 4](../notebooks/04_messages.ipynb).
#
# Replace the line `raise NotImplementedError`, run the cell, and the next one checks it: on up to 64 virtual
# ranks, then on your own, with long vectors and empty ones.

# %%
import numpy as np

import course_utils as course

ranks = course.start(4)

# %% [markdown]
# Everything is called on all ranks at once. `comm.rank` says which one you are, `comm.size` how many there are. Try a
# function on your own numbers before you check it; `print` tells you which rank is speaking:
#
# ```python
# ranks.run(pass_the_token, course.per_rank([10, 20, 30, 40])).results
# ```
#
# A function that hangs is no harm: at once you read who waits where.

# %% [markdown]
# ## 1 · Pass the token
#
# A token travels once round the ring: from rank 0 to 1, to 2, … and from the last back to 0. Everybody adds their
# number to it on the way. Return the token as it *reached* this rank.
#
# Numbers 10, 20, 30, 40 give 100 on rank 0, then 10, 30 and 60. Use `comm.send(thing, dest=…)` and
# `comm.recv(source=…)`.

# %% tags=["exercise"]
# pass_the_token

# %% [markdown]
# ## 2 · Exchange without deadlock
#
# Two partners swap vectors. Whatever the length, nobody may hang; and both vectors must travel at the same time, in
# one round.

# %% tags=["exercise"]
# exchange_without_deadlock

# %% [markdown]
# ## 3 · Tree broadcast
#
# Bring the root's vector into everybody's array, in $\lceil\log_2 P\rceil$ rounds and $P - 1$ messages, from any root,
# for any $P$. Draw it on paper for 4 ranks and root 0, then for 3 ranks, then for root 2.
#
# Nothing is returned: `comm.Recv(vector, …)` writes into the array that you were given.

# %% tags=["exercise"]
# tree_broadcast

# %% [markdown]
# ## 4 · Scatter blocks
#
# Cut the root's vector into one block for each rank, as equal as possible: 7 elements over 4 ranks make blocks of
# 2, 2, 2 and 1. Only the root has the vector; the others do not even know its length or dtype.
#
# Length and dtype may be pickled; the elements travel as a buffer. `comm.Scatterv([vector, counts], block, root=root)`
# sends `counts[r]` elements to rank r. On the other ranks its first argument is `None`.

# %% tags=["exercise"]
# scatter_blocks

# %% [markdown]
# ## 5 · Fit alpha and beta
#
# From the sizes and times of a ping-pong, find the line $\alpha + \beta\,n$. The times run from microseconds to
# milliseconds, so minimise the *relative* errors: 1 % of a short message counts as much as 1 % of a long one.
#
# No messages in this one, only arithmetic: it has no `comm`.

# %% tags=["exercise"]
# fit_alpha_beta

# %% [markdown]
# ## How far are you?

# %%
course.progress()

# %% [markdown]
# Next: [lesson 5](../notebooks/05_allreduce.ipynb), where the vectors of all ranks are added up.

# %%
ranks.stop()
