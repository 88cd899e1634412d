# The lesson on model and tensor parallelism. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # What if the model does not fit?
#
# After this lesson you can **place** a model's layers on several ranks, **cut** through layers so that few messages are
# enough, and **compute** what training keeps in memory before it starts.
#
# *60 minutes · builds on [lesson 6](06_data_parallel.ipynb) · 4 ranks*

# %%
from functools import partial
from itertools import pairwise

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy, gelu, linear

import course_utils as course
from course_utils.trace.recorder import phase

ranks = course.start(4)
ranks.load_torch()

# %% [markdown]
# So far every worker held the whole model. With Adam that is four numbers for each weight (lesson 2): the weight, its
# gradient, a mean, a mean square. That is 16 bytes; for 7 billion weights it is 112 GB. An H100 GPU has 80 GB.
#
# More workers do not help: in data parallelism each holds everything. **Model parallelism**, says SURF's course: "Split
# the model over multiple processors. Each processor sees all the data."
#
# Cut where? Today: *between* layers, then right *through* them.

# %% [markdown]
# ## Between layers
#
# The model of this lesson and the next two is a small **transformer**: it reads characters and predicts the next one.
# It is a list of ten layers: an **embedding** (a vector for each character), eight equal **blocks** (this page opens
# one later), a **head** (a score for every character that could be next). `split_layers` cuts the list so that the
# fullest rank holds as little as possible. We pretend that a rank has room for 8 MB.
#
# [Exercise](../exercises/09_model_parallel.ipynb): `split_layers`.

# %% tags=["nbval-check-output"]
from course_utils.lessons.model_parallel import CHARACTERS, character_model, split_layers

width = 128  # of a character's vector
layers = character_model(len(CHARACTERS), width=width, depth=8)


def adam_bytes(layer):
    return 16 * sum(p.numel() for p in layer.parameters())


def loss_of(scores, target):  # scores: examples × places × characters
    return cross_entropy(scores.flatten(0, 1), target.flatten())


ends = np.cumsum([0, *split_layers([adam_bytes(layer) for layer in layers], 4)])
stages = [layers[begin:end] for begin, end in pairwise(ends)]
print(f"with Adam {adam_bytes(layers) / 1e6:.1f} MB")
for rank, stage in enumerate(stages):
    print(f"rank {rank}: {len(stage)} layers, {adam_bytes(stage) / 1e6:.1f} MB")

# %% [markdown]
# It fits. The layers of a rank are its **stage**. Forward, **activations** (what a layer makes of its input) go from
# rank to rank. Backward, their gradients come back. The last rank has the loss. The next cell does just that. Read it,
# and **predict** in the one below: in what percentage of the time is a rank idle, on average?


# %%
def in_turns(comm, stage, x, target):
    first, last = comm.rank == 0, comm.rank == comm.size - 1
    if not first:
        x = torch.tensor(comm.recv(source=comm.rank - 1), requires_grad=True)
    with phase("forward"):  # the picture names it so
        y = loss_of(stage(x), target) if last else stage(x)
    if not last:
        comm.send(y.detach().numpy(), dest=comm.rank + 1)
        gradient = torch.tensor(comm.recv(source=comm.rank + 1))
    with phase("backward"):
        y.backward(None if last else gradient)
    if not first:
        comm.send(x.grad.numpy(), dest=comm.rank - 1)
    return y.detach()


# %%
course.predict("model_idle", percent=...)  # 0 to 100

# %% tags=["figure:09_in_turns"]
from course_utils.lessons.model_parallel import character_text, idle_share, idle_text
from course_utils.lessons.model_parallel import text_batches
from course_utils.measuring import is_busy, unless_busy

texts = character_text().training  # Python's own help, as numbers
((x, target),) = text_batches(texts, 16, 64, 1)  # 16 pieces of 64, and what follows
step = partial(ranks.run, in_turns, course.per_rank(stages), x, target)
step()  # the first run is slow: it allocates memory and connects
runs = [step() for _ in range(3)]
run = runs[0]
alone = loss_of(layers(x), target)
print(f"loss on four ranks {run.results[3]:.5f}, in one process {alone:.5f}")
assert abs(run.results[3] - alone) <= 1e-4
shares = [idle_share(each.events, ranks=4) for each in runs]
busy, idle = is_busy([shares]), shares[0]
course.measured("model_idle", busy=busy, percent=round(100 * idle))
run.timeline(unless_busy(busy, idle_text(idle, ranks=4)))

