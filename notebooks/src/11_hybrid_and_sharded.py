# The lesson on mixtures, its first page. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Which mixture?
#
# Llama 3 405B was trained on up to 16,384 GPUs ([Grattafiori and others, 2024](https://arxiv.org/abs/2407.21783)). No
# single kind of parallelism that you have met could have used them all. In the data parallelism of lesson 6, every GPU
# needs room for the whole model. With Adam, at 16 bytes per weight (part 2 lists them), that is 6.5 TB, and a GPU has
# 80 GB. A pipeline can't have many more stages than the model has layers, which is 126. Tensor parallelism cuts
# attention between its heads (lesson 9), and there are 128. So for most of the training, the authors combined three
# kinds. They split each matrix across 8 GPUs, the layers across 16 such groups, and each batch among 128 of these
# pipelines, for a total of 8 × 16 × 128 = 16,384 GPUs.
#
# It matters which GPU does what. On this page you will work out that for every sequence of 8,192 **tokens**, which are
# pieces of words, one of these GPUs sends 15 GB to the GPUs with which it shares its matrices. That takes at least 33
# ms inside a node, but at least 300 ms between nodes. For its whole share of the work on a sequence, a GPU had only
# about 390 ms. And if you combine the kinds wrongly, the loss may still fall, without any error message.
#
# You will arrange ranks in a mesh, show that a model trains there exactly as in one process, calculate what each kind
# of parallelism sends, and clip a gradient that no single rank holds in full.
#
# *45 minutes · builds on lessons [7](07_overlap.ipynb) and [10](10_pipeline.ipynb) · 4 ranks*

# %%
import numpy as np
import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy

import course_utils as course
from course_utils.lessons.hybrid_and_sharded import RATE, Adam, small_batches, small_model
from course_utils.lessons.model_parallel import parallelise_block

ranks = course.start(4)
ranks.load_torch()

# %% [markdown]
# ## A mesh has an axis for each kind of parallelism
#
# Using data, tensor and pipeline parallelism together is called **3D parallelism**. Suppose we have eight ranks and
# want two copies of a model, each in two stages, with every matrix cut in two. Three numbers tell us which copy a rank
# works for, which stage it has, and which part of the matrices. These are its **coordinates** on a **mesh** whose
# **axes** are called `data`, `pipeline` and `tensor`. We number the ranks so that the last coordinate changes fastest:
#
# | rank | 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 |
# |---|---|---|---|---|---|---|---|---|
# | `data` | 0 | 0 | 0 | 0 | 1 | 1 | 1 | 1 |
# | `pipeline` | 0 | 0 | 1 | 1 | 0 | 0 | 1 | 1 |
# | `tensor` | 0 | 1 | 0 | 1 | 0 | 1 | 0 | 1 |
#
# Each kind of parallelism sends messages along its own axis only. A rank's **group** along an axis consists of the rank
# itself and all ranks that differ from it in that coordinate and in no other. Take rank 6, with the coordinates (1, 1,
# 0). If we change only the last one, we get (1, 1, 1), so along `tensor` its group is ranks 6 and 7. Along `pipeline`,
# we change the middle one and get (1, 0, 0), which is rank 4. If we change only the first, we get (0, 1, 0), so along
# `data` it is rank 2.
#
# **Predict.** Which rank is rank 5's partner along each of the three axes?

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
# Each panel shows all eight ranks, and ranks of the same colour form a group. `mesh_groups` is your first
# [exercise](../exercises/11_hybrid_and_sharded.ipynb).
#
# Now suppose that these ranks are GPUs in two nodes of four. Ranks 0 to 3, on the left of each panel, are in one node,
# and ranks 4 to 7 are in the other. Then all groups along `tensor` and `pipeline` lie inside a node, and all groups
# along `data` connect the two. If `tensor` were the first axis, its groups would be 0 and 4, 1 and 5, and so on, and
# all its messages would have to leave the node. **The axis that needs the fast links most goes last.**
#
# Usually this is `tensor`, which often sends the most, as we will calculate. Besides, the next layer can't start until
# the messages along `tensor` have arrived, while those along `data` can travel during the backward pass (lesson 7). In
# Llama 3's training, the eight GPUs of a node were exactly the eight ranks of a group along `tensor`.
#
# In PyTorch, `init_device_mesh` makes a mesh with all its groups. Let's try it with our four ranks, each of which adds
# its own number to those of the others in its group:


