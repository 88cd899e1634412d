# The exercises of lesson 11. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Exercises: which mixture?
#
# Here you write the parts from which a mixture of parallelism is made. There are eight exercises. The first two are
# about the mesh, and belong to [lesson 11](../notebooks/11_hybrid_and_sharded.ipynb). The next three are about ZeRO,
# and belong to its [second page](../notebooks/11_hybrid_and_sharded_part_2.ipynb). The last three go with sections of
# [Further](../notebooks/11_hybrid_and_sharded_further.ipynb), so leave them out if you don't read it.
#
# Replace the line `raise NotImplementedError` with your code and run the cell. The next cell checks your function, on
# real processes if it needs ranks. Besides the numbers, it looks at what your function sends and at how many bytes of
# state a rank keeps.

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
# ## 1 · The groups of a mesh
#
# The mesh `{"data": 2, "tensor": 3}` has six ranks. Each rank has a coordinate along both axes, and the last coordinate
# changes fastest:
#
# ```
#                 tensor 0   tensor 1   tensor 2
#      data 0        0          1          2
#      data 1        3          4          5
# ```
#
# Each row is a group along `tensor`, because its ranks differ in their coordinate along `tensor` only. In the same
# sense, each column is a group along `data`. So for this mesh your function returns
#
# ```
# {"data": [[0, 3], [1, 4], [2, 5]], "tensor": [[0, 1, 2], [3, 4, 5]]}
# ```
#
# A mesh can have any number of axes. `itertools.product` goes through all coordinates in the order in which the ranks
# are numbered. If `sizes` has no axis, or an axis with fewer than one rank, `raise CourseError("…")` with a message of
# your own.

# %% tags=["exercise"]
# mesh_groups

# %% [markdown]
# ## 2 · Clip a gradient that no single rank holds in full
#
# Clipping needs the norm of the whole gradient, which is the square root of the sum of all its squares. Every number of
# the gradient has to be counted once. On a mesh of two stages and two tensor parts, for example, the gradients are
# here:
#
# ```
#             tensor 0               tensor 1
# stage 0     cut: a  replicated: x  cut: b  replicated: x
# stage 1     cut: c  replicated: y  cut: d  replicated: y
# ```
#
# The parts a and b belong to weights that the tensor group of stage 0 has divided. Both ranks of that group have the
# whole of x. The norm of the whole gradient is therefore
#
# $$|g| = \sqrt{a^2 + b^2 + x^2 + c^2 + d^2 + y^2},$$
#
# where $a^2$ stands for the sum of the squares of all numbers in a. Along `data`, all ranks have the same gradients
# already, so there is nothing to add.
#
# Three things are ready for you. `squares(gradients)` returns the sum of the squares of all numbers in a list of
# gradients. It is a tensor of shape (1,) in `float64`, and 0 for an empty list. `dist.all_reduce(tensor,
# group=groups["tensor"])` adds up a tensor over this rank's tensor group only, in place. `EPSILON` is the 1e-6 of the
# docstring. PyTorch adds it to the norm, too, so that a norm of 0 can be divided by.

# %% tags=["exercise"]
# clip_over_mesh

# %% [markdown]
# ## 3 · Adam with a divided state
#
# (After the section *Each rank updates one part of the weights* of the [second
# page](../notebooks/11_hybrid_and_sharded_part_2.ipynb).)
#
# An all-reduce is a reduce-scatter followed by an all-gather. After the reduce-scatter, each rank has one part of the
# summed gradient. ZeRO's first stage updates the parameters at this moment:
#
# ```
#            gradient                  one part                  parameters
# rank 0   a a a b b b c c c   ┐      A A A ──► Adam ──► x x x   ┐
# rank 1   a a a b b b c c c   ├───►  B B B ──► Adam ──► y y y   ├───►  x x x y y y z z z
# rank 2   a a a b b b c c c   ┘      C C C ──► Adam ──► z z z   ┘           on all ranks
#                        reduce-scatter                    all-gather
# ```
#
# A part has as many numbers as `state.mean`. Call
#
# ```python
# change = state.change(gradient, rate, betas, eps)
# ```
#
# once in each step, with this rank's part of the *mean* gradient. It updates the mean, the square and the number of
# steps in `state`, and returns what you have to add to this rank's part of the parameters. A second call in the same
# step would count the gradient twice.
#
# Both collectives want parts of equal length. With 4 ranks and 9 parameters each part has 3 numbers, so the vector is
# filled up with zeros to 12. `pad(vector, (0, 3))` returns a copy with three zeros at the end.
#
# The collectives are `dist.reduce_scatter_single(output, input)` and `dist.all_gather_single(output, input)`. They take
# plain vectors and write into `output`. You will also meet them under their older names, `reduce_scatter_tensor` and
# `all_gather_into_tensor`.

