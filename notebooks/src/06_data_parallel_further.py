# The optional second notebook of lesson 6. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Further: can P workers train as one?
#
# On the [first page](06_data_parallel.ipynb), four ranks gave the same losses as one process, down to the last digits.
# One of the networks on this page can't do that, although every line of the training loop is right. And one training
# repeats its first 22 batches in every epoch, because a single call is missing. You will also find out when it is no
# longer worth adding ranks.
#
# Everything here is optional, and nothing later depends on it. The first code cell prepares the notebook. After that
# you can go to any section, because each of them stands alone. If a section complains that its ranks were stopped, run
# the first code cell again.
#
# 1. *A report, redone*: the gradients of VGG-11, exchanged in two ways
# 2. *Whose all-reduce?*: MPI, gloo and your ring
# 3. *A forgotten epoch*: what `set_epoch` is for
# 4. *Layers that see the whole batch*: batch norm, and two cures
# 5. *Which rate for AdamW?*: two rules, and a test of both
# 6. *How large a batch is worth it?*: signal and noise in a gradient
#
# *40 minutes · optional, after [lesson 6](06_data_parallel.ipynb) · 4 ranks, about 7 minutes for each section*

# %%
from functools import partial

import numpy as np
import torch
import torch.distributed as dist
from torch import nn

import course_utils as course
from course_utils.lessons.data_parallel import digits_mlp, mean_losses
from course_utils.lessons.data_parallel import train_parallel, train_serial
from course_utils.measuring import is_busy

ranks = course.start(4, link="200 Mbit/s")
ranks.load_torch()
data = course.data.digits("float64")


def train(**options):
    return ranks.run(train_parallel, data, backend="gloo", **options)


# %% [markdown]
# Here `train_parallel` is the loop of the first page, with a few more options. As before, each rank is a node with a
# link of 200 million bits per second, which is 25 MB per second.
#
# ## A report, redone
#
# In 2020 three students of the University of Wisconsin, Ng, Chen and Blakely, trained the network VGG-11 on four
# virtual machines and wrote a [report](../docs/sources.md) about it. They exchanged the gradients in two ways. In the
# first, which they call task 2a, everything passes through rank 0. It *gathers* the gradients of the others, computes
# the mean, and *scatters* it again. We call this **gather-scatter**:


# %%
def through_rank_0(model):
    rank, P = dist.get_rank(), dist.get_world_size()
    for parameter in model.parameters():
        gradient, gathered, means = parameter.grad, None, None
        if rank == 0:
            gathered = [torch.empty_like(gradient) for _ in range(P)]
        dist.gather(gradient, gathered, dst=0)
        if rank == 0:
            means = [torch.stack(gathered).mean(dim=0)] * P
        dist.scatter(gradient, means, src=0)


losses = mean_losses(train(synchronise=through_rank_0).results)
assert np.allclose(losses, train_serial(data).losses, atol=1e-6)  # at every step

# %% [markdown]
# In the second way, their task 2b, there is an all-reduce for each gradient, as in `average_gradients`. Both ways give
# the losses of the serial training, so the question is only what they cost.
#
# Suppose there are two ranks. With gather-scatter, rank 0 receives one gradient and sends one mean back. With a ring of
# two ranks, it sends half of its gradient in each of two rounds, which adds up to one, too. So with two ranks, rank 0
# sends the same in both cases.
#
# **Predict.** We train VGG-11 with a quarter of its channels on four ranks. Its gradients are 2.3 MB. How many times
# 2.3 MB does rank 0 send per step with each method, if the all-reduce is a ring?

# %%
course.predict("two_ways", within=1.2, gather_scatter=..., all_reduce=...)

# %% tags=["figure:06_two_ways"]
from course_utils.lessons.data_parallel import report_figures, sent_text, train_way
from course_utils.lessons.data_parallel import vectors_sent

ways = ["one process", "gather-scatter", "all-reduce, each"]
tasks = [train_way(ranks, way, images=96, steps=3) for way in ways]
if tasks[1].sent:  # there are links, and the operating system counts their bytes
    rank_0 = [vectors_sent(task)[0] for task in tasks[1:]]
    course.measured("two_ways", gather_scatter=rank_0[0], all_reduce=rank_0[1])
