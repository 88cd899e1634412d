# The lesson on mixtures, its first page. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Which mixture?
#
# Llama 3 405B was trained on up to 16,384 GPUs ([Grattafiori and others, 2024](https://arxiv.org/abs/2407.21783)). No
# single kind of parallelism could have used them all. With the data parallelism of lesson 6, every GPU would need room
# for the whole model, which is 6.5 TB with Adam at 16 bytes per weight, and a GPU has 80 GB. A pipeline cannot have
# 16,384 stages, because the model has only 126 layers. So its authors combined three kinds. They cut each matrix over 8
# GPUs, the layers into 16 stages, and each batch over 128 copies of the whole, which makes 8 × 16 × 128 = 16,384 GPUs.
#
# It matters which GPU does what. You will calculate on this page that one of these GPUs sends 15 GB, for each text that
# it trains on, to the GPUs that share its matrices. That takes 33 ms inside a node, but 300 ms between nodes, while all
# the work for one text took about 390 ms. And if the kinds are combined wrongly, the loss may still fall, and there is
# no error message.
#
# You will arrange ranks in a mesh, show that a model trains on it just as it does in one process, calculate what each
# kind of parallelism sends, and clip a gradient that no rank has as a whole.
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
# want two copies of a model, each in two stages, with every matrix cut in two. For each rank, three numbers tell us
# which copy it works for, which stage it has, and which part of the matrices. These are its **coordinates** on a
# **mesh** whose **axes** are called `data`, `pipeline` and `tensor`. We number the ranks so that the last coordinate
# changes fastest:
#
# | rank | 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 |
# |---|---|---|---|---|---|---|---|---|
# | `data` | 0 | 0 | 0 | 0 | 1 | 1 | 1 | 1 |
# | `pipeline` | 0 | 0 | 1 | 1 | 0 | 0 | 1 | 1 |
# | `tensor` | 0 | 1 | 0 | 1 | 0 | 1 | 0 | 1 |
#
# Each kind of parallelism sends messages along its own axis only. A rank's **group** along an axis consists of the rank
# itself and all ranks that differ from it in that coordinate and in no other. Take rank 6, which has the coordinates
# (1, 1, 0). If we change only the last one, we get (1, 1, 1), so along `tensor` its group is ranks 6 and 7. If we
# change only the middle one, we get (1, 0, 0), so along `pipeline` its partner is rank 4. Along `data` it is (0, 1, 0),
# which is rank 2.
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
# Each panel shows all eight ranks, and ranks of one colour form a group. `mesh_groups` is your first
# [exercise](../exercises/11_hybrid_and_sharded.ipynb).
#
# Now suppose that these ranks are GPUs in two nodes of four. Ranks 0 to 3, on the left of each panel, are in one node,
# and ranks 4 to 7 are in the other. Then all groups along `tensor` and `pipeline` lie inside a node, and all groups
# along `data` connect the two. If `tensor` were the first axis, its groups would be 0 and 4, 1 and 5, and so on, and
# all its messages would have to leave the node. So the order of the axes decides who uses the fast links. **Put the
# axis that communicates most last.** Llama 3's ranks were in the same order, and NVLink (lesson 13) connected the eight
# GPUs of a node, which are just the ranks along `tensor`. (Megatron-LM and torchtitan put `pipeline` before `data`, and
# `tensor` last, too.) In NVIDIA's [NVL72](https://www.nvidia.com/en-us/data-center/gb200-nvl72/) NVLink connects 72.
#
# In PyTorch, `init_device_mesh` makes a mesh with all its groups. Let's try it with our four ranks, each of which adds
# up its own number with those of its group:


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
# The argument `group=` restricts a collective to the ranks of one group. Along `data`, rank 3 is with rank 1, and 3 + 1
# = 4. Along `tensor` it is with rank 2, and 3 + 2 = 5.
#
# ## Each rank holds a part of the model and reads a part of the batch
#
# We now train the transformer of lesson 9 on this mesh of 2 × 2 ranks. It has two blocks, its vectors have 48 numbers,
# and it learns to predict the next character of Python's help text. A batch has 64 pieces of 16 characters.
#
# A rank's coordinate along `tensor` selects its part of the matrices, which `parallelise_block` of lesson 9 cuts out.
# The one along `data` selects its part of the batch. Inside a group, `dist.get_rank` counts from 0, so it returns the
# coordinate along the group's axis.


# %%
def part_of_model(tensor):
    model = small_model()  # every rank makes the same weights
    for block in model[1:-1]:  # all layers but the first and the last
        parallelise_block(block, tensor)  # keeps this rank's part
    return model


