# The exercises of lesson 15. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Exercises: can I now read any framework's manual?
#
# In the first exercise you read five manuals closely enough to calculate what their settings mean. The others are the
# two capstones of this course, in which you may use everything that you have learned. They belong to [lesson
# 15](../notebooks/15_read_the_manual.ipynb).
#
# - **The first capstone**, exercise 2, needs lessons 1 to 8. You train a network on four nodes with slow links, within
#   a budget.
# - **The second capstone**, exercises 3 to 5, needs the lessons from 9 on, and exercise 4 goes well with [lesson
#   18](../notebooks/18_failures.ipynb). You plan how to train a model of 13 billion parameters on 16 GPUs, go on when
#   one of the GPUs dies, and find out what makes a training slow.
#
# You can do both of them now, or wait until you have read the lessons that follow this one.

# %%
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy

import course_utils as course
from course_utils.errors import CourseError
from course_utils.lessons.data_parallel import broadcast_parameters
from course_utils.lessons.hybrid_and_sharded import EVERY_OTHER, FULL, MODERN, NOTHING
from course_utils.lessons.hybrid_and_sharded import Layout, judge
from course_utils.lessons.profiling import Lanes, difference, intersection, length
from course_utils.lessons.profiling import pictures as profile_pictures
from course_utils.lessons.read_the_manual import BUDGET, DEEPSPEED, HOROVOD, JAX
from course_utils.lessons.read_the_manual import NAIVE_STEPS, TENSORFLOW, TORCH, Step
from course_utils.lessons.read_the_manual import Cause, Recovery, TrainingTask
from course_utils.lessons.read_the_manual import budget_bars, llama_task, made_lanes
from course_utils.lessons.read_the_manual import naive_data_parallel, naive_steps_text
from course_utils.lessons.read_the_manual import network, plan_text, tried, used
from course_utils.lessons.read_the_manual import what_others_reached
from course_utils.words import wrapped

ranks = course.start(4, link="100 Mbit/s")
ranks.load_torch()

# %% [markdown]
# ## 1 · Five manuals, one step
#
# You move a training program to a different framework, and with SGD its steps become three times too large, or four
# times too small. No error appears. One manual's *batch* is that of one rank, and another's is that of all ranks. One
# framework takes a sum where the other takes a mean. In this exercise you translate a framework's settings into four
# numbers:
#
# - `micro_batch`: how many images a rank takes through the network at a time.
# - `passes`: how many such micro-batches a rank takes before the weights are updated.
# - `global_batch`: how many images of all ranks together go into the update.
# - `times_mean`: the gradient that the optimizer gets, divided by the mean of the gradients of all these images. If the
#   framework averages everywhere, this is 1.

# %% [markdown]
# Here is an example. Each of 4 ranks makes 3 passes with 8 images, so the global batch is 4 · 3 · 8 = 96.
#
# ```
#            pass 1      pass 2      pass 3
# rank 0    8 images    8 images    8 images
# rank 1    8 images    8 images    8 images
# rank 2    8 images    8 images    8 images
# rank 3    8 images    8 images    8 images
# ```
#
# Gradients are combined three times. Over the 8 images of a pass, the loss takes a mean or a sum. Over the 3 passes,
# gradients are added up or averaged. Over the 4 ranks, the all-reduce takes a sum or a mean. Suppose that the loss is a
# mean, the passes are added up, and the all-reduce is a mean. Then the gradient is 3 times the mean of all 96 images,
# and the answer is
#
# ```
# Step(micro_batch=8, passes=3, global_batch=96, times_mean=3)
# ```
#
# Now to the manuals. The loss is the mean over the images of a pass unless the settings say something else.

# %% [markdown]
# **torch.distributed** with DistributedDataParallel. `batch_size` is that of each rank's `DataLoader`. `no_sync` is the
# number of passes inside `with model.no_sync():`, where gradients are added up and nothing is sent. One more pass
# follows, which sends. `reduction` is that of the loss function, "mean" or "sum".
#
# > "… the gradient will be `M` times smaller … if the loss is summed (NOT averaged as usual) across instances in a
# > batch (because the gradients between different nodes are averaged)."
# > ([DistributedDataParallel](https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html))
#
# ```
# {"batch_size": 8, "no_sync": 2, "reduction": "mean"}
# ```