for task in tasks[1:]:
    print(sent_text(task))
print(report_figures.forward_sentence(tasks))
report_figures.stages(tasks)

# %% [markdown]
# The counts are those of the operating system, so they include what every packet carries besides your numbers. Rank 0
# sends 3 gradients with gather-scatter and 1.5 with a ring. The other ranks send one gradient each with gather-scatter,
# and 1.5 each with a ring. So all ranks together send $2(P-1) = 6$ gradients with both methods, but with gather-scatter
# half of them leave through a single link. It first has to carry 3 gradients in and then 3 out, while in a ring every
# link carries 1.5 in and 1.5 out at the same time. By the bytes alone, gather-scatter would therefore take 4 times as
# long. In practice it is less, because both methods also pay the latency of 34 separate messages.
#
# The report has the same picture. Its nodes had five cores each, and there the forward pass took a third of the time on
# four nodes. If your four ranks share fewer cores than that, their forward pass can't be four times as fast. This is
# how long 50,000 images would take at the speed of these steps, next to the students' times (hatched):

# %% tags=["here:06_total_time"]
report_figures.total_time(tasks)

# %% [markdown]
# Are four ranks slower than one in your picture? Then you have met a warning from the slides of SURF, the Dutch
# computing centre: "Don't try to parallelize very light workloads – communication overhead too large".
#
# One sentence of the report remains a riddle. It says that task 2b sends "less than 60%" of what task 2a sends, and its
# figure shows bytes *per second*. But you have just counted that both send the same number of bytes in total. Then the
# method that takes less time must send *more* per second, and not less. A possible explanation is that the figure shows
# rank 0 alone, which sends half as much per step.
#
# `course.report()` collects these runs. With those of [Further 7](07_overlap_further.ipynb), it shows the figures of
# the whole report.
#
# ## Whose all-reduce?
#
# "It is important to pick a communication backend with an efficient implementation", say the slides of SURF, and "the
# most efficient implementation may vary per hardware". Let's compare the `Allreduce` of MPI, the `all_reduce` of gloo,
# and the ring of lesson 5. All three send over the same links, in turn.
#
# From lesson 5 you know that a short vector is fastest with few rounds, and a long vector with few bytes. A ring of
# four ranks takes six rounds for any vector. A library can choose a different method for each size.
#
# **Predict.** Is the same one of the three the fastest for 1, for 32 and for 1,024 KB?

# %%
course.predict("same_backend", answer=..., choices={"a": "yes", "b": "no"})

# %% tags=["figure:06_backends"]
from course_utils.lessons.data_parallel import backend_seconds, fastest_text
from course_utils.words import seconds_text

sizes = [1_000, 32_000, 1_024_000]
timed = ranks.run(backend_seconds, sizes, runs=5, backend="gloo").results[0]
medians = np.median(list(timed.values()), axis=2)  # a row for each of the three
same = len(set(medians.argmin(axis=0))) == 1
busy = is_busy(times for by_size in timed.values() for times in by_size)
course.measured("same_backend", busy=busy, answer="a" if same else "b")
course.draw.over_numbers(
    [1, 32, 1024],
    timed,
    fastest_text(sizes, timed),
    log=True,
    across="KB of the vector",
    up="time",
    unit=seconds_text,
)

# %% [markdown]
# Your prediction was compared with the medians of five runs. The title is more careful, and names a winner only if it
# won in nearly every round. The result is true for this computer and these links. On a cluster with a fast network, or
# with GPUs, it may be quite different, so measure there before you choose.
#
# ## A forgotten epoch
#
# PyTorch's `DistributedSampler` deals out the images in the same way as the first page does. All ranks shuffle with the
# same seed, and to get a new order in each epoch, the sampler adds the number of the epoch to the seed. But it doesn't
# count the epochs. Your program has to tell it, by calling `set_epoch`. Without this call, there is no error message.
#
# In each epoch of our training, rank 0 sees 22 batches of 16 images. The next cell collects the batches of five epochs
# and counts how many *different* ones there are:

# %% tags=["nbval-check-output"]
from torch.utils.data import DistributedSampler


