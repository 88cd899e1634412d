# The lesson on mixtures. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Which mixture?
#
# After this lesson you can **arrange** ranks in a mesh and give each axis its own kind of parallelism, **prove** that
# a mixture trains as one process does, and **count** what each rank keeps and sends.
#
# *60 minutes · builds on lessons [7](07_overlap.ipynb) and [10](10_pipeline.ipynb) · 4 ranks*

# %%
import tempfile

import numpy as np
import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

import course_utils as course
from course_utils.trace.recorder import phase

ranks = course.start(4)
ranks.load_torch()

# %% [markdown]
# Ranks can share a batch (lesson 6), matrices (9), layers (10). Large models mix all three.
#
# ## A mesh
#
# Put the ranks on a grid, a **mesh**, with one axis for each kind of parallelism. A rank's **group** along an axis: the
# ranks whose places differ from its own on that axis only.
#
# **Predict.** The axes are `data`, `pipeline` and `tensor`, with two places each. Rank 0 is at (0, 0, 0), rank 1 at
# (0, 0, 1), rank 2 at (0, 1, 0), and so on. Which rank is rank 5's partner along each axis?

# %%
course.predict("mesh_partners", data=..., pipeline=..., tensor=...)  # three ranks

# %% tags=["figure:11_mesh"]
from course_utils.lessons.hybrid_and_sharded import mesh_groups, pictures

cube = {"data": 2, "pipeline": 2, "tensor": 2}
partners = {}
for axis, groups in mesh_groups(cube).items():
    group = next(group for group in groups if 5 in group)
    partners[axis] = next(rank for rank in group if rank != 5)
course.answer("mesh_partners", **partners)
pictures.mesh(cube)

# %% [markdown]
# Each panel shows the same eight ranks, and each colour one group. Along the *last* axis the partners have consecutive
# numbers, and such ranks usually share a node. So name the axis last that sends most. (Megatron-LM and torchtitan
# go on in this way and name the pipeline *first*: its messages between two neighbours are the smallest.)
#
# `torch.distributed` makes such groups itself. We try it with four ranks: each group adds up its ranks' numbers.

# %% tags=["nbval-check-output"]
square = {"data": 2, "tensor": 2}


def sum_in_group(axis):
    mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=tuple(square))
    number = torch.tensor(float(dist.get_rank()))
    dist.all_reduce(number, group=mesh.get_group(axis))  # among this group only
    return int(number)


for axis in square:
    sums = ranks.run(sum_in_group, axis, backend="gloo").results
    print(f"{axis:6} of ranks 0 to 3:", sums)

# %% [markdown]
# Rank 3 meets rank 1 along `data`, rank 2 along `tensor`, and rank 0 never.
# [Exercise](../exercises/11_hybrid_and_sharded.ipynb): `mesh_groups`.
#
# ## Two kinds in one network
#
# The simplest mixture shares different *layers* in different ways. A student asked a search program (lesson 12) how to
# train AlexNet, a network for images, on two GPUs. It answered: put the convolutions on both GPUs, each with half of
# the batch; put the fully connected layers on one. Why? Look at the network that the student then built:

# %%
from course_utils.lessons.hybrid_and_sharded import enlarged, report_network
from course_utils.vgg import parameter_count

data = course.data.digits("float64")
convolutions, dense = report_network()
image = enlarged(data.train_x[:1]).float()  # from 8 × 8 to 28 × 28 pixels
activations = convolutions(image)
print("an image after the convolutions:", activations.numel(), "numbers")
print("convolutions:   ", parameter_count(convolutions), "weights")
print("fully connected:", parameter_count(dense), "weights")