# %% [markdown]
# It is exact, and slow: with $P$ ranks, at any moment one works and $P-1$ wait. So $\frac{P-1}{P}$ of the time is idle,
# *wherever* you cut. Four ranks give four times the memory and not one step more per second. SURF's table says it: the
# throughput of data parallelism "increases", that of model parallelism "decreases".
#
# [Lesson 10](10_pipeline.ipynb) fills the gaps with many small batches. Today we take the other way, **tensor
# parallelism**: all ranks work on the *same* layer.

# %% [markdown]
# ## Through a layer
#
# A fully connected layer: $y = x\,W^\top$, $x$ of (examples × inputs), $W$ of (outputs × inputs). Three ways to cut it:
#
# | cut | a rank takes | and makes | its part of `weight` |
# |---|---|---|---|
# | **by batch** | some examples | all their outputs | all: data parallelism |
# | **by column** | all inputs | some outputs | a part of dimension 0 |
# | **by row** | some inputs | a *term* of every output | a part of dimension 1 |
#
# (*Column* and *row* are those of $W^\top$; torch stores $W$, `weight`. `CUTS` lists the dimensions that are cut.)
#
# Read in the next cell what each way all-reduces. **Predict** in the last line of that cell: with 16 examples, 1,152
# inputs and 512 outputs, which way all-reduces the fewest numbers?

# %%
from course_utils.lessons.model_parallel import CUTS, cut_along

for way, (x, weight) in CUTS.items():
    print(f"{way}: x {x}, weight {weight}")


def one_layer(way, x, weight):
    x, weight = map(cut_along, (x, weight), CUTS[way])  # this rank's parts
    with phase("forward"):
        y = linear(x, weight)
        if way == "by row":
            dist.all_reduce(y.detach())  # in place: y is the sum now
    with phase("backward"):
        y.sum().backward()  # any loss does: only bytes count here
        if way != "by row":
            dist.all_reduce(weight.grad if way == "by batch" else x.grad)
    return x.shape, weight.shape, y.shape


choices = dict(zip("abc", CUTS, strict=True))
course.predict("model_cut", answer=..., choices=choices)

# %% tags=["figure:09_cuts"]
from course_utils.lessons.model_parallel import cuts_text, moved_text, pictures

x, weight = torch.randn(16, 1152), torch.randn(512, 1152)
cuts, moved = {}, {}
for way in CUTS:
    run = ranks.run(one_layer, way, x, weight, backend="gloo")
    messages = [moved_text(run.events, name) for name in ("forward", "backward")]
    cuts[way] = pictures.Cut(*run.results[0], *messages)
    moved[way] = run.bytes_per_rank[0]
course.measured("model_cut", answer="abc"[np.argmin(list(moved.values()))])
whole = pictures.Cut(x.shape, weight.shape, (16, 512), "", "")
pictures.matrix_cuts(cuts, whole, 4, cuts_text(moved, examples=16))

# %% [markdown]
# What do the ranks sum? Cut by batch, they sum the gradient of $W$, as large as $W$, because every rank has other
# examples. Cut by column, they sum the gradient of $x$, because each rank's outputs contribute to it. Cut by row, they
# sum $y$ itself.
#
# The sizes of $x$ and $y$ grow with the examples, that of $W$ does not. From how many examples on is cutting the batch
# cheapest, with 288 inputs and 128 outputs? Work it out, then run.

# %% tags=["figure:09_examples"]
from course_utils.lessons.model_parallel import sizes_text
from course_utils.words import bytes_text

examples = [8, 32, 128, 512, 2048]
weight = torch.randn(128, 288)
lines = {way: [] for way in CUTS}
for n in examples:
    for way, line in lines.items():
        run = ranks.run(one_layer, way, torch.randn(n, 288), weight, backend="gloo")
        line.append(run.bytes_per_rank[0])
