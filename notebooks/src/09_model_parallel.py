# The lesson on model and tensor parallelism. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # What if the model does not fit?
#
# Training with Adam takes 16 bytes per weight, 4 each for the weight, its gradient and Adam's two numbers (lesson 2). A
# model with 32 billion weights therefore needs 512 GB, and an H100 GPU has 80 GB. Plain data parallelism doesn't help,
# because every replica needs the whole 512 GB. If all of it is to stay on GPUs, at least seven of them (512 ÷ 80 = 6.4)
# have to divide *one* copy among themselves, or not even the first step can be completed.
#
# On this page you will put different layers on different ranks, and then cut individual layers in such a way that the
# ranks have little to send. You will also work out what each rank has to keep in memory, and what it costs to keep
# less.
#
# *50 minutes · builds on [lesson 6](06_data_parallel.ipynb) · 4 ranks*

# %%
from functools import partial
from itertools import pairwise

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy, gelu, linear

import course_utils as course
from course_utils.trace.recorder import phase

ranks = course.start(4)
ranks.load_torch()

# %% [markdown]
# ## Different layers on different ranks
#
# Dividing the model among the ranks, rather than the batch, is called **model parallelism**. The simplest form puts
# different layers on different ranks. In this lesson and the next two, our model is a small **transformer**, the kind
# of network behind today's language models. It reads text one character at a time and predicts the next character. The
# first of its ten layers, the **embedding**, turns each character and its position into a vector of 128 numbers. Eight
# equal **blocks** follow, which we will open later. The last layer, the **head**, gives each character a score for
# coming next.
#
# Suppose that each rank has only 8 MB for weights, gradients and Adam's numbers. (What else takes memory comes at the
# end of the page.) The function `split_layers`, your first [exercise](../exercises/09_model_parallel.ipynb), returns
# how many layers each of four ranks gets if the largest piece is to be as small as possible:

# %% tags=["nbval-check-output"]
from course_utils.lessons.model_parallel import CHARACTERS, character_model, split_layers

width = 128
layers = character_model(len(CHARACTERS), width=width, depth=8)


def adam_bytes(layer):
    return 16 * sum(parameter.numel() for parameter in layer.parameters())


pieces = split_layers([adam_bytes(layer) for layer in layers], 4)
ends = np.cumsum([0, *pieces])
stages = [layers[begin:end] for begin, end in pairwise(ends)]
print(f"the whole model with Adam: {adam_bytes(layers) / 1e6:.1f} MB")
for rank, stage in enumerate(stages):
    print(f"rank {rank}: {len(stage)} layers, {adam_bytes(stage) / 1e6:.1f} MB")

# %% [markdown]
# Each piece fits. The layers of one rank are called its **stage**. In the forward pass each stage computes
# **activations**, which are all the intermediate results of its layers, and sends the last one to the next rank. The
# last rank computes the loss, and then the gradients travel back the same way. Here is the program, with messages as in
# lesson 4. Every rank gets the whole batch, but only rank 0 uses `x` and only the last rank uses `target`:


# %%
def loss_of(scores, target):  # scores: texts × length × characters
    return cross_entropy(scores.flatten(0, 1), target.flatten())


def one_after_the_other(comm, stage, x, target):
    is_first, is_last = comm.rank == 0, comm.rank == comm.size - 1
    if not is_first:
        x = torch.tensor(comm.recv(source=comm.rank - 1), requires_grad=True)
    with phase("forward"):
        y = loss_of(stage(x), target) if is_last else stage(x)
    if is_last:
        gradient = None  # y is the loss itself: autograd starts with 1
    else:
        comm.send(y.detach().numpy(), dest=comm.rank + 1)
        gradient = torch.tensor(comm.recv(source=comm.rank + 1))
    with phase("backward"):
        y.backward(gradient)
    if not is_first:
        comm.send(x.grad.numpy(), dest=comm.rank - 1)
    return y.detach()


# %% [markdown]
# How busy are the ranks? Take two of them first, and suppose that each stage needs 1 ms forward and 2 ms backward. Rank
# 0 works from 0 to 1 ms, and rank 1 from 1 to 2 ms. Then rank 1 runs its backward pass until 4 ms, and rank 0 runs its
# own until 6 ms. So each rank works for 3 of the 6 ms and is idle for half of the time.
#
# **Predict.** With four ranks, what percentage of the time is a rank idle, on average?

