# The exercises of lesson 2. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Exercises: who computes the gradient?
#
# Four functions. With the first three you write the heart of an autodiff. The fourth is a step of Adam, one of the most
# used optimizers. They belong to [lesson 2](../notebooks/02_autodiff_and_optimizers.ipynb).
#
# Replace the line `raise NotImplementedError`, run the cell, and the next one checks it: against PyTorch, with new
# numbers each time.

# %%
from collections.abc import Sequence

import numpy as np

import course_utils as course
from course_utils.lessons.autodiff_and_optimizers import Node, unbroadcast

# %% [markdown]
# Nothing here talks to anybody, so no ranks are needed. The check runs your function in a process of its own, where an
# endless loop does no harm. Try your functions in this notebook first. A graph to play with:

# %% tags=["nbval-check-output"]
x = Node(1.0, "x")
a = x * x
y = a + a.exp()
print(y.name, "came from", [parent.name for parent in y.parents])

# %% [markdown]
# ## 1 · Parents before children
#
# Draw the graph of `y` above, and write down an order in which each node stands after all its parents. Is there another
# one? (`Node(1.0) + Node(2.0)` has two.) Your function finds any such order. `y` was made from `a` in two ways: is `a`
# listed twice?

# %% tags=["exercise"]
# topological_order

# %% [markdown]
# Try it on `y`: which names do you expect, and in which order?
#
# ```python
# [node.name for node in topological_order(y)]
# ```
#
# ## 2 · Backward through a product
#
# Start with two plain matrices, and write the three shapes side by side. Then stacks: `(7, 2, 3) @ (3, 4)` uses one
# matrix seven times. `unbroadcast(gradient, shape)` makes a gradient of this shape: it adds up what belongs to the same
# number.

# %% tags=["exercise"]
# matmul_backward

# %% [markdown]
# ## 3 · Where the walk begins
#
# A network's scores are called **logits**. Softmax makes probabilities of a row $z$ of them, and the loss is
# $-\log p_k$ for the right class $k$, averaged over all rows:
#
# $$p_j = \frac{e^{z_j}}{\sum_i e^{z_i}} \qquad -\log p_k = \log \sum_i e^{z_i} - z_k$$
#
# Take the derivative of the second formula with respect to $z_j$, for $j = k$ and for the others. On paper, it fits on
# two lines. Then think of logits in the thousands: how large is $e^{2000}$?

# %% tags=["exercise"]
# softmax_cross_entropy_backward

# %% [markdown]
# ## 4 · A step of Adam
#
# Let the gradient be 1 in every step, and `beta1` 0.9. On paper: what is the mean after step 1, after step 2? Divide
# each by $1 - 0.9^{\text{step}}$.
#
# The arrays that you are given belong to somebody else as well: fill them, do not replace them.

# %% tags=["exercise"]
# adam_step

# %% [markdown]
# ## Done?
#
# Put your own functions into the course's autodiff. Does `x` get its $2 + 2e$?
#
# ```python
# from course_utils.lessons.autodiff_and_optimizers import autodiff
#
# autodiff.topological_order = topological_order
# y.backward()
# x.gradient
# ```
#
# In the same way `autodiff.matmul_backward` and `autodiff.softmax_cross_entropy_backward` take yours, in lesson 2's
# notebook too. Does the network still learn its digits?

# %%
course.progress()