# %% tags=["nbval-check-output"]
def two_by_two():
    return dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "tensor"))


def sum_in_groups():
    mesh, sums = two_by_two(), {}
    for axis in ("data", "tensor"):
        number = torch.tensor(float(dist.get_rank()))
        dist.all_reduce(number, group=mesh.get_group(axis))
        sums[axis] = int(number)
    return mesh.get_coordinate(), sums


results = ranks.run(sum_in_groups, backend="gloo").results
for rank, (coordinates, sums) in enumerate(results):
    print(f"rank {rank} at {coordinates}: {sums}")

# %% [markdown]
# The argument `group=` restricts a collective to the ranks of one group. Along `data`, rank 3 shares a group with rank
# 1, so it finds 3 + 1, which is 4. Along `tensor` it shares one with rank 2 and finds 5.
#
# ## Each rank holds a part of the model and reads a part of the batch
#
# We now train the transformer of lesson 9 on this mesh of 2 × 2 ranks. It consists of an embedding, two blocks and a
# last layer, its vectors have 48 entries, and it learns to predict the next character of Python's help text. A batch
# has 64 pieces of 16 characters.
#
# A rank's coordinate along `tensor` selects its part of the matrices, which `parallelise_block` of lesson 9 cuts out.
# Its coordinate along `data` selects its part of the batch. We get this coordinate from `dist.get_rank(group)`, which
# returns the rank's position in the group, counted from 0.


# %%
def part_of_model(tensor_group):
    model = small_model()  # every rank makes the same weights
    for block in model[1:-1]:  # between the embedding and the last layer
        parallelise_block(block, tensor_group)  # keeps this rank's part
    return model


def part_of_batch(whole, data_group):
    parts = whole.chunk(dist.get_world_size(data_group))
    return parts[dist.get_rank(data_group)]


# %% [markdown]
# To see what lies where, we ask each rank for its part of the batch and of some weights. `find_parts` then searches the
# whole batch and the whole matrices for these numbers, and so finds out which rows and columns each rank has:


# %% tags=["figure:11_mesh_parts"]
from course_utils.lessons.hybrid_and_sharded import find_parts, held_text


layers = ["attention.qkv", "attention.out", "mlp.up", "mlp.down", "norm_1"]


def weights_of(block):
    return {name: block.get_submodule(name).weight.detach() for name in layers}


def what_i_hold(x):
    mesh = two_by_two()
    mine = part_of_batch(x, mesh.get_group("data"))
    block = part_of_model(mesh.get_group("tensor"))[1]
    return {"batch": mine, **weights_of(block)}


steps = 40
batches = small_batches(steps)  # for each step the whole batch: (x, target)
x = batches[0][0]
held = ranks.run(what_i_hold, x, backend="gloo").results
parts = find_parts(held, {"batch": x, **weights_of(small_model()[1])})
square = {"data": 2, "tensor": 2}
pictures.mesh_parts(parts, square, held_text(parts, "batch"))

# %% [markdown]
# Each rectangle is a whole matrix, of which the rank in this row holds the coloured part. (Short sides are drawn longer
# than they are.) `attention.qkv` and `mlp.up` have a column cut, which divides dimension 0 of `weight`, and
# `attention.out` and `mlp.down` have a row cut, which divides dimension 1 (lesson 9). The rows of `attention.qkv` are
# sorted by head, so each half has the queries, keys and values of half the heads. The norm is grey because every rank
# has all of it. The same goes for the embedding and the last layer.
#
# Ranks 0 and 2, which form a group along `data`, hold the same weights but read different halves of the batch. So they
# are replicas, as in lesson 6, and need the mean of their gradients. Ranks 0 and 1, which form a group along `tensor`,
# read the same examples but hold different halves of the matrices, so adding the gradients of these halves would make
# no sense. Instead, each block adds up activations in the forward pass, and their gradients in the backward pass
# (lesson 9). For the norm and other copies, both ranks therefore find the same gradient.
#
# ## A step on the mesh, and how we check it
#
# Here is the whole training loop. Only the lines marked *new* are added to a serial loop. The all-reduces along
# `tensor` are hidden in the blocks.