def part_of_batch(whole, data):
    return whole.chunk(dist.get_world_size(data))[dist.get_rank(data)]


# %% [markdown]
# To see what lies where, we ask each rank for its part of the batch and of some weights, and `find_parts` looks them up
# in the whole batch and the whole model:


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
# Every row is a rank with its coordinates, and each rectangle is a whole matrix. The rank holds the coloured part.
# (Short sides are drawn longer than they are.) `attention.qkv` and `mlp.up` have a column cut, which divides dimension
# 0 of `weight`, and `attention.out` and `mlp.down` have a row cut, which divides dimension 1 (lesson 9). The norm is
# grey because each rank has all of it, as it has of the embedding and the last layer.
#
# Ranks 0 and 2, which form a group along `data`, hold the same weights but read different halves of the batch. So they
# are replicas, as in lesson 6, and need the mean of their gradients. Ranks 0 and 1, which form a group along `tensor`,
# read the same examples but hold different halves of the matrices. Adding their gradients would make no sense. They add
# activations instead, inside each block.
#
# ## A step on the mesh, and its proof
#
# This is the whole training. The lines marked *new* are all that it adds to a serial loop. The all-reduces along
# `tensor` don't appear here, because they are part of the blocks.


# %%
def loss_of(model, x, target):
    return cross_entropy(model(x).flatten(0, 1), target.flatten())


def average_along_data(model, data):
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad, group=data)
        parameter.grad /= dist.get_world_size(data)


def train_on_square(batches, average):
    mesh = two_by_two()  # new
    data, tensor = mesh.get_group("data"), mesh.get_group("tensor")  # new
    model = part_of_model(tensor)  # new
    optimizer = Adam(model, RATE)
    losses = []
    for x, target in batches:
        x, target = part_of_batch(x, data), part_of_batch(target, data)  # new
        loss = loss_of(model, x, target)
        model.zero_grad()
        loss.backward()
        average(model, data)  # new
        optimizer.step()
        losses.append(loss.item())
    return losses, model.state_dict()


# %% [markdown]
# To prove that it is right, we train in a single process, too, and compare the losses at each step. The loss of the
# whole batch is the mean of the losses of its halves.

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
# The two curves coincide, and the largest difference is a rounding error. (Otherwise `same_text` would have stopped
# with an error.) So the four ranks, each with half the batch and about half the weights, train one model. Here is what
# it writes before and after 40 steps:

# %%
from course_utils.lessons.hybrid_and_sharded import CONTEXT, whole_model
from course_utils.lessons.model_parallel import generate

writer = whole_model(small_model(), [serial])  # a model with the trained weights
print("before:", generate(small_model(), "The ", 60, CONTEXT, temperature=0.6))
print("after: ", generate(writer, "The ", 60, CONTEXT, temperature=0.6))

# %% [markdown]
# It has learned a little about English spelling, and no more.
#
# ## A wrong group raises no error
#
# Now let's make two mistakes on purpose. The first is to forget `group=data`, so that the gradients are averaged over
# all four ranks. In the picture, rank 0 has the upper half of `mlp.up` and rank 1 the lower half. Both halves have the
# same shape, so `all_reduce` adds the gradient of a weight in the upper half to that of an unrelated weight in the
# lower half, and cannot notice. The second mistake is not to average at all.
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
def average_over_all(model, data):
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)  # without group=data
        parameter.grad /= dist.get_world_size()


def no_average(model, data):
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
# replicas reveals nothing. Only the comparison with one process does, and you need the printed numbers for it, because
# in the picture the wrong curve is hardly visible behind the right one. If the gradients aren't averaged at all, the
# replicas drift apart, because each trains on its own half of the data. Even then the loss falls.
#
# A third mistake is to divide by 4 instead of 2. With SGD, each step would be half as long. Adam would hide it, because
# it divides each gradient by its usual size. So compare the gradients of the first step, too.
# [Further](11_hybrid_and_sharded_further.ipynb) shows such mistakes in a program from a report.
#
# ## What does each axis send?
#
# To decide which axis belongs on the fast links, we calculate what rank 1 sends in a step. Our numbers take 8 bytes,
# and we assume that every all-reduce is done by a ring, in which each of $P$ ranks sends $2\,\frac{P-1}{P}$ times the
# vector (lesson 5).
#
# | axis | what it sends in a step | how much it sums or sends |
# |---|---|---|
# | `data` | one all-reduce of the gradients | the weights that a rank holds |
# | `tensor` | four all-reduces in each block (lesson 9) | the activations of the examples that it reads |
# | `pipeline` | activations forward, their gradients back | the same activations, once per cut and direction |
#
# The whole model has 66,624 weights. For the whole batch, the activations between two layers are 64 × 16 vectors of 48
# numbers, which is 49,152 numbers.
#
# Take 2 data × 2 tensor first. A rank holds 38,640 weights, which is more than half because not everything is cut. With
# 2 ranks the factor of the ring is 1, so along `data` it sends 38,640 × 8 bytes = 309 KB. Along `tensor`, each
# all-reduce sums the activations of half the batch, 24,576 numbers. With four all-reduces in each of two blocks, that
# makes 8 × 24,576 × 8 bytes = 1,573 KB.
#
# Now take two different meshes. With 4 data, each rank holds all the weights and the factor is 1.5. With 4 stages there
# is no all-reduce. Rank 1 sends the activations of the whole batch on to rank 2, and as many gradients back to rank 0.
#
# **Predict.** How many KB does rank 1 send in a step on each of the two?

