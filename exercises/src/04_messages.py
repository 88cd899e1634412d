# The exercises of lesson 4. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Exercises: how do processes talk?
#
# In the first four exercises you send messages between ranks, and in the last one you work out from measurements what a
# message costs. All of them belong to [lesson 4](../notebooks/04_messages.ipynb). Together they take a little more than
# an hour.
#
# Replace the line that begins with `raise`, run the cell, and run the next one to check your answer. The check calls
# your function on different numbers of ranks and with vectors of different lengths, some of them empty.

# %%
import numpy as np

import course_utils as course

ranks = course.start(4)

# %% [markdown]
# Each function is called on all ranks at the same time. Inside, `comm.rank` is the number of the rank that is running
# it, and `comm.size` is the number of ranks. It is a good idea to try a function on your own numbers before you check
# it. What you `print` is labelled with the rank that printed it.
#
# ```python
# ranks.run(pass_the_token, course.per_rank([10, 20, 30, 40])).results
# ```
#
# If a function hangs, nothing is lost. You get a report of which rank is waiting for which.

# %% [markdown]
# ## 1 · Pass the token
#
# Each rank has a number. A running sum, the token, travels once around all ranks. It starts on rank 0 with the number
# of rank 0. Each rank that receives it adds its own number and sends it on to the next rank, and the last rank sends it
# back to rank 0. Every rank returns the token as it *arrived*, before adding anything. With the numbers 10, 20, 30 and
# 40 it looks like this:
#
# ```text
# rank 0 ──10──▶ rank 1 ──30──▶ rank 2 ──60──▶ rank 3
#    ▲                                            │
#    └──────────────────── 100 ───────────────────┘
# ```
#
# So the results are 100 on rank 0, and 10, 30 and 60 on the others. If there is only one rank, it returns its own
# number and sends nothing.
#
# Use `comm.send(thing, dest=…)` and `comm.recv(source=…)`. The operator `%` helps you with the last rank, because
# `(3 + 1) % 4` is 0.

# %% tags=["exercise"]
# pass_the_token

# %% [markdown]
# ## 2 · Exchange without deadlock
#
# Two ranks swap their vectors. Each is told the number of its partner and returns the vector that the partner had. If
# ranks 0 and 3 are partners, with the vectors [0, 0] and [3, 3], rank 0 returns [3, 3] and rank 3 returns [0, 0].
#
# The function must not hang, however long the vectors are, and both vectors have to travel at the same time, in a
# single round. A rank may also be its own partner. It then returns a copy of its own vector, which takes no special
# case if you send and receive as usual. Both vectors have the same length and type, so `np.empty_like(vector)` makes an
# array into which you can receive.

# %% tags=["exercise"]
# exchange_without_deadlock

# %% [markdown]
# ## 3 · Tree broadcast
#
# One rank, the `root`, has a vector that all the others need. In each round, every rank that already has it sends it to
# one that does not, so after 1, 2 and 3 rounds there are 2, 4 and 8 ranks that have it. With seven ranks and root 0,
# the messages go like this:
#
# ```text
# round 1   0 → 1
# round 2   0 → 2   1 → 3
# round 3   0 → 4   1 → 5   2 → 6            (3 has no one to send to)
# ```
#
# In round $k$ = 0, 1, 2, … a rank sends to the one that is $2^k$ further on. If the root is a different rank, count
# from the root and go on with 0 after the last rank. With seven ranks and root 5, the first messages are 5 → 6, then 5
# → 0 and 6 → 1.
#
# For $P$ ranks this takes $\lceil\log_2 P\rceil$ rounds and $P - 1$ messages, and $P$ need not be a power of two. The
# function returns nothing. `comm.Recv(vector, …)` writes into the array that the caller has given you, and that is
# where the vector has to be in the end.

# %% tags=["exercise"]
# tree_broadcast

# %% [markdown]
# ## 4 · Scatter blocks
#
# The root cuts its vector into one block for each rank, and each rank returns its own block. The blocks are as equal as
# possible, and the first ranks get one number more if the length does not divide evenly. Seven numbers on four ranks
# make blocks of 2, 2, 2 and 1, because 7 divided by 4 is 1 with a remainder of 3:
#
# ```text
# root       [10, 11, 12, 13, 14, 15, 16]
# returned   [10, 11]   [12, 13]   [14, 15]   [16]
# ```
#
# Only the root has the vector. The other ranks do not even know how long it is or what type its numbers have, so the
# root has to tell them first. For these two small things you can use `comm.bcast`. The numbers themselves have to be
# sent as a buffer, without pickling, and no rank may be sent the whole vector.
#
# One call does the second part. `comm.Scatterv([vector, counts], block, root=root)` sends `counts[r]` numbers to rank
# $r$, which receives them in the array `block`. On all ranks but the root, write `None` in place of `[vector, counts]`.

# %% tags=["exercise"]
# scatter_blocks

# %% [markdown]
# ## 5 · Fit alpha and beta
#
# A ping-pong has told you that messages of $n_1, n_2, \dots$ bytes took $t_1, t_2, \dots$ seconds. Which $\alpha$ and
# $\beta$ suit these measurements best? There are no messages in this exercise, only arithmetic.
#
# With a perfect line, $\alpha + \beta\, n_i = t_i$ would hold for each measurement $i$. Measurements are never perfect,
# so we choose $\alpha$ and $\beta$ such that the errors are as small as possible. But which errors? A short message
# takes microseconds and a long one milliseconds. If we looked at errors in seconds, the longest messages would decide
# everything, and $\alpha$, which we see only in the short ones, could be anything. So we use *relative* errors, and 1%
# of a short message counts as much as 1% of a long one. To get them, divide every equation by its $t_i$:
#
# $$\alpha\,\frac{1}{t_i} + \beta\,\frac{n_i}{t_i} = 1$$
#
# NumPy solves such a set of equations as well as possible. Put the factors of the two unknowns into a matrix $A$ with
# one row for each equation, and the right-hand sides into a vector $b$. Then `np.linalg.lstsq(A, b)` finds the unknowns
# for which the sum of the squared errors is the smallest (*lstsq* means least squares). Here it is with three
# equations, $x = 1$, $x + y = 3$ and $x + 2y = 6$, which cannot all be true at once:

# %%
A = np.array([[1, 0], [1, 1], [1, 2]])  # the factors of x and y in each equation
b = np.array([1, 3, 6])
(x, y), *rest = np.linalg.lstsq(A, b)
print(f"x = {x:.3f}, y = {y:.3f}, and the left sides are {A @ [x, y]}")

# %% [markdown]
# In your function, $\alpha$ and $\beta$ take the places of $x$ and $y$, and all right-hand sides are 1. The function
# `np.column_stack` puts two columns side by side into a matrix. If the sizes are 0 and 1,000 bytes and the times
# 10 µs and 15 µs, the line is exact, and the result has to be $\alpha$ = 10 µs and $\beta$ = 0.005 µs per byte, both
# in seconds. The sizes and times may be lists or arrays.

# %% tags=["exercise"]
# fit_alpha_beta

# %% [markdown]
# ## How far are you?

# %%
course.progress()

# %%
ranks.stop()