# %% [markdown]
# **Horovod** with torch, whose last release is from 2023. The gradients of several passes are added up in
# `parameter.grad`, as torch does it. `op` is "Average" or "Sum".
#
# > `backward_passes_per_step`: "Number of expected backward passes to perform before calling step()/synchronize(). This
# > allows accumulating gradients over multiple mini-batches before reducing and applying them." `op`: "The reduction
# > operation to use when combining gradients across different ranks." ([API](https://horovod.readthedocs.io/en/stable/api.html))
#
# ```
# {"batch_size": 8, "backward_passes_per_step": 3, "op": "Average"}
# ```

# %% [markdown]
# **DeepSpeed.** The gradients are averaged over passes and ranks.
#
# > "`train_batch_size` must be equal to `train_micro_batch_size_per_gpu` * `gradient_accumulation_steps` * number of
# > GPUs. … you can choose to only specify two of the three parameters, the last one will be inferred …"
# > `gradient_accumulation_steps`: "Number of training steps to accumulate gradients before averaging and applying
# > them."
# > ([configuration](https://www.deepspeed.ai/docs/config-json/))
#
# The settings may also have just one of the two batch sizes. Then `gradient_accumulation_steps` is 1.
#
# ```
# {"train_batch_size": 96, "gradient_accumulation_steps": 3}
# ```

# %% [markdown]
# **tf.distribute**, in a custom training loop. `batch` is the number in `dataset.batch(…)`. The strategy splits each
# batch up among the replicas, which are its ranks.
#
# > "… a batch size of 64. One batch of input is distributed across the replicas (4 GPUs), each replica getting an input
# > of size 16. … after the gradients are calculated on each replica, they are synced across the replicas by **summing**
# > them." ([custom training](https://www.tensorflow.org/tutorials/distribute/custom_training))
#
# `loss` is "compute_average_loss", which divides a replica's loss by the global batch, or "reduce_mean", which divides
# it by the replica's own batch. There is always one pass.
#
# ```
# {"batch": 32, "loss": "compute_average_loss"}
# ```

# %% [markdown]
# **JAX** with `shard_map(…, check_vma=False)`. The `batch` rows of an array are split up among the devices. Each device
# calculates the mean loss of its own rows and the gradient of this loss. Without `check_vma=False`, JAX would already
# have added up these gradients, because all devices share the weights. `collective` combines the devices' gradients.
# Then Optax accumulates the results of several passes.
#
# > `pmean`: "Compute an all-reduce mean", `psum`: "Compute an all-reduce sum"
# > ([jax.lax](https://docs.jax.dev/en/latest/jax.lax.html)). `MultiSteps(…, every_k_schedule)`: "gradients accumulated
# > over multiple mini-steps are averaged"
# > ([Optax](https://optax.readthedocs.io/en/latest/_collections/examples/gradient_accumulation.html)).
#
# ```
# {"batch": 32, "every_k_schedule": 3, "collective": "pmean"}
# ```

# %% [markdown]
# In your function, compare `framework` with the names `TORCH`, `HOROVOD`, `DEEPSPEED`, `TENSORFLOW` and `JAX`, which
# the first cell imported. The check draws new sizes and describes them in each framework's words. It also adds up the
# gradients of single images as that framework would, and compares the result with your `times_mean`.

# %% tags=["exercise"]
# match_terms

# %% [markdown]
# ## 2 · The first capstone
#
# Four nodes are connected by links of 100 Mbit/s. You train a VGG-11 with an eighth of the usual channels on the images
# of all four nodes. The network has 145,898 parameters, so its gradients take 584 KB in float32. This is what is asked
# for:
#
# | | how much | how it is counted |
# |---|---|---|
# | accuracy | at least 90% | of digits that no rank has seen |
# | bytes | at most 1.2 MB out of any node | by the kernel |
# | work | at most 4,800 image passes on any node | an image counts 1 in a forward pass, 2 in a backward pass |
#
# Each node has 240 images. One epoch of training is a forward and a backward pass over each of them, which makes 240 ·
# 3 = 720 image passes. The budget is therefore enough for six epochs and a bit more. We count passes and don't measure
# seconds, because on your computer four nodes share the same cores.
#
# Compare this with **naive** data parallelism, as in lesson 6. Each node makes 60 steps with 16 images, which is four
# epochs, and after each backward pass there is one all-reduce of all gradients. In a ring of four ranks, each rank
# sends 2 · 3/4 of the vector. For the small network of lesson 15's page, with 8,970 numbers of 8 bytes, that would be
# 108 KB in each step, and 1.2 MB would last for 11 steps.
#
# **Predict.** For how many naive steps do 1.2 MB last here?