theory = {"by batch": [4 * 288 * 128 for n in examples]}
theory |= {"by column": [4 * 288 * n for n in examples]}
theory |= {"by row": [4 * 128 * n for n in examples]}
look = {"across": "examples", "up": "bytes that a rank puts in", "unit": bytes_text}
said = sizes_text(examples, lines)
course.draw.over_numbers(examples, lines, said, predicted=theory, log=True, **look)

# %% [markdown]
# Few examples and many weights: cut the weights. Many examples and few weights, as in convolutions: cut the batch.
# SURF's table calls the communication of data parallelism "low to moderate" and that of model parallelism "high". Its
# slide adds that these are "very generic statements (there are exceptions)", and with 16 examples you have measured an
# exception. FlexFlow finds such cuts by searching, as you will see in lesson 12.
#
# ## Two layers, one message
#
# In both cuts of $W$, something moves forward *or* backward. Autograd (lesson 2) knows nothing of other ranks. So there
# are two functions that hand $x$ or $y$ on, with a rule of their own for the backward pass:
#
# | | forward | backward |
# |---|---|---|
# | `copy_to_ranks`, before a column cut | nothing | all-reduce |
# | `sum_over_ranks`, behind a row cut | all-reduce | nothing |
#
# Exercises: `column_parallel_linear`, `row_parallel_linear`.

# %% [markdown]
# Now a **multilayer perceptron**, `down(gelu(up(x)))`: one layer makes $x$ wider, one makes it narrow again; gelu, a
# smooth relu, comes between. In the next cell `up` is cut by row, `down` by column. `own_part(up, 1)` is this rank's
# part of `up` along dimension 1. `split_over_ranks` moves nothing forward and all-gathers backward; `join_over_ranks`
# does the opposite.
#
# **Predict**, in the last line of the next cell: how many collectives does this take, forward and backward together?
# And how many with `up` cut by *column* and `down` by *row*?

# %%
from course_utils.lessons.model_parallel import differentiable_collectives as moves
from course_utils.lessons.model_parallel import own_part


def row_then_column(x, up, up_bias, down, down_bias):
    term = linear(moves.split_over_ranks(x, 1), own_part(up, 1))
    hidden = gelu(moves.sum_over_ranks(term) + up_bias)  # gelu needs the sum
    hidden = moves.copy_to_ranks(hidden)
    part = linear(hidden, own_part(down, 0), own_part(down_bias, 0))
    return moves.join_over_ranks(part, 1)


course.predict("model_mlp", row_then_column=..., column_then_row=...)

# %%
from course_utils.lessons.model_parallel import mlp_beside_whole, tensor_parallel_mlp


def column_then_row(x, up, up_bias, down, down_bias):
    mine = own_part(up, 0), own_part(up_bias, 0), own_part(down, 1)
    return tensor_parallel_mlp(x, *mine, down_bias)  # your exercise


compare = partial(ranks.run, mlp_beside_whole, backend="gloo")
mlps = {"row_then_column": row_then_column, "column_then_row": column_then_row}
for _ in range(2):  # the first runs are slow: they connect
    runs = {name: compare(mlp) for name, mlp in mlps.items()}

# %% tags=["here:09_two_layers"]
from course_utils.lessons.model_parallel import collectives_text

course.measured("model_mlp", **{name: run.collectives for name, run in runs.items()})
for name, run in runs.items():
    assert max(run.results) <= 1e-10
    print(f"{name}: at most {max(run.results):.0e} away from one process")
    for part in ("forward", "backward"):
        print(f"  {part}: {moved_text(run.events, part)}")
a, b = torch.tensor([1.0, -1.0])
print(f"gelu(1) + gelu(-1) = {gelu(a) + gelu(b):.3f}, gelu(1 - 1) = {gelu(a + b):.3f}")
titles = [name.replace("_", " ") for name in runs]
said = collectives_text(dict(zip(titles, runs.values(), strict=True)))
course.draw.timelines(*runs.values(), titles=titles, title=said)