# %% [markdown]
# Convolutions: few weights. Fully connected: many. (AlexNet: 5 % and 95 %, Krizhevsky 2014.) So copy the first, and
# bring *activations* to the second:
#
# 1. all: convolutions; rank 0 **gathers** what comes out, and the labels;
# 2. rank 0: fully connected layers, forward, backward;
# 3. rank 0 **scatters** the activations' gradients; all go backward;
# 4. the convolutions' gradients are **added up**.
#
# **Predict.** Each of 4 ranks has 16 images. How many numbers does rank 1 put into its collectives in a step? (Count
# each number once, however often the library then sends it.)

# %%
course.predict("hybrid_numbers", within=1.1, numbers=...)

# %% tags=["figure:11_hybrid_step"]
# it uses `hybrid_step`
from course_utils.lessons.hybrid_and_sharded import (
    largest_difference,
    same_text,
    train_network,
)

steps = 66
alone = {"ranks": 1, "backend": "gloo"}  # one process
serial = ranks.run(train_network, data, "serial", steps, **alone).results[0]
hybrid = ranks.run(train_network, data, "hybrid", steps, backend="gloo")
numbers = hybrid.bytes_per_rank[1] // 8 // steps  # of 8 bytes
course.measured("hybrid_numbers", numbers=numbers)
print(same_text({"the hybrid": hybrid.results[0].losses}, serial.losses))
for trained in hybrid.results:  # weights after every step
    assert largest_difference(trained.convolutions, serial.convolutions) <= 1e-10
assert largest_difference(hybrid.results[0].dense, serial.dense) <= 1e-10
once = ranks.run(train_network, data, "hybrid", steps=1, backend="gloo")
once.timeline("A hybrid step: activations to rank 0, their gradients back, all-reduces")

# %% [markdown]
# Rank 1 gives 5,120 activations, 16 labels and 5,280 gradients. With data parallelism alone it would give 21,840
# gradients. The price: in part 2 three ranks wait. (Part 4 adds and does not divide: rank 0's loss is already the mean
# over all images.) Exercise: `hybrid_step`.
#
# ## What the report did
#
# The student's program puts the fully connected layers "only on GPU0". It exchanges gradients so, with `size` ranks:
#
# ```
# for name, param in model.named_parameters():
#     if "fc" not in name:              # fc: fully connected
#         dist.all_reduce(param.grad.data)
#     param.grad.data /= size
# ```
#
# The report says: "The training flow works correctly." **Predict** what four ranks show after 66 steps:

# %%
course.predict(
    "report_shows",
    answer=...,  # "a", "b" or "c"
    choices={
        "a": "the loss does not fall",
        "b": "the loss falls, but hardly an image is recognised",
        "c": "neither: it learns",
    },
)

# %% tags=["figure:11_report"]
from course_utils.lessons.hybrid_and_sharded import distances, drift_text, symptom

theirs = ranks.run(train_network, data, "report", steps, backend="gloo").results
course.measured("report_shows", answer=symptom(theirs))
shares = ", ".join(f"{trained.accuracy:.0%}" for trained in theirs)
print(f"test images recognised: {shares}; by one process: {serial.accuracy:.0%}")
lines = {"one process": serial.losses}
lines |= {f"rank {rank}": trained.losses for rank, trained in enumerate(theirs)}
course.draw.loss_curves(lines, "The report's version, each rank's loss on its own images")

# %% [markdown]
# Its loss falls, so nobody looked further. Now look at what should be *equal*: the fully connected layers of the four
# ranks.

# %% tags=["figure:11_drift"]
title = drift_text(theirs)
course.draw.loss_curves(distances(theirs), title, y="distance from rank 0's layers")

# %% [markdown]
# Four processes that put a layer on the same GPU have *four* layers there. Nobody adds up their gradients, yet they are
# divided by four. So each rank trains a layer of its own, with steps four times too short.
#
# What is kept twice must get the same gradient twice. Compare weights.
#
# ## Data × tensor
#
# A small transformer learns Python's help text by the character. The axis `data` halves the batch; the axis `tensor`
# halves the blocks' matrices, with four all-reduces of activations in each block (lesson 9). **Predict**: along which
# axis does a rank put more bytes into its collectives?

