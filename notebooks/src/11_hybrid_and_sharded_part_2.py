# The lesson on mixtures, part 2. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Why keep everything P times?
#
# You want to train a model with 7 billion weights on a machine with eight 80 GB GPUs. With data parallelism on $P$
# ranks, everything is kept $P$ times, because each rank has a whole copy. In **mixed precision**, a program computes
# with 2-byte numbers and keeps 4-byte numbers where it needs more precision. A weight then takes 2 bytes, and so does
# its gradient. The optimizer needs another 12 bytes, 4 for a more precise copy of the weight and 8 for Adam's two
# running averages. That makes 16 bytes per weight, or 112 GB in all, so the program runs out of memory before it has
# taken a single step. Yet the eight GPUs have 640 GB between them. If they kept those 112 GB only once, there would be
# plenty of room.
#
# In this part you will let each rank keep only its own share, first by hand and then with PyTorch's FSDP2. You will
# predict what this saves and costs, let two ranks try to read what four have saved, and work out what fits on how many
# GPUs.
#
# *50 minutes · builds on [lesson 11, part 1](11_hybrid_and_sharded.ipynb) · 4 ranks*

# %%
import os
import tempfile

import numpy as np
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as checkpoint
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.nn.functional import cross_entropy

import course_utils as course
from course_utils.lessons.hybrid_and_sharded import shard_pictures

ranks = course.start(4)
ranks.load_torch()

# %% [markdown]
# ## Each rank updates one part of the weights
#
# Think about the end of a data-parallel step. An all-reduce has given every rank the same gradient, and now all of them
# run the same optimizer on the same weights. Four ranks do this work four times, and each needs the whole **optimizer
# state** for it. That is whatever the optimizer carries from one step to the next, such as Adam's running averages.
#
# Once is enough. Let rank $r$ be responsible for the $r$-th of four equal parts of the weights. To update this part, it
# needs the same part of the summed gradient, which is exactly what a reduce-scatter gives it. Afterwards, an all-gather
# sends every updated part to all ranks. This is stage 1 of **ZeRO**, which is short for *zero redundancy optimizer*.
# Here is one step on eight weights, 10 to 80, leaving Adam aside for now:


# %%
def one_step(weights, gradient, rate):
    P, rank = dist.get_world_size(), dist.get_rank()
    total = torch.empty(len(weights) // P)
    dist.reduce_scatter_single(total, gradient)  # rank r gets part r of the sum
    updated = weights.chunk(P)[rank] - rate * total / P  # a step with the mean
    gathered = torch.empty_like(weights)
    dist.all_gather_single(gathered, updated)  # every rank gets all parts
    return total, updated, gathered


# %% [markdown]
# As in lesson 5, each number in the gradient of rank $r$ is $2^r$, so the sum over all ranks is 15 and the mean is
# 3.75. With a learning rate of 0.4, every weight should become smaller by 1.5.

# %% tags=["nbval-check-output"]
weights = torch.arange(10.0, 90.0, 10.0)
gradients = [torch.full((8,), 2.0**rank) for rank in range(4)]
run = ranks.run(one_step, weights, course.per_rank(gradients), 0.4, backend="gloo")
for rank, (total, updated, gathered) in enumerate(run.results):
    print(f"rank {rank}: sum {total.tolist()}, updated {updated.tolist()}")
    assert torch.equal(gathered, weights - 1.5)

# %% tags=["figure:11_zero1"]
sums, updated, gathered = zip(*run.results)
shard_pictures.zero1_blocks(gradients, sums, updated, gathered)

# %% [markdown]
# After the backward pass each rank has all four blocks of gradients, but with only its own numbers in them. The
# reduce-scatter gives it one block that is complete, and that is the only one it needs from now on. In the lower half,
# each rank has updated its own block of weights, and the all-gather brings all of them to every rank.
#
# How much does this cost? In lesson 5 you saw that a ring all-reduce *is* a reduce-scatter followed by an all-gather.
# ZeRO-1 only puts the update in between. So if weights and gradients take the same number of bytes, each rank sends
# exactly as much as before.
#
# Now let's do the same with Adam, in a training run whose result we can check. The model is the small transformer of
# part 1. `FlatModel` stores all its weights in one vector and all its gradients in a second one. The optimizer gets
# only `own`, this rank's part of the weights. Because `own` is a view of the long vector, the model changes with it.

# %%
from course_utils.lessons.hybrid_and_sharded import RATE, FlatModel
from course_utils.lessons.hybrid_and_sharded import small_batches, small_model


def train_zero1(batches):
    P, rank = dist.get_world_size(), dist.get_rank()
    model = small_model()
    flat = FlatModel(model)
    own = flat.vector.chunk(P)[rank]  # a view, not a copy
    optimizer = torch.optim.Adam([own], RATE)
    total = torch.empty_like(own)
    losses = []
    for x, y in batches:
        flat.gradient.zero_()
        outputs = model(x.chunk(P)[rank])
        loss = cross_entropy(outputs.flatten(0, 1), y.chunk(P)[rank].flatten())
        loss.backward()

        dist.reduce_scatter_single(total, flat.gradient)
        own.grad = total / P
        optimizer.step()
        # Gather from a copy, because `own` itself is a part of the output.
        dist.all_gather_single(flat.vector, own.clone())
        losses.append(loss.item())
    return losses, optimizer.state[own]["exp_avg"].numel()


# %% tags=["nbval-check-output"]
from course_utils.lessons.hybrid_and_sharded import same_text, train_serially

batches = small_batches(20)
serial = ranks.run(train_serially, small_model, batches, RATE, ranks=1, backend="gloo")
run = ranks.run(train_zero1, batches, backend="gloo")
losses = np.mean([losses for losses, averages in run.results], axis=0)
same_text({"ZeRO-1": losses}, serial.results[0].losses)  # an error if they differ
size = FlatModel(small_model()).vector.numel()
averages = run.results[0][1]
print(f"A rank keeps Adam's averages for {averages:,} of {size:,} weights")

# %% [markdown]
# The losses agree with those of one process that trains with plain Adam; otherwise `same_text` would have raised an
# error. But each rank keeps Adam's averages for only a quarter of the weights. We can cut the vector anywhere, because
# Adam treats each weight on its own. [Further](11_hybrid_and_sharded_further.ipynb) has an optimizer for which this
# doesn't work.
#
# ## Three stages
#
# If each rank needs the gradient of only one part of the weights, why should it keep the whole gradient? And why keep
# the weights of layers that aren't computing at the moment? ZeRO has three **stages**, which are unrelated to the
# stages of a pipeline. Each divides one more thing among the ranks:
#
# - Stage 1 divides the optimizer state.
# - Stage 2 divides the gradients, too. As soon as the backward pass has filled a bucket of gradients (lesson 7), the
#   bucket is reduce-scattered. A rank is now responsible for a part of *each bucket*. It keeps this part and frees the
#   rest.
# - Stage 3 divides the weights as well. They are gathered just before a layer computes, in the forward pass and again
#   in the backward pass, and freed afterwards.

# %% tags=["figure:11_zero_blocks"]
shard_pictures.stages(ranks=4)

# %% [markdown]
# Stage 0 is plain data parallelism. Let's calculate with 1,000 weights on these four ranks. To keep it simple, let's
# say that all numbers have the same size. Adam keeps two averages for each weight, the mean of its gradients and the
# mean of their squares. With stage 0 a rank keeps 1,000 weights, 1,000 gradients and 2,000 averages, which makes 4,000
# numbers. With stage 1 it keeps only 500 averages. That leaves 2,500 numbers, or 62.5% of 4,000. In the picture, 10 of
# the 16 squares in each rank's row are filled.
#
# **Predict.** Now take *two* ranks instead of four. What percentage does a rank keep with stages 1, 2 and 3?

# %%
course.predict("zero_kept", within=1.02, stage_1=..., stage_2=..., stage_3=...)  # percent

# %% [markdown]
# What do the stages send? Let's go back to four ranks. In a ring all-reduce of 1,000 gradients, each rank sends three
# blocks of 250 numbers for the reduce-scatter, and three more for the all-gather. So stages 0 and 1 send 750 + 750 =
# 1,500 numbers. Stage 2 sends just as much, because it only splits the reduce-scatter into buckets. Stage 3 has the
# same reduce-scatter. It needs no all-gather after the update, but it gathers all the weights twice during the step.
#
# **Predict.** If stage 0 sends 100%, what does stage 3 send?

# %%
course.predict("zero_sent", within=1.02, stage_3=...)  # percent

# %% [markdown]
# The next cell trains the small transformer with each stage, and compares all four runs with one process. It adds up
# the bytes that rank 0 keeps between two steps, and those that it would send if every collective were a ring. Each
# number takes 8 bytes here. The bars show what was counted on four ranks, and the black lines show what the calculation
# above gives.

# %% tags=["figure:11_stages"]
from course_utils.lessons.hybrid_and_sharded import count_stages, stages_text, totals

few = batches[:2]
kept = totals(count_stages(ranks, few, world_size=2).kept)
percent = {f"stage_{k}": 100 * kept[k] / kept[0] for k in (1, 2, 3)}
course.measured("zero_kept", **percent)

stages = count_stages(ranks, few)  # on four ranks
print(same_text(stages.losses, serial.results[0].losses[:2]))
sent = totals(stages.sent)
course.measured("zero_sent", stage_3=100 * sent[3] / sent[0])
panels = [
    course.draw.SharesPanel("kept by rank 0", stages.kept, stages.kept_on_paper),
    course.draw.SharesPanel("sent in a step", stages.sent, stages.sent_on_paper),
]
course.draw.shares(panels, stages_text(stages.kept, stages.sent))

# %% [markdown]
# With one backward pass per step, stages 1 and 2 save memory and send nothing extra. Stage 3 pays for its savings by
# sending half as much again. In **mixed precision**, where some numbers take 2 bytes and others 4, you have to count
# bytes instead, because weights and gradients may travel in different formats.
#
# If the batch doesn't fit into memory, you split it into $m$ micro-batches and accumulate their gradients (lesson 7).
# Stages 0 and 1 need to send only once per step, after the last micro-batch; in DDP you ask for this with `no_sync`.
# Stage 2 can't wait that long, because no rank keeps a whole gradient, so it needs a reduce-scatter after *every*
# micro-batch. With our 1,000 weights and two micro-batches, that is 750 + 750 numbers, and another 750 for the
# all-gather at the end. In total, stage 2 sends 2,250 numbers instead of 1,500. Stage 3 has to repeat all its messages
# for every micro-batch, unless the ranks keep what they have gathered.
#
# **Predict.** What do stages 2 and 3 send with four micro-batches, if stage 0 sends 100%?

# %%
course.predict("micro_batches", within=1.02, stage_2=..., stage_3=...)  # percent

# %%
counted = count_stages(ranks, few, micro_batches=4)
print(same_text(counted.losses, serial.results[0].losses[:2]))
sent = totals(counted.sent)
stage_2, stage_3 = (100 * sent[k] / sent[0] for k in (2, 3))
course.measured("micro_batches", stage_2=stage_2, stage_3=stage_3)

# %% [markdown]
# If all numbers have the same size, stage 2 sends $\frac{m+1}{2}$ times as much as stage 0, and stage 3 sends
# $\frac{3m}{2}$ times as much. This is one reason why pipelines, which need many micro-batches, are usually combined
# with stage 1.
#
# ## FSDP2 gathers a layer, computes, and frees it
#
# PyTorch's version of stage 3 is called **FSDP2**, the second version of *fully sharded data parallel*. Instead of one
# long vector it cuts every weight matrix by its rows into shards. You call `fully_shard` on each layer. A last call on
# the whole model takes care of any weights that belong to none of these layers. In the next cell, a `ShardWatch`
# records which weights and gradients of the three layers a rank holds whenever one of them computes. `loss.backward()`
# now averages the gradients over the ranks, so you don't divide by $P$ yourself.

# %%
from course_utils.lessons.hybrid_and_sharded import ShardWatch


def three_layers():
    torch.manual_seed(0)
    return nn.Sequential(*[nn.Linear(64, 64) for _ in range(3)])


def fully_sharded(x):
    model = three_layers()
    watch = ShardWatch(model)
    for layer in model:
        fully_shard(layer)
    fully_shard(model)

    watch.note("before")
    loss = model(x.chunk(4)[dist.get_rank()]).square().mean()
    watch.note("loss")
    loss.backward()
    watch.note("after")
    return watch.moments, model[0].weight.grad.full_tensor()


# %% tags=["figure:11_fsdp"]
x = torch.randn(32, 64)
run = ranks.run(fully_sharded, x, backend="gloo")

whole = three_layers()
whole(x).square().mean().backward()  # the whole batch in this process
for _, gradient in run.results:
    torch.testing.assert_close(gradient, whole[0].weight.grad)
shard_pictures.gathers([moments for moments, gradient in run.results])

# %% [markdown]
# Before the step, each rank has a quarter of every layer. While layer 0 computes (*forward 0*), every rank has all of
# it, and only a quarter of the others. In the backward pass the layers are gathered again, in reverse order. The frame
# *backward 2* is the moment when layer 2's backward pass begins, so there is no gradient yet. As soon as a layer's
# gradients are complete, they are reduce-scattered, and each rank keeps a quarter. The cell has also checked that layer
# 0's gradient is the one that a single process computes, up to rounding.
#
# The picture leaves out the buffers in which weights arrive. FSDP2 uses **prefetch**, which means that it starts to
# gather the next layer while the current one computes. It does so in the backward pass, and on GPUs in the forward pass
# as well, so you need memory for about two whole layers at a time. If you have much more, `fully_shard(layer,
# reshard_after_forward=False)` keeps a layer whole until the end of its backward pass, which saves one of its two
# gathers.
#
# [Further](11_hybrid_and_sharded_further.ipynb) shows how FSDP2 handles a model that fits on no rank, mixed precision,
# and clipping.
#
# ## Every rank writes its part of a checkpoint
#
# A **checkpoint** is a set of files from which training can resume. The simplest method is to gather everything on rank
# 0 and let it save a **full state dict**. A weight and Adam's two averages take 12 bytes in float32. For 7 billion
# weights this makes 84 GB, which one process has to hold and write while the others wait. In a **sharded state dict**
# each rank has only its own shards, so all ranks can write at the same time.
#
# In the next cell, 2 × 2 ranks do this. `TorchMeshTraining` cuts the transformer's blocks along `tensor`, as in lesson
# 9, and then FSDP2 divides each rank's pieces among the ranks along `data`. `checkpoint.load` writes into tensors that
# exist already, which is why `load_and_train` asks for a state before it loads.

# %%
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict

from course_utils.lessons.hybrid_and_sharded import TorchMeshTraining


def train_and_save(folder, sizes, batches):
    training = TorchMeshTraining(small_model(), sizes, RATE)  # a mesh, FSDP2, Adam
    for x, y in batches:
        training.step(x, y)
    model, adam = get_state_dict(training.model, training.optimizer)
    checkpoint.save({"model": model, "adam": adam}, checkpoint_id=folder)
    return training.whole()  # weights and averages, for the comparison


def load_and_train(folder, sizes, batches):
    training = TorchMeshTraining(small_model(), sizes, RATE)
    model, adam = get_state_dict(training.model, training.optimizer)
    checkpoint.load({"model": model, "adam": adam}, checkpoint_id=folder)
    set_state_dict(
        training.model,
        training.optimizer,
        model_state_dict=model,
        optim_state_dict=adam,
    )
    loaded = training.whole()
    return loaded, [training.step(x, y) for x, y in batches]


# %% [markdown]
# **Predict.** Four ranks write the checkpoint. Then two ranks try to read it, once on each of two different meshes, and
# finally a single process does. By how much do the weights and averages that they load differ from those that were
# saved?

# %%
choices = {
    "a": "not at all",
    "b": "by about 1e-15",
    "c": "a different mesh can't read it",
}
course.predict("checkpoint", answer=..., choices=choices)

# %%
from course_utils.lessons.hybrid_and_sharded import largest_difference

differences = []
with tempfile.TemporaryDirectory() as folder:
    square = {"data": 2, "tensor": 2}
    run = ranks.run(train_and_save, folder, square, batches[:3], backend="gloo")
    written = run.results[0]
    print(*sorted(os.listdir(folder)))
    for sizes, P in (({"data": 2}, 2), ({"tensor": 2}, 2), ({"data": 1}, 1)):
        options = {"ranks": P, "backend": "gloo"}
        run = ranks.run(load_and_train, folder, sizes, batches[3:5], **options)
        loaded = run.results[0][0]
        for name, values in written.items():
            differences.append(largest_difference(loaded[name], values))
        losses = np.mean([losses for loaded, losses in run.results], axis=0)
        assert largest_difference(losses, serial.results[0].losses[3:5]) < 1e-10
        print(sizes, "resumes with losses", *(f"{loss:.9f}" for loss in losses))
course.measured("checkpoint", answer="a" if max(differences) == 0 else "b")

# %% [markdown]
# Each rank has written a file with its numbers. One more file, `.metadata`, lists which rows and columns of which
# tensor are where, so a rank on any mesh can look up the pieces that make up its own shards. The numbers are copied and
# not recalculated, and training resumes with the losses of the process that never stopped.
#
# ## Activations are not divided
#
# ZeRO's three stages don't divide the activations that a rank saves for its backward pass, and these grow with the
# rank's share of the batch. You already know two ways to reduce them, micro-batches and the recomputation of lesson 9,
# where each block keeps only its input and computes the rest again in the backward pass.

# %% tags=["figure:11_activations"]
from course_utils.lessons.hybrid_and_sharded import most_saved, saved_text
from course_utils.lessons.model_parallel import checkpointed

recomputed = checkpointed(small_model())
saved = {
    "everything": most_saved(small_model(), batches, pieces=1),
    "4 micro-batches": most_saved(small_model(), batches, pieces=4),
    "recomputation": most_saved(recomputed, batches, pieces=1),
    "both": most_saved(recomputed, batches, pieces=4),
}
panel = course.draw.SharesPanel("saved for the backward pass, at most", saved)
course.draw.shares([panel], saved_text(saved))

# %% [markdown]
# Recomputation saves so little here because during a block's backward pass all activations of that block are back in
# memory, and our model has only two blocks. With many blocks it saves more. Its price is a second forward pass. That is
# about a third more arithmetic in a step, because a backward pass does about twice as much as a forward pass.
# Micro-batches need no extra arithmetic, but with ZeRO's stages 2 and 3 they cost extra messages, as you have counted.
#
# ## What fits on how many GPUs?
#
# From here on we calculate, and nothing is run. Let's go back to the 7 billion weights on eight 80 GB GPUs, with 2 +
# 2 + 12 bytes for each weight. With stage 1, a GPU keeps 2 + 2 + 12 ÷ 8 = 5.5 bytes per weight. That is 38.5 GB, which
# leaves 41.5 GB for activations, so stage 1 is the lowest stage that fits.
#
# **Predict.** What is the lowest ZeRO stage that fits for 30 billion weights on the same eight GPUs, and how many
# gigabytes does each GPU then need, without activations?

# %%
course.predict("thirty_billion", within=1.05, stage=..., gigabytes=...)

# %%
from course_utils.lessons.hybrid_and_sharded import fits, zero_memory

for stage in range(4):
    gigabytes = zero_memory(30e9, 8, stage) / 1e9
    print(f"stage {stage}: {gigabytes:.1f} GB on each of 8 GPUs")
lowest = min(stage for stage in range(4) if fits(30e9, 8, stage, memory=80e9))
gigabytes = zero_memory(30e9, 8, lowest) / 1e9
course.answer("thirty_billion", stage=lowest, gigabytes=gigabytes)

# %% [markdown]
# You can also combine ZeRO along `data` with the two other axes of part 1. There are many such mixtures, so we let a
# **planner** search them, a program that calculates memory and time for each mixture and picks the fastest that fits.
# Ours is made for NVIDIA's H100. It counts the same 2 + 2 + 12 bytes per weight, and fills at most 72 of the 80 GB to
# be safe. A step has four million **tokens**, which are pieces of words.
#
# In each cell of the table, the first line gives the numbers of ranks along `data` (DP), `tensor` (TP) and `pipeline`
# (PP). The second line gives the ZeRO stage ("nothing to divide" if there is only one rank along `data`) and what is
# recomputed. The third line has the time of a step, the memory on the fullest GPU, and the share of the GPUs' peak
# speed that goes into the model's own arithmetic.

# %%
from course_utils.lessons.hybrid_and_sharded import H100, MODELS, plan
from course_utils.lessons.hybrid_and_sharded import planner_pictures, published_kinds_text

plans = {}
for gpus in (8, 64, 512):
    plans[gpus] = {name: plan(name, H100(gpus), tested_only=True) for name in MODELS}
print(published_kinds_text())
planner_pictures.plans(plans)

# %% [markdown]
# Read a column from top to bottom. For the two smallest models the planner chose only `data` with ZeRO-1, and for
# larger ones `tensor`, `pipeline`, or both. Stage 3 was a candidate as well, but in none of these cells would it be
# clearly faster than the layout that you see. A small model can take more memory on more GPUs, because the planner
# looks for the shortest time and not for the least memory.
#
# How far can you trust the table? Its formulas were adjusted to half of the published runs counted above, and to a few
# steps on a single GPU, and tested on the other half. With `tested_only=True` the planner leaves out what none of these
# runs does, such as the ZB-V schedule of lesson 10 or **offloading**, which moves the optimizer state to the host
# memory (the CPU's memory). But it may still *combine* features in a new way. Most layouts in the table have stage 1
# and 2-byte numbers, whereas the published runs with stage 1 used 8-bit numbers. So use the table to choose which
# layouts to try, and let a short run decide between them. [Further](11_hybrid_and_sharded_further.ipynb) shows how far
# off the planner is.

# %%
ranks.stop()

# %% [markdown]
# ## What to take away
#
# Data parallelism keeps the same weights, gradients and optimizer state on every rank, and ZeRO divides them. If all
# numbers have the same size and there is one backward pass per step, stages 1 and 2 send nothing extra, and stage 3
# sends half as much again. With micro-batches stages 2 and 3 send more, so do the arithmetic before you combine
# micro-batches with either of them. FSDP2 is PyTorch's stage 3. A sharded checkpoint can be read on a different mesh.
# Activations aren't divided, so you reduce them with micro-batches or recomputation.
#
# In [the exercises](../exercises/11_hybrid_and_sharded.ipynb) you write `zero1_step` for vectors of any length, and the
# formulas that tell you what fits. In [lesson 12](12_strategy_search.ipynb) a program searches for the best strategy,
# layer by layer.
#
# **To read**
#
# - Rajbhandari and others (2020), [*ZeRO*](https://arxiv.org/abs/1910.02054), introduces the three stages and
#   calculates what they keep and send.
# - Zhao and others (2023), [*PyTorch FSDP*](https://arxiv.org/abs/2304.11277), describes what it took to make the first
#   version of FSDP fast.
# - The documentation of [`fully_shard`](https://docs.pytorch.org/docs/stable/distributed.fsdp.fully_shard.html) lists
#   all the options of FSDP2.
