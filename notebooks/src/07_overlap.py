# The lesson on overlap. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Why is DDP faster than my loop?
#
# After this lesson you can **hide** messages behind the backward pass, **predict** how large a bucket should be, and
# **judge** what more workers, rarer messages and smaller ones bring.
#
# *60 minutes · builds on [lesson 6](06_data_parallel.ipynb) · 4 ranks*

# %%
from functools import partial

import numpy as np
import torch
import torch.distributed as dist

import course_utils as course

ranks = course.start(4, link="400 Mbit/s")
linked = ranks.facts["network"] is not None
ranks.load_torch()

# %% [markdown]
# Four **nodes** again, as in lesson 6, each behind a link of 400 million bits a second: emulated on this machine,
# whose cores they share. (Where your system forbids it, a line says so.)
#
# Lesson 6 left us with a loop: forward, backward, then an all-reduce for each gradient. Here it trains VGG-11 with a
# quarter of its channels. Its 580 thousand weights are 34 arrays, so there are 34 gradients, 2.3 MB together. Each node
# takes 32 images a step.

# %% tags=["figure:07_loop"]
from course_utils.lessons.data_parallel import all_reduce_each
from course_utils.lessons.overlap import behind_the_step, one_step

batch = 32  # images on each node
steps = {"loop": one_step(ranks, all_reduce_each, batch)}
behind_the_step(steps, "One step of lesson 6's loop, on node 0")

# %% [markdown]
# First the processor works, and the network is silent. Then come 34 all-reduces, each a line, and the processor waits.
# You pay for both all the time.
#
# ## How much could hide?
#
# [Lesson 2](02_autodiff_and_optimizers.ipynb) watched the backward pass: the last layer's gradient is ready first, long
# before the end. Here it is again, while all four nodes compute:

# %% tags=["figure:07_ready"]
from course_utils.lessons.autodiff_and_optimizers import gradient_readiness, layers
from course_utils.lessons.overlap import backward_times

times, names = ranks.run(backward_times, batch, 7, backend="gloo").results[0]
by_layer = layers(times, lambda layer: layer.replace("norm", "conv"))
gradient_readiness(by_layer, times.end, "A backward pass on node 0", times.ends)

# %% [markdown]
# The pink lines are time in which a gradient only waits. Let each leave the moment it is ready, while the backward
# pass goes on: that is **overlap**. Whatever is still under way when the backward pass ends is **exposed**
# communication: the only part that costs time.

# %% [markdown]
# ## Hooks
#
# Two things are needed. The first is a **hook**: a function that torch calls when a parameter's gradient is complete.
# The second is an all-reduce that does not wait. With `async_op=True` it returns at once and hands you a `work`;
# `work.wait()` waits. (In lesson 4 they were `Isend` and its request.)
#
# **Predict**, in the last line of the next cell: what percentage of the loop's communication will hide?

# %%
from course_utils.lessons.data_parallel import Replica


def start_when_ready(model):
    under_way = []

    def ready(parameter):  # called within backward()
        work = dist.all_reduce(parameter.grad, async_op=True)
        under_way.append((work, parameter))

    def finish():  # called after backward()
        for work, parameter in under_way:
            work.wait()
            parameter.grad /= dist.get_world_size()
        under_way.clear()

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(ready)
    return Replica(model, finish)  # what to call forward, and after backward()


course.predict("overlap_hidden", within=1.5, percent=...)  # 0 to 100

# %% tags=["figure:07_hooks"]
steps["hooks"] = one_step(ranks, start_when_ready, batch)
behind_the_step(steps, "One step on node 0, with the loop and with hooks")

# %% [markdown]
# Now messages travel *while* the backward pass is at work; many stand in a queue. But do four nodes still train as one
# process does? The proof is lesson 6's: handwritten digits in float64, 22 steps, against one process.

# %%
from course_utils.lessons.data_parallel import train_replicas, train_serial

