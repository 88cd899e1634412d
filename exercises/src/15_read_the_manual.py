# The exercises of lesson 15. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Exercises: can I now read any framework's manual?
#
# First you read five manuals for what decides whether a training comes out right: whose batch,
# how many passes, and who divides. Then comes the capstone: VGG-11 on four nodes
# with slow links, within budgets. The exercises belong to
# [lesson 15](../notebooks/15_read_the_manual.ipynb).

# %%
from collections.abc import Mapping
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy

import course_utils as course
from course_utils.lessons.data_parallel import broadcast_parameters
from course_utils.lessons.read_the_manual import DEEPSPEED, HOROVOD, JAX, TENSORFLOW
from course_utils.lessons.read_the_manual import TORCH, Step, budget_bars
from course_utils.lessons.read_the_manual import naive_data_parallel, network, tried, used
from course_utils.words import wrapped

ranks = course.start(4, link="100 Mbit/s")
ranks.load_torch()

# %% [markdown]
# ## 1 · Five manuals, one step
#
# You move a training to another framework, and its loss falls four times too fast, or hardly at
# all. Nothing raised an error: one manual's *batch* is that of one rank, another's is that of all ranks, and
# one takes the sum where the other takes the mean. Here you translate a framework's settings into
# four numbers:
#
# ```
# Step(micro_batch=8, passes=3, global_batch=96, times_mean=3)    4 ranks × 3 passes × 8 images
# ```

# %% [markdown]
# `times_mean` is what the optimizer gets, as a multiple of the mean gradient of these 96 images.
# With 3, the step is three times as long as the mean asks for. Draw it:
#
# ```
#            pass 1      pass 2      pass 3
# rank 0    8 images    8 images    8 images    over images: the loss, a mean or a sum
# rank 1    8 images    8 images    8 images    over passes: added up, or averaged
# rank 2    8 images    8 images    8 images    over ranks:  the all-reduce
# rank 3    8 images    8 images    8 images
# ```

# %% [markdown]
# **torch.distributed**, with DistributedDataParallel. `batch_size` is what each rank's
# `DataLoader` gives. `no_sync` passes run inside `with model.no_sync():`, where gradients add up;
# then one more, which sends. `reduction` is the loss function's.
#
# > "… the gradient will be `M` times smaller … if the loss is summed (NOT averaged as usual)
# > across instances in a batch (because the gradients between different nodes are averaged)."
# > ([DistributedDataParallel](https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html))
#
# ```
# {"batch_size": 8, "no_sync": 2, "reduction": "mean"}    "mean" or "sum"
# ```

# %% [markdown]
# **Horovod**, with torch. Gradients of passes add up in `parameter.grad`, as torch does it.
#
# > `backward_passes_per_step`: "Number of expected backward passes to perform before calling
# > step()/synchronize(). This allows accumulating gradients over multiple mini-batches before
# > reducing and applying them." `op`: "The reduction operation to use when combining gradients
# > across different ranks." ([API](https://horovod.readthedocs.io/en/stable/api.html))
#
# ```
# {"batch_size": 8, "backward_passes_per_step": 3, "op": "Average"}    "Average" or "Sum"
# ```

# %% [markdown]
# **DeepSpeed.**
#
# > "`train_batch_size` must be equal to `train_micro_batch_size_per_gpu` *
# > `gradient_accumulation_steps` * number of GPUs. … you can choose to only specify two of the
# > three parameters, the last one will be inferred …" `gradient_accumulation_steps`: "Number of
# > training steps to accumulate gradients before averaging and applying them."
# > ([configuration](https://www.deepspeed.ai/docs/config-json/))
#
# Even one of the two batch sizes alone will do: then `gradient_accumulation_steps` is 1.
#
# ```
# {"train_batch_size": 96, "gradient_accumulation_steps": 3}
# ```

