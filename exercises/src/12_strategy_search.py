# The exercises of lesson 12. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Exercises: can the machine choose for us?
#
# Here you build the heart of the search: the tasks of a training step, the simulator that says
# how long they take, and the walk that looks for a quicker strategy. At the end you run it on
# lesson 12's network of five operators. The exercises belong to
# [lesson 12](../notebooks/12_strategy_search.ipynb).
#
# All times are whole nanoseconds: they add up exactly, in whatever order.

# %%
import math
from collections.abc import Callable, Sequence

import numpy as np

import course_utils as course
from course_utils.lessons.strategy_search import Config, Costs, HandCosts, OperatorGraph
from course_utils.lessons.strategy_search import Span, Step, Strategy, Task, choices_of
from course_utils.lessons.strategy_search import compute, data_parallel, exchange
from course_utils.lessons.strategy_search import (
    five_operators,
    gradient_sums,
    output_sums,
)
from course_utils.lessons.strategy_search import on_one_device

# %% [markdown]
# ## 1 · Everything that a step does
#
# A step of the program is a list of `DeviceWork`, one for each device that is busy with it. The four
# kinds of steps are ready. Here is an exchange, between a convolution that is cut by sample and
# a pool that is on one device:

# %%
graph, costs = five_operators(), HandCosts()
conv, pool = graph.operators[1], graph.operators[2]
exchange(conv, Config(sample=2, devices=(0, 1)), pool, Config(), costs, "forward")

# %% [markdown]
# Device 1 sends half of the images, and device 0 receives them. Both are busy meanwhile, so each
# is the other's *partner*: neither can begin while the other still computes. A device that has
# nothing to do with it is not in the list.
#
# - `exchange(maker, maker_config, reader, reader_config, costs, direction)`: as above. Backward,
#   name the two in the same order; gradients then go from the reader to the maker.
# - `compute(operator, config, costs, direction)`: the parts of an operator; no partners.
# - `output_sums(operator, config, costs)`: what devices add up before an operator's output is ready, such as
#   the averages of a batch norm (lesson 3). Equal in both directions. Empty for all operators that need no such sum.
# - `gradient_sums(operator, config, costs)`: the gradients of parameters, summed by those who
#   have the same. Empty where nobody shares any.
#
# `direction` is "forward" or "backward".

# %% tags=["nbval-check-output"]
Task("conv1 → pool1", device=1, nanoseconds=4_000_000, after=(0, 1))

# %% [markdown]
# Turn the steps of a whole training step into tasks, for any graph: `operator.inputs` are the
# numbers of the operators that it reads from, in `graph.operators`. A `Task` has a name, a device,
# its nanoseconds, and `after`: the numbers of the tasks that must have ended, where the first
# task has the number 0. These are the last task of its device, and the last one of each partner, *before*
# this step. A device that has done nothing yet has none.

# %% tags=["exercise"]
# task_graph

# %% [markdown]
# ## 2 · When each task begins and ends
#
# A device does its tasks in the order of the list, one at a time. A task begins as soon as its
# device is free *and* all tasks that it is `after` have ended. Time begins at 0.
#
# ```
# number  device  nanoseconds  after        begins  ends
# 0       0       5            ()           0       5
# 1       1       9            ()           0       9
# 2       0       2            (0, 1)       9       11
# 3       1       1            (1,)         ?       ?
# ```

# %% tags=["exercise"]
# simulate

# %% [markdown]
# ## 3 · Whether to go on with a slower strategy
#
# Now comes the search. A walk is at a strategy that takes `old` nanoseconds, and a
# neighbour takes `new`. A walk that only goes to quicker neighbours soon comes to a strategy that has none, and
# may still be far from the best. So it takes a slower one now and then; the slower it is, the
# more rarely: with probability
#
# $$ e^{-(\mathrm{new}\,-\,\mathrm{old})\,/\,\mathrm{temperature}} $$
#
# `random` is a generator of NumPy: `random.random()` lies evenly between 0 and 1.

# %% tags=["exercise"]
# metropolis_accept

# %% [markdown]
# ## 4 · A strategy one step away
#
# `choices` lists, for each operator, the configurations that it can have, its present one among
# them. The input has only one.

# %%
choices = choices_of(graph, devices=2)
print({operator.name: len(own) for operator, own in zip(graph.operators, choices)})
choices[3]

# %% [markdown]
# A proposal differs from the strategy in exactly one operator, and never in an operator that has only one
# configuration. `random.choice(list)` draws from a list of numbers, `random.integers(n)` draws one of 0 … n − 1.

# %% tags=["exercise"]
# propose

# %% [markdown]
# ## 5 · The search
#
# Now put the parts together; `propose` and `metropolis_accept` are yours, from above. Two
# functions are handed in: `makespan_of(strategy)` simulates a step, and `fits(strategy)` says
# whether the devices' memory is enough. Simulating takes most of the time: keep each result, for the
# check counts how often you simulate.
#
# Remember two strategies on the way: the one where you are, and the best you met. The walk begins
# in a trap, from which every single change leads to a slower strategy.

# %% tags=["exercise"]
# best_strategy

# %% [markdown]
# ## Your search at work
#
# When all five are done, they find the quickest strategy for the five operators that you timed
# by hand. Put this into a cell of its own:
#
# ```python
# from course_utils.lessons.strategy_search import pictures
#
#
# def makespan_of(strategy):
#     return max(end for _, end in simulate(task_graph(graph, strategy, costs)))
#
# random = np.random.default_rng(0)
# start = on_one_device(graph)
# found = best_strategy(start, choices, makespan_of, lambda strategy: True, 2000, 3e6, random)
# compared = {"data parallel": data_parallel(graph, 2), "found": found}
# tasks = {name: task_graph(graph, one, costs) for name, one in compared.items()}
# pictures.task_timelines(tasks, "Data parallel, and what your search found")
# ```
#
# Another temperature, fewer proposals: how often does it still come to the best?

# %%
course.progress()