data = course.data.digits("float64")
serial = train_serial(data, batch_size=64, rate=0.2)
options = {"batch_size": 64, "rate": 0.2, "backend": "gloo"}
run = ranks.run(train_replicas, data, start_when_ready, **options)
losses = np.mean([history.losses for history in run.results], axis=0)
apart = np.abs(losses - serial.losses).max()
assert apart <= 1e-6, apart
print(f"22 steps, at most {apart:.0e} apart: the same")

# %% [markdown]
# Now the clock. A machine is never quite the same twice, so we measure by turns (lesson 3): a step with the loop, one
# with hooks, one **without any communication**, and again. The time by which a step is longer than
# the one without communication is exposed.

# %% tags=["figure:07_exposed"]
from course_utils.lessons.data_parallel import unsynchronised
from course_utils.lessons.overlap import ALONE, hidden_share, hiding_text, step_times

rounds = 3
ways = {ALONE: unsynchronised, "loop": all_reduce_each, "hooks": start_when_ready}
taken = step_times(ranks, ways, batch, rounds, warm_up=1)
hidden = 100 * hidden_share(taken, "hooks", "loop")
course.measured("overlap_hidden", busy=taken.is_busy, percent=round(hidden))
course.draw.stacked_bars(taken.bars, hiding_text(taken, "hooks", "loop"))

# %% [markdown]
# What stays exposed is a queue: the backward pass ends before the last message has left. Can the
# queue be made shorter?
#
# ## Why buckets?
#
# Lesson 5: a message of $n$ bytes takes $\alpha + \beta n$. So does a whole all-reduce, and we make 34, most of them
# of a few hundred bytes. Better to send several gradients as one vector, a **bucket**. But a bucket that holds *all*
# gradients must wait for the first layer's: nothing hides. Here are $\alpha$ and $\beta$ of a whole all-reduce (not of
# one message, as in lesson 5), from vectors of four sizes:

# %%
from course_utils.lessons.overlap import BucketModel, all_reduce_line, line_text
from course_utils.words import wrapped

alpha, beta = all_reduce_line(ranks)
model = BucketModel.of(times, names, alpha, beta)
print(wrapped(line_text(alpha, beta, len(model.sizes), sum(model.sizes))))

# %% [markdown]
# Between 34 buckets and a single one lies an optimum. A bucket starts when its last gradient is ready *and* the bucket
# before it has gone. What ends after the backward pass is exposed (`free` is when the link is free, `backward` when the
# backward pass ends):
#
# ```
# for bucket in buckets:
#     start = max(free, ready of its last gradient)
#     free = start + alpha + beta * bytes
# exposed = max(0, free - backward)
# ```
#
# The library's `exposed_seconds` does this, for the buckets that `make_buckets`, your first exercise, has made. For
# example, take six gradients, from the first layer to the last, and buckets of at most 100 bytes. The last layer's
# gradient is ready first, so the buckets begin there:

# %% tags=["nbval-check-output"]
from course_utils.lessons.overlap import make_buckets

gradient_bytes = [40, 40, 40, 120, 8, 60]
for bucket in make_buckets(gradient_bytes, 100):
    print("gradients", bucket, "with", sum(gradient_bytes[i] for i in bucket), "bytes")

# %% [markdown]
# **Predict.** Where is the optimum, for 2.3 MB?

# %%
course.predict(
    "overlap_bucket",
    answer=...,  # "a", "b", "c" or "d"
    choices={
        "a": "below 50 KB",
        "b": "50 to 500 KB",
        "c": "0.5 to 1.5 MB",
        "d": "more: all in one",
    },
)

# %% tags=["figure:07_sweep"]
from course_utils.lessons.overlap import best_text, bucket_sweep, overlapped, sizes_to_try
from course_utils.measuring import BUSY

best, sizes = sizes_to_try(model)
ways = {size: partial(overlapped, bucket_bytes=size) for size in sizes}
swept = step_times(ranks, {ALONE: unsynchronised} | ways, batch, rounds, warm_up=1)
runs = {size: swept.seconds[size] for size in sizes}
fastest = min(sizes, key=swept.median)
letter = "abcd"[np.searchsorted([50_000, 500_000, 1_500_000], fastest)]
course.measured("overlap_bucket", busy=swept.is_busy, answer=letter)
free, said = swept.median(ALONE), BUSY if swept.is_busy else best_text(best, runs)
bucket_sweep(runs, lambda n: free + model.exposed(n), best, free, said)