# %%
from course_utils.lessons.hybrid_and_sharded import CONTEXT, RATE, small_batches
from course_utils.lessons.hybrid_and_sharded import small_model
from course_utils.lessons.model_parallel import generate

text_steps = 40
batches = small_batches(text_steps)  # of 64 pieces, 16 characters each
print("blocks:", len(small_model()) - 2, "· weights:", parameter_count(small_model()))
between = 64 // 2 * CONTEXT * 48  # pieces of text × characters × numbers for each
print("a rank's activations between blocks:", between, "numbers")
print("it writes:", generate(small_model(), "The ", 60, CONTEXT))
course.predict("axis", answer=..., choices={"a": "data", "b": "tensor"})

# %% tags=["figure:11_text"]
from course_utils.lessons.hybrid_and_sharded import bytes_by_axis, train_on_mesh
from course_utils.lessons.hybrid_and_sharded import train_serially, whole_model

one = ranks.run(train_serially, small_model, batches, RATE, **alone).results[0]
run = ranks.run(train_on_mesh, square, small_model, batches, 1, RATE, backend="gloo")
print(same_text({"2 × 2": run.results[-1].losses}, one.losses))
writer = whole_model(small_model(), run.results)  # the ranks' parts, put together
print("it writes:", generate(writer, "The ", 60, CONTEXT, temperature=0.6))
sent = bytes_by_axis(run.events, rank=0)
course.measured("axis", answer="a" if sent["data"] > sent["tensor"] else "b")
lines = {"one process": one.losses, "2 × 2": run.results[-1].losses}
course.draw.loss_curves(lines, "Data × tensor: a transformer learns characters")

# %% [markdown]
# The text is still nonsense. One process would write the same.
#
# In a step, `data` moves each rank's *gradients* once. `tensor` moves *activations* four times a block, and they grow
# with the batch. So `tensor` needs the fastest links, and stays inside a node.
#
# ## Clip what is cut
#
# A rare batch has a very large gradient, and throws the weights far away. **Clipping** prevents that (Pascanu and
# others 2013): a gradient longer than a limit is shortened to it. Its length is called its norm, the root of its sum of
# squares. (It has nothing to do with lesson 9's layer.) Torch has `clip_grad_norm_`.
#
# Now take two stages, each cut in two by `tensor`. No rank has the whole gradient. Each calls `clip_grad_norm_` on what
# it has. **Predict** what that gives:

# %%
choices = {
    "a": "an error",
    "b": "the same training",
    "c": "another training, without an error",
}
course.predict("clip_alone", answer=..., choices=choices)

# %%
from functools import partial

from course_utils.lessons.hybrid_and_sharded import clip_alone, clip_over_mesh

limit, mesh, few = 0.3, {"pipeline": 2, "tensor": 2}, batches[:15]
right = ranks.run(train_serially, small_model, few, RATE, limit, **alone).results[0]
clipped = {}
for clip in (clip_over_mesh, clip_alone):
    options = mesh, small_model, few, 1, RATE, partial(clip, max_norm=limit)
    clipped[clip] = ranks.run(train_on_mesh, *options, backend="gloo").results

# %% tags=["figure:11_clipped"]
from course_utils.lessons.hybrid_and_sharded import clip_text

over_mesh, by_itself = clipped[clip_over_mesh], clipped[clip_alone]  # for each rank
for trained in over_mesh:
    assert largest_difference(trained.norms, right.norms) <= 1e-12
assert largest_difference(over_mesh[-1].losses, right.losses) <= 1e-12
another = largest_difference(by_itself[-1].losses, right.losses) > 1e-6
course.measured("clip_alone", answer="c" if another else "b")
lines = {"one process": right.norms, "over the mesh": over_mesh[0].norms}
lines |= {f"rank {rank} alone": by_itself[rank].norms for rank in (0, 2)}
title = clip_text(by_itself, right.losses)
course.draw.loss_curves(lines, title, y="norm before clipping")

