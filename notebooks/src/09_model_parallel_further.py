# The optional second notebook of lesson 9. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Further: what if the model does not fit?
#
# A layer can be cut correctly, and yet you may train only a quarter of the units you pay for. This happens if four
# ranks start from the same random seed, and no error tells you. This notebook begins with that trap. Then it cuts what
# tensor parallelism leaves whole, hides its messages, and lets PyTorch do the work.
#
# Everything here is optional. After the first code cell you can go to any section. If a section complains that its
# ranks were stopped, run the first code cell again.
#
# 1. *Random numbers on four ranks*: initial weights and dropout
# 2. *The wrong order*: a row cut first, then a column cut
# 3. *Sequence parallelism*: norms are cut along the text
# 4. *Sending one chunk while computing the next*: how today's libraries hide the sums
# 5. *PyTorch's own tool*: tensors that know how they are cut
# 6. *A smaller model instead*: what pruning saves, and what it doesn't
# 7. *A report, redone*: when to cut the batch, and when the weights
#
# *50 minutes · optional, after [lesson 9](09_model_parallel.ipynb) · 4 ranks, about 7 minutes for each section*

# %%
from functools import partial

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import gelu, layer_norm, linear

import course_utils as course
from course_utils.lessons.model_parallel import differentiable_collectives as moves
from course_utils.lessons.model_parallel import (
    held_matrices,
    own_part,
    pictures,
    what_is_where,
)
from course_utils.measuring import by_turns, is_busy, unless_busy
from course_utils.trace.recorder import phase

ranks = course.start(4, link="200 Mbit/s")
ranks.load_torch()

# %% [markdown]
# ## Random numbers on four ranks
#
# On the main page every rank drew the whole layer and kept its part. A large model doesn't fit as a whole, so it is
# common for each rank to draw only its own part. Take a layer `up` with 16 inputs and 64 hidden units, which are the
# rows of its `weight`. Each of four ranks draws 16 of these rows. If each rank starts from a seed of its own, all 64
# rows are different.
#
# **Predict.** How many different units are there if all four ranks call `torch.manual_seed(0)` first?

# %%
course.predict("model_seed", units=...)


# %%
def different_units(own_seed):
    torch.manual_seed(dist.get_rank() if own_seed else 0)
    part = nn.Linear(16, 16).weight.detach()
    rows = moves.all_gathered(part, 0)  # of all ranks
    return len(rows.unique(dim=0))


for own_seed in (True, False):
    units = ranks.run(different_units, own_seed, backend="gloo").results[0]
    print("a seed for each rank:" if own_seed else "the same seed:", units, "units")
course.measured("model_seed", units=units)

# %% [markdown]
# Every rank draws the same 16 rows. If the parts of `down` are drawn in the same way, equal units also get equal
# gradients, so they stay equal in every step. You pay for 64 units and train 16.
#
# Random numbers appear in a second place. **Dropout** sets randomly chosen numbers to zero during training. A block
# uses it at two points. *Inside* attention, between the column cut and the row cut, the ranks hold different heads.
# There they should draw different zeros, because with equal seeds all of them would drop the same pattern. The other
# point is *after the sum*, the all-reduce behind a row cut, from where all ranks go on with the same $x$.
#
# **Predict.** Norms and the biases that are added after the sum aren't cut, so every rank has a copy of them. Suppose
# that every rank uses its own dropout seed, everywhere. What happens to the copies?

# %%
choices = {
    "a": "nothing, because dropout is only noise",
    "b": "the program stops with an error",
    "c": "they drift apart",
}
course.predict("model_dropout", answer=..., choices=choices)

# %% tags=["figure:09_seeds"]
from course_utils.lessons.model_parallel import OWN_SEEDS, apart_text, ranks_apart

steps = 8
lines = {}
for place in OWN_SEEDS:  # nowhere, inside, everywhere
    lines[place] = ranks.run(ranks_apart, place, steps, backend="gloo").results[0]