# %%
def loss_of(model, x, target):
    return cross_entropy(model(x).flatten(0, 1), target.flatten())


def average_along_data(model, data_group):
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad, group=data_group)
        parameter.grad /= dist.get_world_size(data_group)


def train_on_square(batches, average):
    mesh = two_by_two()  # new
    data_group = mesh.get_group("data")  # new
    model = part_of_model(mesh.get_group("tensor"))  # new
    optimizer = Adam(model, RATE)
    losses = []
    for x, target in batches:
        x = part_of_batch(x, data_group)  # new
        target = part_of_batch(target, data_group)  # new
        loss = loss_of(model, x, target)
        model.zero_grad()
        loss.backward()
        average(model, data_group)  # new
        optimizer.step()
        losses.append(loss.item())
    return losses, model.state_dict()


# %% [markdown]
# To check it, we also train in a single process and compare the losses at each step. The loss of the whole batch is the
# mean of the losses of its halves. Each half is read by two ranks, so we can take the mean over all four.

# %% tags=["figure:11_text"]
from course_utils.lessons.hybrid_and_sharded import same_text, train_serially

alone = {"ranks": 1, "backend": "gloo"}
serial = ranks.run(train_serially, small_model, batches, RATE, **alone).results[0]
run = ranks.run(train_on_square, batches, average_along_data, backend="gloo")


def mean_losses(run):
    return np.mean([losses for losses, _ in run.results], axis=0).tolist()


print(same_text({"2 data × 2 tensor": mean_losses(run)}, serial.losses))
lines = {"one process": serial.losses, "2 data × 2 tensor": mean_losses(run)}
course.draw.loss_curves(lines, "A transformer learns characters on a mesh")

# %% [markdown]
# The largest difference is a rounding error. If it were larger, `same_text` would have raised an error. So the four
# ranks, each with half the batch and about half the weights, follow a single process loss by loss. Here is what the
# model of the single process writes before and after 40 steps:

# %%
from course_utils.lessons.hybrid_and_sharded import CONTEXT, whole_model
from course_utils.lessons.model_parallel import generate

writer = whole_model(small_model(), [serial])  # a model with the trained weights
print("before:", generate(small_model(), "The ", 60, CONTEXT, temperature=0.6))
print("after: ", generate(writer, "The ", 60, CONTEXT, temperature=0.6))

# %% [markdown]
# It has learned a little about English spelling, and no more.
#
# ## A wrong group need not raise an error
#
# Now let's make two mistakes on purpose. The first is to forget `group=data_group`, so that the gradients are averaged
# over all four ranks. In the picture of the parts, rank 0 has the upper half of `mlp.up` and rank 1 the lower half.
# Both have the same shape, so `all_reduce` adds the gradient of a weight in the upper half to that of an unrelated
# weight in the lower half, and has no way of noticing. The second mistake is not to average at all.
#
# In lesson 6 we compared the weights of replicas to find mistakes. Here, ranks 0 and 2 are replicas, and so are 1 and
# 3.
#
# **Predict.** For each of the two mistakes, which check reveals it?

# %%
course.predict(
    "wrong_group",
    over_all_four=...,  # "a", "b" or "c"
    not_at_all=...,
    choices={
        "a": "an error message",
        "b": "ranks 0 and 2 hold different weights, and the losses are wrong, too",
        "c": "only the losses: they differ from those of one process",
    },
)


# %%
def average_over_all(model, data_group):
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)  # without group=data_group
        parameter.grad /= dist.get_world_size()


def no_average(model, data_group):
    pass


# %% tags=["figure:11_wrong_groups"]
from course_utils.lessons.hybrid_and_sharded import largest_difference

