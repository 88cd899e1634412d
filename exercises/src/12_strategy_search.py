# The exercises of lesson 12. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Exercises: can the machine choose for us?
#
# Here you write five functions that belong to [lesson 12](../notebooks/12_strategy_search.ipynb). The first two
# simulate a training step of any network on any number of devices, and the other three search for a good strategy. At
# the end you run your own search on the lesson's network of five operators.
#
# No ranks are needed. All times are whole nanoseconds, because whole numbers add up exactly in any order.

# %%
import math
from collections.abc import Callable, Sequence

import numpy as np

import course_utils as course
from course_utils.lessons.strategy_search import Config, Costs, HandCosts, OperatorGraph
from course_utils.lessons.strategy_search import Span, Step, Strategy, Task, choices_of
from course_utils.lessons.strategy_search import compute, data_parallel, exchange
from course_utils.lessons.strategy_search import five_operators, gradient_sums
from course_utils.lessons.strategy_search import on_one_device, output_sums

# %% [markdown]
# ## 1 · Everything that a step does
#
# In the lesson, `task_graph` gave you all tasks of a training step. Now you write it. You don't have to work out who
# does what for how long, because there is a function for each kind of work. For example, if a convolution is cut by
# sample and the pool behind it is on device 0, then half of the convolution's output has to move:

# %%
graph, costs = five_operators(), HandCosts()
conv, pool = graph.operators[1], graph.operators[2]
exchange(conv, Config(sample=2, devices=(0, 1)), pool, Config(), costs, "forward")

# %% [markdown]
# The result is a list with one `DeviceWork(device, nanoseconds, partners)` for each device that takes part. Device 1
# sends and device 0 receives. Both are busy for 8 ms, and each is a *partner* of the other, because neither can begin
# before the other one is ready. A device that has nothing to do isn't in the list, and the list may be empty. There are
# four such functions:
#
# - `exchange(source, source_config, reader, reader_config, costs, direction)`: forward, the reader gets what it needs
#   of the source's output, and backward, gradients go from the reader to the source. The source is named first in both
#   directions.
# - `compute(operator, config, costs, direction)`: each device computes its part. There are no partners.
# - `output_sums(operator, config, costs)`: what devices add up before the output is ready, such as the averages of a
#   batch norm (lesson 3). It takes the same time in both directions.
# - `gradient_sums(operator, config, costs)`: devices with the same parameters add up their gradients.
#
# `direction` is `"forward"` or `"backward"`. For the input, all of this is an empty list, and so is an exchange with
# the input, because every device reads the data by itself. You need no special case for it.
#
# Your function calls these for all operators, in the order in which the program would do it, and turns every
# `DeviceWork` into a task, also if it takes 0 ns. In the forward pass, the operators are visited in their order. For an
# operator called pool1 that reads conv1, the names are these:
#
# | order | name | work |
# |---|---|---|
# | 1 | `"conv1 → pool1"` | exchange, forward; one for each input of the operator, in their order |
# | 2 | `"pool1"` | compute, forward |
# | 3 | `"pool1 sums"` | output sums |
#
# In the backward pass, the operators are visited from the last to the first, with these names:
#
# | order | name | work |
# |---|---|---|
# | 1 | `"pool1 sums backward"` | output sums |
# | 2 | `"pool1 backward"` | compute, backward |
# | 3 | `"pool1 gradients"` | gradient sums |
# | 4 | `"pool1 → conv1"` | exchange, backward; one for each input, the *last* input first |
#
# `graph.operators` is the list of operators. `operator.name` is the name, and `operator.inputs` are the numbers of the
# operators that it reads, as indices of this list. `strategy` has a configuration for each operator, in the same order.
#
# It remains to say what each task waits for. A task is a `Task(name, device, nanoseconds, after)`:

# %% tags=["nbval-check-output"]
Task("conv1 → pool1", device=1, nanoseconds=8_000_000, after=(0, 1))

# %% [markdown]
# `after` contains the numbers of the tasks that have to end before this one begins, in any order. The first task of the
# list has number 0. For a piece of work, these are the latest task of its device and the latest task of each partner,
# all of them from *before* this call of `exchange`, `compute` and so on. The tasks of one call begin together, so they
# don't wait for each other. A device that has done nothing yet has no such task. In the example, each device has
# computed its half of conv1, which makes tasks 0 and 1. So both tasks of the exchange are after `(0, 1)`.

