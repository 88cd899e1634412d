# The exercises of lesson 8. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Exercises: what if nobody waits?
#
# Here you write the two ends of a parameter server and the two that need no server: with these five functions you can
# say who waits for whom, how old a gradient is, and how little ranks may talk. They belong to
# [lesson 8](../notebooks/08_parameter_server.ipynb).

# %% [markdown]
# Replace the line `raise NotImplementedError`, run the cell, and the next one checks it on real processes: with 1 to
# 4 ranks and new numbers each time. The check counts messages and bytes too.
#
# All weights of a network are one flat NumPy vector here, and so is a gradient.

# %%
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import course_utils as course
from course_utils.parameter_server import SERVER

ranks = course.start(4)

# %% [markdown]
# ## 1 · One step of a parameter server
#
# Rank 0 (`SERVER`) holds the weights, the others have the data. Nobody works ahead in this one: the server waits for
# all. Use `Send` and `Recv`, so that each of the $2(P - 1)$ messages is counted.
#
# With weights 10, rate 0.5 and the workers' gradients 2, 4 and 6 the mean is 4, and everybody ends with 8.

# %% tags=["exercise"]
# parameter_server_step

# %% [markdown]
# ## 2 · How old is a gradient?
#
# No ranks in this one, only a server's diary:
#
# | entry | version before | staleness |
# |---|---|---|
# | `("fetch", 1)` | 0 | |
# | `("fetch", 2)` | 0 | |
# | `("push", 1)` | 0 | 0 |
# | `("fetch", 1)` | 1 | |
# | `("push", 2)` | 1 | ? |
#
# Worker 2 computed with the weights of version 0, and meets version 1. What stands in the place of the question mark?

# %% tags=["exercise"]
# measure_staleness

# %% [markdown]
# ## 3 · A shorter step for an older gradient
#
# An old gradient points downhill from where the weights were, not from where they are. With rate 0.6 a gradient of
# staleness 3 may move them with rate 0.2.

# %% tags=["exercise"]
# staleness_scaled_lr

# %% [markdown]
# ## 4 · A round of local SGD
#
# Now without a server. Each rank goes its own way for a few batches and says nothing; then all agree on the mean of the
# places that they have come to. A rank that has no batch is there at the end, too.
#
# With one batch each, this is the data-parallel step of lesson 6: why? And with two, why is it not?

# %% tags=["exercise"]
# local_sgd_round

# %% [markdown]
# ## 5 · Federated averaging
#
# Clinics may not hand out their patients' data, only what they have learned. A clinic with 300 patients counts for
# more than one with 3: weights 1.0 and 2.0 from 300 and 100 examples give 1.25, not 1.5.
#
# One all-reduce must do, and nobody shall see the weights of one clinic alone.

# %% tags=["exercise"]
# federated_average

# %% [markdown]
# ## How far are you?

# %%
course.progress()

# %%
ranks.stop()
