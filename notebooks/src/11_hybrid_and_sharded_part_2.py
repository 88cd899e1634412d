# The lesson on mixtures, part 2. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Why keep everything P times?
#
# You want to train a model with 7 billion weights on a machine with 8 GPUs of 80 GB each. With data parallelism, every
# GPU keeps a copy of everything. In **mixed precision**, most numbers take 2 bytes, and those that have to be exact
# take 4. So each weight takes 2 bytes and its gradient 2. Adam needs another 12 bytes, for an exact copy of the weight
# and two running averages, of 4 bytes each. Together that makes 16 bytes for each of 7 billion weights, which is 112
# GB. The program runs out of memory before it has taken a single step. And yet the eight GPUs have 640 GB between them,
# and would have stored the same 112 GB eight times over.
#
# In this part you will let each rank keep only its own share, first by hand and then with PyTorch's FSDP2. You will
# predict what each of three stages keeps and sends, write a checkpoint with four ranks and read it with two, and work
# out what fits on how many GPUs.
#
# *50 minutes · builds on [lesson 11, part 1](11_hybrid_and_sharded.ipynb) · 4 ranks*

# %%
import tempfile

import numpy as np
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as checkpoint
from torch import nn
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn.functional import cross_entropy

import course_utils as course
from course_utils.lessons.hybrid_and_sharded import shard_pictures

ranks = course.start(4)
ranks.load_torch()

# %% [markdown]
# ## Each rank updates one part of the weights
#
# Think about the end of a data-parallel step. An all-reduce gives every rank the same summed gradient. Then every rank
# runs the same optimizer on the same weights and arrives at the same result. With four ranks this work is done four
# times. Each rank needs the whole **optimizer state** for it, which is what the optimizer keeps from one step to the
# next, such as Adam's running averages.
#
# It is enough to do the work once. Let rank $r$ be responsible for the $r$-th of four equal parts of the weights. To
# update this part, it needs the same part of the summed gradient, which is exactly what a reduce-scatter gives it.
# Afterwards, an all-gather sends every updated part to all ranks. This is stage 1 of **ZeRO**, which is short for *zero
# redundancy optimizer*. Here is one step with eight weights, from 10 to 80, and without Adam for the moment:


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
# The upper half of the picture shows the gradients. After the backward pass each rank has all four blocks, but with
# only its own numbers in them. After the reduce-scatter it has one block, and this one is complete. The lower half
# shows the weights. Each rank has updated its own block, and the all-gather brings all of them to every rank.
#
# How much does this cost? In lesson 5 you saw that a ring all-reduce *is* a reduce-scatter followed by an all-gather.
# ZeRO-1 only puts the update in between, so each rank sends the same number of bytes as before.
#
# Now let's do this with Adam, in a training that we can check. The model is the small transformer of part 1.
# `FlatModel` stores all its weights in one vector and all its gradients in a second one. The optimizer sees only `own`,
# this rank's part of the weights:

# %%
from course_utils.lessons.hybrid_and_sharded import RATE, FlatModel
from course_utils.lessons.hybrid_and_sharded import small_batches, small_model


def train_zero1(batches):
    P, rank = dist.get_world_size(), dist.get_rank()
    model = small_model()
    flat = FlatModel(model)
    own = flat.vector.chunk(P)[rank]  # shares its memory with flat.vector
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
        dist.all_gather_single(flat.vector, own.clone())
        losses.append(loss.item())
    return losses, optimizer.state[own]["exp_avg"].numel()


# %% tags=["nbval-check-output"]
from course_utils.lessons.hybrid_and_sharded import same_text, train_serially

batches = small_batches(20)
serial = ranks.run(train_serially, small_model, batches, RATE, ranks=1, backend="gloo")
run = ranks.run(train_zero1, batches, backend="gloo")
losses = np.mean([losses for losses, means in run.results], axis=0)
same_text({"ZeRO-1": losses}, serial.results[0].losses)  # an error if they differ
size = FlatModel(small_model()).vector.numel()
print(f"Adam's means: {run.results[0][1]:,} of {size:,} on each rank")

# %% [markdown]
# The losses agree with those of one process that trains with plain Adam, or `same_text` would have raised an error. But
# each rank keeps Adam's averages for only a quarter of the weights.
#
# This works because Adam treats each weight on its own, so it doesn't matter where the vector is cut. The optimizer
# **Muon**, in contrast, has to see a whole weight matrix to change it, and
# [Further](11_hybrid_and_sharded_further.ipynb) explains what that means for ZeRO. In the exercise `zero1_step` you
# write the step for vectors of any length.
#
# ## Three stages
#
# If each rank needs the gradient of only one part of the weights, why should it keep the whole gradient? And why keep
# the weights of layers that aren't computing at the moment? ZeRO has three **stages**, which have nothing to do with
# those of a pipeline. Each divides one more thing among the ranks:
#
# - Stage 1 divides the optimizer state.
# - Stage 2 divides the gradients, too. As soon as the backward pass has filled a bucket of gradients (lesson 7), the
#   bucket is reduce-scattered. Each rank keeps its part and frees the rest.
# - Stage 3 divides the weights as well. They are gathered just before a layer computes, in the forward pass and again
#   in the backward pass, and freed afterwards.