# %% [markdown]
# Each rank shortens its part by a factor of its own. So the whole gradient points elsewhere. And some weights are not
# cut: both ranks of a `tensor` group keep them. They shorten one gradient by two factors, so the copies drift apart.
#
# The right norm adds up **squares**, so each rank sends a number, and no gradient:
#
# - along `tensor`: the squares of what is cut, and of one copy of what is kept twice;
# - along `pipeline`: the squares of all stages;
# - never along `data`, where all ranks have the same gradient.
#
# Exercise: `clip_over_mesh`.

# %% [markdown]
# ## Which mixture of 4?
#
# The same training runs on five meshes, with batches cut into 4 micro-batches. For each character, 48 numbers go from a
# stage to the next, and 48 come back. **Predict:** with which mesh does rank 1 send least?

# %%
from course_utils.lessons.hybrid_and_sharded import MESHES, count_meshes

course.predict("least_sent", answer=..., choices=list(MESHES))  # "a" to "e"

# %% tags=["figure:11_mixtures"]
from course_utils.lessons.hybrid_and_sharded import mixtures_text, totals

counted = count_meshes(ranks, batches[:2])
print(same_text(counted.losses, one.losses[:2]))
least = np.argmin(totals(counted.sent))
course.measured("least_sent", answer="abcde"[least])
panel = course.draw.SharesPanel("sent by rank 1 in a step", counted.sent)
course.draw.shares([panel], mixtures_text(counted.sent))

# %% [markdown]
# (We count each collective as a ring would send it.) Here `tensor` sends most: keep it inside the node. What `data`
# sends grows with the weights. What stages send grows with the batch, and stages idle (lesson 10).

# %% [markdown]
# ## Why keep everything P times?
#
# With `data`, all ranks keep the same weights, the same gradients, and Adam's same two numbers for each weight.
# **ZeRO** divides them, in three *stages* (not those of a pipeline): 1, Adam's state; 2, the gradients too; 3, the
# weights too.
#
# We write stage 1 by hand. Rank $r$ owns the $r$-th part of the weights, and Adam's state for it. It needs the same
# part of the summed gradient: a **reduce-scatter** brings it. The rank updates its part. Then an **all-gather** brings
# all parts to all.

# %% tags=["figure:11_zero1"]
from course_utils.lessons.hybrid_and_sharded import adam_shard, zero1_step


def two_steps(length):
    weights = torch.ones(length, dtype=torch.float64)
    state = adam_shard(weights)  # of this rank's part
    for _ in range(2):  # each rank has a gradient of its own
        zero1_step(weights, (dist.get_rank() + 1) * weights, state, rate=0.1)
    return len(state.mean)


for _ in range(2):  # the first run finds the connections
    run = ranks.run(two_steps, 50_000, backend="gloo")
share = f"of 50,000 weights a rank keeps the state of {run.results[0]:,}"
run.timeline(f"ZeRO-1, two steps: {share}")

# %% [markdown]
# A quarter of the state, and no byte more than before: the two halves of lesson 5's ring all-reduce, with the update
# in between. Exercise: `zero1_step`.
#
# **Stage 2** keeps no whole gradient: buckets (lesson 7) are reduce-scattered when they are full, and let go.
#
# **Stage 3** keeps no whole weights: they are gathered just before a layer computes, forward and again backward, and
# let go. PyTorch does it, as **FSDP2**:


# %% tags=["figure:11_fsdp"]
def fully_sharded(x):
    model = small_model()
    for layer in [*model, model]:
        fully_shard(layer)  # its weights are gathered when it computes
    with phase("forward"):
        loss = model(x).square().mean()
    with phase("backward"):
        loss.backward()
    return len(model[1].mlp.up.weight.to_local())  # rows on this rank


for _ in range(2):  # the first run makes the modules ready
    run = ranks.run(fully_sharded, batches[0][0], backend="gloo")