# %% tags=["exercise"]
# zero1_step

# %% [markdown]
# ## 4 · How many bytes does each rank keep?
#
# (After the section *Three stages* of the [second page](../notebooks/11_hybrid_and_sharded_part_2.ipynb).)
#
# Let a model have $N$ parameters on $P$ ranks. In mixed precision with Adam, a parameter takes 2 bytes, its gradient 2,
# and the optimizer's state 12. ZeRO's stage 1 divides the state among the ranks, stage 2 also the gradients, and stage
# 3 also the parameters. So with stage 1 each rank keeps
#
# $$N \cdot \left(2 + 2 + \frac{12}{P}\right) \text{ bytes}.$$
#
# For 1,000 parameters and 4 ranks, stage 0 (nothing is divided) needs 16,000 bytes per rank, stage 1 needs 7,000, and
# stage 3 needs 4,000.
#
# `check_stage(stage, ranks)` is ready for you. It raises the error that the docstring asks for.

# %% tags=["exercise"]
# zero_memory

# %% [markdown]
# ## 5 · Does it fit?
#
# During a step, a rank also holds the activations of its own batch, and ZeRO does not divide them. A model fits if both
# together need at most the memory of one rank. It still fits if it needs exactly as much.
#
# Call your own `zero_memory`. If it isn't right yet, you can import the library's function for practice with `from
# course_utils.lessons.hybrid_and_sharded import zero_memory`. In a graded notebook you need your own.

# %% tags=["exercise"]
# fits

# %% [markdown]
# Once your function is right, you can ask it how many billion parameters fit on 64 GPUs of 80 GB, with 20 GB of
# activations on each:
#
# ```python
# for stage in range(4):
#     sizes = [n for n in range(1, 2000) if fits(n * 1e9, 64, stage, 80e9, 20e9)]
#     print(stage, max(sizes, default=0))
# ```

# %% [markdown]
# ## 6 · Convolutions on all ranks, fully connected layers on one
#
# (After the section *A report, redone* of [Further](../notebooks/11_hybrid_and_sharded_further.ipynb).)
#
# Autograd doesn't follow a tensor from one rank to another. Each step therefore has three separate parts, and you carry
# the numbers from one to the next:
#
# ```
# rank 0  convolutions ─┐                              ┌─ backward ─┐
# rank 1  convolutions ─┤ gather               scatter ├─ backward ─┤ all-reduce
# rank 2  convolutions ─┤   └─► fully connected ──┘    ├─ backward ─┤ of gradients
# rank 3  convolutions ─┘       forward, backward      └─ backward ─┘
# ```
#
# `OWNER` is 0, the rank that has the fully connected layers. Some calls that you may need:
#
# - `dist.gather(tensor, parts, dst=OWNER)` collects one tensor from every rank. On rank 0, `parts` is a list of empty
#   tensors that are filled. On the other ranks it is `None`.
# - `dist.scatter(tensor, parts, src=OWNER)` does the opposite. Rank 0 gives a list with one tensor for each rank, the
#   others give `None`, and every rank receives its part in `tensor`.
# - `whole.requires_grad_()` makes a tensor one that autograd records from here on. On rank 0, the gathered activations
#   are such a beginning, and after `backward()` their gradient is in `whole.grad`.
# - `activations.backward(gradient)` goes backward from a tensor whose gradient you already know.
#
# Tensors that you send must be contiguous, which means that their numbers are in memory in the order of their axes. The
# activations may not be. `tensor.contiguous()` returns a tensor that is. For an empty one of the same shape, use
# `torch.empty_like(tensor, memory_format=torch.contiguous_format)`, because plain `empty_like` copies the order in
# memory as well.