drifted = lines["everywhere"][-1] > 0
course.measured("model_dropout", answer="c" if drifted else "a")
axes = {"across": "steps", "up": "largest difference between two copies"}
course.draw.over_numbers(range(1, steps + 1), lines, apart_text(lines), **axes)

# %% [markdown]
# There is no error. But if the ranks drop different numbers after the sum, each of them goes on with a different $x$,
# and their copies of one and the same weight get different gradients. Megatron-LM therefore keeps two generators of
# random numbers, one that is equal on all ranks of a group and one that isn't.
#
# Our own blocks are stricter. Every rank draws the zeros for the whole tensor and takes its part, so that the result
# matches that of a single process up to rounding. Today's large language models are usually pre-trained without
# dropout; PaLM ([Chowdhery and others, 2022](https://arxiv.org/abs/2204.02311), §5) is an example. The seeds of the
# initial weights still matter.
#
# ## The wrong order
#
# The main page argues that a row cut before a column cut takes four collectives. Let us run it. Four functions pass
# tensors along, and each has its own backward pass:
#
# | function | forward | backward |
# |---|---|---|
# | `split_over_ranks` | each rank takes its part | all-gather |
# | `sum_over_ranks` | all-reduce | nothing |
# | `copy_to_ranks` | nothing | all-reduce |
# | `join_over_ranks` | all-gather | each rank takes its part |


# %%
def row_then_column(x, up, up_bias, down, down_bias):
    term = linear(moves.split_over_ranks(x, 1), own_part(up, 1))
    hidden = gelu(moves.sum_over_ranks(term) + up_bias)  # gelu needs the sum
    hidden = moves.copy_to_ranks(hidden)
    part = linear(hidden, own_part(down, 0), own_part(down_bias, 0))
    return moves.join_over_ranks(part, 1)


def column_then_row(x, up, up_bias, down, down_bias):
    hidden = linear(moves.copy_to_ranks(x), own_part(up, 0), own_part(up_bias, 0))
    return moves.sum_over_ranks(linear(gelu(hidden), own_part(down, 1))) + down_bias


# %%
from course_utils.lessons.model_parallel import (
    collectives_text,
    mlp_beside_whole,
    moved_text,
)

compare = partial(ranks.run, mlp_beside_whole, backend="gloo")
mlps = {"row then column": row_then_column, "column then row": column_then_row}
for _ in range(2):  # the first runs are slow: they connect
    runs = {name: compare(mlp) for name, mlp in mlps.items()}
for name, run in runs.items():
    assert max(run.results) <= 1e-10  # in float64, beside one process
    for part in ("forward", "backward"):
        print(f"{name}, {part}: {moved_text(run.events, part)}")
course.draw.timelines(*runs.values(), titles=list(runs), title=collectives_text(runs))

# %% [markdown]
# Both orders give the correct result, but the wrong one takes two more collectives, and two of its four move the wide
# tensor, which is four times as large as $x$. For an all-gather, the output lists the part that each rank contributes.
# Such short messages make the times in the picture meaningless. Backward, the column cut of `down` needs an all-reduce,
# and the row cut of `up` needs an all-gather, because each rank has only its columns of the gradient of $x$.
#
# Why do these functions have a backward pass of their own? With `dist.all_reduce` after a row cut you would get the
# right gradients in the PyTorch of this course, but also a warning that it has no registered backward pass. And before
# a column cut there is no call at all from which autograd could learn that the gradients have to be added up.
#
# ## Sequence parallelism
#
# Outside its two pairs of cuts, one in attention and one in the MLP, a block still does some work on the whole $x$. The
# norms, the additions and dropout are repeated on every rank, and every rank keeps what their backward pass needs.
# **Sequence parallelism** ([Korthikanti and others, 2022](https://arxiv.org/abs/2205.05198)) cuts these parts along the
# text, so that each rank has the whole vectors of some tokens.
#
# A column cut needs all tokens, so an all-gather comes before it. And after a row cut, a rank no longer needs the
# complete sum, only that of its own tokens. The all-reduce becomes a reduce-scatter. Here is what each rank holds in
# the forward pass of an MLP, with a text of 16 tokens and vectors of 32 numbers:


# %% tags=["figure:09_sequence_blocks"]
def sequence_parallel_mlp(x, up, down):
    mine = own_part(x, 0)  # four of 16 tokens
    normed = layer_norm(mine, (32,))
    gathered = moves.all_gathered(normed, 0)
    hidden = gelu(linear(gathered, own_part(up, 0)))  # column cut
    term = linear(hidden, own_part(down, 1))  # row cut
    y = moves.reduce_scattered(term, 0)
    return dict(zip(names, (mine, normed, gathered, hidden, term, y), strict=True))


names = ["x", "norm", "all-gather", "hidden", "terms of y", "reduce-scatter"]
x, up, down = torch.randn(16, 32), torch.randn(128, 32), torch.randn(32, 128)
normed = layer_norm(x, (32,))  # in one process
hidden = gelu(linear(normed, up))
y = linear(hidden, down)
whole = dict(zip(names, (x, normed, normed, hidden, y, y), strict=True))
run = ranks.run(sequence_parallel_mlp, x, up, down, backend="gloo")
panel = {"MLP": held_matrices(run.results, whole)}
what_is_where(panel, "Tokens are cut before the all-gather and after the reduce-scatter")

# %% [markdown]
# Tokens are rows here. On the far left and far right, each rank holds a quarter of the tokens, and the next layer can
# go on from there.
#
# Does that cost more bytes? With four ranks, a ring sends 1.5 times the tensor from each rank in an all-reduce. From
# lesson 5 you know what an all-reduce consists of.
#
# **Predict.** By what factor does the number of bytes that a rank sends change with sequence parallelism, if rings do
# the collectives?

# %%
course.predict("model_sequence", within=1.1, times_the_bytes=...)

# %%
from course_utils.lessons.model_parallel import CHARACTERS, Parallelism, character_model
from course_utils.lessons.model_parallel import character_text, collectives_in, in_phase
from course_utils.lessons.model_parallel import pass_bytes, sequence_text, step_memory
from course_utils.lessons.model_parallel import text_batches, training_memory

model = character_model(len(CHARACTERS), width=64, depth=4, dropout=0.1)
(batch,) = text_batches(character_text().training, 4, 64, 1)  # 4 texts of 64
step = partial(ranks.run, step_memory, model, batch, backend="gloo")
plain, cut = step(), step(sequence=True)  # one step of training
sent = [pass_bytes(run.events, ranks=4) for run in (plain, cut)]
kept = [run.results[0].activations for run in (plain, cut)]
course.measured("model_sequence", times_the_bytes=round(sent[1] / sent[0], 2))
print(sequence_text((sent[0], kept[0]), (sent[1], kept[1])))
forward = [in_phase(run.events, "forward") for run in (plain, cut)]
calls = [len(collectives_in(run.events, "forward")) for run in (plain, cut)]
title = f"Forward, {calls[0]} collectives become {calls[1]} if the sequence is cut"
course.draw.timelines(*forward, titles=["all-reduces", "sequence cut"], title=title)

# %% [markdown]
# An all-reduce *is* a reduce-scatter followed by an all-gather, 0.75 and 0.75 of the tensor. So inside the blocks these
# bytes are the same. Our model adds an all-gather in each direction, because it cuts the text at its beginning and
# joins it at its end, and a small all-reduce for each block. This one is needed because each rank applies the norms,
# and the biases behind the sums, to its own tokens only, so their gradients have to be added up. Without it the copies
# would drift apart, again without an error.
#
# There are also twice as many calls, each with its latency. Don't compare the times in the picture, because the gloo
# library implements reduce-scatter as an all-reduce. In return, norms and dropout now lie between the two halves of the
# all-reduce, where each rank has only its part, and this saves memory:

# %%
whole_text, cut_text = Parallelism(tensor=4), Parallelism(tensor=4, sequence=True)
calculated = {
    "norms on all ranks": training_memory(model, 4, 64, parallelism=whole_text),
    "norms cut, too": training_memory(model, 4, 64, parallelism=cut_text),
}
counted = dict(zip(calculated, (plain.results[0], cut.results[0]), strict=True))
for name, memory in counted.items():
    assert abs(memory.total / calculated[name].total - 1) <= 0.05
