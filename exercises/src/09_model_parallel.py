# The exercises of lesson 9. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Exercises: what if the model does not fit?
#
# First you place whole layers on different ranks. Then you cut single layers, so that two of
# them need exactly one all-reduce in each direction. In the end you compute the bytes of all this, before
# anything runs. The exercises belong to [lesson 9](../notebooks/09_model_parallel.ipynb).
#
# The check compares with the whole layer, to ten digits, forward and backward, on 1 to 4 ranks.
# It counts what moves, too.

# %%
from collections.abc import Sequence
from functools import partial

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import gelu, linear

import course_utils as course
from course_utils.errors import CourseError

ranks = course.start(4)
ranks.load_torch()

# %% [markdown]
# ## 1 · Which rank gets which layers?
#
# Layers come in a row, so each rank gets a piece of the row. The rank with the most expensive
# piece needs the most memory, and all others wait for it.
#
# ```
# costs              5   1   2   1   6   7   2
# [2, 2, 2, 1]      └─ 6 ─┘ └─ 3 ─┘ └─ 13 ─┘ 2       equally many layers
# [3, 2, 1, 1]      └─── 8 ───┘ └─ 7 ─┘  7   2       the best there is
# ```
#
# There may be many layers: 60 of them on 10 ranks can be cut in more than 10¹⁰ ways. No
# ranks are needed here.

# %% tags=["exercise"]
# split_layers

# %% [markdown]
# ## One layer on several ranks
#
# A linear layer is $y = x W^T + b$. Cut $W$ in one direction or the other:
#
# ```
# by columns of Wᵀ: each rank has some outputs       by rows of Wᵀ: a term of every output
#
#       ┌─────┬─────┐                                         ┌───────────┐
#   x   │ W₀ᵀ │ W₁ᵀ │   =   [ y₀ │ y₁ ]          [ x₀ │ x₁ ]  │    W₀ᵀ    │  =  y₀ + y₁
#       └─────┴─────┘                                         ├───────────┤
#                                                             │    W₁ᵀ    │
#                                                             └───────────┘
# ```
#
# `dist.all_reduce` works behind autograd's back. `moved(x, forward, backward)` does not: going
# forward it gives you `forward(x)`, and in the backward pass it applies `backward` to the
# gradient that comes by. Try it:

# %% tags=["nbval-check-output"]
from course_utils.lessons.model_parallel import Group, all_reduced, moved, unmoved

x = torch.ones(2, requires_grad=True)
y = moved(x, lambda values: values + 1, lambda gradient: 10 * gradient)
y.sum().backward()
y, x.grad

# %% [markdown]
# Two functions to move with: `unmoved` changes nothing and sends nothing;
# `all_reduced(tensor, group)` gives the sum over the ranks of `group` (None: all of them) in a
# new tensor. `partial(all_reduced, group=group)` is a function of the tensor alone.
#
# ## 2 · Some outputs, from the whole input
#
# All ranks have the same x, and each its own rows of `weight`, which are columns of $W^T$. On paper
# first: y₀ and y₁ both come from x. What is the gradient of x, and which part of it does rank 0
# know?

# %% tags=["exercise"]
# column_parallel_linear

# %% [markdown]
# ## 3 · Every output, from some of the inputs
#
# Now x is cut, and each rank makes a term of the sum y. After this layer all ranks go on with
# the same y and reach the same loss. Two traps: bias, and what `all_reduce_sum` of lesson 6
# would do in the backward pass. (There every rank had a loss of its own.)

# %% tags=["exercise"]
# row_parallel_linear

# %% [markdown]
# ## 4 · Two layers, one all-reduce each way
#
# Half of a transformer's block: a layer that makes x wider, `gelu`, a layer that makes it
# narrow again. Cut one in one way and one in the other, so that *nothing* moves between them.
# Which way round?
#
# Use your own two functions. As long as they are not right,
# `from course_utils.lessons.model_parallel import column_parallel_linear, row_parallel_linear`
# lets you go on (not where you are marked: there you need your own).

