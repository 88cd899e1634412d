# The exercises of lesson 2. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Exercises: who computes the gradient?
#
# In this notebook you write four functions of [lesson 2](../notebooks/02_autodiff_and_optimizers.ipynb). The first
# three are the heart of an autodiff: the order of the walk, the rule for a product of matrices, and the rule of the
# loss. The fourth is a step of Adam. They take about an hour in all, and you can do them in any order.
#
# In each of them, replace the line `raise NotImplementedError`, run the cell, and then run the cell after it. It
# compares your function with PyTorch, or with what must be true of any correct answer, using new numbers each time.

# %%
from collections.abc import Sequence

import numpy as np

import course_utils as course
from course_utils.lessons.autodiff_and_optimizers import Node, unbroadcast

# %% [markdown]
# No messages are sent in these exercises, so you need no ranks. The check calls your function in a separate process,
# where an endless loop does no harm.
#
# ## A warm-up on paper
#
# The class `Node` on the page has rules for `+` and `*`. What would be the rule for a difference, `a - b`, and what
# would be the rule for `a.exp()`, which is $e^a$? Write both on paper before you open the answer.
#
# <details><summary>Answer</summary>
#
# If $a$ grows by a little, $a - b$ grows by just as much, and if $b$ grows, it becomes smaller by as much. So the first
# rule returns `g, -g`. The slope of $e^a$ is $e^a$, which is the value of the new node. There is only one parent, so
# the second rule returns a tuple with a single part: `(g * math.exp(self.value),)`.
# </details>
#
# ## 1 · Parents before children
#
# Your function gets the last node of a graph and returns a list of all the nodes that this node was computed from, and
# of the node itself. Every node must be in the list once, and after all of its parents. Here is a graph to try it on:

# %% tags=["nbval-check-output"]
x = Node(1.0, "x")
a = x * x
y = a + a.exp()
for node in (y, *y.parents):
    print(f"{node.name:3} was computed from", [parent.name for parent in node.parents])

# %% [markdown]
# Draw this graph, and write down an order in which every node comes after all of its parents. For this graph there is
# only one, with the names x, \*, exp, +. For `Node(1.0) + Node(2.0)` there are two, and either of them is correct. Note
# that two arrows lead from `a`, to `exp` and to `+`, and two lead from `x` to `a`, but each node may be in the list
# only once.

# %% tags=["exercise"]
# topological_order

# %% [markdown]
# To try your function before you check it, print the names and compare them with your drawing:
#
# ```python
# [node.name for node in topological_order(y)]
# ```
#
# ## 2 · Backward through a product
#
# This is the rule for `a @ b`. Your function gets $g$, the gradient of the product, and the two matrices. It returns
# their gradients, which you know from the page:
#
# $$\text{gradient}(a) = g\, b^T \qquad \text{gradient}(b) = a^T g$$
#
# Begin with two plain matrices. If `a` has the shape (2, 3) and `b` has (3, 4), what are the shapes of $g$ and of the
# two results?
#
# Then allow *stacks* of matrices. An array of the shape (7, 2, 3) is a stack of seven matrices with 2 rows and 3
# columns. In `(7, 2, 3) @ (3, 4)`, NumPy multiplies each of the seven by the same (3, 4) matrix, so this matrix is used
# seven times, and its seven parts have to be added up. The function `unbroadcast(gradient, shape)` does that. It adds
# up a gradient until it has the given shape:

# %% tags=["nbval-check-output"]
seven_parts = np.ones((7, 3, 4))
print(unbroadcast(seven_parts, (3, 4)))

# %% [markdown]
# It does nothing if the shape is already right, so you can call it in every case. Your function has to work for
# matrices and for stacks of any shapes that `@` accepts, and it must not change the arrays it is given.

# %% tags=["exercise"]
# matmul_backward

# %% [markdown]
# ## 3 · Where the walk begins
#
# The scores that a network gives to the classes are called **logits**. Softmax turns a row $z$ of logits into
# probabilities $p$. If the right class is number $k$, the loss of this row is $-\log p_k$:
#
# $$p_j = \frac{e^{z_j}}{\sum_i e^{z_i}} \qquad -\log p_k = \log \sum_i e^{z_i} - z_k$$
#
# The cross entropy is the mean of this over all rows. Work out on paper how $-\log p_k$ changes with each $z_j$. The
# derivative of $\log \sum_i e^{z_i}$ with respect to $z_j$ is $e^{z_j} / \sum_i e^{z_i}$, which you have seen before.
# The second term, $z_k$, matters only if $j = k$.
#
# For example, take two classes with the logits $z = (0, 0)$, so that both probabilities are $\frac12$. If the right
# class is number 0, the gradient of this row is $(-\frac12, \frac12)$. With four rows like this, the mean divides
# everything by 4.
#
# There is one difficulty. If a logit is 2000, then $e^{2000}$ is larger than any number that the computer can hold. But
# if you subtract the same number from all logits of a row, its softmax stays the same.

# %% tags=["exercise"]
# softmax_cross_entropy_backward

# %% [markdown]
# ## 4 · A step of Adam
#
# The formulas are those of the page, with $m$ for a mean and $s$ for a square:
#
# $$m \leftarrow \beta_1 m + (1 - \beta_1)\, g$$
#
# $$s \leftarrow \beta_2 s + (1 - \beta_2)\, g^2$$
#
# $$w \leftarrow w - \eta\, \frac{\hat m}{\sqrt{\hat s} + \varepsilon}$$
#
# $$\hat m = \frac{m}{1 - \beta_1^t} \qquad \hat s = \frac{s}{1 - \beta_2^t}$$
#
# Suppose the gradient is 1 in every step, and `beta1` is 0.9. What is the mean after step 1, and what is it after step
# 2? Divide the first by $1 - 0.9$ and the second by $1 - 0.9^2$. If you get 1 both times, you have understood the
# correction.
#
# Your function gets lists of arrays, one array for each parameter of a network, and returns nothing. Instead, it has to
# change the arrays of parameters, means and squares themselves, because the caller goes on using them. In NumPy, `w -=
# 1` changes an array, whereas `w = w - 1` makes a new one that the caller never sees.

# %% tags=["exercise"]
# adam_step

# %% [markdown]
# ## When you are done
#
# You can put your own functions into the course's autodiff. At $x = 1$, the gradient of $y = x^2 + e^{x^2}$ is $2 +
# 2e$, about 7.44. Does your order find it?
#
# ```python
# from course_utils.lessons.autodiff_and_optimizers import autodiff
#
# autodiff.topological_order = topological_order
# y.backward()
# x.gradient
# ```
#
# In the same way, you can set `autodiff.matmul_backward` and `autodiff.softmax_cross_entropy_backward`. If you do this
# at the top of the notebook [Further](../notebooks/02_autodiff_and_optimizers_further.ipynb), the network there learns
# to read digits with your own code.

# %%
course.progress()
