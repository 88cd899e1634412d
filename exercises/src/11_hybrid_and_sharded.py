# The exercises of lesson 11. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Exercises: which mixture?
#
# Here you write what mixtures of parallelism are made of: the groups of a mesh, a network of
# which one half is cut by examples and the other stands on one rank, an optimizer whose state
# is divided, and the sums that say whether a model fits, how well its GPUs are used, and how many there may be.
# They belong to [lesson 11](../notebooks/11_hybrid_and_sharded.ipynb).
#
# The check looks at more than the numbers: it counts what is called, what is sent, and how
# many bytes of state a rank keeps.

# %%
from collections.abc import Callable, Mapping, Sequence
from itertools import product

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import pad

import course_utils as course
from course_utils.errors import CourseError
from course_utils.lessons.hybrid_and_sharded import EPSILON, OWNER, AdamShard, squares
from course_utils.lessons.model_parallel import check_stage

ranks = course.start(4)
ranks.load_torch()

# %% [markdown]
# ## 1 · Who talks to whom?
#
# A mesh `{"data": 2, "tensor": 3}` has six ranks. Each has a place along both axes:
#
# ```
#                 tensor 0   tensor 1   tensor 2
#      data 0        0          1          2        one tensor group: 0, 1, 2
#      data 1        3          4          5        the other:        3, 4, 5
#
#             one data group: 0, 3; then 1, 4; then 2, 5
# ```
#
# The result is `{"data": [[0, 3], [1, 4], [2, 5]], "tensor": [[0, 1, 2], [3, 4, 5]]}`. A mesh
# may have any number of axes. What is not a mesh is rejected: `raise CourseError("…")`.

# %% tags=["exercise"]
# mesh_groups

# %% [markdown]
# ## 2 · Convolutions everywhere, fully connected layers on one rank
#
# Autograd ends where a rank ends. So each step has three parts, and between them you carry the
# numbers over yourself:
#
# ```
# rank 0  convolutions ─┐                              ┌─ backward ─┐
# rank 1  convolutions ─┤ gather               scatter ├─ backward ─┤ all-reduce
# rank 2  convolutions ─┤   └─► fully connected ──┘    ├─ backward ─┤ of gradients
# rank 3  convolutions ─┘       forward, backward      └─ backward ─┘
# ```
#
# `OWNER` is rank 0. Rank 0's part begins with a tensor that came from nowhere, as far as
# autograd knows: `requires_grad_()` makes it a beginning.

# %% [markdown]
# Three things to think of before you type:
#
# - The loss is the mean over the *whole* batch. What does each rank's share of the gradient
#   add up to, without any division?
# - `activations.backward(gradient)` goes backward from a tensor whose gradient you know.
# - A tensor's numbers need not lie in memory in the order of its axes, and
#   `torch.empty_like` takes over the order that it finds.

# %% tags=["exercise"]
# hybrid_step

# %% [markdown]
# ## 3 · Clip what is cut
#
# One process squares every number of the gradient once. Here a model lies on 2 × 2 ranks, stages by
# tensor parts:
#
# ```
#             tensor 0               tensor 1
# stage 0     cut: a  replicated: x  cut: b  replicated: x
# stage 1     cut: c  replicated: y  cut: d  replicated: y
#
# the norm: the root of a² + b² + x² + c² + d² + y²
# ```
#
# Along `data` all ranks have the same. `groups["tensor"]` is this rank's group along that axis:
# `dist.all_reduce(numbers, group=groups["tensor"])`. A list may be empty.

# %% tags=["exercise"]
# clip_over_mesh

# %% [markdown]
# ## 4 · Adam's state, divided
#
# An all-reduce is a reduce-scatter and then an all-gather. Between the two each rank has the
# sum of one part. ZeRO changes the parameters just there:
#
# ```
#            gradient                  one part                  parameters
# rank 0   a a a b b b c c c   ┐      A A A ──► Adam ──► x x x   ┐
# rank 1   a a a b b b c c c   ├───►  B B B ──► Adam ──► y y y   ├───►  x x x y y y z z z
# rank 2   a a a b b b c c c   ┘      C C C ──► Adam ──► z z z   ┘           on all ranks
#                        reduce-scatter                    all-gather
# ```

