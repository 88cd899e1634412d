# The lesson on data parallelism. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Can P workers train as one?
#
# After this lesson you can **turn** a serial training loop into a parallel one with three lines, **prove** that
# both do the same, and **recognise** five things that quietly spoil it.
#
# *60 minutes · builds on lessons [2](02_autodiff_and_optimizers.ipynb) and [5](05_allreduce.ipynb) · 4 ranks*

# %%
import numpy as np
import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy

import course_utils as course
from course_utils.trace.events import phase_seconds

ranks = course.start(4, link="200 Mbit/s")
ranks.load_torch()

# %% [markdown]
# Four nodes, as in lesson 5: each rank has a link of its own, emulated. (Where your system forbids it, a line says
# so, and messages go through memory.)
#
# The task: handwritten digits, and a network with two hidden layers. First one process trains, with the loop of lessons
# 1 and 2. A batch of 64 images goes *forward* to the loss and *backward* to the gradient. A *step* moves the weights.
# 22 batches make an epoch (29 images are left over, and dropped).

# %% tags=["nbval-check-output"]
from course_utils.lessons.data_parallel import digits_mlp, train_serial

# float64 rounds so little that a larger difference between two runs is a real one
data = course.data.digits("float64")
print("to train on:", *data.train_x.shape, " to test with:", *data.test_x.shape)
epochs = 4
serial = train_serial(data, epochs=epochs, batch_size=64, rate=0.2)
print(f"{serial.test_accuracy:.1%} recognised after {len(serial.losses)} steps")

# %% [markdown]
# ## Sharing the work
#
# Now four workers. **Data parallelism** means: each holds a copy of the whole model, a **replica**, and takes a quarter
# of every batch, its **shard**. Nobody deals out images. All ranks draw the same order from the same seed, and rank $r$
# takes every fourth entry, starting at $r$:

# %% tags=["nbval-check-output"]
from course_utils.lessons.data_parallel import shard_indices

print("one process:", shard_indices(12, rank=0, world_size=1).tolist())
for rank in range(4):
    print(f"rank {rank} of 4:", shard_indices(12, rank, world_size=4).tolist())

# %% [markdown]
# Read down the ranks' first images: 8, 0, 5, 9. So begins the first line. Together, the ranks' first shards are the
# first *batch* of the single process.
#
# Now each rank finds a gradient $g_r$ from 16 images, not 64. The loss is a *mean*, and the mean of 64 images is the
# mean of four means of 16. So the batch's gradient $g$ is the mean of the $P$ ranks' gradients:
#
# $$g = \tfrac{1}{P}\sum_{r=0}^{P-1} g_r$$
#
# That is lesson 5's all-reduce, and a division. In PyTorch it is `dist.all_reduce(vector)`, in place. (`dist` is
# `torch.distributed`. **gloo**, a library, carries its messages. Each rank knows the others, so there is no `comm`.)