# %% [markdown]
# On the left every gradient pays $\alpha$; on the right nothing hides. The jumps are real: a few bytes more, and two
# layers share a bucket. The line knows when gradients are ready, $\alpha$, $\beta$ and the computing (the light blue
# area); it does not know that four nodes share this machine's cores.
#
# `overlapped` is your exercise `overlapped_allreduce`: the hooks from above, with buckets. Here it runs with the size
# that was predicted to be best:

# %%
steps["buckets"] = one_step(ranks, ways[best], batch)
behind_the_step(steps, "One step on node 0, three ways")

# %% [markdown]
# ## DDP
#
# PyTorch's `DistributedDataParallel` (**DDP**) is the same idea in C++: broadcast once, hooks, buckets, asynchronous
# all-reduces; `backward()` returns with the means.
#
# ```
# module = DistributedDataParallel(model, bucket_cap_mb=1)
# ```
#
# **Predict.** How many times as long does a step take with *our* buckets as with DDP?

# %%
course.predict("overlap_ddp", within=1.1, times=...)

# %% tags=["figure:07_ddp"]
from course_utils.lessons.data_parallel import torch_ddp

ways = {ALONE: unsynchronised, "loop": all_reduce_each}
ways |= {"ours": partial(overlapped, bucket_bytes=best)}
ways |= {"DDP": partial(torch_ddp, bucket_bytes=best)}
taken = step_times(ranks, ways, batch, rounds)
as_long = taken.compared("DDP", "ours").times
course.measured("overlap_ddp", busy=taken.is_busy, times=round(as_long, 2))
print(taken.compared("ours", "DDP"))
course.draw.stacked_bars(taken.bars, hiding_text(taken, "DDP", "loop"))

# %% [markdown]
# So that is the answer to this page's question. DDP sends *fewer* messages than the loop, and sends them *earlier*. No
# magic, and nothing that you could not write. (By itself DDP takes buckets of 25 MB, the first of 1 MB, so that
# something can start early; and it finds them in its second step. In the first it sends one vector.)
#
# **Predict.** Now each node takes 64 images, twice the computing. What becomes of the exposed communication of *our*
# buckets?

# %%
course.predict(
    "overlap_batch",
    answer=...,  # "a", "b" or "c"
    choices={"a": "it doubles", "b": "it stays", "c": "it shrinks"},
)

# %% tags=["figure:07_larger_batch"]
from course_utils.lessons.overlap import batch_letter, batch_text

two = {ALONE: unsynchronised, "ours": ways["ours"]}
more = step_times(ranks, two, 2 * batch, rounds, warm_up=1)
busy, letter = taken.is_busy or more.is_busy, batch_letter(taken, more, "ours")
course.measured("overlap_batch", busy=busy, answer=letter)
bars = {f"{batch} images": taken.bars["ours"], f"{2 * batch} images": more.bars["ours"]}
course.draw.stacked_bars(bars, batch_text(taken, more, "ours"))

# %% [markdown]
# There are as many bytes as before, and twice the time to hide them behind. At best, the shorter of two times hides:
# the communication, or what is left of the backward pass when the first bucket leaves. So overlap gains most where both
# are equal. Did the exposed part stay in your run? The last bucket holds the first layer, and leaves at the very end,
# whatever the batch.
#
# ## The one that nobody uses
#
# torch has an older way for several GPUs of one machine: `nn.DataParallel(model)`, one process with a thread (lesson 3)
# for each GPU. What does it do in *every* forward pass? Its own source says so:

# %% tags=["here:07_data_parallel"]
import inspect

from torch import nn

source = inspect.getsource(nn.DataParallel.forward).splitlines()
for name in ("scatter", "replicate", "parallel_apply", "gather"):
    print(next(line.strip() for line in source if f"self.{name}(" in line))
print("GPUs that it would use here:", nn.DataParallel(nn.Linear(2, 2)).device_ids)