# %% [markdown]
# Both are right. (The milliseconds say little: four ranks share this machine's cores.) But a row cut makes *terms of
# a sum*, and the gelu of a sum is not the sum of gelus (last line printed). So the sum must be there *before* gelu.
#
# A column cut makes whole outputs, only fewer of them: just what a row cut takes as inputs. So one all-reduce forward
# and one backward are enough. This is the pair of **Megatron-LM** (Shoeybi and others, 2019, §3). Exercise:
# `tensor_parallel_mlp`.

# %% [markdown]
# ## Attention, by heads
#
# Half of a transformer's block is such a perceptron; the other half is **attention**. Linear layers make three vectors
# for each character: a *query*, a *key*, a *value*. A character's query is compared with the key of every character so
# far. The more alike a query and a key are, the more it takes of that key's value. Several **heads** do this, each with
# queries, keys and values of its own. A last layer, `out`, mixes what they found.
#
# For today only one thing matters: heads do not see each other before `out`, so each rank can take some of them. We cut
# the layers of queries, keys and values by column, head by head, and `out` by row.

# %% [markdown]
# The same pair again. A whole block is
#
# ```
# x = x + dropout(attention(norm(x)))
# x = x + dropout(mlp(norm(x)))
# ```
#
# A **norm** brings each character's vector to mean 0 and spread 1, then scales it by weights. **Dropout** zeroes random
# numbers while training. Four replacements cut the block (`qkv` makes queries, keys and values):
#
# ```
# attention.qkv = ColumnParallelLinear(attention.qkv)
# attention.out = RowParallelLinear(attention.out)
# mlp.up        = ColumnParallelLinear(mlp.up)
# mlp.down      = RowParallelLinear(mlp.down)
# ```
#
# **Predict.** How many all-reduces does a block need, forward and backward together? How many does a model of 24 blocks
# need?

# %%
course.predict("model_block", one_block=..., blocks_24=...)

# %% tags=["figure:09_block"]
from course_utils.lessons.model_parallel import beside_serial, parallelise_block

compare = partial(ranks.run, beside_serial, backend="gloo")
for P in (1, 2, 4):
    run = compare(parallelise_block, dropout=0.1, passes=1, ranks=P)
    worst = max(max(found.values()) for found in run.results)
    assert worst <= 1e-10
    number = len(run.results[0])
    print(f"on {P}: {number} tensors, all within {worst:.0e} of the serial block's")
each = run.collectives
course.measured("model_block", one_block=each, blocks_24=24 * each)
run.timeline(f"A block on 4 ranks: {each} collectives, forward and backward")

# %% [markdown]
# The output, the gradient of the input, and the gradients of all twelve parameters equal those of one process, in
# float64, with dropout.
#
# But every all-reduce carries (examples × length × width) numbers, and the next layer *waits* for it: there is little
# else to compute meanwhile. So tensor parallelism stays inside one machine, where links are fast.
# [Lesson 11](11_hybrid_and_sharded.ipynb) combines the ways.

# %% [markdown]
# ## Chance
#
# How can they be equal, with dropout? Chance comes in twice, and both times it is a trap. **Predict:**
#
# - *First weights.* A rank might draw its part of `up` itself. Each of four ranks draws 16 of the 64 hidden units (rows
#   of `up`), all with `manual_seed(0)`. How many *different* units are there?
# - *Dropout.* Each rank drops with a seed of its own, everywhere. Norms and some biases are not cut: every rank has a
#   copy. What happens to these copies?

# %%
choices = {
    "a": "nothing: it is only noise",
    "b": "an error",
    "c": "the copies drift apart",
}
course.predict("model_seed", units=...)
course.predict("model_dropout", answer=..., choices=choices)


# %%
def different_units(own_seed):
    torch.manual_seed(dist.get_rank() if own_seed else 0)
    part = nn.Linear(16, 16)
    return len(moves.all_gathered(part.weight.detach(), 0).unique(dim=0))


for own_seed in (True, False):
    units = ranks.run(different_units, own_seed, backend="gloo").results[0]
    name = "a seed for each rank" if own_seed else "the same seed"
    print(f"{name}: {units} different units")