# %% [markdown]
# `state.mean` and `state.square` are as long as one part, and
# `state.change(gradient, rate, betas, eps)` says what Adam adds to this part of the parameters.
# Both collectives want equal parts: with 4 ranks and 9 numbers each part has 3, and the vector
# is filled up with zeros to 12. `pad(vector, (0, 3))` hangs three zeros on.
#
# `dist.reduce_scatter_single(output, input)` and
# `dist.all_gather_single(output_tensor, input_tensor)` take plain vectors. Elsewhere you may find
# them under their older names, `reduce_scatter_tensor` and `all_gather_into_tensor`. (gloo, which
# carries them here, makes its reduce-scatter from an all-reduce; on GPUs lesson 13's NCCL sends
# only half as much.)

# %% tags=["exercise"]
# zero1_step

# %% [markdown]
# ## 5 · How many bytes on each rank?
#
# A model of 1000 parameters on 4 ranks, in mixed precision with Adam:
#
# | stage | parameters | gradients | state | together |
# |---|---|---|---|---|
# | 0 | 2000 | 2000 | 12000 | 16000 |
# | 1 | 2000 | 2000 | 12000 / 4 | 7000 |
# | 2 | ? | ? | ? | ? |
# | 3 | ? | ? | ? | 4000 |
#
# `check_stage(stage, ranks)` is ready for you: it raises what the docstring promises.

# %% tags=["exercise"]
# zero_memory

# %% [markdown]
# ## 6 · Does it fit?
#
# During a step a rank also holds the activations of its own batch. ZeRO does not divide them.
# Use your own `zero_memory`. As long as it is not right,
# `from course_utils.lessons.hybrid_and_sharded import zero_memory` lets you go on (not where you are
# marked: there you need your own).

# %% tags=["exercise"]
# fits

# %% [markdown]
# ## How large is too large?
#
# Your `fits` knows. The most parameters (in billions) that fit on 80 GB with 20 GB of
# activations:
#
# ```python
# for stage in range(4):
#     sizes = [n for n in range(1, 2000) if fits(n * 1e9, 64, stage, 80e9, 20e9)]
#     print(stage, max(sizes, default=0))
# ```

# %% [markdown]
# ## 7 · How well are the devices used?
#
# Two ways to count a forward pass, and both are used:
#
# | | floating-point operations of one example's forward pass |
# |---|---|
# | a dense transformer of N parameters | 2 N for a token: each parameter is multiplied and added once |
# | VGG | counted: a convolution uses each of its weights at every pixel |
#
# The rest is the same for both. `examples` are tokens or images of a whole step, on all devices
# together.

# %% tags=["exercise"]
# mfu

# %% [markdown]
# Now look at a paper of your own choice: parameters, tokens, GPU-hours. A training takes
# `6 * parameters * tokens` operations:
#
# ```python
# mfu(2 * 70e9, 2e12, seconds=1_720_320 * 3600, devices=1, peak=312e12)  # Llama 2, on A100
# ```

# %% [markdown]
# ## 8 · How many GPUs, before messages bind?
#
# The same batch on twice as many GPUs: each computes half as much, and sends nearly as much as before. From some N on
# the step waits for messages. Write down both times, set them equal, solve for N: the function is one formula for each
# of three ways.
#
# | | on N GPUs each computes, of X parameters | and sends, round rings |
# |---|---|---|
# | `"data"` | 4 X · tokens / N while it sends | an all-reduce of X gradients |
# | `"fsdp"` | 6 X · tokens / N | two all-gathers of X parameters, a reduce-scatter of X gradients |
# | `"tensor"` | 6 X · tokens / N, with X = 12 width² in each block | in each block ? all-reduces of ? numbers |

# %% tags=["exercise"]
# break_even

# %% [markdown]
# Which of the three depends on the batch? Which on the model? Your formula answers for an H100 (half of its peak, 989
# TFLOP/s; 450 GB/s inside a node, 50 GB/s between nodes) and a batch of four million tokens:
#
# ```python
# for parallelism, link in (("data", 50e9), ("fsdp", 50e9), ("tensor", 450e9), ("tensor", 50e9)):
#     print(parallelism, break_even(parallelism, 4e6, 8192, 0.5 * 989e12, link))
# ```

# %%
course.progress()

# %% [markdown]
# Next: lesson 12, where the machine chooses the mixture.

# %%
ranks.stop()
