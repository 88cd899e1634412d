# The optional second notebook of lesson 7. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Further: why is DDP faster than my loop?
#
# In 2020, three students trained a network with one machine, with two, with three and with four. The fourth machine
# made an epoch only 10% shorter. They thought that with more images to train on it would have had more to do. You will
# find out here why it would have changed nothing, and what would have helped instead.
#
# Everything here is optional, and nothing later depends on it. The first code cell prepares the notebook. After that
# you can go to any section, because each of them stands alone. If a section complains that its ranks were stopped, run
# the first code cell again.
#
# 1. *A report, redone*: VGG-11, exchanged in three ways and on one to four nodes
# 2. *The same images for more workers*: strong scaling, and a formula of Amdahl
# 3. *More images for more workers*: weak scaling, and a formula of Gustafson
# 4. *A wider network, or more images*: what changes the share of the messages
# 5. *What is in DDP's buckets?*: read from DDP itself
# 6. *Fewer messages*: a large batch in small pieces
# 7. *Smaller messages*: three ways to send fewer bytes
# 8. *One byte for each number*: how to gather and to add up numbers of 8 bits
# 9. *Without a network*: hiding messages that go through memory
# 10. *One process for all GPUs*: `nn.DataParallel`
#
# *65 minutes · optional, after [lesson 7](07_overlap.ipynb) · 4 ranks, about 6 minutes for each section*

# %%
from functools import partial

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

import course_utils as course
from course_utils.lessons.data_parallel import torch_ddp, unsynchronised
from course_utils.lessons.overlap import ALONE, small_vgg, step_times
from course_utils.measuring import is_busy, unless_busy
from course_utils.vgg import random_images
from course_utils.words import wrapped

ranks = course.start(4, link="200 Mbit/s")
ranks.load_torch()
linked = ranks.facts["network"] is not None  # False if your system allows no links
cores = len({core for fact in ranks.facts["ranks"] for core in fact["cores"]})
ddp = partial(torch_ddp, bucket_bytes=500_000)
both = {ALONE: unsynchronised, "DDP": ddp}  # a step without messages, and one with DDP

# %% [markdown]
# The links carry 200 million bits per second here, which is 25 MB per second. As on the first page, our network is
# VGG-11 with a quarter of its channels, and its gradients are 2.3 MB.
#
# ## A report, redone
#
# Ng, Chen and Blakely, students at the University of Wisconsin, trained the whole VGG-11 on CIFAR-10 with up to four
# virtual machines of five cores each, 256 images per step. Their [report](../docs/sources.md) calls the training in one
# process *task 1*. In *task 2a* rank 0 gathers all gradients and scatters their mean. *Task 2b* makes an all-reduce for
# each gradient after the backward pass, like our loop, and *task 3* is DDP. [Further 6](06_data_parallel_further.ipynb)
# shows the code of the two task 2 versions. Let's run all four with our smaller network.
#
# How long does the communication of each method take? In task 2a, the link of rank 0 has to carry three gradients in
# and then three means out. With 2.3 MB each and 25 MB per second, this makes 6 × 2.3 ÷ 25 = 0.55 s. In a ring of four
# ranks, every link carries 1.5 × 2.3 MB in, and at the same time as much out.
#
# **Predict.** How many seconds do the all-reduces of task 2b take at least?

# %%
course.predict("report_all_reduce", within=1.3, seconds=...)

# %%
from course_utils.lessons.data_parallel import report_figures, train_way

task = partial(train_way, ranks, images=96, steps=3)  # keeps every run for the report
alone, gathered = task("one process"), task("gather-scatter")
each = task("all-reduce, each")
on_nodes = {P: task("DDP", world_size=P) for P in (2, 3, 4)}

course.answer("report_all_reduce", seconds=1.5 * each.gradient_bytes / 25e6)
print(f"task 2b waited {each.exposed.median:.2f} s for its messages in each step")

# %% [markdown]
# The calculation gives 0.14 s. The measured time also contains the latency of 34 all-reduces and the time in which a
# rank waits for the others to finish their backward pass.
#
# The runs are kept, and `course.report()` draws the figures of the students' report from them, with the same numbers as
# in the report: figures 4 to 11, and tables 1 to 3. Where the students published numbers, theirs are next to yours, as
# hatched bars. If you have also done lesson 3, the report begins with its figures 1 to 3. It takes a little while to
# draw:

# %% tags=["here:07_report"]
course.report(latest=True)