ways = {
    "along data": average_along_data,
    "over all four": average_over_all,
    "not at all": no_average,
}
lines, found = {"one process": serial.losses}, {}
for name, average in ways.items():
    run = ranks.run(train_on_square, batches, average, backend="gloo")
    lines[name] = mean_losses(run)
    off = largest_difference(lines[name], serial.losses)
    rank_0, rank_2 = run.results[0][1], run.results[2][1]
    apart = max(largest_difference(rank_0[key], rank_2[key]) for key in rank_0)
    print(f"{name:14} losses differ by {off:.0e}, replicas by {apart:.0e}")
    found[name] = "b" if apart > 1e-10 else "c"
over_all, not_at_all = found["over all four"], found["not at all"]
course.measured("wrong_group", over_all_four=over_all, not_at_all=not_at_all)
title = f"No error is raised, but the losses are off by up to {off:.1g}"
course.draw.loss_curves(lines, title)

# %% [markdown]
# If the gradients are averaged over all four, ranks 0 and 2 take the same wrong step and stay equal, so comparing
# replicas reveals nothing. Of our two checks, only the comparison with one process finds this mistake. You need the
# printed numbers to see it, because the wrong curve lies almost on top of the right one. If the gradients aren't
# averaged at all, the replicas drift apart, because each trains on its own half of the data. Even so, the loss keeps
# falling.
#
# On this mesh all shapes agree, so nothing can complain. Even where they differ, don't count on an error message. An
# all-reduce may add up any two tensors with the same number of elements, and ranks that call different numbers of
# collectives simply wait for each other. [Further](11_hybrid_and_sharded_further.ipynb) takes apart a program, from a
# student's report, which exchanged its gradients wrongly and still learned.
#
# ## What does each axis send?
#
# To decide which axis belongs on the fast links, we calculate what rank 1 sends in a step. Our numbers are stored in 8
# bytes each, and we assume that every all-reduce is done by a ring, in which each of $P$ ranks sends $2\,\frac{P-1}{P}$
# times the vector (lesson 5).
#
# | axis | what it sends in a step | the size of what it sums or sends |
# |---|---|---|
# | `data` | one all-reduce of the gradients | the weights that a rank holds |
# | `tensor` | four all-reduces in each block (lesson 9) | the activations of the examples that it reads |
# | `pipeline` | activations to the next stage, their gradients to the previous one | the same activations |
#
# The whole model has 66,624 weights. For the whole batch, the activations between two layers are 64 × 16 vectors of 48
# numbers, which is 49,152 numbers.
#
# Take 2 data × 2 tensor first. A rank holds 38,640 weights, which is more than half because not everything is cut. With
# 2 ranks the factor of the ring is 1, so along `data` it sends 38,640 numbers of 8 bytes, or 309 KB. Along `tensor`,
# each all-reduce sums the activations of half the batch, 24,576 numbers. Four all-reduces in each of two blocks make
# eight, so rank 1 sends 8 × 24,576 = 196,608 numbers, or 1,573 KB.
#
# Now take two different meshes. With 4 data, each rank holds all the weights and the factor is 1.5. With 4 stages, each
# rank has one of the four layers, and there is no all-reduce. Rank 1 sends the activations of the whole batch on to
# rank 2, and the same number of gradients back to rank 0.
#
# **Predict.** How many KB does rank 1 send in a step on each of the two?

# %%
course.predict("sent", within=1.1, data_4=..., stages_4=...)  # KB

# %% [markdown]
# The library's `train_on_mesh` is our `train_on_square` for any mesh, with the 1F1B schedule of lesson 10 along
# `pipeline`. We run two steps on each of five meshes and count what rank 1 would send if every all-reduce were a ring:

# %% tags=["figure:11_mixtures"]
from course_utils.lessons.hybrid_and_sharded import count_meshes, mixtures_text, totals

counted = count_meshes(ranks, batches[:2])
print(same_text(counted.losses, serial.losses[:2]))
sent = dict(zip(counted.sent, totals(counted.sent), strict=True))
course.measured("sent", data_4=sent["4 data"] / 1e3, stages_4=sent["4 stages"] / 1e3)
panel = course.draw.SharesPanel("sent by rank 1 in a step", counted.sent)
course.draw.shares([panel], mixtures_text(counted.sent))