# %% [markdown]
# It deals the images out, copies the *whole model* to each GPU, runs all copies, and collects the outputs on the first
# GPU. So the first GPU sends $P-1$ models and receives $P-1$ gradients each step: lesson 6's gather-scatter. And one
# Python serves all threads: its **global interpreter lock** (GIL) lets only one run at a time. Without GPUs the list is
# empty, and `forward` just calls the model.
# [torch's manual](https://docs.pytorch.org/docs/stable/generated/torch.nn.DataParallel.html) says: take DDP, on one
# machine, too.
#
# ## More workers
#
# **Strong scaling**: more workers share the same work, and are at best $P$ times as fast. **Weak scaling**: each worker
# has as much work as a single one had, and the time at best stays the same. `scaling_efficiency` says how much of that
# best is reached. **Predict** both for DDP on 4 nodes, which share this machine's cores, in percent:

# %%
course.predict("overlap_scaling", within=1.25, strong=..., weak=...)

# %%
from course_utils.lessons.data_parallel import train_way
from course_utils.lessons.overlap import efficiency_text, scaling_efficiency


def train(workers, number):  # VGG-11 again, this number of images
    way = "DDP" if workers > 1 else "one process"
    options = {"images": number, "steps": 3, "bucket_bytes": best}
    return train_way(ranks, way, world_size=workers, keep=number == images, **options)