# %%
course.predict("model_idle", percent=...)  # 0 to 100

# %% tags=["figure:09_in_turns"]
from course_utils.lessons.model_parallel import character_text, idle_share, idle_text
from course_utils.lessons.model_parallel import text_batches
from course_utils.measuring import is_busy, unless_busy

texts = character_text().training  # Python's own help, each character as a number
((x, target),) = text_batches(texts, 16, 64, 1)  # 16 texts of 64 characters
step = partial(ranks.run, one_after_the_other, course.per_rank(stages), x, target)
step()  # the first run is slow: it allocates memory and connects
runs = [step() for _ in range(3)]
alone = loss_of(layers(x), target)
print(f"loss on four ranks {runs[0].results[3]:.5f}, in one process {alone:.5f}")
assert abs(runs[0].results[3] - alone) <= 1e-4
shares = [idle_share(run.events, ranks=4) for run in runs]
busy = is_busy([shares])
course.measured("model_idle", busy=busy, percent=round(100 * shares[0]))
runs[0].timeline(unless_busy(busy, idle_text(shares[0], ranks=4)))

# %% [markdown]
# The loss is the same as in one process, but at any moment only one rank works. A rank with a slower stage is idle less
# than the others. But because the ranks work in turn, their working times add up to the whole time, so on average each
# works for $\frac1P$ of it. Wherever you cut, each of the $P$ ranks is idle *on average* for $\frac{P-1}{P}$ of the
# time. Sending the messages adds a little to this. Four ranks give you four times the memory but no extra speed.
#
# In lesson 10 many small batches follow one another through the stages, which keeps the ranks busy. This page takes a
# different approach, **tensor parallelism**. All ranks work on the *same* layer at the same time, each with a part of
# its weights.
#
# ## One layer cut into pieces
#
# Take a linear layer without a bias. On paper it is $y = xW$, where $x$ has a row for each example, and $W$ has a row
# for each input and a column for each output. PyTorch stores $W$ the other way round, as a tensor `weight` with a *row*
# for each output, which `linear(x, weight)` transposes. So we need to agree on names. **Megatron-LM** (Shoeybi and
# others, 2019), the NVIDIA library that made the cuts on this page popular, names a cut after $W$ on paper. So does
# PyTorch, and so do we:
#
# - In a **column cut**, each rank gets some columns of $W$. In `weight` these are rows, cut along dimension 0.
# - In a **row cut**, each rank gets some rows of $W$. In `weight` these are columns, cut along dimension 1.
#
# For comparison, data parallelism gives each rank some rows of $x$ and all of $W$. On this page we call it a *batch
# cut*. In the next cell, `own_part(tensor, dim)` cuts a tensor into four equal parts along a dimension and returns this
# rank's part:

# %%
from course_utils.lessons.model_parallel import (
    held_matrices,
    own_part,
    pictures,
    what_is_where,
)


def batch_cut(x, weight):
    x = own_part(x, 0)
    return {"x": x, "W": weight.T, "y": linear(x, weight)}


def column_cut(x, weight):
    weight = own_part(weight, 0)
    return {"x": x, "W": weight.T, "y": linear(x, weight)}


def row_cut(x, weight):
    x, weight = own_part(x, 1), own_part(weight, 1)
    term = linear(x, weight)
    y = term.clone()  # the all-reduce overwrites it
    dist.all_reduce(y)
    return {"x": x, "W": weight.T, "terms of y": term, "y": y}


# %% tags=["figure:09_cuts"]
x, weight = torch.randn(16, 32), torch.randn(64, 32)
y = linear(x, weight)  # in one process
whole = {"x": x, "W": weight.T, "terms of y": y, "y": y}
held = {}
for cut in (batch_cut, column_cut, row_cut):
    run = ranks.run(cut, x, weight, backend="gloo")
    held[cut.__name__.replace("_", " ")] = run.results
pictures.matrix_cuts(held, whole, "Three ways to cut y = xW across four ranks")