# %% [markdown]
# All five train the same model, as the printed line confirms. With 4 data, rank 1 sends 1.5 × 66,624 × 8 bytes = 800
# KB, and with 4 stages 2 × 49,152 × 8 bytes = 786 KB. The picture doesn't show that stages also wait for each other
# (lesson 10).
#
# What `data` sends depends only on the number of weights. What `tensor` and `pipeline` send grows with the number of
# characters in a batch, because each character is a row of the activations.
#
# ## Why Llama 3 keeps `tensor` inside a node
#
# Now for Llama 3 405B. Its 126 layers are blocks. Divided over 16 pipeline ranks, they come to at most 8 for each GPU.
# A sequence has 8,192 tokens, and a vector has 16,384 numbers of 2 bytes, so the activations of a sequence take 8,192 ×
# 16,384 × 2 bytes = 268 MB. The ring along `tensor` has 8 ranks, so in each all-reduce a GPU sends 1.75 times that.
# With four all-reduces in each of 8 blocks, this makes 32 × 1.75 × 268 MB = 15 GB for every sequence. In a step, a GPU
# works on 16 sequences and sends 240 GB. The links inside a node carry 450 GB/s, so this takes at least 0.53 s. Between
# nodes, at 50 GB/s, it would take at least 4.8 s.
#
# A step took about 6.2 s, or 390 ms for each sequence. [Further](11_hybrid_and_sharded_further.ipynb) calculates this
# from the 400 · 10¹² FLOPs per second (lesson 3) that the paper reports for each GPU. Between nodes, the messages along
# `tensor` would have added more than four seconds. Inside a node they take half a second, a part of which can be hidden
# behind computation ([Further](09_model_parallel_further.ipynb) of lesson 9). The same calculation for the other two
# axes, with gradients of 2 or 4 bytes, gives 13 or 25 GB along `data` and 9 GB along `pipeline`, if each rank has one
# stage. That is why `tensor` gets the links inside a node, while `data` and `pipeline` can go between nodes.
#
# ## Clipping needs the norm of the whole gradient
#
# Now and then a batch produces a huge gradient that throws the weights off. **Clipping** guards against this ([Pascanu
# and others, 2013](https://arxiv.org/abs/1211.5063)). If the norm of the gradient, which is the root of the sum of its
# squares, is above a limit, the whole gradient is scaled down to that limit. On a mesh, no rank has the whole gradient.
# What goes wrong if each rank uses the norm of its own part?
#
# Take a model of three weights on two ranks along `tensor`. Each rank holds one of the first two weights, and both hold
# a copy of the third:
#
# | | gradient of the cut weight | gradient of the copy | its own norm | factor for a limit of 6.5 |
# |---|---|---|---|---|
# | rank 0 | 3 | 12 | $\sqrt{9 + 144} = 12.37$ | 0.525 |
# | rank 1 | 4 | 12 | $\sqrt{16 + 144} = 12.65$ | 0.514 |
#
# The gradient of the model is (3, 4, 12). Its norm is $\sqrt{9 + 16 + 144} = 13$, so all three numbers should be
# multiplied by 6.5 ÷ 13 = 0.5. If each rank uses its own factor, the gradient changes direction. Even worse, the
# gradient of the copy becomes 6.31 on rank 0 and 6.17 on rank 1, and after the step the two copies are no longer equal.
#
# The remedy is to add up squares, and to count each copy once. So the two ranks all-reduce the squares of what is cut,
# which gives 9 + 16, and then each of them adds the 144 of its copy.
#
# **Predict.** Now suppose that this is only the first of two stages. In the second, the squares add up to 7,056, with
# each copy counted once. There are also two replicas along `data`, whose gradients have been averaged, so there are
# eight ranks in all. What is the norm of the gradient?

# %%
course.predict("norm", norm=...)

# %%
course.answer("norm", norm=np.sqrt(9 + 16 + 144 + 7056))