def different_batches(call_set_epoch):
    sampler = DistributedSampler(range(22 * 64), num_replicas=4, rank=0)
    seen = set()
    for epoch in range(5):
        if call_set_epoch:
            sampler.set_epoch(epoch)
        order = torch.tensor(list(sampler))
        seen |= {frozenset(batch.tolist()) for batch in order.split(16)}
    return len(seen)


print("with set_epoch:   ", different_batches(True))
print("without set_epoch:", different_batches(False))

# %% [markdown]
# Without `set_epoch`, every epoch has the same 22 batches in the same order, so the network sees each image only in the
# company of the same 15 others. The training still works, and it is easy to overlook that it could work better.
#
# ## Layers that see the whole batch
#
# The mean of the gradients is right if the loss is a mean over images, each computed by itself. But some layers don't
# treat each image by itself. **Batch norm** looks at one feature in all the images of a batch, subtracts the mean of
# these numbers and divides by their spread, so that the layer behind it always gets numbers of a similar size. On our
# four ranks, which mean is that?
#
# Take one feature, whose values in a batch of four images are 1, 2, 3 and 6. One process subtracts their mean, which is
# 3, and the last image gets 6 − 3 = 3 (before the division). On two ranks, the last two images form a shard of their
# own, whose mean is 4.5. Now the same image gets 6 − 4.5 = 1.5. So the network computes something different, before
# there is any gradient to average.
#
# There are two cures. The first is to share the statistics. In each batch norm, the ranks all-reduce the sum of the
# numbers, the sum of their squares, and how many there are. From these, every rank computes the mean and the spread of
# the whole batch. This costs an all-reduce on the way forward and another on the way back. PyTorch calls it
# `SyncBatchNorm`, and you write it in an exercise (`sync_batch_norm`).
#
# The second cure needs no message at all. **Group norm** takes the mean and the spread over several features of a
# *single* image, here over groups of 8 of the 64 features. It never looks at another image, so it doesn't matter on
# which rank that is. ([Wu and He](https://arxiv.org/abs/1803.08494) proposed it for training with few images on each
# GPU.)
#
# We compare each of the three with a serial training of the same network. The curves are the difference between the two
# losses at every step.

# %% tags=["figure:06_norm_distance"]
from course_utils.lessons.data_parallel import local_norm_mlp, sync_norm_mlp


def group_norm_mlp(seed):
    return digits_mlp(seed, norm=partial(nn.GroupNorm, 8))


def distance(parallel, serial):
    losses = mean_losses(train(build=parallel).results)
    return np.abs(np.subtract(losses, train_serial(data, serial).losses))


local = distance(local_norm_mlp, local_norm_mlp)
synced = distance(sync_norm_mlp, local_norm_mlp)
grouped = distance(group_norm_mlp, group_norm_mlp)
assert max(synced.max(), grouped.max()) <= 1e-6 < 1e-3 < local.max()
curves = {"own statistics": local, "shared statistics": synced, "group norm": grouped}
title = (
    f"Off by up to {local.max():.1g} with own statistics, {synced.max():.0e} if they are"
)
title += f" shared, and {grouped.max():.0e} with group norm"
course.draw.loss_curves(curves, title, y="difference of the loss")

# %% [markdown]
# With statistics of its own, each rank is off from the first step on. Both cures leave a difference that is only
# rounding. Note what happens if you don't choose: PyTorch's `BatchNorm1d` and its relatives take each rank's own
# statistics, and so does a model that contains them inside `DistributedDataParallel`. That is often good enough if each
# rank has many images, because the statistics of 256 images differ little from those of 1,024. With two images on each
# rank it is not.
#
# ## Which rate for AdamW?
#
# On the first page we reasoned that SGD with $P$ times the batch should take $P$ times the rate. AdamW needs a
# different argument, because it divides each gradient by its usual size before it takes the step (lesson 2).
#
# Suppose that gradients are mostly noise, and let's follow a single weight. In a batch of 32 its gradient has a signal
# of 1, and noise of size 10 hides it. Its usual size is about 10, so AdamW divides by 10. A step then carries a signal
# of 1 ÷ 10 = 0.1. With four times the batch, the noise is only half as large, 5. AdamW divides by 5, and a step carries
# a signal of 0.2 at the same rate. One large step has to replace four small ones, which together carried 0.4. So it
# needs a rate that is 2 times as large, which is $\sqrt 4$. This is the **square root rule** for AdamW.
#
# [Malladi and others](https://arxiv.org/abs/2205.10287) derive it under two conditions: the noise is much larger than
# the signal, and the other settings of Adam ($\beta_1$, $\beta_2$ and $\epsilon$) are scaled along with the rate.
# Without them there is no such simple rule. [Li and others](https://arxiv.org/abs/2405.14578) find that the best rate
# for Adam may even fall again for large batches.
#
# **Predict.** We look for the best of six rates, each twice as large as the one before, once for batches of 32 images
# and once for 128. How many times larger is AdamW's best rate for the larger batch?