# %% [markdown]
# Here is what to look for.
#
# *Figures 4 to 6* show the order of the methods. In the report every task is faster than the one before it. The title
# of figure 6 tells you whether it is so in your run, and the text under it compares the forward passes. In figure 5 the
# backward pass and the communication of tasks 2a and 2b are drawn one after the other. The report has no such bar for
# task 3, because its messages travel during the backward pass and "we cannot use the same timing methods". On the first
# page you have measured their exposed part by comparing with a step without communication.
#
# *Figures 7 to 9* show the processor and the link of every node over time. In task 2a, node 0 sends and receives more
# than the others. In the other two, all nodes have the same work, which the students found, too.
#
# *Figure 11* shows bytes per second, and the report concludes from it that task 2b sends less than 60% of what task 2a
# sends, and less than 80% of task 3. But tasks 2b and 3 send the same bytes in every step, so the one that takes less
# time has to send more per second. If DDP needs 80% of the time, then the slower loop sends 80% of DDP's bytes per
# second, although it sends just as many in total. The 60% can't be explained in this way, as [Further
# 6](06_data_parallel_further.ipynb) shows.
#
# *Tables 1 to 3* compare one, two, three and four workers with DDP. In the report an epoch takes 437, 228, 170 and 153
# seconds. The efficiency of four workers is therefore 437 ÷ (4 × 153) = 71%, and from three to four, the time shrinks
# by only a tenth. What a node sends per step doesn't become less with more workers, but each computes for a shorter
# time. On the computer of the students each worker had five cores of its own. If your ranks share fewer cores than
# that, your gain is smaller still.
#
# The report's last picture, *figure 12*, puts tasks 2b and 3 next to each other on a single node. There is no other
# node to exchange gradients with, so why should they differ? The students noticed something else. The operating system
# took about 10% of the processor's time during the whole run, while with four nodes it took 3%. Let's see what it takes
# here:

# %% tags=["here:07_single_node"]
single = [
    task(method, world_size=1, keep=False) for method in ("all-reduce, each", "DDP")
]
for run in [*single, each, on_nodes[4]]:
    user = 100 * np.mean(run.user) / run.seconds
    system = 100 * np.mean(run.system) / run.seconds
    workers = f"{run.world_size} worker{'s' if run.world_size > 1 else ''}"
    print(f"{run.way:17} {workers:10} user {user:5.1f}%, system {system:4.1f}% of a core")

# %% [markdown]
# *User* is the time in which your program computes, and *system* is what the operating system does for it. With one
# worker there are no messages, so the system time must have another source. One possibility is memory. A single worker
# computes with the whole batch, so its arrays are four times as large, and the operating system has to find and clear
# memory for them again and again. The report doesn't say, and we can't tell from these numbers either. On your nodes
# the system time may well be higher with four workers, because sending and receiving is its work, too.
#
# ## The same images for more workers
#
# On the first page you calculated what happens if more and more machines share a batch, which is called strong scaling.
# Can we measure it, too? One, two and four of our ranks now share 384 images:

# %% tags=["figure:07_strong"]
from course_utils.lessons.overlap import speed_up_text

