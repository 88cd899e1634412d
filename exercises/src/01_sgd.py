# The exercises of lesson 1. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Exercises: how does a network learn?
#
# Four functions, and with them you have written an optimizer. They belong to [lesson 1](../notebooks/01_sgd.ipynb).
#
# Replace the line `raise NotImplementedError`, run the cell, and the next one checks it, with new numbers each time.
# No ranks are needed: the check runs your function in a process of its own, where an endless loop does no harm.

# %%
import math
from collections.abc import Iterator, Sequence

import numpy as np

import course_utils as course

# %% [markdown]
# ## 1 · Batches
#
# `yield` hands out one batch and goes on when the next is asked for; a list of all batches is fine as well. On paper
# first: 10 examples, batches of 4. How many batches are there, and how long is each?

# %% tags=["exercise"]
# minibatches

# %% [markdown]
# ## 2 · One step
#
# A network's weights are several arrays, so you get a list of them, and a list of gradients. Change the arrays
# themselves: the network holds the same ones. If you are right, the check lets your step train a network.

# %% tags=["exercise"]
# sgd_step

# %% [markdown]
# ## 3 · A step that remembers
#
# Now each array has a velocity too. The velocity must still be there at the next call. On paper first: $\beta = 0.5$,
# the velocity starts at 0, and the gradient is 1 in every step. What is the velocity after one, two, three steps?

# %% tags=["exercise"]
# momentum_step

# %% [markdown]
# ## 4 · How long may a step be?
#
# You get the Hessian at a minimum. What is the largest rate with which descent stays there? NumPy finds eigenvalues:
# `np.linalg.eigvalsh(matrix)` for symmetric matrices. In which order does it hand them out? And what if the loss is
# flat, and every rate is small enough?

# %% tags=["exercise"]
# largest_stable_lr

# %% [markdown]
# ## Done?
#
# Let your own functions train the network of the lesson. Which rate and which batch size read most digits in five
# epochs?
#
# ```python
# from course_utils.lessons.sgd import train_digits
#
# digits = course.data.digits_arrays()
# train_digits(digits, sgd_step, minibatches, rate=0.1, batch_size=32, epochs=5).test_accuracy
# ```

# %%
course.progress()
