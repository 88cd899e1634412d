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
# **Predict.** `data` × `pipeline` × `tensor` = 2 × 2 × 2. Rank 0 is at (0, 0, 0), 1 at (0, 0, 1), 2 at (0, 1, 0). Rank
# 5's partners?

# %%
course.predict("mesh_partners", data=..., pipeline=..., tensor=...)  # three ranks

# %% tags=["figure:11_mesh"]
from course_utils.lessons.hybrid_and_sharded.device_mesh import mesh_groups
from course_utils.lessons.hybrid_and_sharded import pictures

cube = {"data": 2, "pipeline": 2, "tensor": 2}
partners = {}
for axis, groups in mesh_groups(cube).items():
    (group,) = [group for group in groups if 5 in group]
    (partners[axis],) = [rank for rank in group if rank != 5]
course.measured("mesh_partners", **partners)
pictures.mesh(cube)

# %% [markdown]
# Each panel shows the same eight ranks; one colour is one group. Neighbours in the count are usually neighbours in the
# machine, so the axis that talks most is named *last*. (By that rule the pipeline, which talks least, stands first in
# large trainings: Megatron-LM's order. With two ranks an axis it makes no difference here.)
#
# `torch.distributed` makes such groups itself. On our four ranks: each adds up the ranks' numbers in its group.

# %%
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
# The simplest mixture gives different *layers* different kinds. A student report asked a search program (lesson 12) how
# to train AlexNet on two GPUs. Its answer: convolutions on both, each with half of the batch; the fully connected
# layers on one. Why? Look at the network that the student then built:

# %%
from course_utils.lessons.hybrid_and_sharded.report_network import enlarged
from course_utils.lessons.hybrid_and_sharded.report_network import report_network
from course_utils.vgg import parameter_count

data = course.data.digits("float64")
convolutions, dense = report_network()
activations = convolutions(enlarged(data[0][:1]).float())
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
# **Predict.** Each of 4 ranks has 16 images. How many numbers of 8 bytes does rank 1 give to its calls in a step?
# (Not what a ring then makes of an all-reduce: that is the library's affair.)

# %%
course.predict("hybrid_numbers", within=1.1, numbers=...)

# %% tags=["figure:11_hybrid_step"]
# it uses `hybrid_step`
from course_utils.lessons.hybrid_and_sharded.report_network import train_network
from course_utils.lessons.hybrid_and_sharded.sentences import apart, same_text

steps = 66
alone = {"ranks": 1, "backend": "gloo"}  # one process
serial = ranks.run(train_network, data, "serial", steps, **alone).results[0]
hybrid = ranks.run(train_network, data, "hybrid", steps, backend="gloo")
numbers = hybrid.bytes_per_rank[1] // 8 // steps  # of 8 bytes
course.measured("hybrid_numbers", numbers=numbers)
print(same_text({"the hybrid": hybrid.results[0].losses}, serial.losses))
for one in hybrid.results:  # after every step
    assert apart(one.convolutions, serial.convolutions) <= 1e-10
assert apart(hybrid.results[0].dense, serial.dense) <= 1e-10
once = ranks.run(train_network, data, "hybrid", steps=1, backend="gloo")
once.timeline("One step: convolutions everywhere, fully connected layers on rank 0")

# %% [markdown]
# 5,120 activations, 16 labels, 5,280 gradients; data parallelism: 21,840 gradients. The price: in part 2 three ranks
# wait. (Part 4 *adds*: the loss is already a mean.) Exercise: `hybrid_step`.
#
# ## What the report did
#
# It puts the fully connected layers "only on GPU0", and exchanges gradients so:
#
# ```
# for name, param in model.named_parameters():
#     if "fc" not in name:              # fc: fully connected
#         dist.all_reduce(param.grad.data)
#     param.grad.data /= size
# ```
#
# "The training flow works correctly." **Predict** what four ranks show after 66 steps:

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
from course_utils.lessons.hybrid_and_sharded.sentences import distances, drift_text
from course_utils.lessons.hybrid_and_sharded.sentences import symptom