# %% [markdown]
# On the left are the three matrices as you would write them on paper, and on the right is $W$ as PyTorch stores it. The
# number in each part is the rank that holds it, or several ranks whose terms are summed, and the sizes are those of a
# single rank's part.
#
# After a column cut, each rank has complete columns of $y$. A row cut is different. Each rank knows only some of the
# inputs, so what it computes has the full size of $y$ but is only one term of a sum, and an all-reduce has to add up
# the terms. Here is what each rank holds, with the sizes of its part:

# %% tags=["figure:09_what_is_where"]
panels = {cut: held_matrices(held[cut], whole) for cut in ("column cut", "row cut")}
what_is_where(panels, "A column cut leaves columns of y, a row cut leaves terms of a sum")

# %% [markdown]
# ## The backward pass needs messages, too
#
# Autograd (lesson 2) knows only what its own process does, so we have to tell it which gradients involve several ranks.
# Take a column cut with one input $x$ and two columns, each with a single number: 2 on rank 0 and 5 on rank 1. Rank 0
# computes $y_0 = 2x$ and rank 1 computes $y_1 = 5x$. Let the loss be $y_0 + y_1$. If $x$ grows by 1, the loss grows by
# 2 + 5 = 7. But rank 0 knows only the 2, and rank 1 only the 5. Each rank has one term of the gradient of $x$, so the
# backward pass needs an all-reduce.
#
# With a row cut, the roles of the two passes are exchanged. Let 2 and 5 be the rows of $W$, and let the inputs be 3 on
# rank 0 and 4 on rank 1. The output is 3 · 2 + 4 · 5 = 26, and the all-reduce in the forward pass gives it to both
# ranks. Let the loss be this output. If rank 0's input grows by 1, the loss grows by 2, and rank 0 knows that without
# asking anybody. So the backward pass sends nothing.
#
# PyTorch lets you define an operation with its own backward pass, as a class with two methods. These two classes are
# all we need:


# %%
class CopyToRanks(torch.autograd.Function):  # goes before a column cut
    @staticmethod
    def forward(context, x):
        return x.view_as(x)  # the same numbers: every rank has x already

    @staticmethod
    def backward(context, gradient):
        total = gradient.clone()
        dist.all_reduce(total)  # each rank has one term
        return total


class SumOverRanks(torch.autograd.Function):  # goes after a row cut
    @staticmethod
    def forward(context, term):
        total = term.clone()
        dist.all_reduce(total)  # each rank has one term
        return total

    @staticmethod
    def backward(context, gradient):
        return gradient  # every rank has it already


copy_to_ranks, sum_over_ranks = CopyToRanks.apply, SumOverRanks.apply

# %% [markdown]
# ## Two layers, one cut each
#
# In a transformer, the rows of $x$ are **tokens**, the pieces of text that it reads. In our model they are characters.
# Two thirds of a block's weights are in two layers, which together are called a **multilayer perceptron**, or MLP:
#
# ```
# y = down(gelu(up(x)))
# ```
#
# The layer `up` makes $x$ four times as wide, and `down` makes it narrow again. Between them comes gelu, a smooth
# version of relu, which is applied element by element. How should we cut the two layers?
#
# Suppose that we cut `up` by row. Then each rank gets a term of a sum, and the gelu of a sum is not the sum of the
# gelus. For example, gelu(1) is 0.841 and gelu(−1) is −0.159, which add up to about 0.68, but gelu(1 − 1) is 0. So the
# ranks have to add up the wide tensor before they can apply gelu. [Further](09_model_parallel_further.ipynb) counts
# what that costs.
#
# Now suppose that we cut `up` by *column*. Then each rank has complete columns of the wide tensor, so it can apply gelu
# to them. And these columns are exactly the part of `down`'s input that the rank needs if `down` is cut by row:


# %%
def tensor_parallel_mlp(x, up, up_bias, down, down_bias):
    up, up_bias = own_part(up, 0), own_part(up_bias, 0)  # column cut
    down = own_part(down, 1)  # row cut
    hidden = gelu(linear(copy_to_ranks(x), up, up_bias))
    return sum_over_ranks(linear(hidden, down)) + down_bias  # once, not in each term


# %% [markdown]
# **Predict.** How many collectives does this take forward, and how many backward?

# %%
course.predict("model_mlp", forward=..., backward=...)

