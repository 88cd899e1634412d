# The exercises of lesson 9. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Exercises: what if the model does not fit?
#
# In the first of these five exercises you decide which rank gets which layers of [lesson
# 9](../notebooks/09_model_parallel.ipynb). In the next three you cut single layers, so that two of them need exactly
# one all-reduce in each direction. The last one calculates the memory of a rank before anything runs. Together they
# take a bit more than an hour.
#
# The checks of the cut layers run your function on 1 to 4 ranks, forward and backward, and compare every number with
# the whole layer in one process. They also count the messages.

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
# The layers of a model come one after the other, and each rank gets a piece of this row. If a layer $i$ costs $c_i$ and
# piece $r$ holds the layers of rank $r$, we want to make
#
# $$\max_r \sum_{i\,\in\,\text{piece } r} c_i$$
#
# as small as possible. The cost can be a number of bytes or a time in seconds. Every rank must get at least one layer.
# Here are two ways to cut seven layers into four pieces:
#
# ```
# costs              5   1   2   1   6   7   2
# [2, 2, 2, 1]      └─ 6 ─┘ └─ 3 ─┘ └─ 13 ─┘ 2       equally many layers: 13
# [3, 2, 1, 1]      └─── 8 ───┘ └─ 7 ─┘  7   2       the best there is: 8
# ```
#
# Several cuts can be equally good. Then go through the ranks, beginning with rank 0, and let each one take as many
# layers as possible, as long as the maximum can still be reached with the layers that are left. In the example, [3, 1,
# 2, 1] would cost 8, 1, 13 and 2, which is worse. But with the costs 1, 1, 1, 1, 1 on three ranks, both [2, 2, 1] and
# [1, 2, 2] have a maximum of 2, and the answer is [2, 2, 1].
#
# There may be many layers. There are more than 10¹⁰ ways to cut 60 layers into 10 pieces, so you can't try them all.
# This function needs no ranks.

# %% tags=["exercise"]
# split_layers

# %% [markdown]
# ## One layer on several ranks
#
# On paper a linear layer is $y = xW + b$, and `linear(x, weight, bias)` computes it with $W$ transposed, as `weight`.
# With two ranks the two cuts look like this:
#
# ```
# column cut: each rank has some columns of W        row cut: each rank has some rows of W
# (rows of weight) and gets some columns of y        (columns of weight) and gets a term of y
#
#       ┌────┬────┐                                            ┌─────────┐
#   x   │ W₀ │ W₁ │   =   [ y₀ │ y₁ ]             [ x₀ │ x₁ ]  │   W₀    │  =  x₀W₀ + x₁W₁
#       └────┴────┘                                            ├─────────┤
#                                                              │   W₁    │
#                                                              └─────────┘
# ```
#
# On the page, two classes gave an operation a backward pass of its own. In the exercises a function does this for you.
# `moved(x, forward, backward)` returns `forward(x)`, and when a gradient comes back, it applies `backward` to it. Try
# it:

# %% tags=["nbval-check-output"]
from course_utils.lessons.model_parallel import Group, all_reduced, moved, unmoved

x = torch.ones(2, requires_grad=True)
y = moved(x, lambda values: values + 1, lambda gradient: 10 * gradient)
y.sum().backward()
y, x.grad

# %% [markdown]
# You also get two functions that you can use for `forward` and `backward`. `unmoved` returns the same numbers and sends
# nothing. `all_reduced(tensor, group)` returns a new tensor with the sum over all ranks of `group`. A **group** is a
# part of the ranks that share one layer, and `None` stands for all ranks. Because `forward` and `backward` are called
# with the tensor alone, write `partial(all_reduced, group=group)`, which is `all_reduced` with its group already filled
# in.
#
# ## 2 · Column cut
#
# All ranks have the same $x$, and rank $r$ has $W_r$, some of the columns of $W$. It computes $y_r = x W_r + b_r$. If
# $g_r$ is the gradient of the loss with respect to $y_r$, the gradient of $x$ is
#
# $$g_0 W_0^\top + g_1 W_1^\top + \dots + g_{P-1} W_{P-1}^\top .$$
#
# Which part of this does rank $r$ know, and what has to be sent?

# %% tags=["exercise"]
# column_parallel_linear

# %% [markdown]
# ## 3 · Row cut
#
# Now $x$ is cut, too, and rank $r$ has some of its columns, $x_r$. The layer computes
#
# $$y = x_0 W_0 + x_1 W_1 + \dots + x_{P-1} W_{P-1} + b .$$
#
# After the layer, all ranks go on with the same $y$ and reach the same loss, so each of them gets the complete gradient
# of $y$. Think about two things. How many times may $b$ be added? And what would be wrong with `all_reduce_sum` of
# lesson 6, which does an all-reduce in the backward pass as well? (There, every rank had a different loss.)

# %% tags=["exercise"]
# row_parallel_linear