# %%
course.predict("capstone_steps", within=1.15, steps=...)

# %%
naive = tried(ranks, naive_data_parallel)
in_a_step = naive.naive_sent / NAIVE_STEPS
course.measured("capstone_steps", steps=BUDGET.bytes / in_a_step)
print(naive_steps_text(in_a_step, BUDGET.bytes, NAIVE_STEPS))
print(wrapped(used(naive)))
budget_bars(naive)

# %% [markdown]
# **What you get.** Your function `capstone(model, images, labels)` runs on every rank, in the default group of
# `torch.distributed`. Each rank has a `model` with different initial weights, and 240 images and labels that no other
# rank has. Each check also draws anew which digit belongs to which class, so weights and labels from an earlier run are
# of no use.
#
# **What you return**, on every rank: the trained model. It must be the same everywhere, and that includes batch norm's
# **running means**, the averages that it uses in `eval()`.

# %% [markdown]
# **Batch norm** subtracts a mean and divides by a standard deviation. In `train()` it takes them from the batch. In
# `eval()` it uses its running means, which each pass in `train()` moves a tenth of the way towards the values of its
# batch. The check judges rank 0's model in `eval()`, so these running means decide what you get, and three things can
# go wrong with them:
#
# - After only a few passes they lag behind the weights. The loss is close to 0, and `eval()` still guesses. Smaller
#   batches mean more passes.
# - Each rank's running means follow the images of that rank. They are part of the model, so they have to be averaged,
#   too.
# - If you average the weights of several models, the activations are no longer those of any of them. A few passes in
#   `train()` without a step bring the running means up to date.
#
# If the model is not accurate, the check tells you whether a sum is wrong, the weights, or the running means.

# %% [markdown]
# **How bytes are counted.** They are the bytes that left the node's network interface, whoever sent them, headers
# included. Without links, they are those of the rank's TCP connections. MPI's messages are not counted then, so use
# `torch.distributed`.
#
# On a cluster, each node has its own memory and its own files. Here all ranks are on one machine and could reach the
# same `/tmp` and `/dev/shm`. The check therefore rejects what a rank passes on through files, shared memory, or a Unix
# socket.

# %% [markdown]
# **Where to look.** The numbers in brackets are lessons. Who makes the start equal, and what does that send (6, 15)?
# How can you send less often (7, 8), or fewer bytes each time (7)? How can a training run learn more from the same
# number of passes, for example with a decaying learning rate (1)? And which layers have most of the parameters?

# %%
for name, layer in network(0).named_children():
    count = sum(parameter.numel() for parameter in layer.parameters())
    if count > 5000:
        print(f"{name:8}{count:8,} parameters")

# %% [markdown]
# **Begin with a small attempt.** `tried(ranks, function)` trains and counts as the check does, but doesn't give a
# verdict. Here is a first idea that you can copy into a cell. Each node trains on its own, and at the end the weights
# are averaged once. How much of each budget will it use, and where will it fail?
#
# ```python
# def once(model, images, labels):
#     broadcast_parameters(model)
#     optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
#     for batch in torch.randperm(len(images)).split(16):
#         optimizer.zero_grad()
#         cross_entropy(model(images[batch]), labels[batch]).backward()
#         optimizer.step()
#     for values in model.state_dict().values():
#         if values.is_floating_point():
#             dist.all_reduce(values)
#             values /= dist.get_world_size()
#     return model
#
#
# budget_bars(tried(ranks, once))
# ```