images = 252  # divides by 1, 2, 3 and 4
same_work = {P: train(P, images) for P in (1, 2, 3, 4)}
as_much_each = {1: train(1, images // 4), 2: train(2, images // 2), 4: same_work[4]}
together = {P: run.step.median for P, run in same_work.items()}
each = {P: run.step.median for P, run in as_much_each.items()}
strong = {P: scaling_efficiency(together[1], together[P], P) for P in (2, 3, 4)}
weak = {P: scaling_efficiency(each[1], each[P], P, "weak") for P in (2, 4)}

# %% tags=["figure:07_workers"]
from course_utils.lessons.data_parallel import report_figures
from course_utils.measuring import is_busy, unless_busy

percent = {"strong": round(100 * strong[4]), "weak": round(100 * weak[4])}
timed = [*same_work.values(), *as_much_each.values()]
busy = is_busy(run.step.values for run in timed)
course.measured("overlap_scaling", busy=busy, **percent)
cores = same_work[4].cores
found = (("strong", strong), ("weak", weak))
findings = [efficiency_text(kind, reached, cores) for kind, reached in found]
print(unless_busy(busy, "\n".join(findings)))
report_figures.time_by_workers(list(same_work.values()))

# %% [markdown]
# The hatched bars are what three students of the course CS744 published in 2020, for VGG-11 in full width. They had
# four virtual machines of one computer, with five cores each, and emulated links, as ours are. From 437 to 153 seconds:
# an efficiency of 0.71. From 3 to 4 workers they gained little. Their reason: the model is small. What each rank sends
# does not shrink with $P$, while its part of the computing does. Did you gain more from 3 to 4?
#
# Two old formulas say how far this goes. **Amdahl** (1967): if a part $s$ of the work cannot be divided, $P$ workers
# are at most $1/(s + (1-s)/P)$ times as fast, so never more than $1/s$ times. **Gustafson** (1988): people with more
# workers take on more work. If $P$ workers spend a part $s$ of their time on what cannot be divided, they do
# $s + (1-s)P$ times as much as one. The first is strong scaling, the second weak. Which $s$ do your two workers show,
# and what does it promise for 64?

# %%
from course_utils.lessons.overlap import amdahl, serial_share

share = serial_share(together[1] / together[2], world_size=2)
line = {P: amdahl(share, P) for P in (2, 3, 4, 64)}
print(f"A part of {share:.0%} cannot be divided")
for P, times in line.items():
    speedup = together[1] / together[P] if P in together else None
    seen = "not measured" if speedup is None else f"measured {speedup:.2f}"
    print(f"{P:2} workers: {times:.2f} times as fast by the formula, {seen}")

# %% [markdown]
# Here this part is mostly communication, and cores that all nodes have in common. Both change with $P$, so the formula
# is a guide. (More than 100 %? Then two workers are slower than one.)
#
# The students also looked at processors and network. So do we, with the counters of the
# operating system. *User*: your program computes. *System*: the system works for it, mostly on messages.

# %% tags=["here:07_cpu_by_workers"]
report_figures.cpu_by_workers(list(same_work.values()))

# %% tags=["here:07_traffic_by_workers"]
several = [run for run in same_work.values() if run.sent]
report_figures.traffic_by_workers(
    several
) if several else "No links, so nothing to count."

# %% [markdown]
# Each node must send $2\frac{P-1}{P}$ times the gradient, as lesson 5 says. (In the picture of the processors, one that
# waits for a message counts as not busy.)
#
# ## A wider model
#
# "Don't try to parallelize very light workloads", lesson 6 quotes. So make the network wider: VGG-11 with 2, 4 and 8
# channels in its first layer. Twice the channels make four times the weights: four times the bytes, and about four
# times the computing. **Predict:** what becomes of the messages' share of a step?

# %%
course.predict("width", answer=..., choices={"a": "it shrinks", "b": "it grows"})

# %% tags=["figure:07_width"]
from course_utils.lessons.overlap import width_text
from course_utils.vgg import vgg11

channels, both = [2, 4, 8], {ALONE: unsynchronised, "DDP": ways["DDP"]}
timed = []
for number in channels:
    build = partial(vgg11, number / 64, 10, True)  # of 64 channels; 10 classes, norms
    timed.append(step_times(ranks, both, batch, 5, build))
shares = [each.exposed_shares("DDP") for each in timed]
first, last = np.median(shares[0]), np.median(shares[-1])
busy = any(each.is_busy for each in timed)
course.measured("width", busy=busy, answer="a" if last < first else "b")
look = {"across": "channels of the first layer", "up": "messages' share of a step"}
title = unless_busy(busy, width_text(channels, shares))
course.draw.over_numbers(channels, {"DDP": shares}, title, unit="{:.0%}".format, **look)

# %% [markdown]
# Bytes and computing grow together: by them alone the share would hardly move. What does not grow is each message's
# $\alpha$, most of a small model's exchange. A model is easy to share where each weight is used often in a step: with a
# larger batch, or larger images.
#
# ## Rarer messages
#
# Does a large batch not fit into memory? Take several small **micro-batches**: their gradients add up in
# `parameter.grad`, then comes the step. That is **gradient accumulation**. But DDP sends in every backward pass.
# **Predict**, in the last line of the next cell: with 4 micro-batches, how many times fewer bytes leave a node if only
# the last one sends?

# %%
from course_utils.lessons.overlap import accumulate_gradients, small_vgg
from course_utils.trace.kernel_counters import node_bytes


def bytes_of_a_step(quietly):
    module = torch_ddp(small_vgg(0)).module
    x, y = torch.randn(32, 3, 32, 32), torch.randint(10, (32,))
    micro_batches = list(zip(x.split(8), y.split(8), strict=True))
    dist.barrier()  # the weights' broadcast has arrived
    before = node_bytes()
    for group in [micro_batches] if quietly else [[one] for one in micro_batches]:
        accumulate_gradients(module, group)  # sends at its end
    dist.barrier()
    return node_bytes()[0] - before[0] if before else None


course.predict("overlap_accumulation", times=...)

# %%
from course_utils.lessons.overlap import fewer_bytes_text

if linked:
    often = ranks.run(bytes_of_a_step, False, backend="gloo").results
    once = ranks.run(bytes_of_a_step, True, backend="gloo").results
    course.measured("overlap_accumulation", times=round(sum(often) / sum(once), 1))
    print(fewer_bytes_text(often, once, micro_batches=4))

# %% [markdown]
# `accumulate_gradients` is your exercise; its heart is `with module.no_sync():`. It gives the gradient of the large
# batch.
#
# ## Smaller messages
#
# A **communication hook** takes the place of DDP's all-reduce, and may lose something:
#
# - **fp16**: 16 bits a number;
# - **top-k**: the 2 % of largest magnitude, with their places: 12 bytes for each. The rest is added to the next
#   gradient (**error feedback**);
# - **PowerSGD**: a matrix of $m \times n$ numbers as the product of two thin ones, $m \times 2$ and $2 \times n$; only
#   these $2(m + n)$ numbers travel.
#
# The network is lesson 6's with wider layers: 1.2 MB of gradients, most of them in a matrix of 512 × 512. **Predict.**
# Which way sends least, with four nodes?

# %%
course.predict(
    "overlap_compression",
    answer=...,  # "a", "b", "c" or "d"
    choices={"a": "none", "b": "fp16", "c": "top-k", "d": "PowerSGD"},
)

# %% tags=["figure:07_compressed"]
from course_utils.lessons.overlap import compression_methods, compression_text
from course_utils.lessons.overlap import train_compressed

small = course.data.digits("float32")
hows = ["none", "fp16", "top-k", "PowerSGD"]
options = {"epochs": 2, "rate": 0.5, "share": 0.02, "rank": 2, "backend": "gloo"}
trained = {how: ranks.run(train_compressed, small, how, **options) for how in hows}
found = {how: run.results[0] for how, run in trained.items()}
if linked:
    sent = [found[how].bytes_per_step for how in hows]
    course.measured("overlap_compression", answer="abcd"[np.argmin(sent)])
compression_methods(found, compression_text(found))

# %% [markdown]
# The bytes are the operating system's count. Top-k's numbers go from everybody to everybody: its advantage shrinks with
# $P$. torch sends PowerSGD's first two steps whole: most of its bytes are theirs. Look at all three columns: twice as
# fast and half as good is not a gain. One of the 360 test images is 0.3 %, so a difference of 1 % is luck. (Your last
# exercise: `top_k_with_error_feedback`.)
#
# ## On one machine
#
# Why all those links? Take them away: two ranks talk through one memory. We compare our buckets with `flat`, which
# sends all gradients as one vector at the end. **Predict.** What does hiding bring now?

# %%
course.predict(
    "overlap_loopback",
    answer=...,  # "a", "b" or "c"
    choices={"a": "a faster step", "b": "nothing", "c": "a slower step"},
)

# %% tags=["figure:07_loopback"]
from course_utils.lessons.data_parallel import all_reduce_flat
from course_utils.lessons.overlap import loopback_letter, loopback_text

ranks = course.start(2)
ways = {ALONE: unsynchronised, "flat": all_reduce_flat}
ways |= {"ours": partial(overlapped, bucket_bytes=best)}
memory = step_times(ranks, ways, batch, rounds=4, warm_up=1)
letter = loopback_letter(memory, "flat", "ours")
course.measured("overlap_loopback", busy=memory.is_busy, answer=letter)
said = BUSY if memory.is_busy else loopback_text(memory, "flat", "ours", cores, ranks=2)
course.draw.stacked_bars(memory.bars, said)

# %% [markdown]
# A message through memory is work *for a processor*: it copies. Where all cores compute, there is nothing to hide
# behind. Overlap needs somebody else who carries, such as a network card. Even on GPUs, hidden is not free: an
# all-reduce adds, so it runs on a GPU's own cores and takes some of them from the backward pass.
#
# ## What you take with you
#
# You can **hide** messages behind the backward pass, **predict** the best bucket from $\alpha$, $\beta$ and the ready
# order, and **judge** what more workers, rarer and smaller messages bring.
#
# Do you want the students' whole report from your own runs? Lesson 6 kept three of its ways; add DDP on the same links,
# in a new cell:
#
# ```
# ranks = course.start(4, link="200 Mbit/s")
# for P in (2, 4):
#     train_way(ranks, "DDP", world_size=P, images=96, steps=3)
# course.report()
# ```
#
# Next: [the exercises](../exercises/07_overlap.ipynb). To read: Li and others 2020, *PyTorch Distributed*, §3.
# Lesson 8: what if nobody waits?

# %%
ranks.stop()
