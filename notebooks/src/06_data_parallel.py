# The lesson on data parallelism. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Can P workers train as one?
#
# After this lesson you can **turn** a serial training loop into a parallel one with three lines, **prove** that
# both do the same, and **recognise** five things that quietly spoil it.
#
# *60 minutes · builds on [lesson 4](04_messages.ipynb) · 4 ranks*

# %%
import numpy as np
import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy

import course_utils as course
from course_utils.trace import phase_seconds

ranks = course.start(4)
ranks.load_torch()

# %% [markdown]
# The task is small enough to look at closely: 1,797 handwritten digits of 8 × 8 pixels, and a network with two hidden
# layers that shall read them. All numbers are float64, so that a difference between two runs is a real one and no
# matter of rounding.

# %% tags=["nbval-check-output"]
data = course.data.digits("float64")
train, test = tuple(data.train_x.shape), tuple(data.test_x.shape)
print("to train on:", train, " to test with:", test)

# %% [markdown]
# One process first. A **step** takes a batch of 64 images, goes *forward* to the loss, *backward* to the gradient, and
# moves the weights a little against it. 22 batches make an **epoch**.

# %%
from course_utils.training import digits_mlp, train_serial

serial = train_serial(data, epochs=1, batch_size=64, rate=0.2)
print(f"loss {serial.losses[0]:.3f} → {serial.losses[-1]:.3f}")

# %% [markdown]
# ## Sharing the work
#
# Now four workers. **Data parallelism**: each holds a copy of the whole model, a *replica*, and takes a quarter of
# every batch, its *shard*. Nobody deals out images. All ranks draw the same order from the same seed, and rank $r$
# takes every fourth entry, starting at $r$:

# %% tags=["nbval-check-output"]
from course_utils.data_parallel import shard_indices

print("one process:", shard_indices(12, rank=0, world_size=1).tolist())
for rank in range(4):
    print(f"rank {rank} of 4:", shard_indices(12, rank, world_size=4).tolist())

# %% [markdown]
# Read the columns: the first holds 8, 0, 5, 9, as the first line does. All ranks' first images are the first
# *batch* of the single process.
#
# Now each rank finds a gradient $g_r$ from 16 images, not 64. The loss is a *mean*; that of 64 images
# is the mean of four means of 16. So the batch has the gradient
#
# $$g = \tfrac{1}{P}\sum_{r=0}^{P-1} g_r .$$
#
# `dist.all_reduce(vector)` puts the sum of all ranks' vectors in the place of each:


# %%
def gradient_of_a_shard(data, average):
    model = digits_mlp(seed=0).double()
    rank, world_size = dist.get_rank(), dist.get_world_size()
    mine = shard_indices(len(data.train_x), rank, world_size)[: 64 // world_size]
    cross_entropy(model(data.train_x[mine]), data.train_y[mine]).backward()
    gradient = model[0].weight.grad
    if average:
        dist.all_reduce(gradient)
        gradient /= world_size
    return gradient[5, 20].item()


one = ranks.run(gradient_of_a_shard, data, False, backend="gloo", ranks=1).results[0]
own = ranks.run(gradient_of_a_shard, data, False, backend="gloo").results
mean = ranks.run(gradient_of_a_shard, data, True, backend="gloo").results

# %% tags=["nbval-check-output"]
print(f"one process, 64 images: {one:.6f}")
print("each rank, 16 images:  ", "  ".join(f"{value:.6f}" for value in own))
print("after the all-reduce:  ", "  ".join(f"{value:.6f}" for value in mean))

# %% [markdown]
# Four opinions, and their mean is what one process finds. (`dist` is `torch.distributed`; with `backend="gloo"` it
# knows the ranks by itself, and there is no `comm`.) The whole change:
#
# | serial | parallel |
# |---|---|
# | | `broadcast_parameters(model)`, once |
# | `batch` | this rank's share of `batch` |
# | `loss.backward()` | … and `average_gradients(model)` |
# | `optimizer.step()` | the same |
#
# ## As one?
#
# **Predict.** 22 steps, serial and parallel. How far apart are the losses?

# %%
course.predict(
    "apart",
    answer=...,  # "a", "b" or "c"
    choices={
        "a": "0, in every digit",
        "b": "about 1e-15, the last digit",
        "c": "about 1e-3, batches differ",
    },
)

# %%
from course_utils.training import train_parallel


def mean_loss(run):  # of the whole batch, at each step
    return np.mean([history.losses for history in run.results], axis=0)


run = ranks.run(train_parallel, data, epochs=1, batch_size=64, rate=0.2, backend="gloo")
losses = mean_loss(run)
apart = np.abs(losses - serial.losses).max()
assert apart <= 1e-6, apart
course.measured("apart", answer="a" if apart == 0 else "b" if apart < 1e-12 else "c")
curves = {"serial": serial.losses, "4 ranks": losses}
course.draw.loss_curves(curves, "One process and four")

# %% [markdown]
# Step for step the same, up to the last digit: sums in another order round differently. Four workers *are* one.
# That is *synchronous* data-parallel SGD, and most of what follows is a way of losing it.
#
# Ready for three [exercises](../exercises/06_data_parallel.ipynb): `shard_indices`, `broadcast_parameters`,
# `average_gradients`.
#
# ## Two ways to a mean
#
# Three students wrote the exchange twice for their course CS744, as tasks 2a and 2b. Task 2a is the long way, through
# rank 0:


# %%
def through_rank_0(model):
    rank, world_size = dist.get_rank(), dist.get_world_size()
    for parameter in model.parameters():
        gradient, gathered, means = parameter.grad, None, None
        if rank == 0:
            gathered = [torch.empty_like(gradient) for _ in range(world_size)]
        dist.gather(gradient, gathered, dst=0)
        if rank == 0:
            means = [torch.stack(gathered).mean(dim=0)] * world_size
        dist.scatter(gradient, means, src=0)


# %% [markdown]
# Task 2b is one all-reduce. We train a wider network with both, so that there is something to send: 301,066
# parameters. Every step records its four *phases*: forward, backward, communication, and the step of the optimizer.

# %%
from course_utils.data_parallel import average_gradients
from course_utils.training import flat_parameters, wide_mlp

small = course.data.digits("float32")
options = {"epochs": 3, "batch_size": 256, "backend": "gloo"}
alone = ranks.run(train_serial, small, wide_mlp, ranks=1, **options)
task_2a = ranks.run(train_parallel, small, wide_mlp, through_rank_0, **options)
task_2b = ranks.run(train_parallel, small, wide_mlp, average_gradients, **options)


# %%
def phases(run, rank=0):
    seconds = phase_seconds(run.events)
    return {name: seconds[r, name] for r, name in seconds if r == rank}


bars = {"serial": phases(alone)}
bars |= {"2a: through rank 0": phases(task_2a), "2b: all-reduce": phases(task_2b)}
for name, run in {"2a": task_2a, "2b": task_2b}.items():
    sent = [nbytes / 1e6 for nbytes in run.bytes_per_rank]
    print(f"{name}: rank 0 hands over {sent[0]:.0f} MB, rank 3 {sent[3]:.0f} MB")
course.draw.stacked_bars(bars, "15 steps of 256 images, on rank 0")

# %% [markdown]
# Blue and yellow are work: a quarter of it for each rank, a quarter of the *time* only if each has a core of its own.
# Pink is the price. No faster than serial? Too few cores, or too little work.
#
# On one machine a byte costs next to nothing; on a network it costs. Rank 0 of 2a carries $P$ times as much as
# the others. On the students' four nodes 2b sent under 60 % of 2a's bytes.

# %%
few = [part[:256] for part in small]
run = ranks.run(train_parallel, few, wide_mlp, batch_size=128, backend="gloo")
run.timeline("The first broadcast, then two steps")

# %% [markdown]
# Six all-reduces a step, one for each parameter, all *after* the backward pass. Lesson 7 changes that.
#
# ## Sum or mean?
#
# Well-known slides (SURF's) say: add up the gradients, $\nabla Q = \sum_j \nabla Q_j$. Two slides on: multiply the
# learning rate by $N$, the number of workers. But our ranks each take the *mean* over their images.
#
# **Predict.** If you follow both, how many times as long is a step as one process's with the same global batch?

# %%
course.predict("step_factor", answer=...)  # a number


# %%
def sum_gradients(model):
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)


def losses_of(**options):
    return mean_loss(ranks.run(train_parallel, data, backend="gloo", **options))


curves = {
    "mean, 0.1": losses_of(synchronise=average_gradients, rate=0.1, epochs=2),
    "mean, 4 · 0.1": losses_of(synchronise=average_gradients, rate=0.4, epochs=2),
    "sum, 0.1": losses_of(synchronise=sum_gradients, rate=0.1, epochs=2),
    "sum, 4 · 0.1": losses_of(synchronise=sum_gradients, rate=0.4, epochs=2),
}