# %%
course.predict("sent", within=1.1, data_4=..., stages_4=...)  # KB

# %% [markdown]
# The library's `train_on_mesh` is our `train_on_square` for any mesh, with the 1F1B schedule of lesson 10 along
# `pipeline`. We run two steps on each of five meshes and count what rank 1 sends, or would send in a ring:

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
# KB, and with 4 stages it sends 2 × 49,152 × 8 bytes = 786 KB. But stages also wait for each other (lesson 10), which
# this picture doesn't show.
#
# What `data` sends depends on the number of weights and not on the batch. What `tensor` and `pipeline` send grows with
# the number of characters, because each character is a row of the activations. So longer texts or larger batches make
# `tensor` more expensive, while `data` sends the same.
#
# We can do the same calculation for Llama 3 405B. Its 126 layers are blocks, in 16 stages, so a GPU has at most 8 of
# them. A text has 8,192 **tokens**, which are pieces of words, and a vector has 16,384 numbers of 2 bytes. So the
# activations of a text take 8,192 × 16,384 × 2 bytes = 268 MB, and in each all-reduce a GPU sends 1.75 times that,
# because the ring has 8 ranks. With four all-reduces in each of 8 blocks, this makes 32 × 1.75 × 268 MB = 15 GB for
# every text. In a step, each GPU works on 16 texts:
#
# | axis | a GPU sends in a step | at 450 GB/s (NVLink) | at 50 GB/s (network) |
# |---|---|---|---|
# | `tensor` | 16 × 15 GB = 240 GB | 0.53 s | 4.8 s |
# | `data` | 2 × 6.3 GB = 12.6 GB | 0.03 s | 0.25 s |
# | `pipeline` | 16 × 2 × 0.27 GB = 8.6 GB | 0.02 s | 0.17 s |
#
# Along `data`, a GPU all-reduces the gradients of 405 billion ÷ 128 weights, at 2 bytes each, and the factor of the
# ring is almost 2. (In the paper the replicas divide this work as in part 2 and send gradients with 4 bytes, which
# makes 19 GB.) How long does a step take? For each of 16 × 8,192 tokens, every weight takes two operations forward and
# four backward, and 128 GPUs share this work. The paper reports that each GPU did 400 · 10¹² FLOPs per second (lesson
# 3), so a step took
#
# $$\frac{6 \times 405 \cdot 10^9 \times 16 \times 8192}{128 \times 400 \cdot 10^{12}} = 6.2 \text{ s} .$$
#
# Over the network, the messages along `tensor` would add more than four seconds. Inside a node they take half a second,
# and today's libraries hide a part of it behind the computation. That is why `tensor` gets the links inside a node,
# while `data` and `pipeline` can go between nodes.
#
# ## Clipping needs the norm of the whole gradient
#
# Now and then a batch produces a huge gradient that throws the weights off. **Clipping** prevents that ([Pascanu and
# others, 2013](https://arxiv.org/abs/1211.5063)). If the norm of the gradient, which is the root of the sum of its
# squares, is above a limit, the whole gradient is scaled down to that limit. On a mesh, no rank has the whole gradient.
# What goes wrong if each rank uses the norm of its own part?
#
# Take a model of three weights on two ranks along `tensor`. Each rank holds one of the first two weights, and both hold
# a copy of the third:
#
# | | gradient of the cut weight | gradient of the copy | own norm | factor for a limit of 6.5 |
# |---|---|---|---|---|
# | rank 0 | 3 | 12 | $\sqrt{9 + 144} = 12.37$ | 0.525 |
# | rank 1 | 4 | 12 | $\sqrt{16 + 144} = 12.65$ | 0.514 |
#
# The gradient of the model is (3, 4, 12). Its norm is $\sqrt{9 + 16 + 144} = 13$, so all three numbers should be
# multiplied by 6.5 ÷ 13 = 0.5. If each rank uses its own factor, the gradient changes its direction. Even worse, the
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
# Every stage has different weights, so along `pipeline` the squares are added, and the root of 169 + 7,056 is 85. Along
# `data` they are not, because after the averaging both replicas hold the same gradient. (If the ranks along `data`
# divide the gradient, as they do in part 2, it is cut like any other, and its squares are added.)
#
# You will write `clip_over_mesh`, which does this, in the exercises. Let's compare it with `clip_alone`, where each
# rank uses its own norm, on a mesh of 2 stages × 2 tensor:

# %%
from functools import partial

from course_utils.lessons.hybrid_and_sharded import clip_alone, clip_over_mesh
from course_utils.lessons.hybrid_and_sharded import train_on_mesh

limit, few = 0.3, batches[:15]
right = ranks.run(train_serially, small_model, few, RATE, limit, **alone).results[0]
staged = {"pipeline": 2, "tensor": 2}


def train_and_clip(clip):
    settings = staged, small_model, few, 1, RATE, partial(clip, max_norm=limit)
    return ranks.run(train_on_mesh, *settings, backend="gloo").results


over_mesh, by_itself = train_and_clip(clip_over_mesh), train_and_clip(clip_alone)
for trained in over_mesh:
    assert largest_difference(trained.norms, right.norms) <= 1e-12
assert largest_difference(over_mesh[-1].losses, right.losses) <= 1e-12

# %% tags=["figure:11_clipped"]
from course_utils.lessons.hybrid_and_sharded import clip_text

lines = {"one process": right.norms, "over the mesh": over_mesh[0].norms}
lines |= {f"rank {rank} alone": by_itself[rank].norms for rank in (0, 2)}
title = clip_text(by_itself, right.losses)
course.draw.loss_curves(lines, title, y="norm before clipping")

# %% [markdown]
# With the norm of the whole gradient, the norms and losses are those of one process at every step, as the `assert`s
# have checked. Alone, ranks 0 and 2 find different norms, and once again there is no error.
#
# With plain tensors, as on this page, you have to write this yourself, because PyTorch's `clip_grad_norm_` sees only
# what its rank holds. But a DTensor (lesson 9) knows how it is distributed over the mesh. Here is the example with two
# DTensors, one of them cut (`Shard`) and the other one copied (`Replicate`):


# %% tags=["nbval-check-output"]
def clip_dtensors():
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor
    from torch.nn.utils import clip_grad_norm_

    tensor = two_by_two()["tensor"]  # the mesh's rows: ranks 0 and 1, ranks 2 and 3
    parameters = []
    for gradient, placement in (([3.0, 4.0], Shard(0)), ([12.0], Replicate())):
        gradient = distribute_tensor(torch.tensor(gradient), tensor, [placement])
        parameter = torch.nn.Parameter(torch.zeros_like(gradient))
        parameter.grad = gradient
        parameters.append(parameter)
    norm = clip_grad_norm_(parameters, max_norm=6.5).full_tensor().item()
    return norm, [round(p.grad.to_local().item(), 3) for p in parameters]


results = ranks.run(clip_dtensors, backend="gloo").results
for rank, (norm, clipped) in enumerate(results):
    print(f"rank {rank}: norm {norm:.1f}, clipped gradients {clipped}")

# %% [markdown]
# Now `clip_grad_norm_` finds 13 on every rank, and halves everything. So if your parameters are DTensors, as they are
# with the tools of [part 2](11_hybrid_and_sharded_part_2.ipynb), you need not add anything up along `tensor`. But each
# stage of a pipeline is a separate model, so adding up the squares along `pipeline` is left to you, and so it is for
# the experts of lesson 16.

# %%
ranks.stop()

# %% [markdown]
# ## What you can do now
#
# You can arrange ranks in a mesh and list the groups along each axis. You average gradients along `data` only, and you
# know that a wrong group raises no error, but that a comparison with one process finds it. You can calculate what each
# axis sends, and you put the one that sends the most on the links inside a node. To find the norm of a gradient, you
# add up squares along `tensor` and `pipeline`, and you count copies once, both those along `tensor` and those along
# `data`.
#
# Along `data`, all ranks still keep the same weights, gradients and optimizer state. In [part
# 2](11_hybrid_and_sharded_part_2.ipynb) you will divide them. [Further](11_hybrid_and_sharded_further.ipynb) has two
# kinds of parallelism in a single network, and the [exercises](../exercises/11_hybrid_and_sharded.ipynb) begin with
# `mesh_groups` and `clip_over_mesh`.
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