print(f"The four ranks may use {cores} core{'s' if cores > 1 else ''} together.")
strong = {}
for P in (1, 2, 4):
    strong[P] = step_times(ranks, both, 384 // P, rounds=3, world_size=P)
speed_ups = {P: strong[1].median(ALONE) / strong[P].median("DDP") for P in (2, 4)}

busy = any(times.is_busy for times in strong.values())
for P in (2, 4):  # even with nothing to send, P ranks do all of one rank's work
    work = [P * seconds for seconds in strong[P].seconds["DDP"]]
    busy = busy or is_busy([work], part=strong[1].seconds[ALONE])
bars = {"1 rank": strong[1].bars[ALONE]}
bars |= {f"{P} ranks": strong[P].bars["DDP"] for P in (2, 4)}
course.draw.stacked_bars(bars, unless_busy(busy, speed_up_text(speed_ups, cores)))

# %% [markdown]
# On real nodes, the blue part of a bar, the computing, would shrink to a half and a quarter. Here it can do so only if
# every rank has a core to itself, and not even then if two of these are hyperthreads of one real core. So read the
# first line of the output before you conclude anything from the picture. Only with at least four cores does the picture
# show what you calculated.
#
# In 1967, Gene Amdahl described a limit with a simple formula. Suppose a share $s$ of the work can't be divided, so
# that it takes as long with $P$ workers as with one. The rest, $1-s$, takes $\frac1P$ as long. Then the speed-up, which
# is the time of one worker divided by the time of $P$ workers, is
#
# $$\frac{1}{s + \frac{1-s}{P}} .$$
#
# For example, if two workers have a speed-up of 1.6, then $s + \frac{1-s}{2} = \frac{1}{1.6}$, and this gives $s =
# \frac{2}{1.6} - 1 = 0.25$. The speed-up of four workers is then 1 ÷ (0.25 + 0.75 ÷ 4) = 2.3, that of 64 workers is
# 3.8, and no number of workers reaches $1/s = 4$.

# %%
from course_utils.lessons.overlap import amdahl_text


def amdahl(s, P):
    return 1 / (s + (1 - s) / P)


share = 2 / speed_ups[2] - 1  # the share that two ranks can't divide
by_formula = {P: amdahl(share, P) for P in (4, 64)}
print(unless_busy(busy, wrapped(amdahl_text(share, by_formula, speed_ups))))

# %% [markdown]
# May we extrapolate from two workers to 64 in this way? Without overlap and latency we may, because a ring sends
# $2\frac{P-1}{P}$ times the gradient. If sending the gradient once takes a time $c$ and computing takes $T$ on one
# worker, a step takes $2c + \frac{T - 2c}{P}$, which is just Amdahl's form with a share of $2c/T$.
#
# With overlap it's misleading. On the first page, two machines that train ResNet-50 took 508 ms instead of 1000, which
# is a speed-up of 1.97. The formula finds a share of 2 ÷ 1.97 − 1 = 0.015 and promises a speed-up of 33 with 64
# machines. But the calculation with all messages gave 6. Two machines can hide nearly everything, and the formula
# doesn't know that the hiding ends when the backward pass becomes shorter than the messages. On a computer with few
# cores, sharing them counts as work that can't be divided, and then the formula tells you nothing about the network.
#
# ## More images for more workers
#
# Many people do something different when they get more workers: they let the batch grow with them. If every worker has
# as much to do as the single one had before, this is called **weak scaling**. At best, the time stays the same.
#
# To compare the two, we calculate an **efficiency**, which says how much of the best possible result is reached. For
# example, suppose that one worker takes 400 ms. If four workers do the same work in 160 ms, while 100 ms would be the
# best, then the efficiency of strong scaling is 100 ÷ 160 = 63%. If four workers do *four times* the work in 500 ms,
# while 400 ms would be the best, the efficiency of weak scaling is 400 ÷ 500 = 80%. In an exercise you write the
# function `scaling_efficiency`.
#
# Now each rank takes 48 images. If four ranks share two cores, the computing alone takes twice as long as on one rank,
# so that the efficiency is at most 50%. With four cores or more it could be 100%, but for the exposed communication.
#
# **Predict.** What is the efficiency of weak scaling with DDP on four ranks of your computer, in percent?

# %%
course.predict("overlap_weak", within=1.25, percent=...)

# %% tags=["figure:07_weak"]
from course_utils.lessons.overlap import efficiency_text, scaling_efficiency

scaled = {P: step_times(ranks, both, 48, rounds=5, world_size=P) for P in (1, 2, 4)}
alone_48 = scaled[1].median(ALONE)
weak = {
    P: scaling_efficiency(alone_48, scaled[P].median("DDP"), P, "weak") for P in (2, 4)
}
busy = any(times.is_busy for times in scaled.values())
course.measured("overlap_weak", busy=busy, percent=round(100 * weak[4]))
bars = {"1 rank, 48 images": scaled[1].bars[ALONE]}
bars |= {f"{P} ranks, {48 * P} images": scaled[P].bars["DDP"] for P in (2, 4)}
title = unless_busy(busy, efficiency_text("Weak", weak, cores))
course.draw.stacked_bars(bars, title)

# %% [markdown]
# The blue parts would all have the same length if every rank had a core to itself. The rest is what communication adds,
# which is at least its exposed part.
#
# Amdahl's formula in the section before this one says that a part that can't be divided limits the speed-up, even with
# any number of workers. In 1988 John Gustafson objected that people with more machines don't solve the same problem
# faster, but a larger one in the same time. Suppose $P$ workers spend a share $s$ of their time on something that more
# workers don't make faster, and the rest on work that grows with their number. In the same time, one worker could do
# the first part, and only $\frac1P$ of the second. So $P$ workers do $s + (1 - s)P$ times as much as one.
#
# For example, if four workers spend a quarter of every step waiting for messages, they do 0.25 + 0.75 × 4 = 3.25 times
# as much as one. With 64 workers and the same share it would be 0.25 + 0.75 × 64 = 48.25 times, while a quarter that
# can't be divided in Amdahl's sense allows 3.8 times. There is no contradiction, because the two shares mean different
# things. Amdahl's is a share of the time of *one* worker, and Gustafson's is a share of the time of *all* of them,
# which solve a larger problem. But Gustafson's reasoning has a limit too: a larger batch isn't always a better one, as
# the section on batch sizes in [Further 6](06_data_parallel_further.ipynb) shows.
#
# ## A wider network, or more images
#
# Why did the fourth worker bring so little? The students answered that VGG-11 is a fairly small network, and that
# CIFAR-10 has only a few hundred megabytes. With a larger network, or with more images to train on, each node would
# compute for longer and spend a smaller share of its time on communication. Is that so? Let's take the two in turn.
#
# With *more images* there are more steps in an epoch. But each step takes the same number of images and sends the same
# gradients, and it doesn't matter to it whether 200 or 200,000 steps follow. So the share of communication stays the
# same, and only the epoch becomes longer. What does change the share is a larger *batch*, as you calculated on the
# first page.
#
# A larger *network* has more to compute in every step, but also more to send. How do the two grow? Suppose we double
# the channels of every layer. A convolution has a 3 × 3 filter for each pair of an input channel and an output channel,
# and there are four times as many pairs. So the gradients have four times as many bytes. And every weight is used as
# often as before, once for each pixel and image, so that there is also four times as much to compute.
#
# **Predict.** We double the channels of every layer, from 8 to 16 in the first one. How many times more bytes are there
# to send, and how many times more floating-point operations to do?

# %%
course.predict("width", within=1.1, bytes=..., operations=...)

# %% tags=["figure:07_width"]
from torch.utils.flop_counter import FlopCounterMode

from course_utils.lessons.overlap import width_text
from course_utils.vgg import vgg11


def bytes_and_operations(number):
    model = vgg11(number / 64, classes=10)
    with FlopCounterMode(display=False) as counter:
        model(torch.zeros(32, 3, 32, 32)).sum().backward()
    numbers = sum(parameter.numel() for parameter in model.parameters())
    return np.array([4 * numbers, counter.get_total_flops()])


more_bytes, more_operations = bytes_and_operations(16) / bytes_and_operations(8)
course.answer("width", bytes=more_bytes, operations=more_operations)

channels, timed = [4, 8, 16], []
for number in channels:
    build = partial(
        vgg11, number / 64, 10, True
    )  # of 64 channels; 10 classes, batch norm
    timed.append(step_times(ranks, both, 32, rounds=5, build=build))
shares = [times.exposed_shares("DDP") for times in timed]
busy = any(times.is_busy for times in timed)
title = unless_busy(busy, width_text(channels, shares))
axes = {"across": "channels of the first layer", "up": "exposed share of a step"}
course.draw.over_numbers(channels, {"DDP": shares}, title, unit="{:.0%}".format, **axes)

# %% [markdown]
# Both grow about fourfold, and a little less only because an image has three channels however wide the network is. So
# by the bytes and the operations alone, the share of communication would hardly change. Two other things can change it.
# The latency $\alpha$ of a message doesn't grow with the network, and this makes the share shrink. On the other hand, a
# processor does more operations per second in wide layers than in narrow ones, so the computing may take less than four
# times as long, and then the share grows. The picture shows which of them is stronger on your computer.
#
# Neither of them would have helped the students much. A network is easy to share if each weight is used many times in a
# step, and this means large batches, or large images for a convolution.
#
# ## What is in DDP's buckets?
#
# DDP lets us look, because we can replace its all-reduce with a function of our own, a **communication hook**. DDP
# calls it with each bucket that is full. Ours writes down what is in the bucket and then starts the usual all-reduce.
# We keep the default size and take two steps:

# %% tags=["nbval-check-output"]
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook


def buckets_of_ddp():
    model = small_vgg(seed=0)
    name_of = {parameter: name for name, parameter in model.named_parameters()}
    module = DistributedDataParallel(model)
    lines = []

    def write_down(state, bucket):
        names = [name_of[parameter] for parameter in bucket.parameters()]
        content = f"{len(names)} gradients, from {names[0]} to {names[-1]}"
        lines.append(f"  {bucket.buffer().nbytes:,} bytes: {content}")
        return allreduce_hook(state, bucket)

    module.register_comm_hook(None, write_down)  # None: we need no state
    x, y = random_images(8)
    for step in range(1, 3):
        lines.append(f"step {step}")
        cross_entropy(module(x), y).backward()
    return lines


print(*ranks.run(buckets_of_ddp, backend="gloo").results[0], sep="\n")

# %% [markdown]
# In its first step, DDP sends everything as one bucket and watches the order in which gradients become ready. From the
# second step on, it fills buckets in that order. The first of them has a limit of 1 MiB ($2^{20}$ bytes), so that it
# can leave early, and the others have a limit of 25 MiB. This is what DDP does by default, and it depends on the
# version of PyTorch, which is why we look. `bucket_cap_mb` sets a different limit. Unlike `make_buckets`, DDP closes a
# bucket when it has *reached* the limit, so the last gradient may take it well beyond.
#
# ## Fewer messages
#
# If a batch doesn't fit into memory, you can cut it into micro-batches and run a forward and a backward pass for each
# of them. PyTorch adds every gradient to what is already in `parameter.grad`, and the optimizer takes its step after
# the last one. This is called gradient accumulation. By default, DDP averages gradients in *every* backward pass,
# although it would be enough to average the sum over the micro-batches once. A forward and a backward pass inside `with
# module.no_sync():` send nothing. Both have to be inside, because DDP decides during the forward pass:

# %%
from course_utils.lessons.overlap import fewer_bytes_text
from course_utils.trace.kernel_counters import node_bytes


def bytes_of_a_step(sync_every_time):
    module = DistributedDataParallel(small_vgg(seed=0))
    x, y = random_images(32)
    dist.barrier()  # wait until the first weights have arrived
    before = node_bytes()
    for number in range(4):  # four micro-batches of 8 images
        micro = slice(8 * number, 8 * number + 8)
        if sync_every_time or number == 3:
            cross_entropy(module(x[micro]), y[micro]).backward()
        else:
            with module.no_sync():
                cross_entropy(module(x[micro]), y[micro]).backward()
    dist.barrier()
    return node_bytes()[0] - before[0] if before else None


# %% [markdown]
# **Predict.** Three of the four micro-batches run inside `no_sync`. By what factor does this cut the bytes that leave a
# rank?

# %%
course.predict("overlap_accumulation", times=...)

# %%
if linked:
    often = ranks.run(bytes_of_a_step, True, backend="gloo").results
    once = ranks.run(bytes_of_a_step, False, backend="gloo").results
    course.measured("overlap_accumulation", times=round(sum(often) / sum(once), 1))
    print(wrapped(fewer_bytes_text(often, once, micro_batches=4)))
else:
    print("Without links, no bytes are counted.")

# %% [markdown]
# Only one of four backward passes sends its gradients, so a quarter of the bytes is sent. To get the gradient of the
# whole batch, you still have to multiply the loss of each micro-batch by its share of the images before you call
# `backward()`, here by a quarter. You will do that in the exercise `accumulate_gradients`.
#
# ## Smaller messages
#
# If the bytes are what takes the time, we could send fewer. A communication hook is given a bucket, and has to return a
# **future**, which is an object that will hold the averaged gradients once they have arrived. This hook sends 16-bit
# numbers instead of 32-bit ones:


# %%
def fp16_hook(state, bucket):
    short = bucket.buffer().half() / dist.get_world_size()
    future = dist.all_reduce(short, async_op=True).get_future()
    return future.then(lambda arrived: arrived.value()[0].float())


def mean_gradient(hook):
    torch.manual_seed(0)
    module = nn.parallel.DistributedDataParallel(nn.Linear(1_000, 10))
    if hook:
        module.register_comm_hook(None, hook)
    images = torch.randn(
        8, 1_000, generator=torch.Generator().manual_seed(dist.get_rank())
    )
    module(images).square().mean().backward()
    return module.module.weight.grad


# %% tags=["nbval-check-output"]
exact = ranks.run(mean_gradient, None, backend="gloo").results[0]
short = ranks.run(mean_gradient, fp16_hook, backend="gloo").results
assert all(torch.equal(short[0], other) for other in short)  # all ranks have the same
error = (short[0] - exact).abs().max() / exact.abs().max()
print(f"the gradients differ by less than one percent: {bool(0 < error < 0.01)}")

# %% [markdown]
# The sum is a little wrong, but equally wrong on all ranks, so the replicas stay equal. Two other methods leave out
# much more:
#
# - **Top-k** sends only the $k$ numbers of the largest magnitude, here 2% of them, each with its position. The rest is
#   kept and added to the next gradient, which is called **error feedback**. Every rank has different positions, so
#   there is nothing to add up on the way: each rank has to send its numbers to all the others.
# - **PowerSGD** replaces a matrix of $m \times n$ numbers with the product of two thin matrices, of $m \times 2$ and $2
#   \times n$ numbers. The ranks average only these two. In torch's version the first two steps send the whole
#   gradients.
#
# We compare them on the digits network of lesson 6 with 512 hidden units. It has three matrices, of 64 × 512, 512 × 512
# and 512 × 10, and 301,000 numbers in total, which are 1.2 MB. The training takes 22 steps on four ranks. With an
# ordinary ring a rank sends 1.5 × 1.2 = 1.8 MB in each step.
#
# With top-k, 2% of 301,000 are 6,020 numbers. Each takes 4 bytes, and its position takes 8, so these are 72 KB for each
# of three other ranks, or 217 KB. With PowerSGD, the thin matrices have 2 × (64 + 512 + 512 + 512 + 512 + 10) = 4,244
# numbers. The 1,034 biases are sent as they are, so it averages 5,278 numbers of 4 bytes, and a ring sends 1.5 times as
# much, which is 32 KB. But in two of the 22 steps it sends 1.8 MB.
#
# **Predict.** How many KB does a rank send per step with PowerSGD, on average over the 22 steps?

# %%
course.predict("overlap_power_sgd", within=1.25, KB=...)

# %% tags=["figure:07_compressed"]
from course_utils.lessons.overlap import compression_methods, compression_text
from course_utils.lessons.overlap import train_compressed

data = course.data.digits("float32")
settings = {"epochs": 2, "rate": 0.5, "share": 0.02, "rank": 2, "backend": "gloo"}
found = {}
for method in ("none", "fp16", "top-k", "PowerSGD"):
    found[method] = ranks.run(train_compressed, data, method, **settings).results[0]
if linked:
    kilobytes = found["PowerSGD"].bytes_per_step / 1000
    course.measured("overlap_power_sgd", KB=round(kilobytes))
compression_methods(found, compression_text(found))

# %% [markdown]
# By calculation it is (2 × 1,806 + 20 × 32) ÷ 22 = 193 KB, and most of it is sent in the first two steps. In a longer
# training PowerSGD would therefore come close to 32 KB. The measured numbers are a little higher, because the operating
# system also counts the addresses and the other overhead of every message.
#
# Top-k has a weakness that you can read off its calculation. With $P$ ranks each of them sends to $P - 1$ others, so
# that its advantage over a ring shrinks with every rank that you add. And look at all columns of the picture. One of
# the 360 test images is 0.3%, so a difference of 1% may be luck. But if a method sends a tenth of the bytes and then
# needs more steps to reach the same accuracy, you may have gained nothing.
#
# In the exercise `top_k_with_error_feedback` you write the heart of top-k.
#
# ## One byte for each number
#
# The `fp16_hook` above halves the bytes with numbers of 16 bits. Why stop there? Newer GPUs also calculate with numbers
# of 8 bits, **FP8**, and [lesson 13](13_gpu_nodes_part_2.ipynb) tries how exact a matrix product of them is. Here we
# want to send them, which saves three quarters of the bytes.
#
# In the variant E4M3 a number has 3 binary digits after the point. The next number after 1 is therefore 1.125, and
# rounding changes a number by up to 6%. The range is small, too. The largest number is 448, and whatever is below 0.001
# becomes 0. What would that do to a gradient? Let's take the first gradient of our digits network:

# %%
from course_utils.lessons.data_parallel import wide_mlp

E4M3 = torch.float8_e4m3fn
data = course.data.digits("float32")
model = wide_mlp(0)
cross_entropy(model(data.train_x[:32]), data.train_y[:32]).backward()
gradient = torch.cat([parameter.grad.flatten() for parameter in model.parameters()])
nonzero = gradient[gradient != 0]
lost = (nonzero.to(E4M3).float() == 0).float().mean()
print(f"{lost:.0%} of the numbers that are not 0 become 0")

# %% [markdown]
# So we first divide the numbers by a **scaling factor**, and whoever receives them multiplies by it again. If the
# factor is the largest magnitude divided by 448, the numbers fill the range of E4M3. Each block of numbers gets its own
# factor:


# %%
def quantise(values, block):
    blocks = values.view(-1, block)
    scales = blocks.abs().amax(dim=1, keepdim=True) / torch.finfo(E4M3).max
    scales = torch.where(scales == 0, 1, scales)  # a block of zeros
    return (blocks / scales).to(E4M3).flatten(), scales.flatten()


def dequantise(numbers, scales, block):
    return (numbers.float().view(-1, block) * scales[:, None]).flatten()


# %% [markdown]
# The scales have to be sent as well. With blocks of 32 numbers, 32 bytes for the numbers and 4 for their scale replace
# 128 bytes. These are 128 ÷ 36 = 3.6 times fewer bytes.
#
# **Predict.** How many times fewer bytes are there with blocks of 128 numbers?

# %%
course.predict("float8_bytes", within=1.02, times=...)

# %%
values = 0.001 * torch.randn(65_536, generator=torch.Generator().manual_seed(0))
numbers, scales = quantise(values, 128)
course.answer("float8_bytes", times=values.nbytes / (numbers.nbytes + scales.nbytes))

# %% [markdown]
# By the bytes alone, one scale for the whole vector would be best. But then a single huge number decides the scale of
# all others. In the next cell one of the 65,536 numbers is an outlier, which is about 100,000 or 1,000,000 times larger
# than the others. We measure the error of the others, relative to their own length as a vector:

# %% tags=["figure:07_scales"]
from course_utils.lessons.overlap import block_size_text
from course_utils.words import percent

block_sizes = [16, 128, 1024, 8192, 65_536]
others = torch.arange(65_536) != 100
errors = {}
for name, outlier in (("none", 0.0), ("100,000 times", 100.0), ("1,000,000 times", 1e3)):
    values[100] = outlier
    errors[f"outlier: {name}"] = [
        float((dequantise(*quantise(values, block), block) - values)[others].norm())
        / float(values[others].norm())
        for block in block_sizes
    ]
axes = {"across": "numbers that share a scale", "up": "error of the other numbers"}
title = block_size_text(block_sizes, list(errors.values()))
course.draw.over_numbers(block_sizes, errors, title, unit=percent, **axes)

# %% [markdown]
# Without an outlier the error is between 2% and 3% however large the blocks are, because each number of E4M3 has an
# exponent of its own. An outlier
# spoils only its own block, so the smaller the blocks, the less it does. You pay for that with more scales. With blocks
# of 16, a number takes 1.25 bytes. In the format MXFP8, 32 numbers share a scale of a single byte, which is a power of
# two, so that a number takes 1.03 bytes.
#
# ### Bytes can be gathered
#
# An all-gather only moves numbers. Each rank rounds its own part, and the bytes arrive as they were sent. Gloo doesn't
# know numbers of 8 bits, so we show it the same memory as bytes, which is what `view(torch.uint8)` does:


# %%
from course_utils.trace.kernel_counters import node_bytes


def gathered_bytes(own, block):
    numbers, scales = quantise(own, block)
    P = dist.get_world_size()
    all_numbers = numbers.new_empty(P * len(numbers))
    all_scales = scales.new_empty(P * len(scales))
    dist.all_gather_single(all_numbers.view(torch.uint8), numbers.view(torch.uint8))
    dist.all_gather_single(all_scales, scales)
    return dequantise(all_numbers, all_scales, block)


def gathered_floats(own, block):
    everything = own.new_empty(dist.get_world_size() * len(own))
    dist.all_gather_single(everything, own)
    return everything


def gather_own_part(gathered, values, block):
    before = node_bytes()
    everything = gathered(values.chunk(dist.get_world_size())[dist.get_rank()], block)
    dist.barrier()
    sent = node_bytes()[0] - before[0] if before else None
    return everything, sent


# %% tags=["nbval-check-output"]
weights = torch.randn(409_600, generator=torch.Generator().manual_seed(1))
rounded_once = dequantise(*quantise(weights, 128), 128)
sent_by_rank_0 = {}
for gathered, expected in ((gathered_floats, weights), (gathered_bytes, rounded_once)):
    run = ranks.run(gather_own_part, gathered, weights, 128, backend="gloo")
    same = all(torch.equal(everything, expected) for everything, _ in run.results)
    print(f"{gathered.__name__}: every rank has the expected bits: {same}")
    sent_by_rank_0[gathered.__name__] = run.results[0][1]

# %%
if linked:
    for name, sent in sent_by_rank_0.items():
        print(f"{name}: rank 0 sent {sent:,} bytes")
else:
    print("Without links, no bytes are counted.")

# %% [markdown]
# Each rank owns 102,400 numbers and sends them to three others. That makes 1.23 MB with `float32`, and 317 KB with one
# byte for each number and a scale for each 128. The link's counter shows a little more because of addresses and other
# overhead.
#
# This is what happens to weights when FSDP (lesson 11) gathers them as FP8. Each rank keeps its own part as `float32`
# and rounds only the copies that it sends. If it kept the rounded numbers instead, most training steps would be lost. A
# weight of 1 that should become 1.01 would be rounded to 1 again, in this step and in all that follow.
#
# ### Bytes can't be added on the way
#
# In an all-reduce, the ranks of a ring add their numbers to what arrives and pass the sum on. With numbers of 8 bits
# that goes wrong for two reasons. Two blocks with different scales can't be added as they are, and torch doesn't even
# have an addition for such numbers. And if each rank converted, added and rounded again, then every rank would add an
# error. Take a block with the scale 1, and in it the number 256, whose next larger neighbour in E4M3 is 288. Three
# ranks add 14 each. The sum is 298, which would be rounded to 288. But in a ring, 256 + 14 = 270 is rounded to 256
# before the next rank adds its 14, and so all three additions are lost.
#
# The remedy is to move all numbers first, and to add them in one place. Rank $r$ adds up the $r$-th part. So every
# rank cuts its vector into $P$ parts, rounds them and sends the $r$-th one to rank $r$. This is an all-to-all. Rank
# $r$ then has its part of $P$ different vectors, multiplies each by its scales, and adds them up in `float32`:


# %%
def arrived_parts(vector, block):
    numbers, scales = quantise(vector, block)
    arrived, their_scales = torch.empty_like(numbers), torch.empty_like(scales)
    dist.all_to_all_single(arrived.view(torch.uint8), numbers.view(torch.uint8))
    dist.all_to_all_single(their_scales, scales)
    return dequantise(arrived, their_scales, block).view(dist.get_world_size(), -1)


def all_moments(block):
    P, rank = dist.get_world_size(), dist.get_rank()
    vector = 2.0 ** (rank + P * torch.arange(P)).repeat_interleave(block)
    parts = arrived_parts(vector, block)  # a row from each rank
    mine = parts.sum(dim=0)
    return vector, parts, mine, gathered_bytes(mine, block)


# %% tags=["figure:07_float8_blocks"]
from course_utils.lessons.overlap import float8_blocks

moments = ranks.run(all_moments, 16, backend="gloo").results
float8_blocks(*zip(*moments, strict=True))

# %% [markdown]
# The second half is the all-gather that you know. The sums are rounded once more, and then every rank gets all of them.
# A number is therefore rounded twice, with 4 ranks as well as with 400. One detail is easy to get wrong. Rank $r$ has
# its own part of the sum with all digits, but it has to use the rounded one, like everyone else. Otherwise the replicas
# of the network would drift apart.
#
# How many bytes does that take? In the first half a rank sends $\frac{P-1}{P}$ of its vector, and in the second half
# $P-1$ times a $P$-th of it. That is as much as in a ring, but with one byte for each number instead of four. [Wang and
# others (2023)](https://arxiv.org/abs/2306.10209) send gradients in this way, even with only 4 bits.
#
# ### Does it still learn?
#
# We train the digits network for 44 steps with this all-reduce as DDP's hook, next to the plain hook and PowerSGD:

# %% tags=["figure:07_float8_training"]
from course_utils.lessons.overlap import learning_text, train_compressed

settings = {"epochs": 4, "rate": 0.5, "rank": 2, "block": 128, "backend": "gloo"}
losses = {}
for method in ("none", "float8", "PowerSGD"):
    trained = ranks.run(train_compressed, data, method, **settings).results
    losses[method] = np.mean([of_rank.losses for of_rank in trained], axis=0)
    sent = trained[0].bytes_per_step
    counted = f", {sent / 1000:,.0f} KB per step" if linked else ""
    print(f"{method:8} {trained[0].accuracy:.1%} of the test images{counted}")
course.draw.loss_curves(losses, learning_text(losses, "none"))

# %% [markdown]
# Each number is off by a few percent, but a rounded number is as often too large as too small, so over many numbers and
# many steps most of the error cancels. PowerSGD sends far fewer bytes once it has begun, but it leaves out a part of
# each gradient and has to make up for it with error feedback.
#
# In the exercise `float8_all_reduce` you put the two halves together, for vectors of any length.
#
# ## Without a network
#
# Why do we go to the trouble of emulating links? Let's see what happens without them. Two ranks now send their messages
# through the memory of your computer, and we compare our buckets with a method called `flat`, which sends all gradients
# as one vector when the backward pass is over.
#
# A message through memory has to be copied, and the copying is done by a processor core. If each of two ranks has a
# core for its computing and there is a third core that is free, the copying can go on at the same time. If there are
# only two cores, no core is left that could do it.
#
# **Predict.** What does sending during the backward pass bring on your computer?

# %%
print(f"Your ranks may use {cores} cores.")
course.predict(
    "overlap_loopback",
    answer=...,  # "a", "b" or "c"
    choices={"a": "a faster step", "b": "nothing", "c": "a slower step"},
)

# %% tags=["figure:07_loopback"]
from course_utils.lessons.data_parallel import all_reduce_flat
from course_utils.lessons.overlap import loopback_letter, loopback_text, overlapped

two = course.start(2)
methods = {ALONE: unsynchronised, "flat": all_reduce_flat}
methods |= {"ours": partial(overlapped, bucket_bytes=500_000)}
memory = step_times(two, methods, 32, rounds=4, warm_up=1)
letter = loopback_letter(memory, "flat", "ours")
course.measured("overlap_loopback", busy=memory.is_busy, answer=letter)
title = unless_busy(memory.is_busy, loopback_text(memory, "flat", "ours", cores, ranks=2))
two.stop()
course.draw.stacked_bars(memory.bars, title)

# %% [markdown]
# Overlap needs something else that does the carrying while the processor computes. Between the nodes of a cluster that
# is the network card. Between GPUs hidden communication isn't free either: an all-reduce has to add, so it runs on some
# of the GPU's own cores and takes them from the backward pass.
#
# ## One process for all GPUs
#
# PyTorch has an older method for several GPUs in one machine, which you can still find in many programs. It is a single
# line, `model = nn.DataParallel(model)`, and needs neither torchrun nor ranks, because it uses one process with a
# thread (lesson 3) for each GPU. What does it do in every forward pass? We can read it in its source:

# %% tags=["here:07_data_parallel"]
import inspect

source = inspect.getsource(nn.DataParallel.forward).splitlines()
for name in ("scatter", "replicate", "parallel_apply", "gather"):
    print(next(line.strip() for line in source if f"self.{name}(" in line))
print("GPUs that it would use here:", nn.DataParallel(nn.Linear(2, 2)).device_ids)

# %% [markdown]
# The first GPU distributes the images, and then `replicate` broadcasts the *whole model* to all the others. They
# compute, and `gather` brings their outputs back to the first GPU, which usually computes the loss for everyone. In the
# backward pass the gradients are added up on the first GPU.
#
# Compare this with DDP. There, the weights are broadcast once, before the training, and afterwards only gradients
# travel. `nn.DataParallel` sends weights in every forward pass and gradients in every backward pass. The first GPU
# needs memory for all outputs, and has more to do than the others. And in the usual build of Python the threads of one
# process take turns, because only the one that holds the **global interpreter lock** (GIL) can run Python code. So
# PyTorch's [manual](https://docs.pytorch.org/docs/stable/generated/torch.nn.DataParallel.html) recommends DDP even on a
# single machine. If the list of GPUs above is empty, `nn.DataParallel` just calls the model.

# %%
ranks.stop()

# %% [markdown]
# ## What you can do now
#
# You can tell from a report's numbers what a method really sends, and you know that more images change nothing about
# the share of communication in a step, while a larger batch does. You can calculate the efficiency of strong and of
# weak scaling, and estimate how many bytes a compressed gradient has before you try it.
#
# Now go on with the [exercises](../exercises/07_overlap.ipynb) or with [lesson 8](08_parameter_server.ipynb).
#
# **To read**
#
# - Gene Amdahl, 1967, [Validity of the single processor approach to achieving large scale computing
#   capabilities](https://doi.org/10.1145/1465482.1465560): three pages that show where the limit of strong scaling
#   comes from.
# - Gustafson, 1988, [*Reevaluating Amdahl's law*](https://doi.org/10.1145/42411.42415): two pages on why scientists
#   with a thousand processors were not disappointed.
# - Vogels, Karimireddy and Jaggi, 2019, [*PowerSGD*](https://arxiv.org/abs/1905.13727): how a method that is this short
#   can be made to work.
# - Wang and others, 2023, [*ZeRO++*](https://arxiv.org/abs/2306.10209): ZeRO (lesson 11), but its messages have 8 bits
#   for a weight and 4 for a gradient.
# - Stich, Cordonnier and Jaggi, 2018, [*Sparsified SGD with Memory*](https://arxiv.org/abs/1809.07599): why error
#   feedback makes top-k converge.
