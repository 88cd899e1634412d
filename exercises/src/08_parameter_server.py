# The exercises of lesson 8. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Exercises: what if nobody waits?
#
# Here you write six functions that belong to [lesson 8](../notebooks/08_parameter_server.ipynb). The first four go with
# its main page and take about 40 minutes. The last two go with sections of
# [Further](../notebooks/08_parameter_server_further.ipynb), and you can come back for them when you have read those.

# %%
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import course_utils as course
from course_utils.lessons.parameter_server import SERVER

ranks = course.start(4)

# %% [markdown]
# In all six exercises the weights of a network are **one flat vector**, and so is a gradient. `comm.rank` is your rank,
# and `comm.size` is the number of ranks. Unless the docstring promises a result, a function returns nothing and changes
# the array that it was given. The check runs your function with one to four ranks and with new numbers each time. It
# also counts messages and bytes.

# %% [markdown]
# ## 1 · One step of a parameter server
#
# Rank 0 is the server (`SERVER` is 0) and holds the weights $w$. The other ranks are the workers, and each of them has
# a gradient. In this exercise the server waits for all of them. When it has received every gradient, it takes the step
#
# $$w \leftarrow w - \text{rate} \cdot \frac{1}{P-1} \sum_{r=1}^{P-1} g_r$$
#
# and sends the new weights to every worker, so that at the end all ranks hold them. The server's own gradient has no
# meaning, because it has no data. Use messages from one rank to another, such as `Send` and `Recv`, and no collective.
# With $P$ ranks this makes $2(P-1)$ messages.
#
# For example, let the weights be 10, the rate 0.5, and the gradients of three workers 2, 4 and 6. Their mean is 4, so
# all ranks end up with 10 − 0.5 · 4 = 8.

# %% tags=["exercise"]
# parameter_server_step

# %% [markdown]
# You can try it with these numbers and look at the link of the server:
#
# ```python
# def three_workers(comm):
#     parameters = np.full(3, 10.0)
#     parameter_server_step(comm, parameters, np.full(3, 2.0 * comm.rank), rate=0.5)
#     return parameters
#
# run = ranks.run(three_workers)
# print(run.results)
# run.timeline()
# ```

# %% [markdown]
# ## 2 · How old is a gradient?
#
# Now the server doesn't wait any more. A worker *fetches* the weights, computes a gradient, and *pushes* it, and the
# server uses it for an update. You get the server's log and calculate the staleness of every update. This exercise
# needs no ranks. Here is the beginning of a log:
#
# | entry | updates made before it | staleness |
# |---|---|---|
# | `("fetch", 1)` | 0 | |
# | `("fetch", 2)` | 0 | |
# | `("push", 1)` | 0 | 0 |
# | `("fetch", 1)` | 1 | |
# | `("push", 2)` | 1 | ? |
#
# When worker 1 pushes, no update has been made since it fetched. Which update has been made between the fetch of worker
# 2 and its push?

# %% tags=["exercise"]
# measure_staleness

# %% [markdown]
# ## 3 · A smaller rate for an older gradient
#
# A gradient with staleness $\tau$ belongs to weights from $\tau$ updates ago. The server makes up for this by using the
# rate $\eta / \tau$ instead of $\eta$. For example, with a rate of 0.6 and a staleness of 3 it takes the step with a
# rate of 0.2. A fresh gradient has the staleness 0, and it gets the full rate. No gradient can have a staleness below
# 0, so this must raise a `ValueError`.

# %% tags=["exercise"]
# staleness_scaled_lr

# %% [markdown]
# ## 4 · A round of local SGD
#
# There is no server in this exercise. Each rank takes one step for each of its own batches, without a message:
#
# $$w \leftarrow w - \text{rate} \cdot \text{gradient}(w, \text{batch})$$
#
# After that, all ranks replace their weights with the mean of the weights that they have reached. For example, if the
# weights were 0, and rank 0 has moved to 4 and rank 1 to 8, both continue from 6. Some ranks may have more batches than
# others, and all of them count equally in the mean. You may use only one all-reduce.
#
# If every rank has a single batch, this is exactly the data-parallel step of lesson 6. Can you see why? And why is it
# no longer the same with two batches each?

# %% tags=["exercise"]
# local_sgd_round

# %% [markdown]
# ## 5 · An outer step
#
# This exercise comes after the section *A step for the mean change* of
# [Further](../notebooks/08_parameter_server_further.ipynb). All ranks began their round at the same weights $s$, in the
# array `started`. Rank $r$ has trained alone since then, and its array `parameters` holds $w_r$. The outer gradient
# points from the mean of these weights back to the start:
#
# $$g = s - \frac1P \sum_r w_r$$
#
# It is used for one step of SGD with Nesterov's momentum, in the form that PyTorch uses. With the velocity $v$, the
# momentum $\mu$ and the rate $\eta$, compute
#
# $$v \leftarrow \mu v + g \qquad\text{and then}\qquad s \leftarrow s - \eta\,(g + \mu v)$$
#
# At the end both `started` and `parameters` hold the new $s$, and `velocity` holds the new $v$. Write into the three
# arrays that you were given, because the caller keeps using them. With $\eta = 1$ and $\mu = 0$, the result is the mean
# of all ranks' weights. Again, you may use only one all-reduce.

# %% tags=["exercise"]
# outer_step

# %% [markdown]
# ## 6 · Federated averaging
#
# This exercise comes after the section *Clinics that share no image* of
# [Further](../notebooks/08_parameter_server_further.ipynb). Each rank is a clinic that has trained with its own $n_r$
# patients and has reached the weights $w_r$. All of them continue with the mean in which every *patient* counts the
# same:
#
# $$w = \frac{\sum_r n_r w_r}{\sum_r n_r}$$
#
# For example, a clinic with 300 patients has the weight 1.0 and another with 100 patients has 2.0. The result is (300 ·
# 1.0 + 100 · 2.0) ÷ 400 = 1.25. A clinic may have no patients at all. If none of them has any, all keep the weights
# that they have.
#
# No rank may collect the weights of single clinics, not even rank 0. You may use only one all-reduce, so both sums have
# to fit into it.

# %% tags=["exercise"]
# federated_average

# %% [markdown]
# ## How far are you?

# %%
course.progress()

# %%
ranks.stop()