run.timeline(f"FSDP2: of a matrix of 192 rows a rank keeps {run.results[0]}")

# %% [markdown]
# Each layer has an all-gather on the way forward, another on the way back, then a reduce-scatter of its gradients.
#
# **Predict** for 4 ranks and Adam, where all numbers take equally many bytes. Stage 0 is plain data parallelism. If a
# rank keeps 100 % there, what does it keep with stages 1, 2 and 3? If it sends 100 % there, what does it send with
# stage 3?

# %%
course.predict("zero_kept", within=1.05, stage_1=..., stage_2=..., stage_3=...)  # percent
course.predict("zero_sent", within=1.05, stage_3=...)  # percent

# %% tags=["figure:11_stages"]
from course_utils.lessons.hybrid_and_sharded import count_stages, stages_text

stages = count_stages(ranks, batches[:2])
print(same_text(stages.losses, one.losses[:2]))  # Adam in one process
kept, sent = totals(stages.kept), totals(stages.sent)
names = {f"stage_{k}": 100 * kept[k] / kept[0] for k in (1, 2, 3)}
course.measured("zero_kept", **names)
course.measured("zero_sent", stage_3=100 * sent[3] / sent[0])
panels = [
    course.draw.SharesPanel("kept by each rank", stages.kept, stages.kept_on_paper),
    course.draw.SharesPanel("sent in a step", stages.sent, stages.sent_on_paper),
]
course.draw.shares(panels, stages_text(stages.kept, stages.sent))

# %% [markdown]
# Stages 1 and 2 save memory and send no byte more. Stage 3 gathers weights twice, so it sends half as much again. (We
# count what rings send. And a step here has one backward pass. With $m$ micro-batches, stage 2 must reduce after each:
# it sends $\frac{m+1}{2}$ times as much.)
#
# In **mixed precision** the numbers differ in size. A weight takes 2 bytes and its gradient 2. Adam takes 12: the
# weight in float32, the mean, the square. (Megatron-LM keeps gradients in float32, too: 18 bytes in all.) Exercises:
# `zero_memory`, `fits`.

# %% [markdown]
# ## Written by four, read by two
#
# A **checkpoint** is a file from which a training goes on. That of a sharded model is in pieces. **Predict.** 2 × 2
# ranks train, and write weights and state. Two ranks read them, then one. How far are the values from those that were
# written?

# %%
choices = {"a": "0", "b": "about 1e-15", "c": "other meshes cannot read them"}
course.predict("checkpoint", answer=..., choices=choices)

# %%
from course_utils.lessons.hybrid_and_sharded import gone_on, save_on_mesh

far = []
with tempfile.TemporaryDirectory() as folder:
    write = (save_on_mesh, folder, square, small_model, batches[:3], RATE)
    written = ranks.run(*write, backend="gloo").results[0].state
    for sizes in ({"data": 2}, {"tensor": 2}, {"data": 1}):
        read, losses = gone_on(ranks, folder, sizes, batches[3:5])
        far += [
            largest_difference(read[name], values) for name, values in written.items()
        ]
        print(sizes, "go on with losses", *(f"{loss:.9f}" for loss in losses))
course.measured("checkpoint", answer="a" if max(far) == 0 else "b")

# %% [markdown]
# Each piece says which part of which tensor it is (`torch.distributed.checkpoint`), so any mesh finds its own parts.
# They are copied, not computed, and the losses agree on all meshes.
#
# ## Two more ways to save memory
#
# ZeRO does not divide **activations**, which grow with the batch. You know two ways to save them. One is to
# **accumulate** gradients over micro-batches (lesson 7). The other is activation **checkpointing**, which has nothing
# to do with files: keep each block's input, and compute the rest again (lesson 9).

# %% tags=["figure:11_activations"]
from course_utils.lessons.hybrid_and_sharded import most_saved, saved_text
from course_utils.lessons.model_parallel import checkpointed