# %% [markdown]
# ## 4 · Two layers, one all-reduce each way
#
# This is the MLP of a block, a layer that makes $x$ wider, then `gelu`, then a layer that makes it narrow again. On
# paper it is
#
# $$y = \text{gelu}(x W_\text{up} + b_\text{up})\, W_\text{down} + b_\text{down} .$$
#
# Cut one layer in one way and the other in the other way, so that nothing is sent between them. Use your own two
# functions. If they don't pass yet, you can import ours to go on with. A notebook that is graded needs your own.
#
# ```python
# from course_utils.lessons.model_parallel import column_parallel_linear, row_parallel_linear
# ```

# %% tags=["exercise"]
# tensor_parallel_mlp

# %% [markdown]
# Does your MLP learn as the whole one does? Here each rank keeps only its parts of the weights and trains them:
#
# ```python
# def learn(parts, steps=20):
#     torch.manual_seed(0)  # the same weights and examples everywhere, in float64
#     up, down = nn.Linear(8, 32).double(), nn.Linear(32, 8).double()
#     x, target = torch.randn(2, 64, 8, dtype=torch.float64)
#     part = dist.get_rank() % parts
#     mine = [
#         up.weight.chunk(parts)[part],
#         up.bias.chunk(parts)[part],
#         down.weight.chunk(parts, dim=1)[part],
#         down.bias,
#     ]
#     mine = [tensor.detach().clone().requires_grad_() for tensor in mine]
#     losses = []
#     for _ in range(steps):
#         loss = (tensor_parallel_mlp(x, *mine) - target).square().mean()
#         losses.append(loss.item())
#         for tensor, gradient in zip(mine, torch.autograd.grad(loss, mine)):
#             tensor.data -= 0.5 * gradient
#     return losses
#
# alone = ranks.run(learn, 1, ranks=1, backend="gloo").results[0]
# together = ranks.run(learn, 4, backend="gloo").results[3]
# max(abs(a - b) for a, b in zip(alone, together))
# ```

# %% [markdown]
# ## 5 · Does it fit?
#
# How many bytes does one rank keep while a character model trains? Let $n$ be the number of parameters that this rank
# has, and let each of them take $b_p$ bytes, its gradient $b_g$ bytes and its optimizer state $b_s$ bytes. Then there
# are
#
# $$\frac{n\,b_p}{d_p} \text{ bytes of parameters}, \quad \frac{n\,b_g}{d_g} \text{ of gradients}, \quad
# \frac{n\,b_s}{d_s} \text{ of optimizer state},$$
#
# and in addition the activations. The three divisors are 1 unless replicas share the work of keeping these numbers.
# Under the name ZeRO, lesson 11 shows how they do it. Here you need only this table, in which $D$ is the number of
# replicas, `parallelism.data`:
#
# | `parallelism.zero` | $d_p$ | $d_g$ | $d_s$ |
# |---|---|---|---|
# | 0 | 1 | 1 | 1 |
# | 1 | 1 | 1 | $D$ |
# | 2 | 1 | $D$ | $D$ |
# | 3 | $D$ | $D$ | $D$ |
#
# Four functions of the library give you the rest:
#
# - `layer_parameters(layer, tensor)` returns how many parameters of a layer each of `tensor` tensor-parallel ranks has.
#   The sum over all layers of the model is $n$.
# - `bytes_for_each_parameter(optimizer, precision)` returns $b_p$, $b_g$ and $b_s$.
# - `saved_at_most(model, batch, length, number_bytes, parallelism, checkpointing, in_flight)` returns the bytes of
#   activations, if each of them takes `number_bytes`. You find these in `NUMBER_BYTES[precision]`. Pass `in_flight` on
#   as you get it. It says how many batches are under way at the same time, which is 1 until lesson 10.
# - `check_stage(zero, data)` raises the error for a row that isn't in the table.

# %%
from course_utils.lessons.model_parallel import NUMBER_BYTES, ONE_RANK, Memory
from course_utils.lessons.model_parallel import Parallelism, bytes_for_each_parameter
from course_utils.lessons.model_parallel import check_stage, layer_parameters
from course_utils.lessons.model_parallel import saved_at_most

Parallelism(data=4, zero=1, tensor=2)

# %% [markdown]
# Return `Memory(parameters, gradients, optimizer_state, activations)`. The numbers needn't be whole.

# %% tags=["exercise"]
# training_memory

# %% [markdown]
# Compare your function with the tensors themselves, on this machine:
#
# ```python
# from course_utils.lessons.model_parallel import measured_memory
# from course_utils.lessons.model_parallel import character_model
#
# model = character_model(40, width=64, depth=4, context=32)
# adam = torch.optim.Adam(model.parameters())
# text, following = torch.randint(40, (2, 8, 32))
#
# def step():
#     adam.zero_grad()
#     scores = model(text)
#     nn.functional.cross_entropy(scores.flatten(0, 1), following.flatten()).backward()
#     adam.step()
#
# print(training_memory(model, batch=8, length=32))
# print(measured_memory(model, adam, step))
# ```

# %%
course.progress()

# %% [markdown]
# In [lesson 10](../notebooks/10_pipeline.ipynb) the ranks that wait get something to do.

# %%
ranks.stop()