# %% tags=["exercise"]
# hybrid_step

# %% [markdown]
# ## 7 · How well are the devices used?
#
# (After the section *How many hours, and how much energy?* of
# [Further](../notebooks/11_hybrid_and_sharded_further.ipynb).)
#
# Let $f$ be the operations of the forward pass for one example. The backward pass takes about twice as many, so we
# count $3f$ for an example. For a token of a transformer with $N$ parameters, $f$ is about $2N$. For a network with
# convolutions it has to be counted, but your function only gets the number. The MFU of a step is
#
# $$\text{MFU} = \frac{\text{operations that the model needs}}{\text{operations that all devices could have done in this
# time}}.$$
#
# `examples` are all tokens or images of the step, on all devices together. `peak` is the number of operations that one
# device can do per second.

# %% tags=["exercise"]
# mfu

# %% [markdown]
# Now take a paper of your own choice and look for its parameters, tokens and GPU hours. For Llama 2 70B on A100s:
#
# ```python
# mfu(2 * 70e9, 2e12, seconds=1_720_320 * 3600, devices=1, peak=312e12)
# ```

# %% [markdown]
# ## 8 · On how many GPUs does a step begin to wait for messages?
#
# (After the section *Is the planner right?* of [Further](../notebooks/11_hybrid_and_sharded_further.ipynb).)
#
# Take a batch of $T$ tokens and divide it among more and more GPUs. On twice as many GPUs, each computes half as much,
# but it sends nearly as many bytes as before. From some number $N$ of GPUs on, the step has to wait for messages. You
# find $N$ by writing down both times and setting them equal.
#
# Let a GPU do $F$ operations and send $B$ bytes per second, and let a number take $b$ bytes on its way. The model has
# $X$ parameters. With `"data"`, the gradients are sent while the backward pass computes, which takes 4 operations for
# each parameter and token. A ring all-reduce sends $2\frac{N-1}{N}$ times the gradients. So the equation is
#
# $$\frac{4XT}{N F} = 2\,\frac{N-1}{N} \cdot \frac{X b}{B}.$$
#
# $X$ and one $N$ cancel, and you can solve for the $N$ that is left. Now do the same for the two other kinds of
# parallelism:
#
# - `"fsdp"` computes 6 operations for each parameter and token, forward and backward. Meanwhile it sends two
#   all-gathers of the $X$ parameters and a reduce-scatter of the $X$ gradients, each of which sends $\frac{N-1}{N} X b$
#   bytes.
# - `"tensor"` computes the same for one block, which has $X = 12 h^2$ parameters. Meanwhile it sends four all-reduces
#   of $T \cdot h$ numbers.
#
# Here $h$ is the width of the model. The function returns $N$ without rounding it. A number that is 0 or below makes no
# sense, and neither does a different kind of parallelism, so `raise CourseError("…")` for both.

# %% tags=["exercise"]
# break_even

# %% [markdown]
# Which of the three numbers grows with the batch, and which with the model? Here is your formula for H100 GPUs that
# reach half of their peak of 989 TFLOP/s, with 450 GB/s inside a node, 50 GB/s between nodes, and four million tokens:
#
# ```python
# for parallelism, link in (("data", 50e9), ("fsdp", 50e9), ("tensor", 450e9), ("tensor", 50e9)):
#     print(parallelism, break_even(parallelism, 4e6, 8192, 0.5 * 989e12, link))
# ```

# %%
course.progress()

# %% [markdown]
# In [lesson 12](../notebooks/12_strategy_search.ipynb), a program chooses the mixture.

# %%
ranks.stop()