# %% tags=["here:09_two_layers"]
from course_utils.lessons.model_parallel import (
    collectives_in,
    mlp_beside_whole,
    moved_text,
)

run = ranks.run(mlp_beside_whole, tensor_parallel_mlp, backend="gloo")
made = {name: len(collectives_in(run.events, name)) for name in ("forward", "backward")}
course.measured("model_mlp", **made)
for name in made:
    print(f"{name}: {moved_text(run.events, name)}")
assert max(run.results) <= 1e-10  # compared with one process, in float64
print(f"at most {max(run.results):.0e} away from one process")

# %% [markdown]
# One all-reduce forward and one backward are enough, and the output and the gradient of $x$ match those of one process,
# up to rounding. This pair of cuts is the core of Megatron-LM.
#
# ## Attention is cut by heads
#
# The MLP handles each token on its own. The other half of a block is **attention**, which lets a token see itself and
# the tokens before it. A linear layer computes three vectors for each token, called *query*, *key* and *value*. Suppose
# that three tokens have the keys (1, 0), (0, 1) and (1, 1), and that the third token has the query (2, 0). We multiply
# it by each key, element by element, and add up the products. That gives the *scores* 2, 0 and 2. They are divided by
# the square root of the vectors' size, here $\sqrt 2$, and a softmax turns them into shares, the *attention weights*,
# here about 0.45, 0.11 and 0.45. If the values are 10, 40 and 10, the third token gets about 0.45 · 10 + 0.11 · 40 +
# 0.45 · 10, or about 13. The plain mean would be 20, but the second key doesn't match the third token's query. Scores
# for later tokens are set to $-\infty$, so that the model can't see the character that it has to predict.
#
# Several **heads** do this side by side, each with its own queries, keys and values. (The model's last layer, also
# called a head, is something else.) Here we take four heads of size 8, so a token's vector has 32 numbers. The matrix
# `qkv` turns it into 3 × 32 = 96 numbers. In our layout, the first 24 are the query, key and value of head 0, the next
# 24 belong to head 1, and so on. (Many models store all queries first. Then the rows must be sorted before they are
# cut.) At the end, a matrix `out` mixes what the heads have found:


# %%
def attention(x, qkv, out, heads, size=8):  # x: length × width
    length = len(x)
    made = linear(x, qkv)  # length × (heads · 3 · size)
    by_head = made.view(length, heads, 3 * size).transpose(0, 1)
    q, k, v = by_head.chunk(3, dim=-1)  # each heads × length × size
    scores = q @ k.mT / size**0.5  # heads × length × length, k transposed
    later = torch.ones(length, length, dtype=torch.bool).triu(1)  # above the diagonal
    weights = scores.masked_fill(later, -torch.inf).softmax(dim=-1)
    found = (weights @ v).transpose(0, 1).reshape(length, heads * size)
    return {"x": x, "q, k, v": made, "heads": found, "terms of y": linear(found, out)}


# %% [markdown]
# No head needs anything from another head before `out`, so each of our four ranks can take one. It needs the 24 columns
# of `qkv` that make its queries, keys and values, which is a column cut. And it needs the 8 rows of `out` that apply to
# the output of its head, which is a row cut. This is the same pair as in the MLP:


# %% tags=["figure:09_heads"]
def attention_of_one_head(x, qkv, out):
    x = copy_to_ranks(x)
    found = attention(x, own_part(qkv, 0), own_part(out, 1), heads=1)
    return {**found, "y": sum_over_ranks(found["terms of y"])}


x, qkv, out = torch.randn(16, 32), torch.randn(96, 32), torch.randn(32, 32)
whole = attention(x, qkv, out, heads=4)  # in one process
whole["y"] = whole["terms of y"]
run = ranks.run(attention_of_one_head, x, qkv, out, backend="gloo")
assert all(torch.allclose(held["y"], whole["y"], atol=1e-3) for held in run.results)
panel = {"attention": held_matrices(run.results, whole)}
what_is_where(panel, "Each rank computes one head, and nothing moves before the sum")