pictures.memory(calculated, counted)

# %% [markdown]
# Our ranks keep what they have gathered for the backward pass. Korthikanti's keep only their own part and gather it
# once more, which saves more memory than the picture shows and puts more bytes on the links.
#
# The activation checkpointing of the main page computes each block's forward pass again during the backward pass. How
# many all-reduces does that add?

# %%
from course_utils.lessons.model_parallel import moved_text

print(f"without checkpointing: {moved_text(plain.events, 'backward')}")
for dropout in (0.1, 0):
    blocks = character_model(len(CHARACTERS), width=64, depth=4, dropout=dropout)
    run = ranks.run(step_memory, blocks, batch, checkpointing=True, backend="gloo")
    print(f"with it, dropout {dropout}: {moved_text(run.events, 'backward')}")

# %% [markdown]
# A block's backward pass needs two all-reduces and its forward pass two as well, so you would expect four in each of
# the 4 blocks, which is what happens with dropout. But with `use_reentrant=False`, PyTorch stops recomputing as soon as
# it has everything that it needs. Without dropout, that is just before the block's last sum, so a block has only three.
# Dropout comes after this sum and saves what it drops, so PyTorch has to go on.
#
# ## Sending one chunk while computing the next
#
# Does the sum after a row cut have to wait until the product is complete? The rows of $y$ don't depend on each other,
# so we can cut $x$ into chunks of rows, and send the terms of one chunk while the product of the next is computed. This
# is the idea behind Megatron's option `--tp-comm-overlap` and behind *async TP* in torchtitan. There the chunks belong
# to the all-gathers and reduce-scatters of sequence parallelism. Ours uses `async_op=True` from lesson 7:


# %%
from course_utils.lessons.model_parallel import in_phase


def row_cut_in_chunks(chunks):
    torch.manual_seed(dist.get_rank())
    x, weight = torch.randn(512, 4096), torch.randn(512, 4096)  # this rank's parts
    terms, started = [], []
    dist.barrier()
    with phase("forward"):
        for rows in x.chunk(chunks):
            term = linear(rows, weight)
            started.append(dist.all_reduce(term, async_op=True))
            terms.append(term)
        for work in started:
            work.wait()
    return torch.cat(terms)


run_in_chunks = partial(ranks.run, row_cut_in_chunks, backend="gloo")
run_in_chunks(1)  # the first run is slow: it connects
runs = {1: [], 4: []}
for _ in range(5):
    for chunks, line in runs.items():  # by turns
        line.append(run_in_chunks(chunks))
at_once, in_four = (line[0].results[0] for line in runs.values())
assert torch.allclose(at_once, in_four, atol=1e-2)  # the numbers are about 100
seconds, pair = [], []
for line in runs.values():
    parts = [in_phase(run.events, "forward") for run in line]  # after the barrier
    spans = [max(e.end for e in part) - min(e.start for e in part) for part in parts]
    seconds.append(spans)
    pair.append(parts[np.argsort(spans)[2]])  # the median of five
one, four = 1000 * np.median(seconds, axis=1)
said = f"In one piece it takes {one:.0f} ms, in four chunks {four:.0f} ms"
title = unless_busy(is_busy(seconds), said)
course.draw.timelines(*pair, titles=["one piece", "four chunks"], title=title)