course.measured("model_seed", units=units)

# %% [markdown]
# If `down` is drawn in the same way, equal units get equal gradients and stay equal: you pay for 64 units and get 16.
# (The cells above drew the whole layer and then cut it.)
#
# Dropout stands in two kinds of places: *inside* attention, between column and row, where each rank holds other
# numbers; and *after the sum*, where all ranks hold the same numbers. We train a block and compare what should be
# copies:

# %% tags=["figure:09_seeds"]
from course_utils.lessons.model_parallel import OWN_SEEDS, apart_text, ranks_apart

steps = 8
lines = {}
for place in OWN_SEEDS:
    lines[place] = ranks.run(ranks_apart, place, steps, backend="gloo").results[0]
drifted = lines["everywhere"][-1] > 0
course.measured("model_dropout", answer="c" if drifted else "a")
look = {"across": "steps", "up": "largest difference between two ranks"}
course.draw.over_numbers(range(1, steps + 1), lines, apart_text(lines), **look)

# %% [markdown]
# There is no error. But after the sum, every rank goes on with another $x$, and the copies are no longer equal.
# *Inside*, between column and row, each rank may have a seed of its own: Megatron-LM does so, and equals one process on
# average. Our ranks all draw for the whole tensor which numbers become zero, and each takes its part. So they equal one
# process exactly.

# %% [markdown]
# ## The sequence, too
#
# Norms and the dropout after the sum still work on the *whole* $x$, on every rank alike, and each keeps it for its
# backward pass. **Sequence parallelism** (Korthikanti and others, 2022) cuts these along the text. The all-reduce
# after a row cut becomes a **reduce-scatter**; before the next column cut comes an **all-gather**.
#
# **Predict.** All this is done by rings. How many times as many bytes does a rank send as before? (Lesson 5 knows.)

# %%
course.predict("model_sequence", times_the_bytes=...)

# %%
from course_utils.lessons.model_parallel import in_phase, pass_bytes, sequence_text
from course_utils.lessons.model_parallel import step_memory

blocks = 4
model = character_model(len(CHARACTERS), width=64, depth=blocks, dropout=0.1)
(batch,) = text_batches(texts, 4, 64, 1)  # 4 pieces of 64 characters
step = partial(ranks.run, step_memory, model, batch, backend="gloo")
plain, cut = step(), step(sequence=True)  # each cuts the model, and trains it
sent = [pass_bytes(run.events, ranks=4) for run in (plain, cut)]
kept = [run.results[0].activations for run in (plain, cut)]
course.measured("model_sequence", times_the_bytes=round(sent[1] / sent[0], 2))
found = sequence_text((sent[0], kept[0]), (sent[1], kept[1]))
forward = [in_phase(run.events, "forward") for run in (plain, cut)]
course.draw.timelines(*forward, titles=["whole", "cut"], title=found)

# %% [markdown]
# An all-reduce *is* a reduce-scatter and an all-gather. So the bytes are the same, and norms and dropout now lie
# between the two, where each rank has its part only: less memory, less work. (A cut after the embedding and a join
# before the head add a little.) The picture shows forward passes.
#
# Our ranks keep what they gathered for the backward pass. Korthikanti's keep their own parts only, and gather once
# more: less memory, more bytes. gloo makes its reduce-scatter from an all-reduce, so we count what rings would send,
# and say nothing about time.

# %% [markdown]
# ## torch's own tool
#
# A **DTensor** is a tensor that knows how it lies on a **mesh** (ranks in rows and columns; here four in one row):
# whole (`Replicate`), cut (`Shard`), or as terms of a sum (`Partial`). You say how layers are cut, and the collectives
# follow:
#
# ```
# plan = {"attention.qkv": ColwiseParallel(),
#         "attention.out": RowwiseParallel(),
#         "mlp.up": ColwiseParallel(),
#         "mlp.down": RowwiseParallel()}
# parallelize_module(block, mesh, plan)
# ```