# %% [markdown]
# **Before you copy it**, look at its first line. `broadcast_parameters(model)` sends rank 0's weights, 584 KB, to the
# three other ranks. `dist.broadcast` does this with a tree: rank 0 sends to two ranks, and one of these sends to the
# last one.
#
# **Predict.** How many MB does this broadcast send out of rank 0's node?

# %%
course.predict("capstone_start", within=1.1, MB=...)


# %%
def only_the_start(model, images, labels):
    model(images[:2])
    broadcast_parameters(model)
    return model


start = tried(ranks, only_the_start)
course.measured("capstone_start", MB=max(start.sent) / 1e6)

# %% [markdown]
# The broadcast alone takes almost the whole budget, so you need a cheaper start *and* fewer bytes after it. A single
# idea is not enough. The next table shows what each idea reaches if it is used alone, with the usual start. Try an idea
# of your own before you open it.
#
# <details><summary>Each idea alone: all of them miss the budget of bytes</summary>
#
# | idea, with plain SGD | recognised | MB | image passes |
# |---|---|---|---|
# | half precision in each step, or 8 bits (7) | 99% | 27 | 2,880 |
# | DDP: hides what it sends (7) | 98% | 54 | 2,880 |
# | momentum, and half as many steps (1) | 94% | 27 | 1,440 |
# | PowerSGD, rank 1 (7) | 96% | 5.0 | 2,880 |
# | top-k: 0.1% (7) | 96% | 2.0 | 2,880 |
# | local SGD, an average after every 2 of 4 epochs (8) | 94–96% | 2.9 | 2,880 |
# | local SGD, one average after 4 epochs (8) | 12% | 2.1 | 2,880 |
#
# These are recorded values from one or two runs of each, without links.
# </details>

# %% [markdown]
# Now write your training function. Start from the same weights on all ranks, finish with the same model, and stay
# within both budgets. The check deals different images from `tried`. It holds back more than 800 digits to judge the
# model. If your model misses the 90% by only a little, the verdict says so. Then run the check again, because other
# images may decide otherwise.

# %% tags=["exercise"]
# capstone

# %% [markdown]
# Once an attempt of yours has failed, in the check or in `tried`, the next cell shows which combinations of ideas have
# worked, and two that haven't.

# %%
what_others_reached()

# %% [markdown]
# ## Your report
#
# The check keeps what your capstone used. The following line puts it on one page, together with the figures of your own
# training runs from lessons 6 and 7, and writes the page into a file that you can keep:
#
# ```python
# course.report("report.html")
# ```
#
# If you have no runs yet, the page tells you which line makes them. Then write three sentences below it. What did you
# try first, what did it cost, and what would you do on forty nodes?

# %% [markdown]
# ## 3 · The second capstone: plan the training
#
# You have two nodes of eight H100 GPUs, and want to train Llama 2 13B on them, with 128 texts of 4,096 tokens in each
# step. Before you ask a cluster for 16 GPUs, you should know how to use them. Which of them share the matrices of a
# layer, which are stages of a pipeline, and which are replicas? What does ZeRO divide? What is computed again?
#
# These are the settings that you choose, and the names that they have in lesson 11's `Layout`:
#
# | setting | what it means | values |
# |---|---|---|
# | `data`, `tensor`, `pipeline` | GPUs along each axis of the mesh | their product is the number of GPUs |
# | `zero` | the stage of ZeRO | 0 to 3 |
# | `again` | what the backward pass computes again | `NOTHING`, `EVERY_OTHER` (every other matrix product), `FULL` |
# | `micro_batch` | texts in a micro-batch of one replica | 1 or more |
# | `micro_batches` | micro-batches of one replica in a step | `data` · `micro_batch` · `micro_batches` is the batch |
# | `program` | how the training program is written | always `MODERN`: fused attention, compiled |
#
# Two things are asked for. The layout must **fit**: a GPU may use nine tenths of its memory, and the rest is a margin
# for what no formula counts. And it must be **fast**: its MFU, the share of the GPUs' peak that the model itself needs
# (lesson 13), must reach the task's goal, which is 95% of the best that a search over these settings finds.

# %% [markdown]
# Let us begin with the simplest layout, plain data parallelism. Each GPU keeps 16 bytes for each of the 13 billion
# parameters (lesson 9), which makes 13 · 16 = 208 GB. Of that, 26 GB are parameters, 26 GB gradients, and 156 GB the
# optimizer's state. A GPU has 80 GB. `judge` calculates the rest, on paper, with the formulas of lesson 11's planner:

# %%
task = llama_task()
mesh = {"data": 16, "tensor": 1, "pipeline": 1}
copies = Layout(
    **mesh, zero=0, again=NOTHING, micro_batch=1, micro_batches=8, program=MODERN
)
print(plan_text(task, copies))

# %% [markdown]
# It would be fast, but it doesn't fit. So something has to be divided or computed again, and each of these has a price:
#
# - ZeRO divides the optimizer's state, then gradients, then parameters. From stage 2 on, it sends more often.
# - Tensor parallelism divides everything inside a layer. In exchange, all GPUs of a group wait for messages in every
#   layer.
# - A pipeline divides the layers. It idles while it fills and drains, and the first stage keeps several micro-batches.
# - Computing again saves activations and nothing else. `FULL` makes about a third more work.
#
# **Predict.** Suppose that you only add ZeRO's stage 3, so `zero=3` instead of 0. How many GB do parameters, gradients
# and the optimizer's state take on each of 16 GPUs? ZeRO gathers two layers at a time, and that is another 1.3 GB.

# %%
course.predict("capstone_states", within=1.1, GB=...)

# %%
sharded = Layout(
    **mesh, zero=3, again=NOTHING, micro_batch=1, micro_batches=8, program=MODERN
)
memory = judge(task.model, task.cluster, sharded, task.length).memory
course.answer("capstone_states", GB=(memory.total - memory.activations) / 1e9)
print(plan_text(task, sharded))

# %% [markdown]
# Now this fits, but the goal isn't reached. Your function gets a `task` with the attributes `model`, `cluster`,
# `batch`, `length` and `goal`, and returns a layout. `task.cluster` has `gpus`, and `node`, the number of GPUs in a
# node. A tensor-parallel group also has to divide the model's `heads` evenly.
#
# `judge(task.model, task.cluster, layout, task.length)` returns the memory and the time of a layout. Its attributes are
# `fits`, `peak_share` (the MFU), `memory.parts()` and `seconds`. You may search, or argue; the check looks at the
# layout alone. It draws models of 7 to 30 billion parameters, and other clusters: more or fewer GPUs, less memory,
# slower links. A plan that is right for the 13 billion parameters above will not do for all of them.

# %% tags=["exercise"]
# plan_run

# %% [markdown]
# ## 4 · The second capstone: a GPU dies
#
# Suppose that a training runs on 16 GPUs with the mesh `{"data": 4, "pipeline": 2, "tensor": 2}`. Then GPU 5 dies. You
# could stop all 16 and wait for a new one. But the other replicas have everything that they need, so they can go on.
# Lesson 18 does this with processes that are killed. Here you decide what each rank has to do.
#
# ```
#             pipeline 0           pipeline 1
#          tensor 0   tensor 1   tensor 0   tensor 1
# data 0       0          1          2          3
# data 1       4          5 ✗        6          7
# data 2       8          9         10         11
# data 3      12         13         14         15
# ```
#
# **Who stops?** Each row is a replica, that is, one copy of the model, cut into four parts. Without rank 5 there is no
# forward pass in replica 1, so ranks 4, 6 and 7 stop as well. The replica fails as a whole, and the three others go on.
#
# **Who takes which micro-batches?** A step has 16 micro-batches, and they should stay the same 16, because with a
# smaller batch it would be a different training. Each replica took 4 of them. Now three replicas take 6, 5 and 5. No
# replica should take two more than another, because the slowest one decides how long the step takes.
#
# **With what weights?** Each replica calculates the *mean* gradient of its own micro-batches. If you averaged the three
# means as before, each of the 6 micro-batches of the first replica would count less than one of the others. The
# gradient of the whole batch is the weighted sum, with the weights 6/16, 5/16 and 5/16.
#
# **Who heals whom?** When rank 5 has been replaced, replica 1 comes back. Its new GPU has no state at all, and the
# states of ranks 4, 6 and 7 are some steps old. Each of the four receives the weights and the optimizer's state from a
# rank with the same part of the model. For rank 5, this is rank 1, 9 or 13. This works only if ZeRO divides nothing
# among the replicas. If it did, no other rank would have rank 5's part of the optimizer's state, and you would have to
# load a checkpoint.
#
# Your function returns these four answers as a `Recovery`:
#
# ```
# Recovery(
#     stopped=[4, 5, 6, 7],
#     batches={0: [0, 3, 6, 9, 12, 15], 2: [1, 4, 7, 10, 13], 3: [2, 5, 8, 11, 14]},
#     weights={0: 6 / 16, 2: 5 / 16, 3: 5 / 16},
#     heals={4: 0, 5: 1, 6: 2, 7: 3},
# )
# ```
#
# Which replica takes which micro-batches is up to you, and so is the replica that heals. The axes can be in any order,
# and there can be others, for example `"shard"` if ZeRO divides the state inside each replica. Several GPUs may have
# died. If no replica is complete, or a dead rank isn't on the mesh, `raise CourseError("…")`. The check takes a step
# with your split in float64, and compares its gradient with that of the whole batch.