# %% [markdown]
# The timelines show the median of five runs, from the barrier on. In four chunks, the first all-reduce can start when a
# quarter of the product is done. What can be gained is limited by the shorter of the two, product and messages, and
# every chunk pays the latency again. On your computer sending also takes time from the cores that compute. The PyTorch
# team has published [measurements on 256
# GPUs](https://github.com/pytorch/torchtitan/blob/main/benchmarks/asyncTP_llama3_h100_2025-06_torchtitan.md), in which
# tensor parallelism stays inside groups of 8 GPUs with NVLink (lesson 13).
#
# Why inside such a group? An H100 sends 450 GB per second through NVLink, and through a network link of 400 Gbit/s only
# 50 GB per second. With 8 ranks a ring sends 1.75 times the tensor. The block on the main page, with its 4.3 GB of
# all-reduces, therefore needs 1.75 × 4.3 ÷ 450 s = 17 ms for its sums with NVLink, and nine times as long over the
# network. Its arithmetic takes 6 operations for each weight and token, which is 6 × 12 × 4,096² × 131,072 operations.
# On 8 GPUs with 5 · 10¹⁴ operations per second each, that is 40 ms. In the first case the sums can be hidden, and in
# the second case most of them can't.
#
# ## PyTorch's own tool
#
# A **DTensor** is a tensor that knows how it is spread over a **mesh**, which is a set of ranks arranged in rows and
# columns. Here there are four ranks in one row. A DTensor can be whole on every rank (`Replicate`), cut along a
# dimension (`Shard`), or a term of a sum on each rank (`Partial`). A plan gives each linear layer a style, which fixes
# how its weights, its input and its output are spread. The collectives follow from that:


# %%
def cut_with_dtensors(block):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel
    from torch.distributed.tensor.parallel import parallelize_module

    mesh = init_device_mesh("cpu", (4,), mesh_dim_names=("tensor",))
    plan = {
        "attention.qkv": ColwiseParallel(),
        "attention.out": RowwiseParallel(),
        "mlp.up": ColwiseParallel(),
        "mlp.down": RowwiseParallel(),
    }
    block.attention.heads //= 4  # the plan doesn't know about heads
    parallelize_module(block, mesh, plan)


# %% tags=["nbval-check-output"]
from course_utils.lessons.model_parallel import beside_serial, dtensor


def count_collectives():
    return dtensor.counted(lambda: beside_serial(cut_with_dtensors, passes=1))


run = ranks.run(count_collectives, backend="gloo")
found, collectives = run.results[0]
assert all(max(found.values()) <= 1e-10 for found, _ in run.results)
print(f"{len(found)} tensors agree with those of one process")
print("all-reduces:", collectives["all_reduce"])

# %% [markdown]
# These are the same cuts, the same four all-reduces and the same results. But the plan cuts `qkv` into contiguous rows,
# which is right only because the query, key and value of one head lie side by side here. Many models store all queries
# first, then all keys and all values. There the same plan would give wrong results without an error.
#
# Before all this, PyTorch hands out the weights of rank 0, which takes some other collectives that aren't printed here.
# For sequence parallelism there is a `SequenceParallel` style for the norms. [Lesson 11](11_hybrid_and_sharded.ipynb)
# uses meshes with two axes.
#
# ## A smaller model instead
#
# A model can also be made smaller, at least after its training. In **pruning**, the weights with the smallest absolute
# values are set to zero, in the hope that they matter the least. We train the digits network of lesson 6 and remove
# more and more weights, without training again:

# %% tags=["here:09_pruning"]
from course_utils.lessons.data_parallel import Sgd, accuracy, batches, digits_mlp

data = course.data.digits("float32")
network = digits_mlp(seed=0)
optimizer = Sgd(network.parameters(), 0.2)
for epoch in range(10):
    torch.manual_seed(epoch)
    for batch in batches(torch.randperm(len(data.train_x)), 64):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(
            network(data.train_x[batch]), data.train_y[batch]
        )
        loss.backward()
        optimizer.step()

shares, recognised = [0, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95], []
matrices = [p.data for p in network.parameters() if p.dim() == 2]
for share in shares:
    for matrix in matrices:  # a weight that is zero stays zero
        limit = matrix.abs().quantile(share)
        matrix[matrix.abs() < limit] = 0
    recognised.append(100 * accuracy(network, data.test_x, data.test_y))
axes = {"across": "share of the weights that are zero", "up": "recognised, in %"}
title = f"Half of the weights gone: {recognised[2]:.0f}%, 90% gone: {recognised[5]:.0f}%"
course.draw.over_numbers(shares, {"digits": recognised}, title, **axes)