# %%
def gradient_of_a_shard(data, average):
    model = digits_mlp(seed=0).double()
    rank, P = dist.get_rank(), dist.get_world_size()
    mine = shard_indices(len(data.train_x), rank, P)[: 64 // P]
    cross_entropy(model(data.train_x[mine]), data.train_y[mine]).backward()
    gradient = model[6].bias.grad  # ten numbers, as an example
    if average:
        dist.all_reduce(gradient)
        gradient /= P
    return gradient.tolist()


# %% tags=["nbval-check-output"]
def gradients(average, P=4):
    run = ranks.run(gradient_of_a_shard, data, average, backend="gloo", ranks=P)
    return np.array(run.results)  # a row for each rank


alone, own, mean = gradients(False, P=1), gradients(False), gradients(True)
print("one process, 64 images:", alone[:, 0].round(6))  # the first number
print("each rank, 16 images:  ", own[:, 0].round(6))
print("after the all-reduce:  ", mean[:, 0].round(6))

# %% [markdown]
# The ranks have four opinions, and their mean is what one process finds. The whole loop, with its three new lines:
#
# ```
# broadcast_parameters(model)              # new: all start with rank 0's weights
# for batch in batches:                    # the same batches on every rank
#     mine = batch[rank::P]                # new: this rank's shard
#     loss = cross_entropy(model(x[mine]), y[mine])
#     optimizer.zero_grad()
#     loss.backward()
#     average_gradients(model)             # new: the all-reduce, and the division
#     optimizer.step()
# ```
#
# ## As one?
#
# **Predict.** 88 steps, serial and parallel. How far apart are the losses?

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

# %% tags=["figure:06_same_loss"]
from course_utils.lessons.data_parallel import mean_losses, train_parallel


def own_weights(seed):  # every rank begins with weights of its own
    return digits_mlp(seed + dist.get_rank())


def train(data=data, build=own_weights, **options):
    return ranks.run(train_parallel, data, build, backend="gloo", **options)


run = train(epochs=epochs, batch_size=64, rate=0.2)
losses = mean_losses(run.results)  # of the whole batch, at each step
apart = np.abs(np.subtract(losses, serial.losses)).max()
assert apart <= 1e-6, apart
course.measured("apart", answer="a" if apart == 0 else "b" if apart < 1e-12 else "c")
print("recognised:", *(f"{history.test_accuracy:.1%}" for history in run.results))
course.draw.loss_curves({"serial": serial.losses, "4 ranks": losses})

# %% [markdown]
# Step for step the loss is the same, but for the last digit: lesson 5's *bracketing*. Four workers *are* one. This is
# **synchronous** data-parallel SGD: all wait for all, in every step. Most of what follows is a way of losing it.
#
# Ready for three [exercises](../exercises/06_data_parallel.ipynb): `shard_indices`, `broadcast_parameters`,
# `average_gradients`.
#
# ## Two ways to a mean
#
# The three students of lesson 3 went on with VGG-11 on four nodes, and wrote the exchange twice. Their task 2a is the
# long way, **gather-scatter**:


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


losses = mean_losses(train(synchronise=through_rank_0, rate=0.2).results)  # 22 steps
assert np.allclose(losses, serial.losses[:22], atol=1e-6)  # the same training

# %% [markdown]
# Their task 2b is `average_gradients`: one all-reduce for each gradient. Which costs what? We train VGG-11, too, with
# a quarter of its channels: 2.3 MB of gradients, so that it fits these links.
#
# **Predict**, from lesson 5: in a step, how many times 2.3 MB does *rank 0* send over its link, in each way?

# %%
course.predict("two_ways", within=1.2, gather_scatter=..., all_reduce=...)

# %% tags=["figure:06_two_ways"]
from course_utils.lessons.data_parallel import report_figures, sent_text, train_way
from course_utils.lessons.data_parallel import vectors_sent

ways = ["one process", "gather-scatter", "all-reduce, each"]
tasks = [train_way(ranks, way, images=96, steps=3) for way in ways]
if tasks[1].sent:  # there are links: their kernel counts
    rank_0 = [vectors_sent(task)[0] for task in tasks[1:]]
    course.measured("two_ways", gather_scatter=rank_0[0], all_reduce=rank_0[1])
print(report_figures.forward_sentence(tasks))
report_figures.stages(tasks)

# %% [markdown]
# The students' report shows this picture, too. Blue and yellow are work. Each rank has a quarter of it. It takes a
# quarter of the *time* only where each rank has cores of its own. Pink is the price. The title compares the two ways of
# sharing.
#
# With gather-scatter, rank 0's link carries 3 vectors in, then 3 out. In a ring it carries 1.5 in, and 1.5 out at the
# same time. By bytes alone, gather-scatter would take 4 times as long. Does it, in your run? Both ways also pay
# $\alpha$ for each of 34 gradients. Now look at the other links:

# %% tags=["here:06_total_time"]
for task in tasks[1:]:
    print(sent_text(task))
report_figures.total_time(tasks)

# %% [markdown]
# All links together carry $2(P-1) = 6$ vectors either way, and a little more for addresses. But half of
# gather-scatter's bytes leave through a *single* link.
#
# The picture shows how long 50,000 images would take at the speed of these steps. The hatched bars are the students'
# times, with five cores for each worker. Are your four faster than one? "Don't try to parallelize very light
# workloads", say the slides of SURF, the Dutch computing centre from whose course this one comes.
#
# ## Six messages or one?
#
# `average_gradients` sends the gradient of each weight matrix and bias by itself. For our network that is six
# all-reduces a step, mostly $\alpha$. Put all gradients into one vector instead:


# %%
def in_one_vector(model, mean=True):
    gradients = [parameter.grad for parameter in model.parameters()]
    vector = torch.cat([gradient.flatten() for gradient in gradients])
    dist.all_reduce(vector)
    if mean:
        vector /= dist.get_world_size()
    pieces = vector.split([gradient.numel() for gradient in gradients])
    for gradient, piece in zip(gradients, pieces):
        gradient.copy_(piece.view_as(gradient))


# %%
from course_utils.lessons.data_parallel import exchange_text, last_step, phase_durations
from course_utils.lessons.data_parallel import quickest

runs = {"six all-reduces": train(), "one": train(synchronise=in_one_vector)}
assert np.allclose(*(mean_losses(run.results) for run in runs.values()))  # as good
exchange = {
    name: phase_durations(run.events, "communication") for name, run in runs.items()
}
print(exchange_text(exchange))
few = [part[:128] for part in data]  # two steps, of which the picture shows the last
six = quickest([last_step(train(few)) for _ in range(3)])
one = quickest([last_step(train(few, synchronise=in_one_vector)) for _ in range(3)])
titles = ["six all-reduces", "one"]
course.draw.timelines(six, one, titles=titles)

# %% [markdown]
# The picture shows the fastest of three steps. The losses are the same, so from here on we send one vector. (Lesson 7
# packs *buckets*, and sends the first *during* the backward pass.)
#
# ## Whose all-reduce?
#
# A library that carries messages for a framework is a **backend**: MPI, gloo, or lesson 13's NCCL. "Pick an efficient
# one", say SURF's slides. Here the same vectors go through mpi4py's `Allreduce`, through gloo's, and round lesson 5's
# ring, by turns (lesson 3). **Predict:** is the same one the fastest for 1, 32 and 1,024 KB?

# %%
course.predict("same_backend", answer=..., choices={"a": "yes", "b": "no"})

# %% tags=["figure:06_backends"]
from course_utils.lessons.data_parallel import backend_seconds, fastest_text
from course_utils.measuring import Compared, is_busy, unless_busy
from course_utils.words import seconds_text

sizes = [1_000, 32_000, 1_024_000]
timed = ranks.run(backend_seconds, sizes, runs=5, backend="gloo").results[0]
medians = np.median(list(timed.values()), axis=2)  # a row for each program
same = len(set(medians.argmin(axis=0))) == 1
busy = is_busy(times for by_size in timed.values() for times in by_size)
course.measured("same_backend", busy=busy, answer="a" if same else "b")
look = {"across": "KB of the vector", "up": "time", "unit": seconds_text}
course.draw.over_numbers(
    [1, 32, 1024], timed, fastest_text(sizes, timed), log=True, **look
)

# %% [markdown]
# A library chooses its algorithm by the size of the vector, and two libraries choose differently. (The prediction is
# judged by medians. The title names the fastest for each size, where the rounds agree.) On your cluster, measure before
# you pick.
#
# ## Sum or mean?
#
# SURF's slides say: add up the gradients of all workers $j$, $\nabla L = \sum_j \nabla L_j$. A slide later they say:
# multiply the learning rate by $N$, the number of workers. But each of our ranks already takes the *mean* over its
# images.
#
# **Predict.** Our four ranks follow both rules. One process takes the mean over the same batch, with the same rate. How
# many times as *far* do our ranks move the weights in their first step?

# %%
course.predict("step_factor", answer=...)  # a number

# %%
from functools import partial

train = partial(train, synchronise=in_one_vector)
sums = partial(in_one_vector, mean=False)


def losses_of(**options):
    return mean_losses(train(**options).results)


curves = {
    "mean, 0.1": losses_of(rate=0.1),
    "mean, 4 · 0.1": losses_of(rate=0.4),
    "sum, 0.1": losses_of(synchronise=sums, rate=0.1),
    "sum, 4 · 0.1": losses_of(synchronise=sums, rate=0.4),
}

# %% tags=["figure:06_sum_or_mean"]
from course_utils.lessons.data_parallel import flat_parameters

batch = [part[:64] for part in data]
start = flat_parameters(digits_mlp(seed=0).double())
both, neither = train(batch, synchronise=sums, rate=0.4), train(batch, rate=0.1)
steps = [(run.results[0].parameters - start).norm().item() for run in (both, neither)]
course.measured("step_factor", answer=round(steps[0] / steps[1], 6))
assert np.allclose(curves["sum, 0.1"], curves["mean, 4 · 0.1"], atol=1e-6)
title = (
    f"Sum and 4 times the rate: the first step is {steps[0] / steps[1]:.0f} times as long"
)
course.draw.loss_curves(curves, title)

# %% [markdown]
# A sum *is* the mean with four times the rate: two curves are one. Both rules together make $4 \cdot 4 = 16$. Ask of
# every library: sum, or mean? (PyTorch's DDP, lesson 7: mean.)
#
# ## A larger batch
#
# Until now we cut one batch in four. Now let each rank take as many images as one process took alone, here 32. The
# images of all ranks in a step are the **global batch**, here 128. So an epoch has a quarter of the steps. Which rate?
# The **linear rule** takes $P$ times one rank's: one step stands for $P$. The **square root rule** takes $\sqrt P$
# times, as the noise falls by that factor (lesson 1). **Predict:** with which rate are most test images recognised
# after four epochs?

# %%
course.predict(
    "rule",
    answer=...,  # "a", "b" or "c"
    choices={"a": "the rate of one rank", "b": "times √4", "c": "times 4"},
)

# %% tags=["figure:06_scaling"]
rank_alone = train_serial(data, epochs=epochs, batch_size=32, rate=0.1)
rates = {"one rank's rate": 0.1, "times √4": 0.2, "times 4": 0.4}
runs = [train(rate=rate, epochs=epochs, batch_size=128) for rate in rates.values()]
shares = [run.results[0].test_accuracy for run in runs]
best = np.argmax(shares)
course.measured("rule", answer="abc"[best])
four_steps = np.reshape(rank_alone.losses, (-1, 4))  # 4 · 32 images a row
curves = {f"one rank: {rank_alone.test_accuracy:.0%}": four_steps.mean(axis=1)}
for name, run, share in zip(rates, runs, shares):
    curves[f"{name}: {share:.0%}"] = mean_losses(run.results)
title = f"Of three rates on 4 ranks, “{list(rates)[best]}” recognises most"
course.draw.loss_curves(curves, title, x="step of 128 images")

# %% [markdown]
# Each label ends with the share recognised. (It counts right answers, not how sure they are. So equal shares may have
# different losses.) With the old rate, a quarter of the steps goes only a part of the way. The linear rule is to make
# up for that: one long step stands for four short ones, *as long as the gradient hardly turns on the way*. Early in
# training it does turn. You see that with twice the rate:

# %%
from course_utils.lessons.data_parallel import climbs_text, scaled_learning_rate


def first_steps(warm_up_steps):
    def rate(step):  # each step has its own
        return scaled_learning_rate(0.2, step, 4, "linear", warm_up_steps)

    return losses_of(rate=rate, epochs=epochs, batch_size=128)


warmed = {"4 · 0.2 at once": first_steps(0), "warm-up of 20 steps": first_steps(20)}
course.draw.loss_curves(warmed, climbs_text(warmed))

# %% [markdown]
# With **warm-up** the rate climbs in a straight line to the scaled rate. That mends the start, not a rate that stays
# too large. (Goyal and others trained with it on 256 GPUs.) Your exercise: `scaled_learning_rate`.
#
# **And AdamW?** It divides every gradient by its usual size. A noisy gradient's usual size is mostly noise, and four
# times the batch halves the noise. We train eight epochs on 4 ranks, from the rates that suit one rank: 0.1 for SGD,
# 0.01 for AdamW. **Predict:** with which rate does AdamW's loss end lowest?

# %%
course.predict(
    "rule_adamw",
    answer=...,  # "a", "b" or "c"
    choices={"a": "the rate of one rank", "b": "times √4", "c": "times 4"},
)

# %%
from course_utils.lessons.data_parallel import best_rates_text

times = [1, 2, 4]
one_rank = {"SGD": {"rate": 0.1}, "AdamW": {"rate": 0.01, "optimizer": torch.optim.AdamW}}
last_losses = {name: [] for name in one_rank}
for name, options in one_rank.items():
    for factor in times:
        scaled = options | {"rate": factor * options["rate"]}
        losses = losses_of(epochs=8, batch_size=128, **scaled)
        last_losses[name] += [np.mean(losses[-11:])]  # the last epoch
course.measured("rule_adamw", answer="abc"[np.argmin(last_losses["AdamW"])])
title = best_rates_text(last_losses, times)
look = {"across": "times one rank's rate", "up": "loss of the last epoch"}
course.draw.over_numbers(
    times, last_losses, title, log=True, unit="{:.2g}".format, **look
)

# %% [markdown]
# The linear rule is for SGD. For Adam and AdamW the *square root* is the rule (Malladi and others, 2022). Both rules
# scale a rate that was right before. From 0.003, too small for one rank, four times should suit AdamW better than
# twice. Try it.
#
# ## How large a batch pays?
#
# Let $|G|^2$ be the squared length of the gradient of all images, the signal. Let $V$ be the noise of a single image's
# gradient (lesson 1), also squared. The gradient of $B$ images then has, on average, the squared length
# $|G|^2 + \frac{V}{B}$.
#
# Each rank knows this length for its own images and for those of all ranks: two equations, two unknowns. So ranks
# measure both while they train, for one number more a step. $V / |G|^2$ is the **noise scale**, in images (McCandlish
# and others, 2018):

# %%
from course_utils.lessons.data_parallel import noise_scale

measure = {"epochs": 2, "batch_size": 64, "rate": 0.2, "backend": "gloo"}
_, norms = ranks.run(noise_scale.train_and_measure, data, **measure).results[0]
scale = noise_scale.simple_noise_scale(norms, small_batch=16, large_batch=64)
print(f"noise scale: {scale:.0f} images")

# %% [markdown]
# It is about the **critical batch**, beyond which more images hardly save steps. The theory says that a batch of $B$
# images needs about $S_{\min}\,(1 + \text{noise scale} / B)$ steps to a certain loss. No batch needs fewer than
# $S_{\min}$.
#
# **Predict:** we take the best of three rates for each batch, and count the steps to a loss of 0.5. How many times
# fewer does a batch of 32 need than one of 8? And one of 512 than one of 128?

# %%
course.predict("critical", within=1.3, from_8_to_32=..., from_128_to_512=...)

# %%
sizes, rates = [8, 32, 128, 512], (0.1, 0.2, 0.4)
each = course.per_rank(sizes)  # each rank tries one size, by itself
search = data, each, rates, 0.5, 150
steps = ranks.run(noise_scale.fewest_steps, *search, backend="gloo").results
fewer = [steps[0] / steps[1], steps[2] / steps[3]]
course.measured("critical", from_8_to_32=fewer[0], from_128_to_512=fewer[1])

# %% tags=["figure:06_critical"]
from course_utils.lessons.data_parallel import critical_text

fewest = steps[-1] / noise_scale.predicted_steps(sizes[-1], scale, 1)
line = [noise_scale.predicted_steps(B, scale, fewest) for B in sizes]
name, look = "steps to a loss of 0.5", {"across": "images in a batch", "up": "steps"}
title = critical_text(sizes, steps, scale)
course.draw.over_numbers(sizes, {name: steps}, title, predicted={name: line}, **look)

# %% [markdown]
# The line is the theory's, drawn through the last dot. It promises no more than an order of magnitude. Far left of the
# noise scale, twice the batch saves half of the steps. Far right of it, twice the batch saves nothing, and more ranks
# with as many images each are wasted. As the loss falls, the noise scale tends to grow: late in training, larger
# batches pay.
#
# ## What the mean does not mend
#
# Batch norm (lesson 3) subtracts from each feature its mean over *the batch*, and divides by its spread. But each rank
# sees only its own 16 images. So the network computes something else, before any gradient is averaged. The cure is to
# share $\sum x$, $\sum x^2$ and the count, in one all-reduce forward and one backward.

# %% tags=["figure:06_norm_distance"]
from course_utils.lessons.data_parallel import local_norm_mlp, sync_norm_mlp

whole = train_serial(data, local_norm_mlp).losses
local = np.abs(np.subtract(losses_of(build=local_norm_mlp), whole))
synced = np.abs(np.subtract(losses_of(build=sync_norm_mlp), whole))
assert synced.max() <= 1e-6 < 1e-3 < local.max()
distance = {"own statistics": local, "everybody's statistics": synced}
title = f"With own statistics the loss is off by up to {local.max():.2g}"
title += f", with everybody's by {synced.max():.0e}"
course.draw.loss_curves(distance, title, y="difference of the loss")

# %% [markdown]
# With its own statistics, a rank is off from the first step on. Yet that is the default, in PyTorch too. Why share sums
# and not means? Ranks may have different numbers of images. Your exercise, `sync_batch_norm`, tests that.
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
def forgotten(model):
    pass


start = [flat_parameters(digits_mlp(seed=rank).double()) for rank in range(4)]
end = [history.parameters for history in train(broadcast=forgotten, rate=0.2).results]
before = [(weights - start[0]).norm().item() for weights in start]
after = [(weights - end[0]).norm().item() for weights in end]
print("from rank 0, before:", np.round(before, 6), " after 22 steps:", np.round(after, 6))
course.measured("replicas", answer="c" if np.allclose(before, after, rtol=1e-9) else "b")

# %% [markdown]
# All take the *same* step, from *different* places. So the distance never changes, and the step is right for none of
# them. There is no error and no warning. Compare your replicas' weights once, on day one. (AdamW shrinks all weights a
# little. That draws replicas slowly together, and hides the mistake.)
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


print("forgotten:", different_batches(False), " told:", different_batches(True))

# %% [markdown]
# If you forget it, every epoch has the same 22 batches in the same order.
#
# **A straggler** is a rank that comes late. Let rank 3 sleep for 20 ms in each forward pass. **Predict.** Whose
# *communication* grows?

# %%
course.predict(
    "straggler",
    answer=...,  # "a", "b" or "c"
    choices={"a": "rank 3's", "b": "everybody's but rank 3's", "c": "all four"},
)

# %% tags=["figure:06_straggler"]
import time

from course_utils.lessons.data_parallel import waiting_text


def slow_on_rank_3(seed):
    model = digits_mlp(seed)
    if dist.get_rank() == 3:
        model.register_forward_pre_hook(lambda *_: time.sleep(0.02))
    return model


late = train(build=slow_on_rank_3)
bars = {f"rank {rank}": {} for rank in range(4)}
for (rank, phase), seconds in phase_seconds(late.events).items():
    bars[f"rank {rank}"][phase] = seconds
waiting = [phases["communication"] for phases in bars.values()]
each = [phase_durations(late.events, "communication", rank) for rank in range(4)]
busy = any(Compared(each[3], other).is_busy for other in each[:3])  # step by step
answer = "b" if min(waiting[:3]) > waiting[3] else "c"
course.measured("straggler", busy=busy, answer=answer)
course.draw.stacked_bars(bars, unless_busy(busy, waiting_text(waiting, late=3)))

# %% [markdown]
# The slow rank looks busy. The fast ones look as if the network were slow: they sit in `all_reduce` and wait. So
# "communication" in such a picture is communication *and waiting*. Ask who comes late before you buy a faster network.
# (What if nobody waits? Lesson 8.)

# %% [markdown]
# ## What you take with you
#
# - You can **turn** a serial loop into a parallel one: broadcast once, take your share, average the gradients.
# - You can **prove** that it is the same: loss beside loss, step for step.
# - You **recognise** what breaks it: a sum for a mean, batch norm, different weights, a forgotten epoch, a straggler.
#
# Next: [the exercises](../exercises/06_data_parallel.ipynb). After that, lesson 7 asks why PyTorch's DDP is faster
# than our loop.
# %%
ranks.stop()