# %% tags=["exercise"]
# go_on_without

# %% [markdown]
# ## 5 · The second capstone: what makes this training slow?
#
# The training runs again, but each step takes longer than planned. You have a trace of every rank, which `lanes_of` of
# lesson 14 has read. Here is such a trace. It was made up for this exercise, like all traces of the check, so that we
# know what is wrong with it.

# %%
lanes = made_lanes(np.random.default_rng(3), Cause.STRAGGLER, ranks=4, slow_rank=2)
profile_pictures.profile(
    lanes, "Three ranks wait in the all-reduce, and rank 2 hardly waits"
)

# %% [markdown]
# On ranks 0, 1 and 3, a large part of the communication is exposed. It looks as if the messages were slow, but look at
# rank 2. All ranks leave the all-reduce at the same time, and rank 2 enters it last. Its exposed communication is as
# long as the messages themselves need. Whatever the others wait beyond that, they wait for rank 2.
#
# Your function gets the lanes of all ranks. For each cause, it adds up the seconds that are lost on all ranks together:
#
# | cause | what is lost to it |
# |---|---|
# | `Cause.MESSAGES` | on each rank, as many seconds as the *least* exposed communication of any rank |
# | `Cause.STRAGGLER` | exposed communication beyond that |
# | `Cause.INPUT` | idle time in the phase "input" |
# | `Cause.BUBBLE` | all other idle time; in a pipeline, a rank is idle when it waits for other stages |
# | `Cause.AGAIN` | computing in the phase "again", where activations are computed a second time |
# | `Cause.OPTIMIZER` | computing in the phase "optimizer" |
#
# It returns the cause with the most seconds, and a rank. The rank is the one that all others wait for if the cause is
# `Cause.STRAGGLER`, and otherwise `None`. For the picture above, this is `(Cause.STRAGGLER, 2)`.
#
# The attributes of a lane are `rank`, `computing`, `communication`, `exposed` and `idle`, which are lists of intervals
# in seconds, and `phases`, a dictionary from names to such lists. `own.exposed_seconds` is the length of `own.exposed`.
# `intersection(a, b)`, `difference(a, b)` and `length(a)` calculate with such lists. Three things to keep in mind: a
# message that is hidden costs nothing, input that is loaded while the rank computes costs nothing either, and not
# every trace has all phases.

# %% tags=["exercise"]
# find_bottleneck

# %%
course.progress()

# %% [markdown]
# You have planned a training, kept it running, and found out what slows it down. That is the work of an engineer who
# trains large models, and the rest of it needs a cluster.
#
# Now take a manual that you have never seen, and ask it the six questions of this lesson. What is a rank there, which
# rank gets which images, and where are the gradients divided? The lessons after this one can be read before or after
# the capstones. In [lesson 16](../notebooks/16_experts.ipynb) a network uses only some of its weights for each token,
# and in [lesson 17](../notebooks/17_long_texts.ipynb) several ranks share one long text. In [lesson
# 18](../notebooks/18_failures.ipynb) a training goes on after a rank has died, and in [lesson
# 19](../notebooks/19_inference.ipynb) several ranks answer with a model that has been trained.

# %%
ranks.stop()