# %% tags=["figure:11_zero_blocks"]
shard_pictures.stages(ranks=4)

# %% [markdown]
# Stage 0 is plain data parallelism. Let's calculate with 1,000 weights on these four ranks. To keep it simple, all
# numbers have the same size, and Adam keeps two averages for each weight. With stage 0 a rank keeps 1,000 weights,
# 1,000 gradients and 2,000 averages, which makes 4,000 numbers. With stage 1 it keeps only 500 averages. That leaves
# 2,500 numbers, or 62.5 % of 4,000. In the picture, 10 of 16 squares are filled.
#
# **Predict.** Now take only *two* ranks. What percentage does a rank keep with stages 1, 2 and 3?

# %%
course.predict("zero_kept", within=1.02, stage_1=..., stage_2=..., stage_3=...)  # percent

# %% [markdown]
# What do the stages send? In a ring all-reduce of 1,000 gradients on four ranks, each rank sends three blocks of 250
# numbers for the reduce-scatter, and three more for the all-gather. So stages 0 and 1 send 750 + 750 = 1,500 numbers.
# Stage 2 sends the same, because it only splits the reduce-scatter into buckets. Stage 3 needs no all-gather after the
# update, but it gathers all the weights twice during the step.
#
# **Predict.** If stage 0 sends 100 %, what does stage 3 send?

# %%
course.predict("zero_sent", within=1.02, stage_3=...)  # percent

# %% [markdown]
# The next cell trains the small transformer with each stage. It adds up the bytes of all tensors that rank 0 keeps
# between two steps, and the bytes that it would send if every collective were a ring. The bars are counted, and the
# black lines are calculated as above.

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
# With one backward pass per step, stages 1 and 2 save memory and send nothing extra. Stage 3 pays for its savings with
# half as many bytes again.
#
# If the batch doesn't fit into memory, you cut it into $m$ micro-batches and accumulate their gradients (lesson 7).
# Stages 0 and 1 still send once per step, after the last micro-batch. Stage 2 can't wait that long, because no rank
# keeps a whole gradient, so it needs a reduce-scatter after *every* micro-batch. With our 1,000 weights and two
# micro-batches, that is 750 + 750 numbers, and another 750 for the all-gather at the end. It sends 2,250 numbers
# instead of 1,500. Stage 3 repeats everything it does for each micro-batch.
#
# **Predict.** What do stages 2 and 3 send with four micro-batches, if stage 0 sends 100 %?

# %%
course.predict("micro_batches", within=1.02, stage_2=..., stage_3=...)  # percent

# %%
counted = count_stages(ranks, few, micro_batches=4)
print(same_text(counted.losses, serial.results[0].losses[:2]))
sent = totals(counted.sent)
stage_2, stage_3 = (100 * sent[k] / sent[0] for k in (2, 3))
course.measured("micro_batches", stage_2=stage_2, stage_3=stage_3)

# %% [markdown]
# In general, stage 2 sends $\frac{m+1}{2}$ times as many bytes as stage 0, and stage 3 sends $\frac{3m}{2}$ times as
# many. This is one reason why pipelines, which need many micro-batches, are usually combined with stage 1. Stage 3 can
# send less if the ranks keep the gathered weights from one micro-batch to the next, but then they need memory for all
# of them.
#
# ## FSDP2 gathers a layer, computes, and frees it
#
# PyTorch has stage 3 under the name **FSDP2**, the second version of *fully sharded data parallel*. Instead of one long
# vector it cuts every weight matrix by its rows, and each rank's part is called a shard, like its part of a batch. You
# call `fully_shard` on each layer and finally on the whole model. We do this with three layers, and a `ShardWatch`
# notes what each rank has in memory whenever a layer computes:

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
    loss.backward()  # averages the gradients over the ranks
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
# it, and only a quarter of the others. Then layer 0 is freed and layer 1 is gathered. In the backward pass the layers
# are gathered again, in reverse order. As soon as a layer's gradients are complete, they are reduce-scattered, and each
# rank keeps a quarter. The cell has also checked that the gradient is that of one process.
#
# ### FSDP2 in practice
#
# Programs that train large models use more of FSDP2's features. The next cell shows three of them:

# %%
from torch.distributed.checkpoint.state_dict import StateDictOptions
from torch.distributed.checkpoint.state_dict import set_model_state_dict

from_rank_0 = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)


def in_practice(x, weights):
    with torch.device("meta"):  # shapes only, no memory
        model = three_layers()
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    dtypes = {}

    def note_dtype(layer, inputs, outputs):
        dtypes["computing"] = layer.weight.dtype

    model[0].register_forward_hook(note_dtype)
    for layer in model:
        fully_shard(layer, mp_policy=policy)
    fully_shard(model, mp_policy=policy)
    model.to_empty(device="cpu")  # now allocate this rank's shards
    set_model_state_dict(model, weights, options=from_rank_0)  # and fill them

    optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
    loss = model(x.chunk(4)[dist.get_rank()]).float().square().mean()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm=0.1)
    optimizer.step()
    weight = model[0].weight
    dtypes["shard"] = weight.dtype
    dtypes["Adam's averages"] = optimizer.state[weight]["exp_avg"].dtype
    return dtypes, norm.full_tensor().item()


# %%
run = ranks.run(in_practice, x, three_layers().state_dict(), backend="gloo")
for name, dtype in run.results[0][0].items():
    print(f"{name}: {dtype}")
serial_norm = nn.utils.clip_grad_norm_(whole.parameters(), max_norm=0.1).item()
print("norms on the ranks:", *(f"{norm:.8f}" for dtypes, norm in run.results))
print(f"norm in one process, with float32 throughout: {serial_norm:.8f}")

# %% [markdown]
# - **Meta device.** The weights of a large model can be too much for one process, even before it is sharded. On the
#   *meta* device, tensors have a shape but no memory. You build the model there, shard it, and allocate only the
#   shards.
# - **Mixed precision.** FSDP2 keeps its shards in float32. When it gathers them, it casts them to bfloat16, a format of
#   2 bytes (lesson 13). So a weight takes 4 bytes, its gradient 4 and Adam's averages 8. The sum is the 16 bytes of the
#   beginning, where the ZeRO paper has 2 + 2 + 12. (Megatron-LM keeps gradients of 4 bytes as well, which makes 18.)
# - **Clipping.** FSDP2's weights are DTensors (lesson 9), which know how they are cut. So `clip_grad_norm_` adds up the
#   squares of all shards by itself. All ranks get the same norm, which differs a little from the serial one because
#   bfloat16 rounds. Only across the stages of a pipeline do you still have to do what part 1 showed.
#
# Two more features decide between memory and time. With `reshard_after_forward=False`, a layer isn't freed until its
# backward pass. This saves one of the two gathers and costs the memory of all layers. And on GPUs, FSDP2 uses
# **prefetch**: it gathers the next layer while the present one computes, so a rank has two whole layers at a time
# instead of one.
#
# ## A checkpoint written by four ranks and read by two
#
# A **checkpoint** is a set of files from which training can resume. The simplest method is to gather everything on rank
# 0 and let it save a **full state dict**. A weight and Adam's two averages take 12 bytes in float32, so for 7 billion
# weights this is 84 GB in the memory of one machine, written by one process while the others wait. In a **sharded state
# dict** each rank has only its own shards, so all ranks can write at the same time. In the next cell, 2 × 2 ranks do
# this. Along `tensor` the matrices of the transformer are cut, and along `data` FSDP2 shards what is left.

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
# **Predict.** Four ranks write the checkpoint. Two ranks read it, on two different meshes, and then a single process
# does. By how much do the weights and averages differ from those that were written?

# %%
choices = {
    "a": "not at all",
    "b": "by about 1e-15",
    "c": "different meshes can't read it",
}
course.predict("checkpoint", answer=..., choices=choices)

# %%
from course_utils.lessons.hybrid_and_sharded import largest_difference