# %% [markdown]
# This network can lose many of its weights before it recognises noticeably fewer images. For a model that doesn't fit
# during training this comes too late. But is the smaller network any faster? An ordinary matrix product multiplies
# zeros, too. It takes less time if whole rows or columns are removed, so that the matrix becomes smaller.
#
# **Predict.** A layer has 2,048 inputs and 2,048 outputs. How many times faster is its product if 90 percent of its
# weights are zero, in random places?

# %%
course.predict("model_pruning", within=1.5, times_faster=...)

# %%
import time

x, weight = torch.randn(256, 2048), torch.randn(2048, 2048)
zeros = weight * (torch.rand(2048, 2048) > 0.9)


def seconds_of(weight):
    start = time.perf_counter()
    for _ in range(5):
        linear(x, weight)
    return time.perf_counter() - start


candidates = {"dense": weight, "zeros": zeros, "rows": weight[:205].clone()}
measures = {name: partial(seconds_of, matrix) for name, matrix in candidates.items()}
seconds = by_turns(measures, rounds=7, warm_ups=1)
middle = {name: np.median(line) for name, line in seconds.items()}
busy = is_busy(list(seconds.values()))
course.measured(
    "model_pruning", busy=busy, times_faster=middle["dense"] / middle["zeros"]
)
said = f"a tenth of the rows: {middle['dense'] / middle['rows']:.1f} times faster"
print(unless_busy(busy, said))

# %% [markdown]
# As long as the matrix is stored as an ordinary tensor, zeros in random places save neither time nor memory. Sparse
# formats save memory if enough weights are zero, and some GPUs have units for one regular pattern, in which two of
# every four neighbouring weights are zero. Removing whole rows saves both time and memory on any hardware, but
# important weights go with the unimportant ones.
#
# ## A report, redone
#
# SURF's [slides on distributed training](../docs/sources.md) (2022) compare data parallelism and model parallelism in a
# table. With more processors, it says, the throughput of data parallelism "increases" and that of model parallelism
# "decreases". The communication of the first is "low to moderate" and that of the second is "high", although these are
# "very generic statements (there are exceptions)".
#
# Layers on different ranks bring no speed at all if they work in turn, as the main page showed. And how much is sent?
# We take a single linear layer and cut it in the three ways of the main page. The next cell runs it forward and
# backward, and counts the bytes of the tensors that are all-reduced. Nothing is counted for cutting the $x$ of a row
# cut or for joining the $y$ of a column cut, because neighbouring layers can often do without:


# %% tags=["here:09_bytes"]
def one_layer(cut, x, weight):
    if cut == "batch cut":
        y = linear(own_part(x, 0), weight.requires_grad_())
    elif cut == "column cut":
        y = linear(moves.copy_to_ranks(x.requires_grad_()), own_part(weight, 0))
    else:
        x = own_part(x, 1).requires_grad_()
        y = moves.sum_over_ranks(linear(x, own_part(weight, 1)))
    y.sum().backward()  # any loss will do, because we only count bytes
    if cut == "batch cut":
        dist.all_reduce(weight.grad)  # as in lesson 6


def count_bytes(cut, rows, inputs, outputs):
    x, weight = torch.zeros(rows, inputs), torch.zeros(outputs, inputs)
    run = ranks.run(one_layer, cut, x, weight, backend="gloo")
    return run.bytes_per_rank[0]


cuts = ["batch cut", "column cut", "row cut"]
for cut in cuts:
    print(f"{cut}: {count_bytes(cut, 16, 1152, 512):,} bytes")

# %% [markdown]
# The batch cut sums the gradient of $W$, which has 1,152 inputs × 512 outputs, at 4 bytes each. The column cut sums the
# gradient of $x$, with 16 rows × 1,152 elements, and the row cut sums $y$, with 16 × 512. So with 16 rows, data
# parallelism sends 72 times as much as a row cut. But $x$ and $y$ grow with the number of rows, and $W$ doesn't.
#
# **Predict.** A smaller layer has 288 inputs and 128 outputs. Above how many rows does the batch cut send less than the
# row cut?