# %% [markdown]
# ## A whole block, and what it sends
#
# A block puts the two halves together. Each half begins with a **norm**, a layer that shifts and scales a token's
# vector to mean 0 and standard deviation 1, and then applies a learned factor and shift to each element. The result of
# each half is added to $x$:
#
# ```
# x = x + attention(norm_1(x))
# x = x + mlp(norm_2(x))
# ```
#
# To split a block across the ranks, we replace its four linear layers with parallel versions, which contain the code
# above:


# %%
from course_utils.lessons.model_parallel import ColumnParallelLinear, RowParallelLinear


def cut_block(block):
    attention, mlp = block.attention, block.mlp
    attention.heads //= dist.get_world_size()  # on this rank
    attention.qkv = ColumnParallelLinear(attention.qkv)
    attention.out = RowParallelLinear(attention.out)
    mlp.up = ColumnParallelLinear(mlp.up)
    mlp.down = RowParallelLinear(mlp.down)


# %% [markdown]
# **Predict.** How many all-reduces does one block need, forward and backward together? And how many does a model of 24
# blocks need?

# %%
course.predict("model_block", one_block=..., blocks_24=...)

# %% tags=["figure:09_block"]
from course_utils.lessons.model_parallel import beside_serial

for P in (2, 4):
    run = ranks.run(beside_serial, cut_block, passes=1, ranks=P, backend="gloo")
    worst = max(max(found.values()) for found in run.results)
    assert worst <= 1e-10
    print(f"P = {P}: {len(run.results[0])} tensors, all within {worst:.0e}")
number = run.collectives
course.answer("model_block", one_block=number, blocks_24=24 * number)
run.timeline(f"A block on 4 ranks takes {number} all-reduces, forward and backward")

# %% [markdown]
# The output of this small block, the gradient of its input and the gradients of all 12 parameters match those of one
# process. The norms and two of the biases aren't cut, and neither are the model's embedding and head, so a rank holds a
# little more than a quarter of the weights. (The milliseconds mean little, because four ranks share your computer's
# cores, and this was their first pass.)
#
# Is four all-reduces a lot? Each carries tokens × width elements. Take a model of width 4,096, at 2 bytes per element,
# and a batch of 64 texts with 2,048 tokens each, which makes 131,072 tokens. One all-reduce carries 131,072 × 4,096 × 2
# bytes, or 1.07 GB, so a block all-reduces 4.3 GB in every step. Its matrices `qkv`, `out`, `up` and `down` have 3, 1,
# 4 and 4 times 4,096² elements, together 12 × 4,096². With data parallelism on the same batch, the block would sum
# their gradients, which are 0.4 GB if they also take 2 bytes each. That is less than a tenth of 4.3 GB. In general,
# with $n$ tokens and a width of $h$, tensor parallelism all-reduces $4nh$ elements and data parallelism $12h^2$. They
# are equal if $n = 3h$, which is 12,288 tokens here. [Further](09_model_parallel_further.ipynb) does this calculation
# for a single layer.
#
# In lesson 7 the gradients were sent while the backward pass was still computing. Here the very next layer needs the
# sum, so there is less computation to hide the communication behind. Libraries do hide part of it, but tensor
# parallelism still needs fast links. On NVIDIA's GPUs it is usually confined to those that are connected by NVLink
# (lesson 13), which are the 8 in an HGX server or the 72 in a GB200 NVL72. [Lesson 11](11_hybrid_and_sharded.ipynb)
# combines it with other kinds of parallelism. Further shows how to overlap the all-reduces with computation, and what
# goes wrong with the wrong random seeds. It also introduces **sequence parallelism**, which divides the work and the
# memory of the norms among the ranks.
#
# ## What training keeps in memory
#
# The parameters, their gradients and the optimizer's state take a fixed number of bytes for each weight. These are
# three of four parts. The fourth is the activations that autograd saves for the backward pass, and these grow with the
# number of tokens. (We leave out temporary buffers.) The function `step_memory` takes a real step with Adam. It counts
# the saved activations at their peak and the other three parts after the step. We take the size of one block's input as
# the unit:

# %%
from course_utils.lessons.model_parallel import Parallelism, step_memory, training_memory