# %% [markdown]
# **tf.distribute.** `batch` is the `dataset.batch(…)` that the strategy distributes.
#
# > "… a batch size of 64. One batch of input is distributed across the replicas (4 GPUs), each
# > replica getting an input of size 16. … after the gradients are calculated on each replica,
# > they are synced across the replicas by **summing** them."
# > ([custom training](https://www.tensorflow.org/tutorials/distribute/custom_training))
#
# `compute_average_loss` divides by the global batch, `reduce_mean` by the replica's.
#
# ```
# {"batch": 32, "loss": "compute_average_loss"}    or "reduce_mean"
# ```

# %% [markdown]
# **JAX**, with `shard_map`: `batch` rows are sharded over the devices, the loss is the mean over
# a device's own, and Optax accumulates.
#
# > `pmean`: "Compute an all-reduce mean", `psum`: "Compute an all-reduce sum"
# > ([jax.lax](https://docs.jax.dev/en/latest/jax.lax.html)). `MultiSteps(…, every_k_schedule)`:
# > "gradients accumulated over multiple mini-steps are averaged"
# > ([Optax](https://optax.readthedocs.io/en/latest/_collections/examples/gradient_accumulation.html)).
#
# ```
# {"batch": 32, "every_k_schedule": 3, "collective": "pmean"}    "pmean" or "psum"
# ```

# %% [markdown]
# `TORCH`, `HOROVOD`, `DEEPSPEED`, `TENSORFLOW` and `JAX` are the frameworks' names, as the
# docstring has them. The check draws new sizes, hands them over in each framework's words, and adds
# up gradients of single images as that framework does.

# %% tags=["exercise"]
# match_terms

# %% [markdown]
# ## 2 · The capstone
#
# Four nodes, links of 100 Mbit/s, and a VGG-11 an eighth as wide as usual: 145,898 parameters,
# 584 KB of gradients. Train it on the images of all four nodes. All that you know is allowed, and
# one idea alone is not enough.
#
# | asked for | how much | how it is counted |
# |---|---|---|
# | accuracy | at least 90 % | of digits that no rank has ever seen |
# | bytes | at most 1.2 MB out of any node | by the kernel |
# | seconds | at most 30 % of those of naive data parallelism | beside it, on the same ranks |
#
# Naive data parallelism is lesson 6's: 60 steps of 16 images on each node, an all-reduce after
# each. This is what it uses of the budgets:

# %%
naive = tried(ranks, naive_data_parallel)
print(wrapped(used(naive)))
budget_bars(naive)

# %% [markdown]
# **What you get.** `capstone(model, images, labels)` runs on every rank, in the default group of
# `torch.distributed`. Each rank has a `model` of its own, with other first weights, and 240
# images and labels that no other has. Which class a digit has is drawn anew in each check: old
# weights and old labels are of no use.
#
# **What you give back**, on every rank: the trained model, the same everywhere: weights *and* running
# means.

# %% [markdown]
# **Batch norm** subtracts a mean and divides by a standard deviation. In `train()`
# these are the batch's. In `eval()` they are *running means*, which each training pass moves a
# tenth of the way towards its batch's. So the running means decide what you get:
#
# - After few passes they lag behind the weights: the loss is near 0, and `eval()` still guesses.
#   Smaller batches mean more passes.
# - A rank's running means follow that rank's images. They are part of the model, and need an average too.
# - An average of weights has other activations than any rank had. A few passes in `train()`,
#   without a step, teach the running means what they are now.
#
# The check judges rank 0's model in `eval()`. If it is not accurate, the check says what is wrong:
# a sum that should be a mean, the weights, or the running means.

# %% [markdown]
# **How it is counted.** Bytes are those that left the node's interface, headers and all, whoever
# sent them; without links, those of the rank's TCP connections (MPI's messages are then not
# counted: use `torch.distributed`). Seconds are what a rank's processor computes, plus what its bytes take at
# 100 Mbit/s; or the time by the clock, if that is less. (By the clock alone, nodes would wait for each other's
# computing: here four of them share this machine's cores.) The slowest node counts.
#
# On a cluster each node has mounts and memory of its own. Here all ranks could reach the same
# `/tmp` and `/dev/shm`, for this is one machine. So the check rejects what a rank hands over by
# files, by shared memory, or by a Unix socket.