# %%
course.predict("model_cut", within=1.05, rows=...)

# %% tags=["figure:09_examples"]
from course_utils.lessons.model_parallel import sizes_text
from course_utils.words import bytes_text

inputs, outputs = 288, 128
course.answer("model_cut", rows=inputs * outputs / outputs)
row_counts = [8, 32, 128, 512, 2048]
counted = {
    cut: [count_bytes(cut, n, inputs, outputs) for n in row_counts] for cut in cuts
}
calculated = {
    "batch cut": [4 * inputs * outputs for n in row_counts],
    "column cut": [4 * n * inputs for n in row_counts],
    "row cut": [4 * n * outputs for n in row_counts],
}
axes = {"across": "rows of x", "up": "bytes all-reduced", "unit": bytes_text, "log": True}
title = sizes_text(row_counts, counted)
course.draw.over_numbers(row_counts, counted, title, predicted=calculated, **axes)

# %% [markdown]
# The row cut sums $n \times 128$ elements and the batch cut 288 × 128, so they are equal if $n$ is 288, the number of
# inputs. In the same way, the column cut equals the batch cut if $n$ is the number of outputs. In a transformer the
# rows are tokens, and a batch of 64 texts with 2,048 tokens has 131,072 of them. Larger layers move the crossing to the
# right, but even with 16,384 inputs and outputs, so many rows lie far beyond it.
#
# A [report on FlexFlow](../docs/sources.md) (Nguyen, 2020) cuts fully connected layers in the ways that you know. The
# same rule as above also holds for convolutions. A convolution with windows of 3 × 3 pixels has nine weights for each
# input channel and output, but its $x$ holds each channel only once:

# %% tags=["nbval-check-output", "here:09_layers"]
layers = {  # of VGG-16, with 16 images: rows, inputs, window, outputs
    "second convolution": (16 * 224 * 224, 64, 9, 64),
    "convolution in the middle": (16 * 56 * 56, 256, 9, 256),
    "last convolution": (16 * 14 * 14, 512, 9, 512),
    "first fully connected": (16, 512 * 7 * 7, 1, 4096),
    "last fully connected": (16, 4096, 1, 1000),
}
for name, (rows, inputs, window, outputs) in layers.items():
    elements = {"batch cut": inputs * window * outputs, "column cut": rows * inputs}
    elements["row cut"] = rows * outputs
    least = min(elements.values())
    best = [cut for cut, number in elements.items() if number == least]
    print(f"{name}: {' or '.join(best)}, {least:,} elements")

# %% [markdown]
# For a convolution, every position in every image is a row. So it has many rows and few weights, and the batch cut is
# the cheapest, except for the last three, where an image has shrunk to 14 × 14 positions. The first one isn't listed,
# because images need no gradient, so its column cut sums nothing. A fully connected layer has one row per image and
# many weights, and it is cheaper to cut the weights. In a transformer the rows are tokens again, which brings us back
# to the batch. If neighbouring layers are cut differently, $x$ and $y$ have to be moved as well, which we haven't
# counted. FlexFlow therefore finds its cuts by a search. In [lesson 12](12_strategy_search.ipynb) you write one.
#
# Besides pruning, the slides name a second alternative, which is to stay on ordinary processors, because they have more
# memory. A machine with 512 GB of main memory could just hold the 512 GB from the top of the main page, without any
# activations. But its training takes $10^{24}$ operations (lesson 0). At 5 · 10¹² operations per second, a hundred
# times fewer than the GPU of lesson 0 does, that is more than 6,000 years.
#
# **To read**
#
# - Narayanan and others (2021), [*Efficient Large-Scale Language Model Training on GPU Clusters Using
#   Megatron-LM*](https://arxiv.org/abs/2104.04473), combines tensor parallelism with other kinds, on 3,072 GPUs.
# - The PyTorch documentation of [tensor
#   parallelism](https://docs.pytorch.org/docs/stable/distributed.tensor.parallel.html) lists the styles that
#   `parallelize_module` knows.

# %%
ranks.stop()