model = character_model(len(CHARACTERS), width=64, depth=4)
(batch,) = text_batches(texts, 4, 64, 1)  # 4 texts of 64 characters
count_memory = partial(ranks.run, step_memory, model, batch, backend="gloo")
one, four = count_memory(ranks=1), count_memory()
unit = 4 * (4 * 64 * 64)  # 4 bytes for each of 4 × 64 × 64 elements
for name, run in {"1 rank": one, "4 ranks": four}.items():
    print(f"{name}: autograd saves {run.results[0].activations / unit:.1f} units")

# %% [markdown]
# Most of these units are in the 4 blocks. Here a text has 64 tokens and a vector 64 numbers, so the attention weights
# of one head, 64 × 64 for each text, take one unit, too:
#
# | a block saves | on one rank | on each of four |
# |---|---|---|
# | input and output of both norms | 4 | 4 |
# | queries, keys and values | 3 | 0.75 |
# | attention weights, 4 heads | 4 | 1 |
# | input of `out` | 1 | 0.25 |
# | input and output of gelu, four times as wide | 8 | 2 |
# | small things, such as the mask | 0.1 | 0.1 |
# | **total** | **20.1** | **8.1** |
#
# The model's head and the loss add 3.6 units. The attention weights grow with the square of the text's length, which is
# the subject of lesson 17.
#
# **Activation checkpointing** keeps less. For each block, it saves only the input. When the backward pass comes to a
# block, it computes the block's forward pass once more. In PyTorch it is one line:
#
# ```python
# y = torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)  # instead of y = block(x)
# ```
#
# Let's work it out for 12 such blocks on four ranks. Without checkpointing, each rank keeps 12 × 8.1 + 3.6 = 101 units.
# With it, only the 12 inputs stay. At the worst moment one block has just been recomputed, so its other 7.1 units are
# in memory as well. By then the head's 3.6 units have been freed. So the most that a rank keeps is 12 + 7.1 = 19.1
# units, or 19 percent of 101.
#
# **Predict.** What percentage of the activations does checkpointing leave in our model of 4 blocks? (The next cell also
# calculates the four parts of the memory, with the `training_memory` of your last exercise.)

# %%
course.predict("model_checkpointing", within=1.2, percent_left=...)

# %% tags=["figure:09_memory"]
again = count_memory(checkpointing=True)
left = again.results[0].activations / four.results[0].activations
course.measured("model_checkpointing", percent_left=round(100 * left))

over_4 = Parallelism(tensor=4)
calculated = {
    "1 rank": training_memory(model, 4, 64),
    "4 ranks": training_memory(model, 4, 64, parallelism=over_4),
    "checkpointing": training_memory(
        model, 4, 64, parallelism=over_4, checkpointing=True
    ),
}
counted = dict(zip(calculated, (one, four, again), strict=True))
for name, run in counted.items():
    for memory in run.results:  # of each rank
        assert abs(memory.total / calculated[name].total - 1) <= 0.05
pictures.memory(calculated, {name: run.results[0] for name, run in counted.items()})

# %% [markdown]
# Without checkpointing there are 4 × 8.1 + 3.6 = 36 units, and with it 4 + 7.1 = 11.1, which is 31 percent. The price
# is time. If a block needs 1 ms forward and 2 ms backward, it now needs 4 ms instead of 3. Some of the block's
# all-reduces are repeated as well; Further counts them.
#
# ## What you can do now
#
# You can put different layers on different ranks, which gives you $P$ times the memory while only one rank works at a
# time. You can also cut through the layers, with a column cut followed by a row cut, so that a block needs four
# all-reduces of tokens × width elements. And you can work out what a rank keeps in memory, and what activation
# checkpointing saves.
#
# In the [exercises](../exercises/09_model_parallel.ipynb) you write the cuts yourself. In [lesson
# 10](10_pipeline.ipynb) you give the waiting ranks something to do.
#
# **To read**
#
# - Shoeybi and others (2019), [*Megatron-LM*](https://arxiv.org/abs/1909.08053), cuts a transformer's layers as this
#   page does.
# - Korthikanti and others (2022), [*Reducing Activation Recomputation in Large Transformer
#   Models*](https://arxiv.org/abs/2205.05198), counts the memory of activations, term by term.
# - Chen and others (2016), [*Training Deep Nets with Sublinear Memory Cost*](https://arxiv.org/abs/1604.06174), made
#   checkpointing popular in deep learning.

# %%
ranks.stop()