differences = []
with tempfile.TemporaryDirectory() as folder:
    square = {"data": 2, "tensor": 2}
    run = ranks.run(train_and_save, folder, square, batches[:3], backend="gloo")
    written = run.results[0]
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
# Besides the numbers, each file says which rows and columns of which tensor it holds. So a rank on any mesh can look up
# the pieces that make up its own shards. The numbers are copied and not recalculated, and training resumes with the
# losses of the process that never stopped. If you need a single file in the end, `get_model_state_dict` can gather a
# full state dict in CPU memory.
#
# ## Activations are not divided
#
# ZeRO doesn't divide the activations that a rank saves for its backward pass, and they grow with the batch. You know
# two ways to reduce them. One is to use micro-batches. The other is the recomputation of lesson 9, where each block
# keeps only its input and computes the rest again in the backward pass.

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
# Recomputation costs a second forward pass. A backward pass has about twice as much arithmetic as a forward pass, so a
# step has a third more. Micro-batches need no extra arithmetic, as long as each is large enough to keep the processor
# busy. With ZeRO's stages 0 and 1 they don't cost extra messages either, but with stages 2 and 3 they do, as you have
# counted.
#
# ## What fits on how many GPUs?
#
# From here on we calculate, and nothing is run. Let's go back to the 7 billion weights on 8 GPUs of 80 GB, with 2 + 2 +
# 12 bytes for each weight. With stage 1, a GPU keeps 2 + 2 + 12 ÷ 8 = 5.5 bytes per weight. That is 38.5 GB, which
# leaves 41.5 GB for activations, so stage 1 is the lowest stage that fits.
#
# **Predict.** What is the lowest ZeRO stage that fits for 30 billion weights on the same 8 GPUs, and how many gigabytes
# does each GPU then need, without activations?

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
# Larger models need a mixture of all three axes of part 1, with ZeRO along `data`. There are many mixtures, so we let a
# **planner** go through them. This is a program that calculates memory and time for each mixture and picks the fastest
# that fits. It uses published formulas and the data sheet of NVIDIA's H100, and fills at most 72 of its 80 GB. A step
# has four million **tokens**, which are pieces of words.
#
# In each cell of the table, the first line gives the numbers of ranks along `data` (DP), `tensor` (TP) and `pipeline`
# (PP). The second gives the stage of ZeRO, which has nothing to divide if there is only one rank along `data`, and what
# is recomputed. The third has the time of a step, the memory on the fullest GPU, and the share of the GPUs' peak speed
# that goes into the model's own arithmetic.

# %% tags=["figure:11_planned"]
from course_utils.lessons.hybrid_and_sharded import H100, MODELS, plan
from course_utils.lessons.hybrid_and_sharded import planner_pictures, published_kinds_text

plans = {}
for gpus in (8, 64, 512):
    plans[gpus] = {name: plan(name, H100(gpus), tested_only=True) for name in MODELS}
print("Tested with", published_kinds_text())
planner_pictures.plans(plans)

# %% [markdown]
# Read a column from top to bottom. Small models need only `data` and ZeRO-1, and larger ones need `tensor`, `pipeline`,
# or both. On these machines `tensor` never spans more than 8 GPUs, because NVLink (lesson 13) joins that many. In
# NVIDIA's NVL72 it joins 72.
#
# How far can you trust the table? Some constants in the formulas, such as the share of its peak that a GPU really
# reaches, are fitted to half of the published runs in the printed line, and the other half tests them. We therefore let
# the planner choose only among kinds of layout that occur in these runs. Without `tested_only=True` it also tries the
# ZB-V schedule of lesson 10, and **offloading**, which moves the optimizer state to the host memory (the CPU's memory).
# It then finds layouts for more models, but none of these runs has tested them. Even the layouts in this table are at
# the edge of what has been tested, because most of them combine stage 1 with numbers of 2 bytes, which none of the runs
# does. And if two mixtures are within a few percent of each other, only a run can tell which is faster.
# [Further](11_hybrid_and_sharded_further.ipynb) shows how far off the planner is. In a terminal, `course plan "Llama 3
# 70B" --gpus 64 --tested-only` prints the ten best layouts for a model.

# %%
ranks.stop()

# %% [markdown]
# ## What you take with you
#
# Data parallelism keeps the same weights, gradients and optimizer state on every rank, and ZeRO divides them. Stage 1
# sends nothing extra, because it only puts the update between the two halves of an all-reduce. With one backward pass
# per step, stage 2 sends nothing extra either, and stage 3 sends half as many bytes again. With micro-batches both send
# more, so count before you combine them. FSDP2 is PyTorch's stage 3, and it gathers a layer, computes, and frees it. A
# sharded checkpoint can be read on any mesh. Activations aren't divided, so you reduce them with micro-batches or
# recomputation.
#
# In [the exercises](../exercises/11_hybrid_and_sharded.ipynb) you write `zero1_step`, and the formulas that tell you
# what fits. In [lesson 12](12_strategy_search.ipynb) a program searches for the best strategy, layer by layer.
#
# **To read**
#
# - Rajbhandari and others (2020), [*ZeRO*](https://arxiv.org/abs/1910.02054), introduces the three stages, and
#   calculates what they keep and send.
# - Zhao and others (2023), [*PyTorch FSDP*](https://arxiv.org/abs/2304.11277), describes what it took to make the first
#   version of FSDP fast.
# - The documentation of [`fully_shard`](https://docs.pytorch.org/docs/stable/distributed.fsdp.fully_shard.html) lists
#   all the options of FSDP2.