# %%
def through_torch():
    from course_utils.lessons.model_parallel import dtensor

    def cut(block):
        dtensor.parallelize_block(block, dtensor.tensor_mesh())  # the plan

    return dtensor.counted(lambda: beside_serial(cut, dropout=0.1, passes=1))


run = ranks.run(through_torch, backend="gloo")
found, collectives = run.results[0]
worst = max(max(found.values()) for found, _ in run.results)
assert worst <= 1e-10
print(f"{len(found)} tensors, all within {worst:.0e} of the serial block's")
print(collectives)

# %% [markdown]
# The same cut, all-reduces and results. (First torch hands out rank 0's weights: `scatter`, `broadcast`.)
#
# ## What does training keep?
#
# **Parameters**, **gradients**, **optimizer state**: bytes for each weight. And **activations** that backward needs:
# they grow with the examples.
#
# **Activation checkpointing** saves each block's *input* only; backward computes the rest again, block by block. We
# have four blocks; without it, each saves ten times its input.
#
# **Predict.** Roughly what percentage of the activations is still kept, at the worst moment? And how many all-reduces
# does a block need?

# %%
course.predict("model_checkpointing", within=1.3, percent_left=..., all_reduces=...)

# %% [markdown]
# `training_memory`, your last exercise, computes all four parts before anything runs. `step_memory` really does a
# step of Adam, and counts on each rank: parameters, gradients, what Adam holds, what autograd holds.

# %%
from course_utils.lessons.model_parallel import Parallelism, training_memory

over_4, cut = Parallelism(tensor=4), Parallelism(tensor=4, sequence=True)
again = {"checkpointing": True}
ways = {  # how it runs, and how it is computed
    "one rank": ({"ranks": 1}, {}),
    "4 ranks": ({}, {"parallelism": over_4}),
    "4 ranks, sequence cut": ({"sequence": True}, {"parallelism": cut}),
    "4 ranks, checkpointing": (again, {"parallelism": over_4, **again}),
}
runs = {way: step(**options) for way, (options, _) in ways.items()}
computed = {way: training_memory(model, 4, 64, **told) for way, (_, told) in ways.items()}

# %% tags=["figure:09_memory"]
from course_utils.lessons.model_parallel import collectives_in

before, after = runs["4 ranks"], runs["4 ranks, checkpointing"]
left = after.results[0].activations / before.results[0].activations
both = [collectives_in(after.events, part) for part in ("forward", "backward")]
each = sum(map(len, both)) / blocks
course.measured("model_checkpointing", percent_left=round(100 * left), all_reduces=each)
for way, run in runs.items():
    for counted in run.results:  # of every rank
        assert abs(counted.total / computed[way].total - 1) <= 0.05
pictures.memory(computed, {way: run.results[0] for way, run in runs.items()})

# %% [markdown]
# Let us count in inputs of a block. Without checkpointing each of 4 blocks keeps 10.6 and the head 3.6: 46 in all. With
# it the 4 inputs stay, and 9.6 more for the one block that is just being computed again: $\frac{13.6}{46}$, 30 %. The
# price is time: backward does forward again, with its all-reduces. (Embedding and head are not cut here.)
#
# ## What you take with you
#
# You can **place** layers on ranks: $P$ ranks have $P$ times the memory, but one rank works at a time. You can **cut**
# through layers: column, then row, with one all-reduce each way in each half of a block. You can **compute** a rank's
# memory beforehand.
#
# Next: [the exercises](../exercises/09_model_parallel.ipynb). Lesson 10: how are all stages kept busy? Lesson 11:
# which mixture?
#
# **To read**
#
# - Shoeybi and others (2019), [*Megatron-LM*](https://arxiv.org/abs/1909.08053), cuts a transformer's layers as this
#   page does.
# - Korthikanti and others (2022), [*Reducing Activation Recomputation in Large Transformer
#   Models*](https://arxiv.org/abs/2205.05198), counts the memory of activations.
# - Chen and others (2016), [*Training Deep Nets with Sublinear Memory Cost*](https://arxiv.org/abs/1604.06174), is the
#   paper on checkpointing.

# %%
ranks.stop()