# %% tags=["exercise"]
# tensor_parallel_mlp

# %% [markdown]
# Put it to work: does it learn as the whole one does? Each rank keeps its parts only.
#
# ```python
# def learn(parts, steps=20):
#     torch.manual_seed(0)  # the same weights and examples everywhere, in float64
#     up, down = nn.Linear(8, 32).double(), nn.Linear(32, 8).double()
#     x, target = torch.randn(2, 64, 8, dtype=torch.float64)
#     rank, losses = dist.get_rank(), []
#     rows = [one.chunk(parts)[rank % parts] for one in (up.weight, up.bias)]
#     mine = *rows, down.weight.chunk(parts, dim=1)[rank % parts], down.bias
#     mine = [one.detach().clone().requires_grad_() for one in mine]
#     for _ in range(steps):
#         loss = (tensor_parallel_mlp(x, *mine) - target).square().mean()
#         losses.append(loss.item())
#         for one, gradient in zip(mine, torch.autograd.grad(loss, mine)):
#             one.data -= 0.5 * gradient
#     return losses
#
# alone = ranks.run(learn, 1, ranks=1, backend="gloo").results[0]
# together = ranks.run(learn, 4, backend="gloo").results[3]
# max(abs(a - b) for a, b in zip(alone, together))
# ```

# %% [markdown]
# ## 5 · Does it fit?
#
# What one rank keeps while a character model trains. Four functions of the library do the
# tedious part:
#
# - `layer_parameters(layer, tensor)`: how many numbers of a layer's parameters each of `tensor`
#   ranks has; what tensor parallelism leaves whole is counted whole;
# - `bytes_for_each_parameter(optimizer, precision)`: of a parameter, of its gradient, of what
#   the optimizer keeps for it;
# - `saved_at_most(model, batch, length, number_bytes, parallelism, checkpointing, in_flight)`:
#   bytes of activations, where each has `number_bytes`, as in `NUMBER_BYTES[precision]`;
# - `check_stage(stage, ranks)` rejects stages that do not exist.

# %% [markdown]
# **ZeRO** is a way to divide what all replicas of data parallelism have alike (lesson 11 does
# it). Each stage divides one part more among the `parallelism.data` replicas:
#
# | stage | parameters | gradients | optimizer's state |
# |---|---|---|---|
# | 0 | whole | whole | whole |
# | 1 | whole | whole | divided |
# | 2 | whole | divided | divided |
# | 3 | divided | divided | divided |

# %%
from course_utils.lessons.model_parallel import NUMBER_BYTES, ONE_RANK, Memory
from course_utils.lessons.model_parallel import Parallelism, bytes_for_each_parameter
from course_utils.lessons.model_parallel import check_stage, layer_parameters
from course_utils.lessons.model_parallel import saved_at_most

Parallelism(data=4, zero=1, tensor=2)

# %% [markdown]
# `Memory(parameters, gradients, optimizer_state, activations)` is what you return. How large is
# the part of each, for the same model with momentum, and in mixed precision (lesson 11: most
# numbers in two bytes)? Predict, then ask your function.

# %% tags=["exercise"]
# training_memory

# %% [markdown]
# Your function against the tensors themselves, on this machine:
#
# ```python
# from course_utils.lessons.model_parallel import measured_memory
# from course_utils.lessons.model_parallel import character_model
#
# model = character_model(40, width=64, depth=4, context=32)
# adam = torch.optim.Adam(model.parameters())
# text = torch.randint(40, (2, 8, 32))  # what is read, and what comes next
#
# def step():
#     adam.zero_grad()
#     nn.functional.cross_entropy(model(text[0]).flatten(0, 1), text[1].flatten()).backward()
#     adam.step()
#
# print(training_memory(model, batch=8, length=32))
# print(measured_memory(model, adam, step))
# ```

# %%
course.progress()

# %% [markdown]
# Next: [lesson 10](../notebooks/10_pipeline.ipynb), where the ranks that wait get work.

# %%
ranks.stop()