# %%
def length_of_a_step(**options):
    batch = [part[:64] for part in data]
    run = ranks.run(train_parallel, batch, backend="gloo", **options)
    before = flat_parameters(digits_mlp(seed=0).double())
    return (run.results[0].parameters - before).norm().item()


both = length_of_a_step(synchronise=sum_gradients, rate=0.4)
neither = length_of_a_step(synchronise=average_gradients, rate=0.1)
course.measured("step_factor", answer=round(both / neither, 6))
assert np.abs(curves["sum, 0.1"] - curves["mean, 4 · 0.1"]).max() <= 1e-6
course.draw.loss_curves(curves, "Both at once: 16 times the step")

# %% [markdown]
# A sum over four ranks *is* the mean with four times the rate: two curves are one. Both rules make 16. Ask every
# library: sum, or mean? (PyTorch's DDP: mean.)
#
# ## A larger batch
#
# Now each rank keeps the 32 images that it had alone: 128 together, and a quarter of the steps. Should a step be
# longer? The **linear** rule says $P$ times, the **square root** rule $\sqrt P$ times. **Predict:** which
# recognises most test images after four epochs?

# %%
course.predict(
    "rule",
    answer=...,  # "a", "b" or "c"
    choices={"a": "the rate of one rank", "b": "times √4", "c": "times 4"},
)

# %%
from course_utils.data_parallel import scaled_learning_rate

rank_alone = train_serial(data, epochs=4, batch_size=32, rate=0.1)
rates = {"one rank's rate": 0.1, "times √4": 0.2, "times 4": 0.4}
options = {"epochs": 4, "batch_size": 128, "backend": "gloo"}
runs = {}
for name, rate in rates.items():
    runs[name] = ranks.run(train_parallel, data, rate=rate, **options)
accuracy = {name: run.results[0].test_accuracy for name, run in runs.items()}
course.measured("rule", answer="abc"[np.argmax(list(accuracy.values()))])

# %%
print(f"one rank, batch 32: {rank_alone.test_accuracy:.1%} of the test images")
for name, share in accuracy.items():
    print(f"4 ranks, batch 128, {name}: {share:.1%}")
four_steps = np.reshape(rank_alone.losses, (-1, 4))  # 4 · 32 images a row
by_128_images = {"one rank, batch 32": four_steps.mean(axis=1)}
by_128_images |= {name: mean_loss(run) for name, run in runs.items()}
title = "The same images, seen by 1 rank and by 4"
course.draw.loss_curves(by_128_images, title, x="step of 128 images")

# %% [markdown]
# With the old rate, a quarter of the steps is a fraction of the way. Linear makes up for it: one long step stands
# for four short ones, *as long as the gradient hardly turns on the way*. Early in training it does turn. Twice the
# rate, and you see it:


# %%
def first_steps(warm_up_steps):
    def rate(step):
        return scaled_learning_rate(0.2, step, 4, "linear", warm_up_steps)

    return losses_of(rate=rate, epochs=4, batch_size=128)


warmed = {"at once": first_steps(0), "warm-up of 20 steps": first_steps(20)}
course.draw.loss_curves(warmed, "0.2 · 4 from the first step, and climbing to it")

# %% [markdown]
# **Warm-up** climbs from one rank's rate to the scaled one, and the leap is gone. (Goyal and others trained
# ImageNet so on 256 GPUs.) Your exercise: `scaled_learning_rate`.
#
# ## What the mean does not mend
#
# Batch norm divides by the spread of *the batch*. Each rank sees only its own 16 images, so the network computes
# something else, before any gradient is averaged. The cure: share $\sum x$, $\sum x^2$ and the count, in one
# all-reduce forward and one backward.

# %%
from course_utils.training import local_norm_mlp, sync_norm_mlp

whole = train_serial(data, local_norm_mlp).losses
local = np.abs(losses_of(build=local_norm_mlp) - whole)
synced = np.abs(losses_of(build=sync_norm_mlp) - whole)
assert synced.max() <= 1e-6 < 1e-3 < local.max()
distance = {"own statistics": local, "everybody's statistics": synced}
title = "How far from one process with batch norm"
course.draw.loss_curves(distance, title, y="difference of the loss")