# %% [markdown]
# **Where to look** (with the lessons). Who makes the start equal, and what does that send? (6, 15) Which ways send
# more *seldom*? (7, 8) Which send *fewer bytes* each time? (7) Which steps learn most from the same number
# of passes? (1) And which layers have most of the parameters?

# %%
for name, layer in network(0).named_children():
    count = sum(parameter.numel() for parameter in layer.parameters())
    if count > 5000:
        print(f"{name:8}{count:8,} parameters")

# %% [markdown]
# **Begin with a part.** `tried(ranks, function)` trains and counts as the check does, without a
# verdict. A first idea, for a cell of your own: each node alone, the weights averaged once. What
# will it use, and where will it fail?
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
# **Before you type:** `broadcast_parameters(model)` gives rank 0's weights, 584 KB, to three
# others. Each then has all of them. How many MB does that send out of rank 0's node? In
# `dist.broadcast`, rank 0 sends to two others, and one of them sends to the fourth.

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
# The usual start alone takes the whole budget. So you need a cheaper start, *and* fewer bytes after
# it. Try an idea of your own first. Then look at what others reach.
#
# <details><summary>Each idea alone, with the usual start: all miss the budget of bytes</summary>
#
# | idea, with plain SGD | recognised | MB | of naive time |
# |---|---|---|---|
# | half precision in each step, or 8 bits (7) | 99 % | 27 | 58 % |
# | DDP: hides what it sends (7) | 98 % | 54 | 100 % |
# | momentum, and half as many steps (1) | 94 % | 27 | 51 % |
# | PowerSGD, rank 1 (7) | 96 % | 5.0 | 28 % |
# | top-k: 0.1 % (7) | 96 % | 2.0 | 18 % |
# | local SGD, an average after every 2 of 4 epochs (8) | 94–96 % | 2.9 | 14 % |
# | local SGD, one average after 4 epochs (8) | 12 % | 2.1 | 12 % |
#
# Without links, on two busy cores: what one or two runs of each gave.
# </details>

# %% [markdown]
# <details><summary>Two ideas and more, from different lessons</summary>
#
# | ideas | recognised | MB | of naive time |
# |---|---|---|---|
# | equal start, nothing sent (6) + top-k: 0.2 % (7) | 98 % | 0.7 | 21 % |
# | the same + 6 epochs of local SGD, 4 averages in 8 bits (8, 7) | 96–98 % | 0.9 | 19 % |
# | the same + 2 averages in half precision, a falling rate, running means anew (8, 7, 1) | 96–97 % | 1.0 | 20 % |
# | start in half precision + local SGD, the largest 2 % of the changes (7, 8) | 92–97 % | 1.1 | 17 % |
# | equal start + local SGD, one average in float32 (6, 8): misses | 12–75 % | 0.9 | 12–31 % |
# | the same, and running means taught anew: mostly misses | 74–92 % | 0.9 | 16 % |
#
# Two or three runs of each.
# </details>

# %% [markdown]
# Now train: begin with the same weights, end with the same model, and stay within the three
# budgets. The check deals other images than `tried`, and holds a few hundred back.

# %% tags=["exercise"]
# capstone

# %% [markdown]
# ## Your report
#
# The check keeps what your capstone used. This draws it, with the figures of your own training
# runs from lesson 7, as one page that you can take away:
#
# ```python
# course.report("report.html")
# ```
#
# No runs yet? The page says which line makes them. Then write three sentences below it: what you
# tried first, what it cost, and what you would do on forty nodes.

# %%
course.progress()

# %% [markdown]
# Now take a manual that you have never seen, and read it. What is a rank there, which rank gets
# which examples, and where are the gradients divided?
#
# Two more lessons follow. [Lesson 16](../notebooks/16_experts.ipynb) spreads experts over ranks,
# and [lesson 17](../notebooks/17_long_texts.ipynb) spreads one long text.

# %%
ranks.stop()