# %%
choices = {"a": "1", "b": "2", "c": "4", "d": "none of these"}
course.predict("rule_adamw", answer=..., choices=choices)

# %% [markdown]
# The first page has shown that four ranks with 32 images each train like one process with 128. So each rank can try the
# rates by itself, and we use the four ranks for four different seeds. The criterion is the mean loss of the fourth
# epoch.


# %%
def last_losses(data, optimizer, rates, seed):
    """Return the loss of the fourth epoch: a row for each batch size, a column for each rate."""
    table = []
    for batch_size in (32, 128):
        row = []
        for rate in rates:
            options = {"batch_size": batch_size, "rate": rate, "seed": seed}
            history = train_serial(data, optimizer=optimizer, epochs=4, **options)
            row.append(np.mean(history.losses[-(len(data.train_x) // batch_size) :]))
        table.append(row)
    return table


def search(optimizer, rates):
    seeds = course.per_rank(range(4))
    run = ranks.run(last_losses, data, optimizer, rates, seeds, backend="gloo")
    return np.array(run.results)  # seeds × batch sizes × rates


# %%
from course_utils.lessons.data_parallel import Sgd, best_rates_text

rates = [0.00125, 0.0025, 0.005, 0.01, 0.02, 0.04]
sgd_rates = [20 * rate for rate in rates]  # 0.025 to 0.8
adamw, sgd = search(torch.optim.AdamW, rates), search(Sgd, sgd_rates)
best = np.median(adamw, axis=0).argmin(axis=1)  # for each batch size
factor = rates[best[1]] / rates[best[0]]
course.measured("rule_adamw", answer={1: "a", 2: "b", 4: "c"}.get(round(factor, 1), "d"))
print(best_rates_text("SGD", sgd_rates, sgd))
course.draw.over_numbers(
    rates,
    {"32 images": adamw[:, 0].T.tolist(), "128 images": adamw[:, 1].T.tolist()},
    best_rates_text("AdamW", rates, adamw),
    log=True,
    across="learning rate",
    up="loss of the fourth epoch",
    unit="{:.2g}".format,
)

# %% [markdown]
# Each point is the median of four seeds, and the lines through it reach from the lowest to the highest loss. You can
# see how flat the curves are near their lowest point, so the best rate is rather uncertain. The line above the picture
# does the same for SGD.
#
# Neither rule is guaranteed to hold in such a test. The linear rule for SGD assumes that the rate is small enough for
# the gradient to change little from step to step, and the *best* rate for one rank is often close to the largest at
# which training works at all. Four times that may be too much. What the rules give you is a first guess. Then try the
# neighbouring rates.
#
# ## How large a batch is worth it?
#
# More ranks mean a larger global batch, a better gradient, and hopefully fewer steps. But if the gradient is already
# good, making it better saves nothing. Where is the limit?
#
# Call the true gradient of all training images $G$, and let $V$ be the noise of one image, measured as the mean squared
# distance between an image's gradient and $G$. If you average $B$ images, the noise becomes $V/B$, and the squared
# length of the gradient of the batch is on average
#
# $$|G|^2 + \tfrac{V}{B}.$$
#
# We would like to know $|G|^2$ and $V$. Four ranks that share a batch of 64 get two such gradients in every step,
# without any additional work: their own, from 16 images, and the mean, from 64. Suppose that the squared lengths are 10
# and 4 on average. Then
#
# $$|G|^2 + \tfrac{V}{16} = 10 \qquad\text{and}\qquad |G|^2 + \tfrac{V}{64} = 4 .$$
#
# The difference of the two equations is $V\,(\tfrac1{16} - \tfrac1{64}) = 6$, which gives $V = 128$, and so $|G|^2 =
# 2$. With 128 ÷ 2 = 64 images in the batch, the noise $V/B$ would be just as large as the signal $|G|^2$. This number
# of images, $V/|G|^2$, is called the **noise scale** ([McCandlish and others](https://arxiv.org/abs/1812.06162)). Let's
# measure it while our ranks train:

# %%
from course_utils.lessons.data_parallel import noise_scale

_, norms = ranks.run(
    noise_scale.train_and_measure,
    data,
    epochs=2,
    batch_size=64,
    rate=0.2,
    backend="gloo",
).results[0]
scale = noise_scale.simple_noise_scale(norms, small_batch=16, large_batch=64)
print(f"noise scale: {scale:.0f} images")

# %% [markdown]
# What does that have to do with the number of steps? The theory of the same authors predicts that a training with
# batches of $B$ images needs about
#
# $$S_{\min}\,\Bigl(1 + \frac{\text{noise scale}}{B}\Bigr)$$
#
# steps to reach a given loss, if each batch has the rate that suits it best. Here $S_{\min}$ is the number of steps
# with the exact gradient. With a noise scale of 64, for example, a batch of 16 images needs $5\,S_{\min}$ steps and a
# batch of 64 needs $2\,S_{\min}$, which is 2.5 times fewer. Far above the noise scale, a larger batch saves hardly any
# steps. So the noise scale is about the **critical batch**, beyond which additional ranks are hardly worth it.
#
# **Predict.** We look for the fewest steps that reach a loss of 0.5, with the best of three rates for each batch. Take
# the noise scale that you have just measured. How many times fewer steps does a batch of 32 need than one of 8? And one
# of 512 than one of 128?

# %%
course.predict("critical", within=1.3, from_8_to_32=..., from_128_to_512=...)

# %% tags=["figure:06_critical"]
from course_utils.lessons.data_parallel import critical_text

sizes = [8, 32, 128, 512]
steps = ranks.run(
    noise_scale.fewest_steps,
    data,
    course.per_rank(sizes),  # each rank tries one size, by itself
    rates=(0.1, 0.2, 0.4),
    target=0.5,
    most=150,
    backend="gloo",
).results
fewer = [steps[0] / steps[1], steps[2] / steps[3]]
course.measured("critical", from_8_to_32=fewer[0], from_128_to_512=fewer[1])

fewest = steps[-1] / noise_scale.predicted_steps(sizes[-1], scale, 1)
line = [noise_scale.predicted_steps(B, scale, fewest) for B in sizes]
course.draw.over_numbers(
    sizes,
    {"steps to a loss of 0.5": steps},
    critical_text(sizes, steps, scale),
    predicted={"steps to a loss of 0.5": line},
    across="images in a batch",
    up="steps",
)

# %% [markdown]
# The line is the prediction of the theory, drawn through the last point. You shouldn't expect it to be exact. The noise
# scale changes during a training, and our three rates are a coarse choice. But the tendency is clear in theory: well
# below the noise scale, doubling the batch nearly halves the number of steps, and well above it, doubling saves almost
# nothing. As the loss falls, the true gradient gets shorter while the noise remains, so the noise scale usually grows.
# This is why some trainings begin with a small batch and make it larger later on.

# %%
ranks.stop()

# %% [markdown]
# **To read**
#
# - McCandlish and others, 2018, [*An Empirical Model of Large-Batch Training*](https://arxiv.org/abs/1812.06162): the
#   noise scale, measured for many tasks.
# - Malladi and others, 2022, [*On the SDEs and Scaling Rules for Adaptive Gradient
#   Algorithms*](https://arxiv.org/abs/2205.10287): where the square root comes from, and when.
# - Wu and He, 2018, [*Group Normalization*](https://arxiv.org/abs/1803.08494): what batch norm does with small batches.
#
# The [exercises](../exercises/06_data_parallel.ipynb) of lesson 6 contain `sync_batch_norm`. [Lesson
# 7](07_overlap.ipynb) asks why PyTorch's DDP is faster than the loop of the first page.