saved = {
    "as it is": most_saved(small_model(), batches, pieces=1),
    "4 micro-batches": most_saved(small_model(), batches, pieces=4),
    "checkpointing": most_saved(checkpointed(small_model()), batches, pieces=1),
    "both": most_saved(checkpointed(small_model()), batches, pieces=4),
}
panel = course.draw.SharesPanel("kept for the backward pass, at most", saved)
course.draw.shares([panel], saved_text(saved))

# %% [markdown]
# Micro-batches cost nothing, as long as small ones keep the processor busy. Checkpointing costs a second forward pass.
# (Ours has two blocks; with a hundred it saves far more.)
#
# ## Seven billion weights
#
# From here on we compute **on paper only**: no GPU runs a step. Take 7 billion weights, mixed precision, Adam, and GPUs
# of 80 GB. **Predict**: how many GB do weights, gradients and state take in all? On 8 GPUs, with `data` alone: which is
# the first stage of ZeRO with which they fit?

# %%
course.predict("seven_billion", within=1.05, gigabytes=..., stage=...)

# %%
from course_utils.lessons.hybrid_and_sharded import fits, zero_memory

first = next(stage for stage in range(4) if fits(7e9, 8, stage, memory=80e9))
course.answer("seven_billion", gigabytes=zero_memory(7e9, 1, 0) / 1e9, stage=first)
for stage in range(4):
    print(f"stage {stage}: {zero_memory(7e9, 8, stage) / 1e9:.1f} GB on each of 8 GPUs")

# %% [markdown]
# What about activations, and the time of a step? A **planner** goes through every mixture. It uses published formulas
# for memory, compute and messages (in `course_utils/lessons/hybrid_and_sharded/planner/`), and assumed GPUs and links.
# A step has four million **tokens** (pieces of words).
#
# It fills at most 72 of a GPU's 80 GB. Adam's state may move to the node's own memory, which has 250 GB for each GPU.
#
# **Predict.** Which of nine published models is the largest that fits on 8 such GPUs? And on 512?

# %%
from course_utils.lessons.hybrid_and_sharded import H100, MODELS, best, plan
from course_utils.lessons.hybrid_and_sharded import planner_pictures

choices = dict(zip("abcdefghi", MODELS))
course.predict("largest", on_8=..., on_512=..., choices=choices)

# %%
plans = {gpus: {name: plan(name, H100(gpus)) for name in MODELS} for gpus in (8, 64, 512)}
fitting = {
    gpus: [letter for letter in choices if best(planned[choices[letter]])]
    for gpus, planned in plans.items()
}
course.answer("largest", on_8=fitting[8][-1], on_512=fitting[512][-1])
planner_pictures.plans(plans)

# %% [markdown]
# DP, TP and PP are the ranks along `data`, `tensor` and `pipeline`. *Again* is what checkpointing computes twice.
# *ZB-V* is lesson 10's V. **Offloaded**: Adam's state lies in the node's memory, and the node's processors do the step.
#
# Read a column downwards. Small models need `data` alone, or with ZeRO. Larger ones need stages, `tensor`, or both.
# `tensor` never has more ranks than a node has GPUs, 8. When two mixtures come out close, only a real run tells which
# is faster.

# %% [markdown]
# ### Is the planner right?
#
# A GPU reaches only a share of its data sheet, and the planner must know that share. We have a table of runs that
# others published, on 8 to 1,024 GPUs. To every other row the shares are **fitted**: chosen so that the formulas come
# near. The rows between judge, as the fit has not seen them. Otherwise a formula that only remembers its examples would
# look right. By how much is a step's time off, and the peak memory?

# %% tags=["figure:11_judged"]
from course_utils.lessons.hybrid_and_sharded import furthest_text, halves, published_runs

for half, result in halves().items():
    print(f"{half}: {result}")
print(furthest_text())
planner_pictures.published(published_runs())

