# The exercises of lesson 8. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Exercises: what if nobody waits?
#
# With these six functions you train on ranks that wait for a server, for nobody, or now and then for each other. And
# you can say what each way costs in messages, in bytes, and in old gradients. The exercises belong to [lesson
# 8](../notebooks/08_parameter_server.ipynb).
#
# Replace the line `raise NotImplementedError`, run the cell, and the next one checks it on real processes: with 1 to
# 4 ranks and new numbers each time. The check counts messages and bytes, too.

# %%
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import course_utils as course
from course_utils.lessons.parameter_server import SERVER

ranks = course.start(4)

# %% [markdown]
# All weights of a network are **one flat vector** here, and so is a gradient. `comm.rank` says which rank you are,
# `comm.size` how many there are. Nothing is returned where the docstring promises nothing: the weights change in the
# array that you were given.

# %% [markdown]
# ## 1 · One step of a parameter server
#
# Rank 0 (`SERVER`) holds the weights, the others have the data. Nobody works ahead here: the server waits for all.
# Use `Send` and `Recv`, so that each of the $2(P - 1)$ messages is seen and counted.
#
# With weights 10, rate 0.5 and the gradients 2, 4 and 6 of three workers the mean is 4, and everybody ends with 8.

# %% tags=["exercise"]
# parameter_server_step

# %% [markdown]
# Try it on these numbers, and look at the server's link:
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
# Now nobody waits. A worker *fetches* the weights, computes, and *pushes* its gradient, with which the server updates
# the weights. You read the server's log. No ranks in this one:
#
# | entry | updates before it | staleness |
# |---|---|---|
# | `("fetch", 1)` | 0 | |
# | `("fetch", 2)` | 0 | |
# | `("push", 1)` | 0 | 0 |
# | `("fetch", 1)` | 1 | |
# | `("push", 2)` | 1 | ? |
#
# Which update did worker 2 know nothing of?

# %% tags=["exercise"]
# measure_staleness

# %% [markdown]
# ## 3 · A shorter step for an older gradient
#
# An old gradient says where it goes downhill from where the weights were, not from where they are. So it may not move
# them as far: with rate 0.6 and staleness 3, no further than with rate 0.2.

# %% tags=["exercise"]
# staleness_scaled_lr

# %% [markdown]
# ## 4 · A round of local SGD
#
# No server any more. Each rank takes a few steps alone and says nothing; then all go on from the mean of the places
# that they have come to. If rank 0 has walked from 0 to 4 and rank 1 from 0 to 8, both go on from 6.
#
# With one batch each, this is the data-parallel step of lesson 6. Why? And with two, why not?

# %% tags=["exercise"]
# local_sgd_round

# %% [markdown]
# ## 5 · An outer step
#
# All ranks began at `started`, each has gone its own way to `parameters`. The mean of the ways *back* is a gradient,
# $g$. Nesterov's momentum, as torch has it:
#
# $v \leftarrow \mu v + g$, then $w \leftarrow w - \eta\,(g + \mu v)$, with `momentum` $\mu$ and `rate` $\eta$.
#
# With rate 1 and momentum 0 that is the mean of the weights. All three arrays belong to the caller, who sees what you
# change in them.

# %% tags=["exercise"]
# outer_step

# %% [markdown]
# ## 6 · Federated averaging
#
# Clinics keep their patients' data, and share what they have learned. A clinic with 300 patients counts for more than
# one with 100: weights 1.0 and 2.0 give 1.25, not 1.5.
#
# One all-reduce must do. Nobody collects the weights of single clinics, not even rank 0.

# %% tags=["exercise"]
# federated_average

# %% [markdown]
# ## How far are you?

# %%
course.progress()

# %%
ranks.stop()
