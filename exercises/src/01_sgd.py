# The exercises of lesson 1. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Exercises: how does a network learn?
#
# In the first three exercises you write the parts of the loop that trains a network, and in the fourth you calculate
# the largest learning rate. The first three belong to [lesson 1](../notebooks/01_sgd.ipynb), and the fourth to its
# [Further](../notebooks/01_sgd_further.ipynb). Together they take a little more than half an hour.
#
# Replace the line that begins with `raise`, run the cell, and run the next one to check your answer. The check uses new
# numbers each time. It calls your function in a process of its own, so an endless loop does no harm.

# %%
import math
from collections.abc import Iterator, Sequence

import numpy as np

import course_utils as course

# %% [markdown]
# ## 1 · Batches
#
# Shuffle the numbers from 0 to $n-1$ and cut them into batches. With 10 examples and a batch size of 4, for example, an
# epoch could consist of the batches [7, 2, 9, 0], [4, 8, 1, 5] and [3, 6]. In the next epoch the numbers are in a
# different order.
#
# The generator `rng` has a method `rng.permutation(n)`, which returns an array of the numbers 0 to $n-1$ in random
# order. Each batch is an array, too. You can hand out the batches one by one with `yield`, or return a list of all of
# them.

# %% tags=["exercise"]
# minibatches

# %% [markdown]
# ## 2 · One step
#
# The parameters of a network are several arrays, so you get a list of arrays and a list of gradients in the same order.
# Each array $w$ with gradient $g$ takes the step
#
# $$w \leftarrow w - \eta\, g .$$
#
# Change the arrays themselves instead of making new ones, because the network keeps using the arrays it has. At the
# end, the check trains a network with your step.

# %% tags=["exercise"]
# sgd_step

# %% [markdown]
# ## 3 · A step with momentum
#
# Now every array also has a velocity $v$, which the step changes first:
#
# $$v \leftarrow \beta v + g, \qquad w \leftarrow w - \eta v$$
#
# In the code, $\beta$ is called `momentum`. The next call has to find the new velocities in the same arrays. To try it
# out, let $\beta$ be 0.8, let the velocity start at 0, and let the gradient be 1 in every step. After one, two and
# three steps, the velocity is then 1, 1.8 and 2.44.

# %% tags=["exercise"]
# momentum_step

# %% [markdown]
# ## 4 · The largest learning rate
#
# (After the sections *The curvature in every direction* and *The largest rate with momentum* of
# [Further](../notebooks/01_sgd_further.ipynb).) You get the Hessian at a minimum. Return the limit
#
# $$\eta = \frac{2\,(1 + \beta)}{\lambda_\text{max}},$$
#
# in which $\lambda_\text{max}$ is the largest eigenvalue of the Hessian and $\beta$ is `momentum`. If the loss is flat
# in every direction, so that all eigenvalues are 0, any rate is small enough, and the limit is `math.inf`. NumPy's
# `np.linalg.eigvalsh(matrix)` returns the eigenvalues of a symmetric matrix in ascending order.

# %% tags=["exercise"]
# largest_stable_lr

# %% [markdown]
# ## If you want to go on
#
# You can train the network of the lesson with your own functions. Which rate and which batch size classify the most
# digits correctly after five epochs?
#
# ```python
# from course_utils.lessons.sgd import train_digits
#
# digits = course.data.digits_arrays()
# train_digits(digits, sgd_step, minibatches, rate=0.1, batch_size=32, epochs=5).test_accuracy
# ```

# %% [markdown]
# ## How far are you?

# %%
course.progress()