# %% [markdown]
# The planner must also put mixtures in the right order. Kendall's τ is 1 when it does so for every two rows, and 0 for
# chance. That is easy for models of different size. It is harder for mixtures of one model, as some differ by less than
# one percent.
#
# A good median hides bad rows: the last printed line names the worst, and they lie off the line. Models with experts
# (lesson 16) are not in the table, so nobody has judged those.
#
# In a terminal, `course plan "Llama 3 70B" --gpus 64` prints the ten best mixtures, why nine of them lose, and what
# breaks first. It also tries **HSDP**: stage 3 inside a node, gradients added up between nodes. Exercise: `break_even`.

# %% [markdown]
# ## How many hours, how much energy?
#
# For each token and each of $N$ parameters, the forward pass takes 2 operations, a product and a sum. The backward pass
# takes 4. So a training with $D$ tokens needs $6\,N D$ FLOPs (lesson 3). The **MFU** (model FLOPs utilization) is their
# share of what the GPUs could have done: $\frac{6\,N D}{\text{seconds} \cdot \text{devices} \cdot \text{peak}}$.
#
# **Predict.** LLaMA 7B has $N$ = 6.7 billion and $D$ = 1,000 billion. It was trained on A100s: 312 TFLOP/s at the peak,
# 400 W (assumed), and a tenth more for the building. Suppose an MFU near those in the planner's table. How many
# GPU-hours did the training take? How many MWh?

# %%
course.predict("hours", within=1.5, gpu_hours=..., megawatt_hours=...)

# %% tags=["figure:11_mfu"]
from course_utils.lessons.hybrid_and_sharded import SPENT, device_hours, energy
from course_utils.lessons.hybrid_and_sharded import utilizations_text

llama = SPENT["LLaMA 7B"]  # its hours: Touvron and others 2023, table 15
power = energy(llama.device_hours, watts=400) / 1e6
course.answer("hours", gpu_hours=llama.device_hours, megawatt_hours=power)
forward = 2 * llama.parameters  # operations for a token
at_peak = device_hours(forward, llama.tokens, utilization=1, peak=llama.peak)
print(f"GPU-hours: {at_peak:,.0f} at the peak, {llama.device_hours:,} published")
reached = {name: training.utilizations() for name, training in SPENT.items()}
panel = course.draw.SharesPanel("MFU", reached, say=lambda share: f"{100 * share:.0f} %")
course.draw.shares([panel], utilizations_text(reached), "From published numbers")

# %% [markdown]
# The rest of the time goes into waiting (for messages, for memory, in bubbles, after failures) and into computing
# again. PaLM's authors defined the MFU so that nobody can raise it by computing more (Chowdhery and others 2022,
# appendix B): the second forward pass of checkpointing takes time, and does not count.
#
# $6\,N$ leaves out *attention*, which multiplies activations by activations. And it is wrong for convolutions, which
# use a weight at every pixel: count the operations of the forward pass, times 3. Exercise: `mfu`.

# %% [markdown]
# ## What you take with you
#
# `data` while it fits, then ZeRO; then `tensor` inside a node; stages between nodes. You can
#
# - **arrange** ranks in a mesh: the most talkative axis inside the node;
# - **prove** that a mixture is one training: loss beside loss, and what is kept twice is equal twice;
# - **count**: with one backward pass a step, ZeRO's stages 1 and 2 send no byte more; stage 3 sends half as much again.
#
# Next: [the exercises](../exercises/11_hybrid_and_sharded.ipynb). In lesson 12 the machine chooses.
#
# **To read**
#
# - Rajbhandari and others (2020), [*ZeRO*](https://arxiv.org/abs/1910.02054), describes the three stages.
# - Zhao and others (2023), [*PyTorch FSDP*](https://arxiv.org/abs/2304.11277), describes what became of them in
#   PyTorch.
# - Shazeer and others (2018), [*Mesh-TensorFlow*](https://arxiv.org/abs/1811.02084), was the first to give a mesh of
#   devices names for its axes.

# %%
ranks.stop()