theirs = ranks.run(train_network, data, "report", steps, backend="gloo").results
course.measured("report_shows", answer=symptom(theirs))
shares = ", ".join(f"{one.accuracy:.0%}" for one in theirs)
print(f"test images recognised: {shares}; by one process: {serial.accuracy:.0%}")
lines = {"one process": serial.losses}
lines |= {f"rank {rank}": one.losses for rank, one in enumerate(theirs)}
course.draw.loss_curves(lines, "The report's version, each rank's loss on its own images")

# %% [markdown]
# It learns, so nobody looked further. Now look at what should be *equal*: the fully connected layers of the four ranks.

# %% tags=["figure:11_drift"]
title = drift_text(theirs)
course.draw.loss_curves(distances(theirs), title, y="distance from rank 0's layers")

# %% [markdown]
# Two processes that put a layer on the same GPU have *two* layers there. Nobody adds up their gradients, yet they are
# divided: each rank trains its own, with steps four times too short.
#
# What is kept twice must get the same gradient twice. Compare weights.
#
# ## Data × tensor
#
# A small transformer learns Python's help text by the character. `data` halves the batch, `tensor` its blocks' matrices
# (lesson 9). **Predict**: along which axis does a rank give more to its calls?

# %%
from course_utils.lessons.hybrid_and_sharded.experiments import CONTEXT, RATE
from course_utils.lessons.hybrid_and_sharded.experiments import small_batches, small_model
from course_utils.lessons.model_parallel.text import generate