# %% [markdown]
# In our model every stage has different weights, so along `pipeline` the squares are added, and the root of 169 + 7,056
# is 85. Along `data` nothing is added, because after the averaging both replicas hold the same gradient.
#
# You will write `clip_over_mesh`, which does this, in the exercises. Let's compare it with `clip_alone`, where each
# rank uses its own norm. On a mesh of 2 stages × 2 tensor, ranks 0 and 1 have the first stage, and ranks 2 and 3 the
# second:

# %%
from functools import partial

from course_utils.lessons.hybrid_and_sharded import clip_alone, clip_over_mesh
from course_utils.lessons.hybrid_and_sharded import train_on_mesh

limit, few, micro_batches = 0.3, batches[:15], 1
right = ranks.run(train_serially, small_model, few, RATE, limit, **alone).results[0]
staged = {"pipeline": 2, "tensor": 2}


def train_and_clip(clip):
    settings = staged, small_model, few, micro_batches, RATE
    limited = partial(clip, max_norm=limit)
    return ranks.run(train_on_mesh, *settings, limited, backend="gloo").results


over_mesh, by_itself = train_and_clip(clip_over_mesh), train_and_clip(clip_alone)
for trained in over_mesh:
    assert largest_difference(trained.norms, right.norms) <= 1e-12
assert largest_difference(over_mesh[-1].losses, right.losses) <= 1e-12

# %% tags=["figure:11_clipped"]
from course_utils.lessons.hybrid_and_sharded import clip_text

lines = {"one process": right.norms, "over the mesh": over_mesh[0].norms}
lines |= {f"rank {rank} alone": by_itself[rank].norms for rank in (0, 2)}
lines["limit"] = [limit] * len(few)
whole = sum(norm > limit for norm in right.norms)
alone_0 = sum(norm > limit for norm in by_itself[0].norms)
title = f"Rank 0 alone clips in {alone_0} of {len(few)} steps, one process in {whole}"
print(clip_text(by_itself, right.losses))
course.draw.loss_curves(lines, title, y="norm before clipping")

# %% [markdown]
# With the norm of the whole gradient, the norms and losses match those of one process at every step, as the `assert`s
# have checked. On its own, each rank decides by its own part, so the ranks scale their parts by different factors.
# Again there is no error message.
#
# PyTorch's `clip_grad_norm_` sees only what its rank holds, so with plain tensors, as on this page, you have to add up
# the squares yourself. If the gradients are DTensors (lesson 9), it adds up the squares along `tensor` by itself, as
# [Further](11_hybrid_and_sharded_further.ipynb) shows. But each stage of a pipeline is a separate model, so the sum
# along `pipeline` is left to you. The same is true of the experts in lesson 16.

# %%
ranks.stop()

# %% [markdown]
# ## What you can do now
#
# You can arrange ranks in a mesh and list the groups along each axis. You average gradients along `data` only. A wrong
# group need not raise an error, so you compare with one process. You can calculate what each axis sends, and you give
# the links inside a node to the axis that needs them most. To find the norm of a gradient, you add up squares along
# `tensor` and `pipeline`, and you count copies once.
#
# Along `data`, all ranks still keep the same weights, gradients and optimizer state. In [part
# 2](11_hybrid_and_sharded_part_2.ipynb) you will divide them. The [exercises](../exercises/11_hybrid_and_sharded.ipynb)
# begin with `mesh_groups` and `clip_over_mesh`.
#
# **To read**
#
# - Shazeer and others, 2018, [*Mesh-TensorFlow*](https://arxiv.org/abs/1811.02084): gave a mesh of devices names for
#   its axes.
# - Narayanan and others, 2021, [*Efficient Large-Scale Language Model Training on GPU
#   Clusters*](https://arxiv.org/abs/2104.04473): how data, tensor and pipeline parallelism are combined, with
#   measurements on up to 3,072 GPUs.
# - Grattafiori and others, 2024, [*The Llama 3 Herd of Models*](https://arxiv.org/abs/2407.21783): section 3.3 explains
#   the order of the axes for 16,384 GPUs.