# %% tags=["exercise"]
# task_graph

# %% [markdown]
# ## 2 · When each task begins and ends
#
# The lesson's simulator knew two devices, called 0 and 1. Yours gets tasks for any devices. Each device does its tasks
# in the order of the list, one at a time. A task begins as soon as its device is free *and* all tasks in its `after`
# have ended. Time begins at 0. For example, with times in nanoseconds:
#
# | task | device | takes | after | begins | ends |
# |---|---|---|---|---|---|
# | 0 | 0 | 5 | | 0 | 5 |
# | 1 | 1 | 9 | | 0 | 9 |
# | 2 | 0 | 2 | 0, 1 | 9 | 11 |
# | 3 | 1 | 1 | 1 | ? | ? |
#
# Task 2 has to wait for task 1, although its own device is free from 5 ns on.

# %% tags=["exercise"]
# simulate

# %% [markdown]
# ## 3 · Whether to go on with a slower strategy
#
# Now the search. A walk is at a strategy that takes `old` nanoseconds, and the proposed one takes `new`. If the new one
# is slower, it is still accepted sometimes, because a walk that only goes downhill gets stuck. The probability of
# accepting it is
#
# $$p = \begin{cases} 1 & \text{if } \mathrm{new} \le \mathrm{old} \\
# e^{-(\mathrm{new}\,-\,\mathrm{old})\,/\,\mathrm{temperature}} & \text{otherwise.} \end{cases}$$
#
# At temperature 0, a slower strategy is never accepted. For example, if it is 5 ms slower and the temperature is 3 ms,
# then $p = e^{-5/3} = 0.19$.
#
# `random` is a generator of NumPy. `random.random()` returns a number between 0 and 1, each as likely as any other, so
# it is smaller than $p$ with probability $p$.

# %% tags=["exercise"]
# metropolis_accept

# %% [markdown]
# ## 4 · A strategy one step away
#
# `choices` lists, for each operator, the configurations that it can have. The present one is among them. The input has
# only one.

# %%
choices = choices_of(graph, devices=2)
print({operator.name: len(own) for operator, own in zip(graph.operators, choices)})
choices[3]

# %% [markdown]
# Return a new list in which exactly one operator has a different configuration. First draw the operator, with equal
# probability from those that have more than one configuration. Then draw one of its other configurations, again with
# equal probability. For example, from the strategies of these five operators, conv1, pool1, fc1 and the loss are drawn
# with probability $\frac14$ each, and each of fc1's three other configurations with $\frac14 \cdot \frac13$. Leave the
# list that you were given as it is.
#
# `random.choice(numbers)` draws an entry of a list of numbers, and `random.integers(n)` draws one of the numbers 0 to n
# − 1.

# %% tags=["exercise"]
# propose

# %% [markdown]
# ## 5 · The search
#
# Put the parts together. Your walk begins at `start` and makes `iterations` proposals with your `propose`. Two more
# functions are handed in. `fits(strategy)` returns whether the devices have enough memory. If a proposal doesn't fit,
# it still counts as one, but it is neither simulated nor accepted. `makespan_of(strategy)` simulates a step and returns
# its nanoseconds. It takes most of the time, so call it only once for each proposal, and once for the start. Your
# `metropolis_accept` then decides where the walk goes on.
#
# The walk may leave the best strategy again, and end somewhere else. Return the best strategy that it has met, with the
# start included. In the check, some walks begin in a trap, where no single change leads to a faster strategy.

# %% tags=["exercise"]
# best_strategy

# %% [markdown]
# ## Your search at work
#
# When all five are done, let them find the fastest strategy for the lesson's five operators. Put this into a cell of
# its own:
#
# ```python
# from course_utils.lessons.strategy_search import pictures
#
#
# def makespan_of(strategy):
#     return max(end for _, end in simulate(task_graph(graph, strategy, costs)))
#
#
# def fits(strategy):
#     return True
#
#
# random = np.random.default_rng(0)
# start = on_one_device(graph)
# found = best_strategy(start, choices, makespan_of, fits, 2000, 3e6, random)
# compared = {"data parallel": data_parallel(graph, 2), "found": found}
# tasks = {name: task_graph(graph, each, costs) for name, each in compared.items()}
# pictures.task_timelines(tasks, "Data parallel, and what your search found")
# ```
#
# Does it still find the best one with a lower temperature, or with fewer proposals?

# %%
course.progress()