text_steps = 40
batches = small_batches(text_steps)  # of 64 pieces, 16 characters each
print("blocks:", len(small_model()) - 2, "· weights:", parameter_count(small_model()))
print("a rank's activations between blocks:", 64 // 2 * CONTEXT * 48, "numbers")
print("it writes:", generate(small_model(), "The ", 60, CONTEXT))
course.predict("axis", answer=..., choices={"a": "data", "b": "tensor"})

# %% tags=["figure:11_text"]
from course_utils.lessons.hybrid_and_sharded.mesh_training import bytes_by_axis
from course_utils.lessons.hybrid_and_sharded.mesh_training import train_on_mesh
from course_utils.lessons.hybrid_and_sharded.mesh_training import train_serially
from course_utils.lessons.hybrid_and_sharded.mesh_training import whole_model

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
# Nonsense still, but in words, and one process would write the same.
#
# In a step `data` moves each rank's *gradients* once. `tensor` moves *activations* four times a block, and they grow
# with the batch: it needs the fastest links, and stays inside a node.
#
# ## Clip what is cut
#
# **Clipping** keeps a rare steep batch from throwing the weights far away: a gradient whose norm is above a limit is
# shortened to it (Pascanu and others 2013). Torch has it: `clip_grad_norm_`. Now two stages, each cut in two by
# `tensor`: no rank has the whole gradient. Each calls `clip_grad_norm_` on what it has. **Predict** what comes of it:

# %%
choices = {
    "a": "an error",
    "b": "the same training",
    "c": "another training, without an error",
}
course.predict("clip_alone", answer=..., choices=choices)

# %% tags=["figure:11_clipped"]
from functools import partial

from course_utils.lessons.hybrid_and_sharded.gradient_clipping import (
    clip_alone,
    clip_over_mesh,
)
from course_utils.lessons.hybrid_and_sharded.sentences import clip_text

limit, mesh, few = 0.3, {"pipeline": 2, "tensor": 2}, batches[:15]
one_clips = ranks.run(train_serially, small_model, few, RATE, limit, **alone).results[0]
each = {}
for clip in (clip_over_mesh, clip_alone):
    options = mesh, small_model, few, 1, RATE, partial(clip, max_norm=limit)
    each[clip] = ranks.run(train_on_mesh, *options, backend="gloo").results
for rank in each[clip_over_mesh]:
    assert apart(rank.norms, one_clips.norms) <= 1e-12
assert apart(each[clip_over_mesh][-1].losses, one_clips.losses) <= 1e-12
strange = apart(each[clip_alone][-1].losses, one_clips.losses) > 1e-6
course.measured("clip_alone", answer="c" if strange else "b")
lines = {"one process": one_clips.norms, "over the mesh": each[clip_over_mesh][0].norms}
lines |= {f"rank {rank} alone": each[clip_alone][rank].norms for rank in (0, 2)}
title = clip_text(each[clip_alone], one_clips.losses)
course.draw.loss_curves(lines, title, y="norm before clipping")

# %% [markdown]
# Each stage shortens its gradients by another factor: the direction is another one. And two ranks of a `tensor` group
# shorten what they keep *twice* by two factors, so it drifts apart.
#
# The right norm adds up **squares**: of what is cut, along `tensor`; of what is kept twice, one copy; then along
# `pipeline`; never along `data`, where all have the same. A number for each rank travels, no gradient. Equal to torch
# in one process to $10^{-12}$. Exercise: `clip_over_mesh`.
#
# ## Which mixture of 4?
#
# The same training on five meshes, batches cut into 4 micro-batches. Between stages travel 48 numbers for each
# character, forward and back. **Predict:** where does rank 1 send least?

# %%
from course_utils.lessons.hybrid_and_sharded.experiments import MESHES, count_meshes

course.predict("least_sent", answer=..., choices=list(MESHES))  # "a" to "e"

# %% tags=["figure:11_mixtures"]
from course_utils.lessons.hybrid_and_sharded.sentences import mixtures_text, totals

counted = count_meshes(ranks, batches[:2])
print(same_text(counted.losses, one.losses[:2]))
least = np.argmin(totals(counted.sent))
course.measured("least_sent", answer="abcde"[least])
panel = course.draw.SharesPanel("sent by rank 1 in a step", counted.sent)
course.draw.shares([panel], mixtures_text(counted.sent))

# %% [markdown]
# Counted from the calls, as rings would carry them out. `tensor` talks most: inside the node. What `data` sends grows
# with the weights, what stages send with the batch, and stages idle (lesson 10).
#
# (2 × 2 × 2 at once is the same training, too; that takes eight ranks, so the course's tests run it.)

# %% [markdown]
# ## Why keep everything P times?
#
# With `data` all ranks keep the same weights, gradients, and Adam's two numbers for each weight. **ZeRO** divides them.
# Stage 1: Adam's state. Stage 2: the gradients too. Stage 3: the weights too.
#
# Stage 1, by hand. Rank $r$ owns the $r$-th part of the vector of weights, and Adam's state for it. Of the gradient it
# needs the same part: a **reduce-scatter**. It updates its part; an **all-gather** brings all parts to all.

# %% tags=["figure:11_zero1"]
from course_utils.lessons.hybrid_and_sharded.zero1 import adam_shard, zero1_step


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
    return len(model[1].mlp.up.weight.to_local())


for _ in range(2):  # the first run makes the modules ready
    run = ranks.run(fully_sharded, batches[0][0], backend="gloo")
run.timeline(f"FSDP2: of a matrix of 192 rows a rank keeps {run.results[0]}")

# %% [markdown]
# A gather for each layer on the way forward, again on the way back, then a reduce-scatter of its gradients.
#
# **Predict** for Adam, all numbers of one size, 4 ranks. If stage 0 keeps 100 %, what do the others keep? And if
# stage 0 sends 100 %, what does stage 3 send?

# %%
course.predict("zero_kept", within=1.05, stage_1=..., stage_2=..., stage_3=...)  # percent
course.predict("zero_sent", within=1.05, stage_3=...)  # percent

# %% tags=["figure:11_stages"]
from course_utils.lessons.hybrid_and_sharded.experiments import count_stages
from course_utils.lessons.hybrid_and_sharded.sentences import stages_text

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
# Stages 1 and 2 save memory and send no byte more; stage 3 gathers weights twice: half as much again. (As rings. gloo
# moves more. And for one backward pass a step: with $m$ micro-batches stage 2 must reduce after each, and sends
# $\frac{m+1}{2}$ times as much.) In **mixed precision** a weight takes 2 bytes, its gradient 2, Adam 12: the weight in
# float32, mean, square. (Megatron-LM keeps gradients in float32, too: 18 bytes.) Exercises: `zero_memory`, `fits`.
#
# ## Written by four, read by two
#
# A sharded model's **checkpoint**, from which its training goes on, is in pieces. **Predict.** 2 × 2 ranks train, and
# write weights and state. Two read them, then one. How far apart are the values?

# %%
choices = {"a": "0", "b": "about 1e-15", "c": "other meshes cannot read them"}
course.predict("checkpoint", answer=..., choices=choices)

# %%
from course_utils.lessons.hybrid_and_sharded.experiments import gone_on
from course_utils.lessons.hybrid_and_sharded.mesh_checkpoints import save_on_mesh

far = []
with tempfile.TemporaryDirectory() as folder:
    write = (save_on_mesh, folder, square, small_model, batches[:3], RATE)
    written = ranks.run(*write, backend="gloo").results[0].state
    for sizes in ({"data": 2}, {"tensor": 2}, {"data": 1}):
        read, losses = gone_on(ranks, folder, sizes, batches[3:5])
        far += [apart(read[name], values) for name, values in written.items()]
        print(sizes, "go on with losses", *(f"{loss:.9f}" for loss in losses))
course.measured("checkpoint", answer="a" if max(far) == 0 else "b")

# %% [markdown]
# Each piece says which part of which tensor it is (`torch.distributed.checkpoint`), so any mesh finds its own parts.
# They are copied, not computed. And training goes on the same.
#
# ## Two more ways to save memory
#
# ZeRO does not divide **activations**, which grow with the batch. Two ways you know: **accumulate** gradients over
# micro-batches (lesson 7); activation **checkpointing** (another checkpoint!): keep each block's input, compute the
# rest again (lesson 9).

# %% tags=["figure:11_activations"]
from course_utils.lessons.model_parallel.activation_checkpointing import checkpointed
from course_utils.lessons.hybrid_and_sharded.experiments import most_saved
from course_utils.lessons.hybrid_and_sharded.sentences import saved_text

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
# From here on **on paper only**: no GPU runs a step. 7 billion weights, mixed precision, Adam, GPUs of 80 GB.
# **Predict**: how many GB do weights, gradients and state take in all? On 8 GPUs, with `data` alone: from which stage
# on do they fit?

# %%
course.predict("seven_billion", within=1.05, gigabytes=..., stage=...)

# %%
from course_utils.lessons.hybrid_and_sharded.zero_formulas import fits, zero_memory

first = next(stage for stage in range(4) if fits(7e9, 8, stage, memory=80e9))
course.measured("seven_billion", gigabytes=zero_memory(7e9, 1, 0) / 1e9, stage=first)
for stage in range(4):
    print(f"stage {stage}: {zero_memory(7e9, 8, stage) / 1e9:.1f} GB on each of 8 GPUs")

# %% [markdown]
# And activations? And the time of a step? A **planner** goes through every mixture: cited formulas for memory, compute
# and messages (in `course_utils/lessons/hybrid_and_sharded/planner/`), assumed GPUs and links, four million **tokens**
# (pieces of words) in a step. Of 80 GB it fills at most 72; Adam's state may move to the node's own memory, 250 GB for
# each GPU.
#
# **Predict.** Of nine published models: which is the largest that fits on 8 such GPUs? On 512?

# %%
from course_utils.lessons.hybrid_and_sharded.planner.gpu_clusters import H100
from course_utils.lessons.hybrid_and_sharded.planner.language_models import MODELS
from course_utils.lessons.hybrid_and_sharded.planner.layout_search import best, plan
from course_utils.lessons.hybrid_and_sharded.planner import pictures as planner_pictures

choices = dict(zip("abcdefghi", MODELS))
course.predict("largest", on_8=..., on_512=..., choices=choices)

# %%
plans = {gpus: {name: plan(name, H100(gpus)) for name in MODELS} for gpus in (8, 64, 512)}
fitting = {
    gpus: [letter for letter in choices if best(planned[choices[letter]])]
    for gpus, planned in plans.items()
}
course.measured("largest", on_8=fitting[8][-1], on_512=fitting[512][-1])
planner_pictures.plans(plans)

# %% [markdown]
# (DP, TP, PP: ranks along `data`, `tensor`, `pipeline`. *Again*: what checkpointing computes twice. *ZB-V*: lesson 10's
# V. **Offloaded**: the node's processors step, with Adam's state in their memory.) Read a column downwards: the larger
# the model, the more kinds are mixed. Small models need `data` alone, larger ones ZeRO, the largest also `tensor`,
# never beyond a node's 8 GPUs, or stages. Of two near mixtures only a run says which is quicker.

# %% [markdown]
# ### Is the planner right?
#
# Its rates (what share of a data sheet products, attention and memory reach) are **fitted**: to every other row of a
# table of runs that others have published, on 8 to 1,024 GPUs. The rows between are not looked at; they judge. That is
# how one notices a formula that only remembers its examples.
#
# **Predict.** By how many percent is a step's time off, in the median of the rows that judge? Peak memory?

# %%
course.predict("planner_median", within=2, step=..., memory=...)  # percent

# %% tags=["figure:11_judged"]
from course_utils.lessons.hybrid_and_sharded.planner.published_h100 import furthest_text
from course_utils.lessons.hybrid_and_sharded.planner.published_h100 import halves
from course_utils.lessons.hybrid_and_sharded.planner.published_h100 import published_runs

off = halves()
course.measured(
    "planner_median", step=100 * off["judged"].step, memory=100 * off["judged"].memory
)
for half, result in off.items():
    print(f"{half}: {result}")
print(furthest_text())
planner_pictures.published(published_runs())

# %% [markdown]
# τ, Kendall's: 1 when every two rows of a table stand in the right order, 0 for chance. Order is easy between models of
# different size, harder between layouts of one model: there some pairs differ by less than one percent. A good median
# hides bad rows: see the squares away from the line. The largest model needs more memory than the formulas say; nobody
# has found all of it. No run with experts was in the table: there nobody has judged.
#
# In a terminal, `course plan "Llama 3 70B" --gpus 64` prints the ten best mixtures, why each loses, and what breaks
# first. It also tries **HSDP**: stage 3 inside a node, gradients added up between nodes. How far do `data`,
# FSDP and `tensor` scale? Each has a formula. Exercise: `break_even`.

# %% [markdown]
# ## How many hours, how much energy?
#
# A token's forward pass takes 2 operations for each of $N$ parameters, the backward pass 4. *Model FLOPs* (lesson 3)
# of a training with $D$ tokens: $6\,N D$. The **MFU** (model FLOPs utilization) is their share of what the GPUs could
# have done: $\frac{6\,N D}{\text{seconds} \cdot \text{devices} \cdot \text{peak}}$.
#
# **Predict.** $N$ = 6.7 billion, $D$ = 1,000 billion, A100s: 312 TFLOP/s, 400 W assumed, a tenth more for the building.
# How many GPU-hours did the training take? How many MWh?

# %%
course.predict("hours", within=1.5, gpu_hours=..., megawatt_hours=...)

# %% tags=["figure:11_mfu"]
from course_utils.lessons.hybrid_and_sharded.planner.published_runs import SPENT
from course_utils.lessons.hybrid_and_sharded.sentences import utilizations_text
from course_utils.lessons.hybrid_and_sharded.utilization import device_hours, energy

llama = SPENT["LLaMA 7B"]  # its hours: Touvron and others 2023, table 15
power = energy(llama.device_hours, watts=400) / 1e6
course.measured("hours", gpu_hours=llama.device_hours, megawatt_hours=power)
at_peak = device_hours(2 * llama.parameters, llama.tokens, utilization=1, peak=llama.peak)
print(
    f"{at_peak:,.0f} GPU-hours at the peak; {llama.device_hours:,} published; {power:.0f} MWh"
)
reached = {name: one.utilizations() for name, one in SPENT.items()}
panel = course.draw.SharesPanel("MFU", reached, say=lambda share: f"{100 * share:.0f} %")
course.draw.shares([panel], utilizations_text(reached), "from published numbers")

# %% [markdown]
# The rest of the time GPUs wait: for messages, for memory, in bubbles, after failures. PaLM defined the MFU so that
# nobody can raise it by computing more (Chowdhery and others 2022, appendix B): a second forward pass for
# checkpointing takes time, and counts nothing. *Attention* multiplies activations by activations; $6\,N$ leaves it out.
#
# A convolution uses a weight at every pixel: there $6\,N$ is wrong; count the forward pass, times 3. Exercise: `mfu`.

# %% [markdown]
# ## What you take with you
#
# `data` while it fits, then ZeRO; then `tensor` inside a node; stages between nodes. You can
#
# - **arrange** ranks in a mesh: the most talkative axis inside the node;
# - **prove** that a mixture is one training: loss beside loss, and what is kept twice is equal twice;
# - **count**: with one backward pass a step, ZeRO's stages 1 and 2 are free; stage 3 sends half as much again.
#
# Next: [the exercises](../exercises/11_hybrid_and_sharded.ipynb). In lesson 12 the machine chooses.

# %%
ranks.stop()