# %% [markdown]
# Own statistics are off from the first step on, and they are the default, in PyTorch too. Why share sums and not
# means? Ranks may have unlike numbers of images. Your exercise `sync_batch_norm` will insist.
#
# ## Three more ways to fail quietly
#
# **Nobody broadcast.** Each rank starts from its own random weights; gradients are still averaged in every step.
# **Predict.** Do the four replicas approach each other?

# %%
course.predict(
    "replicas",
    answer=...,  # "a", "b" or "c"
    choices={
        "a": "yes, they get the same gradients",
        "b": "they drift apart",
        "c": "the distance stays as it is",
    },
)

# %%
start = [flat_parameters(digits_mlp(seed=rank).double()) for rank in range(4)]
run = ranks.run(train_parallel, data, broadcast=False, rate=0.2, backend="gloo")
end = [history.parameters for history in run.results]
before = [(weights - start[0]).norm().item() for weights in start]
after = [(weights - end[0]).norm().item() for weights in end]
print("from rank 0, before:", np.round(before, 6), " after 22 steps:", np.round(after, 6))
course.measured("replicas", answer="c" if np.allclose(before, after, rtol=1e-9) else "b")

# %% [markdown]
# All take the *same* step, from *different* places: the distance never changes, and the step is right for none of
# them. No error, no warning. Compare your replicas' weights once, on day one.
#
# **`set_epoch` forgotten.** PyTorch's `DistributedSampler` does what `shard_indices` does, but you must tell it the
# epoch. How many *different* batches does rank 0 see in 5 epochs of 22?

# %% tags=["nbval-check-output"]
from torch.utils.data import DistributedSampler


def different_batches(tell):
    sampler, seen = DistributedSampler(range(22 * 64), num_replicas=4, rank=0), set()
    for epoch in range(5):
        if tell:
            sampler.set_epoch(epoch)
        order = torch.tensor(list(sampler))
        seen |= {frozenset(batch.tolist()) for batch in order.split(16)}
    return len(seen)


print(f"forgotten: {different_batches(tell=False)}, told: {different_batches(tell=True)}")

# %% [markdown]
# Forgotten, an image meets the same companions in every epoch, and there is less noise to learn from.
#
# **A straggler.** Let rank 3 be slower by 20 ms a step. **Predict.** Whose *communication* grows?

# %%
course.predict(
    "straggler",
    answer=...,  # "a", "b" or "c"
    choices={"a": "rank 3's", "b": "everybody's but rank 3's", "c": "all four"},
)

# %%
delay = course.per_rank([0, 0, 0, 0.02])
late = ranks.run(train_parallel, data, delay=delay, backend="gloo")
bars = {f"rank {rank}": phases(late, rank) for rank in range(4)}
waiting = [bars[f"rank {rank}"]["communication"] for rank in range(4)]
course.measured("straggler", answer="b" if min(waiting[:3]) > waiting[3] else "c")
course.draw.stacked_bars(bars, "Rank 3 sleeps 20 ms in each forward pass")

# %% [markdown]
# The slow rank looks busy, the fast ones look as if the network were slow: they sit in `all_reduce` and wait.
# "Communication" in a profile is communication *and waiting*. Ask who comes late before you buy a faster network.
#
# ## All the way
#
# Both ways to the end, against one process: the same loss at every one of 132 steps, and at least 95 % of the test
# images.

# %%
to_the_end = {"epochs": 6, "batch_size": 64, "rate": 0.4}
curves = {"serial": train_serial(data, **to_the_end).losses}
for way in (average_gradients, through_rank_0):
    name = way.__name__
    run = ranks.run(train_parallel, data, synchronise=way, backend="gloo", **to_the_end)
    curves[name] = mean_loss(run)
    apart = np.abs(curves[name] - curves["serial"]).max()
    shares = [history.test_accuracy for history in run.results]
    assert apart <= 1e-6 and min(shares) >= 0.95
    print(f"{name}: {shares[0]:.1%} of the test images, at most {apart:.0e} from serial")
course.draw.loss_curves(curves, "132 steps, three ways")

# %% [markdown]
# ## What you take with you
#
# You can **turn** a serial loop into a parallel one: broadcast once, take your share, average the gradients. You
# can **prove** that it is the same, step for step, and now know why it must be. And you **recognise** what breaks
# it: a sum for a mean, batch norm, unlike weights, a forgotten epoch, and a late colleague.
#
# Next: [the exercises](../exercises/06_data_parallel.ipynb). After that, lesson 7 asks why PyTorch's DDP is faster
# than our loop.

# %%
ranks.stop()
