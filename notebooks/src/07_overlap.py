# The lesson on overlap. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Why is DDP faster than my loop?
#
# The network ResNet-50 has 25.6 million weights of 4 bytes each, so its gradient takes 102 MB. Suppose four machines
# train it together, and each has a link of 10 Gbit/s, which is 1.25 GB per second. In a ring of four, every machine
# sends 1.5 times its gradient, as you know from lesson 5. That is 154 MB, and at 1.25 GB per second it takes 123 ms. If
# the forward and backward passes take 250 ms on every machine, a step of lesson 6's loop takes 373 ms, and the
# processors spend a third of it waiting. That adds up to eight hours a day.
#
# Most of this waiting can be avoided, although every byte still has to be sent. PyTorch's `DistributedDataParallel`
# does that. In this lesson you build the same thing from two PyTorch calls, and you calculate how much waiting is left
# and how many machines are worth paying for.
#
# *55 minutes · builds on [lesson 6](06_data_parallel.ipynb) · 4 ranks*

# %%
import time
from functools import partial

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import course_utils as course
from course_utils.measuring import unless_busy
from course_utils.words import wrapped

ranks = course.start(4, link="400 Mbit/s")
ranks.load_torch()

# %% [markdown]
# As in lesson 6, each of our four ranks is a **node** with a link of its own. Each link carries 400 million bits, or 50
# MB, per second. The links are emulated, and all four nodes share the processor of your computer.
#
# ## First the network is idle, then the processor
#
# A training step on every rank consists of four parts:
#
# ```python
# loss = cross_entropy(module(x), y)  # forward pass
# loss.backward()                     # backward pass
# finish()                            # when this returns, the gradients are averaged
# optimizer.step()
# ```
#
# We write several versions of `finish`. Each of our functions takes the model and returns a `Replica`, which holds the
# module for the forward pass and the function to call as `finish`. (At first the module is the model itself. Later on
# it will be wrapped.) The first version is the loop of lesson 6, with one all-reduce for each gradient:


# %%
from course_utils.lessons.data_parallel import Replica


def loop(model):
    def finish():
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= dist.get_world_size()

    return Replica(model, finish)


# %% [markdown]
# We train a small relative of the network VGG-11, with eight convolutions, each followed by a batch norm (lesson 3),
# and one linear layer. All of these have a weight and a bias, which makes 34 arrays with 580,000 numbers, so the 34
# gradients take 2.3 MB together. Each rank processes 32 images per step. Here is one step:

# %% tags=["figure:07_loop"]
from course_utils.lessons.overlap import behind_the_step, one_step

batch = 32  # images on each rank
steps = {"loop": one_step(ranks, loop, batch)}
behind_the_step(steps, "One step with the loop, on rank 0")

# %% [markdown]
# The upper lane shows the processor of rank 0, and each thin line in the lower one is an all-reduce. The first line may
# be long because rank 0 also waits for the other ranks to join. Nothing is sent during the forward and the backward
# pass. Then the 34 all-reduces follow one after the other, and the processor has nothing to do. You pay for both all
# the time, although one or the other is always idle.
#
# ## The last layer's gradient is ready first
#
# Must the messages wait for the whole backward pass? In [lesson 2](02_autodiff_and_optimizers.ipynb) you saw that it
# works its way from the last layer to the first. The next cell measures when each layer's gradient is ready, while all
# four ranks are computing. It counts each norm layer with its convolution:

# %% tags=["figure:07_ready"]
from course_utils.lessons.autodiff_and_optimizers import gradient_readiness, layers
from course_utils.lessons.overlap import backward_times


def layer_name(name):
    return name.replace("norm", "conv")  # norm3 belongs to conv3


times, names = ranks.run(backward_times, batch, 7, backend="gloo").results[0]
by_layer = layers(times, layer_name)
title = "The last layer's gradient is ready first"
gradient_readiness(by_layer, times.end, title, times.ends)

# %% [markdown]
# Each pink line begins when the gradient of its layer is complete. From then on it just sits in memory until the
# backward pass is over, although it could already be travelling. (Don't read too much into the lengths of the orange
# bars, because the ranks interrupt each other on shared cores.)
#
# Sending messages while the processor is computing is called **overlap**. If some are still under way when the backward
# pass ends, the processor has to wait for them. This part of the communication is **exposed**, and the rest is hidden.
# If sending costs the processor nothing, only the exposed part makes a step longer.
#
# Let's calculate an example. A network has three layers, and its backward pass takes 30 ms, so that the gradients of
# layers 3, 2 and 1 are ready after 10, 20 and 30 ms. Each all-reduce takes 12 ms. The loop sends nothing before 30 ms,
# and then it takes 3 × 12 ms, so all 36 ms are exposed.
#
# Now let each gradient leave as soon as it is ready, unless the link is still busy with the one before:
#
# ```text
# time, in ms 0         10        20        30        40
# backward    333333333322222222221111111111
# link                  333333333333222222222222111111111111
# ```
#
# The second gradient is ready at 20 ms but has to wait for the link until 22 ms. The third all-reduce ends at 46 ms.
# The backward pass ended at 30 ms, so only 16 ms are exposed instead of 36. A function can do this for any number of
# messages:


# %% tags=["nbval-check-output"]
def exposed(ready, durations, backward_end):
    link_free = 0  # when the link has finished with the messages so far
    for ready_at, duration in zip(ready, durations, strict=True):
        start = max(ready_at, link_free)
        link_free = start + duration
    return max(0, link_free - backward_end)


print(exposed([10, 20, 30], [12, 12, 12], backward_end=30), "ms")

# %% [markdown]
# **Predict.** On a slower network, each of the three all-reduces takes 15 ms. How many milliseconds are exposed?

# %%
course.predict("overlap_exposed", ms=...)

# %%
course.answer("overlap_exposed", ms=exposed([10, 20, 30], [15, 15, 15], 30))

# %% [markdown]
# The link is busy from 10 ms to 55 ms without a break, so 25 ms are exposed and the first 20 are hidden.
#
# ## Two calls are enough
#
# To do this in PyTorch you need two things. The first is a **hook**, a function of yours that PyTorch calls when
# something has happened. With `register_post_accumulate_grad_hook` it calls your function as soon as the gradient of a
# parameter is complete, in the middle of `backward()`. The second is an all-reduce that doesn't wait. If you pass
# `async_op=True`, `dist.all_reduce` only starts the operation and returns an object at once. When you call the object's
# `wait()` later, it blocks until the operation has finished, just like the request that `Isend` returned in lesson 4.


# %%
def hooks(model):
    under_way = []

    def ready(parameter):  # PyTorch calls this during backward()
        work = dist.all_reduce(parameter.grad, async_op=True)
        under_way.append((work, parameter))

    def finish():  # the training step calls this after backward()
        for work, parameter in under_way:
            work.wait()
            parameter.grad /= dist.get_world_size()
        under_way.clear()

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(ready)
    return Replica(model, finish)


# %% tags=["figure:07_hooks"]
steps["hooks"] = one_step(ranks, hooks, batch)
behind_the_step(steps, "One step on rank 0, with the loop and with hooks")

# %% [markdown]
# With hooks, messages start during the backward pass, whose end is the dashed line. Their lines are long, because they
# begin when an all-reduce is *started*, and many of them then queue for the link. (The library gloo works on two at a
# time, so they often end in pairs.) What matters is when the last one ends. Compare the two backward passes as well:
# the processor of your computer also has to carry the messages, and this may slow down the computing.
#
# All ranks run the same model and start their all-reduces in the same order, so the first all-reduce on one rank is
# matched with the first on every other. In an exercise you will enforce this order yourself.
#
# Is the result still right? As in lesson 6, one process trains on handwritten digits in 64-bit floating point, and then
# four ranks do the same. The losses of all 22 training steps must agree:

# %%
from course_utils.lessons.data_parallel import train_replicas, train_serial

data = course.data.digits("float64")
serial = train_serial(data, batch_size=64, rate=0.2)


def difference_from_one_process(method):
    run = ranks.run(train_replicas, data, method, batch_size=64, rate=0.2, backend="gloo")
    losses = np.mean([history.losses for history in run.results], axis=0)
    return np.abs(losses - serial.losses).max()


for name, method in {"loop": loop, "hooks": hooks}.items():
    difference = difference_from_one_process(method)
    assert difference <= 1e-6, difference
    print(f"{name}: 22 steps, and the losses differ by at most {difference:.0e}")

# %% [markdown]
# Now let's time it. We time the versions by turns, as in lesson 3: a step without any communication, a step with the
# loop, a step with hooks, and so on for three rounds. The picture shows what communication adds to a step. Take it as
# an upper bound on what is exposed, because on this computer the difference contains two more things: computing becomes
# slower while the shared cores also move messages, and a step has to wait for the slowest rank. Compare only bars of
# the same picture, because your computer may be busier a minute later.

# %% tags=["figure:07_exposed"]
from course_utils.lessons.data_parallel import unsynchronised
from course_utils.lessons.overlap import ALONE, hiding_text, step_times

rounds = 3
methods = {ALONE: unsynchronised, "loop": loop, "hooks": hooks}
taken = step_times(ranks, methods, batch, rounds, warm_up=1)
course.draw.stacked_bars(taken.bars, hiding_text(taken, "hooks", "loop"))

# %% [markdown]
# The title tells you whether hooks alone have helped on your computer. We can't save any bytes, but perhaps there
# needn't be 34 messages.
#
# ## A few large messages cost less than many small ones
#
# In lesson 5 the time of a message of $n$ bytes was $\alpha + \beta n$. An all-reduce consists of several messages
# whose lengths are fixed shares of $n$, so its time has the same form, with an $\alpha$ and a $\beta$ of its own. With
# 34 all-reduces we pay $\alpha$ 34 times, although most of them carry only a few hundred bytes. It is cheaper to copy
# several gradients into one vector, called a **bucket**, and send that.
#
# But a bucket can leave only when the *last* of its gradients is ready. Look at the three layers again, and suppose
# each gradient is 2 MB, $\alpha$ is 9 ms, and $\beta$ is 3 ms per MB. One gradient takes 9 + 2 × 3 = 15 ms, and we
# already know that 25 ms are exposed if each is sent on its own. If all three are in one bucket, it leaves at 30 ms and
# takes 9 + 6 × 3 = 27 ms. We pay $\alpha$ only once, but nothing is hidden, and 27 ms are exposed.
#
# **Predict.** How many milliseconds are exposed if the gradient of layer 3 is sent on its own, and those of layers 2
# and 1 as one bucket?

# %%
course.predict("overlap_bucket", ms=...)

# %%
course.answer("overlap_bucket", ms=exposed([10, 30], [9 + 2 * 3, 9 + 4 * 3], 30))

# %% [markdown]
# The first all-reduce runs from 10 to 25 ms. The bucket leaves at 30 ms and takes 9 + 4 × 3 = 21 ms, all of them
# exposed. So two messages are better here than three, and better than one.
#
# How large should buckets be for our network? The function `make_buckets`, which you will write in the first exercise,
# fills them in the order in which gradients become ready, from the last to the first. Here are six gradients, with a
# limit of 100 bytes:

# %% tags=["nbval-check-output"]
from course_utils.lessons.overlap import make_buckets

gradient_bytes = [40, 40, 40, 120, 8, 60]
for bucket in make_buckets(gradient_bytes, 100):
    print("gradients", bucket, "with", sum(gradient_bytes[i] for i in bucket), "bytes")

# %% [markdown]
# Gradient 3 is larger than the limit, so it gets a bucket of its own. Next we need the $\alpha$ and $\beta$ of an
# all-reduce on our four ranks. An all-reduce of 400 bytes takes little more than $\alpha$, and nearly all the extra
# time for 4 MB is $\beta n$. We time several in a row, because a link that has rested lets a first burst of bytes
# through at once, and keep the median:


# %%
from course_utils.lessons.overlap import BucketModel, line_text


def all_reduce_seconds(nbytes, repeats):
    vector = torch.zeros(nbytes // 4)
    dist.all_reduce(vector)  # the first one doesn't count
    seconds = []
    for _ in range(repeats):
        begin = time.perf_counter()
        dist.all_reduce(vector)
        seconds.append(time.perf_counter() - begin)
    return np.median(seconds)


alpha = max(ranks.run(all_reduce_seconds, 400, 30, backend="gloo").results)
large = max(ranks.run(all_reduce_seconds, 4_000_000, 5, backend="gloo").results)
beta = (large - alpha) / 4_000_000  # seconds per byte
timing = BucketModel.of(times, names, alpha, beta)
print(wrapped(line_text(alpha, beta, len(timing.sizes), sum(timing.sizes))))

# %% [markdown]
# In a ring of four, each rank sends 1.5 times the vector. At 50 MB per second, that takes 1.5 ÷ 50 s or 30 ms per MB,
# and $\beta$ can't be much below it on these links.
#
# The object `timing` also keeps the bytes of each gradient, when each is ready, and when the backward pass ends. From
# these, `exposed_with` calculates what is exposed for any size of bucket, just as you did by hand. Then we try several
# sizes on the ranks, with hooks that fill buckets. Writing these hooks is the second exercise, so here we import a
# finished version, `overlapped`. In the picture, the blue area is the measured time for computing, and the line adds
# the calculated exposed time on top:


# %% tags=["figure:07_sweep"]
from course_utils.lessons.overlap import best_text, bucket_sweep, calculation_text
from course_utils.lessons.overlap import overlapped, sizes_to_try


def exposed_with(bucket_bytes):
    ready, durations = [], []
    for bucket in make_buckets(timing.sizes, bucket_bytes):
        ready.append(max(timing.ready[i] for i in bucket))
        nbytes = sum(timing.sizes[i] for i in bucket)
        durations.append(alpha + beta * nbytes)
    return exposed(ready, durations, timing.backward)


def calculated(bucket_bytes):
    return swept.median(ALONE) + exposed_with(bucket_bytes)


best, sizes = sizes_to_try(timing)
of_size = {size: partial(overlapped, bucket_bytes=size) for size in sizes}
swept = step_times(ranks, {ALONE: unsynchronised} | of_size, batch, rounds, warm_up=1)
runs = {size: swept.seconds[size] for size in sizes}
print(unless_busy(swept.is_busy, wrapped(calculation_text(runs, calculated))))
title = unless_busy(swept.is_busy, best_text(best, runs))
bucket_sweep(runs, calculated, best, swept.median(ALONE), title)

# %% [markdown]
# On the left, $\alpha$ is paid most often. On the right, there is a single bucket and nothing can be hidden. The line
# has steps, because a bucket takes in one more gradient only when the limit has grown enough.
#
# Is the calculation any good? The sentence above the picture gives the answer for your run. When four nodes share the
# cores of one computer, carrying messages is likely to slow down the computing, and steps take longer than calculated.
# They may also be shorter than calculated, because gloo doesn't wait for the end of one all-reduce before it begins the
# next. From here on we use the size that the calculation picked. This is a step with such buckets, below the other two:

# %%
steps["buckets"] = one_step(ranks, of_size[best], batch)
behind_the_step(steps, "One step on rank 0, in three versions")

# %% [markdown]
# ## DDP does the same
#
# PyTorch's `DistributedDataParallel`, or **DDP** for short, is built on the same idea. When you wrap a model in it,
# rank 0 broadcasts its weights. During every backward pass, hooks fill buckets, and each full bucket starts an
# all-reduce that doesn't wait. On CPUs, the gradients have been averaged by the time `backward()` returns, so `finish`
# has nothing left to do. DDP's hooks are written in C++, and ours in Python.
#
# **Predict.** With the same limit for the size of a bucket, how long does a step take with our buckets, as a multiple
# of a step with DDP? If they take the same time, the answer is 1. (Anything within a factor of 1.1 counts as right.)

# %%
course.predict("overlap_ddp", within=1.1, times=...)

# %% tags=["figure:07_ddp"]
from course_utils.lessons.data_parallel import torch_ddp

ddp = partial(torch_ddp, bucket_bytes=best)  # wraps the model in DDP
methods = {ALONE: unsynchronised, "loop": loop, "ours": of_size[best], "DDP": ddp}
for name in ("ours", "DDP"):
    assert difference_from_one_process(methods[name]) <= 1e-6
taken = step_times(ranks, methods, batch, rounds)
busy = taken.is_busy or taken.compared("DDP", "ours").is_busy
multiple = taken.median("ours") / taken.median("DDP")
course.measured("overlap_ddp", busy=busy, times=round(multiple, 2))
title = unless_busy(busy, hiding_text(taken, "DDP", "loop"))
course.draw.stacked_bars(taken.bars, title)

# %% [markdown]
# We would expect the two to be close, because nearly all of the time goes into computing gradients and carrying bytes,
# which are the same for both. So DDP beats the loop because it sends fewer messages, and sends them earlier.
#
# By default, DDP's first bucket has a limit of 1 MiB ($2^{20}$ bytes) and the others one of 25 MiB. If that makes only
# two or three buckets of all your gradients, as it does here, try smaller ones with `bucket_cap_mb`. And when you time
# DDP, leave out the first step, in which it doesn't know yet in what order gradients become ready. *What is in DDP's
# buckets?* in [Further](07_overlap_further.ipynb) looks inside.
#
# ## How much you can hide depends on the computing
#
# With 64 images on each rank instead of 32, a step spends about twice as long computing, but the gradients are no
# larger. In our example with three messages of 15 ms, gradients would be ready after 20, 40 and 60 ms. Each message is
# then over before the next gradient is ready, and only the last one is exposed, which makes 15 ms instead of 25.
#
# **Predict.** Now we go the other way and take *half* the images. Gradients are ready after 5, 10 and 15 ms, and each
# message still takes 15 ms. How many milliseconds are exposed?

# %%
course.predict("overlap_batch", ms=...)

# %%
course.answer("overlap_batch", ms=exposed([5, 10, 15], [15, 15, 15], 15))

# %% [markdown]
# The link is busy from 5 to 50 ms, and the backward pass ends at 15 ms, so 35 ms are exposed. Does a larger batch hide
# more on our ranks, too? We measure both by turns:

# %% tags=["figure:07_larger_batch"]
from course_utils.lessons.overlap import batch_step_times, batch_text

two = {ALONE: unsynchronised, "ours": of_size[best]}
of_batch = batch_step_times(ranks, two, [batch, 2 * batch], rounds)
bars = {f"{size} images": of_batch[size].bars["ours"] for size in of_batch}
course.draw.stacked_bars(bars, batch_text(of_batch, "ours"))

# %% [markdown]
# The exposed part can't become shorter than the last message, which holds the gradient of the first layer and is ready
# only at the very end. If almost nothing else was exposed before, or if sending and computing share the cores, a larger
# batch may not help. The calculation assumes that something other than the processor carries the messages, such as the
# network card of a node.
#
# What does this mean for more workers? Suppose ResNet-50 from the beginning of this page takes 1000 ms per step on one
# machine, two thirds of it for the backward pass. Now $P$ machines divide the *same* batch among them, which is called
# **strong scaling**. Each of them computes for 1000 ÷ $P$ ms, but a ring sends $2\frac{P-1}{P}$ times the gradient,
# which doesn't shrink. There are ten buckets of 10.2 MB, which become ready at equal intervals, and we leave out
# $\alpha$. With four machines, the backward pass takes 167 ms, so a bucket is ready every 16.7 ms. Its all-reduce takes
# 1.5 × 10.2 ÷ 1.25 = 12.2 ms, so only the last one is exposed. A step takes 250 + 12 = 262 ms instead of the loop's 373
# ms. Here are the results for other numbers of machines:


# %% tags=["nbval-check-output"]
def resnet_step(P):
    backward = 1000 * 2 / 3 / P  # ms
    ready = [backward * (i + 1) / 10 for i in range(10)]
    duration = 2 * (P - 1) / P * 10.2 / 1.25  # 10.2 MB at 1.25 MB per ms
    return 1000 / P, exposed(ready, [duration] * 10, backward)


print("machines   computing   exposed   times as fast as one")
for P in (1, 2, 4, 8, 16, 64):
    computing, waiting = resnet_step(P)
    faster = 1000 / (computing + waiting)
    print(f"{P:8}{computing:9.0f} ms{waiting:7.0f} ms{faster:15.1f}")

# %% [markdown]
# With up to four machines, nearly all of the communication is hidden. With eight, the link can't keep up with the
# backward pass. The more machines there are, the closer the time of a step comes to what the link needs for the
# gradient. Timing two machines wouldn't have shown you this limit, because two can hide almost everything.
#
# If the batch grows along with the number of workers, there is more to hide behind. [Further](07_overlap_further.ipynb)
# measures both on your ranks, explains Gene Amdahl's well-known formula, and shows how to send less. For example, if a
# batch doesn't fit into memory, you can cut it into **micro-batches** and add up their gradients before the optimizer
# takes its step, which is called **gradient accumulation**. Then DDP needs to send only once per step.

# %%
ranks.stop()

# %% [markdown]
# ## A whole program, started with torchrun
#
# Until now, the course has started the ranks for you and provided the model. Here is a complete program that does
# without the course. It needs only torch, torchvision and images, and trains our relative of VGG-11 with DDP on
# CIFAR-10:

# %%
from IPython.display import Markdown

from course_utils.lessons.overlap import TRAIN_PROGRAM

Markdown(f"```python\n{TRAIN_PROGRAM.read_text()}```")

# %% [markdown]
# You have met nearly all of its calls before. Three things are new:
#
# - **torchrun**, which comes with torch, starts the processes and sets a few variables in the environment of each of
#   them. `RANK` and `WORLD_SIZE` are the rank and the number of processes, which `init_process_group` reads.
#   `LOCAL_RANK` is the number of the process on its own machine, and also the number of the GPU that it should use.
# - At the end of an epoch, an all-reduce adds up the tensor `sums` of all ranks. It holds their losses and how many
#   images they recognised, because each rank tests the network on its own share of the test images.
# - The network has **group norm** in place of the batch norm of lesson 3. It computes its mean and variance over a
#   single image, so it doesn't matter how the images are distributed among the ranks.
#
# Now we start the program, first with four processes and then with one. A step uses 64 images in both cases, and the
# network is small to keep the run short. If CIFAR-10 can't be downloaded, a line will tell you, and the program trains
# on enlarged handwritten digits instead.

# %% tags=["here:07_train"]
import shutil
import tempfile
from pathlib import Path

from course_utils.lessons.overlap import images_for_training, run_torchrun

folder = Path(tempfile.mkdtemp())
shutil.copy(TRAIN_PROGRAM, folder / "train.py")
data = images_for_training(folder)
options = f"--data {data} --images 5000 --width 0.125 --epochs 2 --double"

command = "torchrun --standalone --nproc-per-node"
run_torchrun(f"{command} 4 train.py {options} --save four.pt", folder)
run_torchrun(f"{command} 1 train.py {options} --save one.pt", folder)

# %% [markdown]
# **Accuracy** is the share of the test images that the network recognises. The program keeps the loss and the accuracy
# of each epoch in its checkpoint, so we can compare the two runs:

# %%
four = torch.load(folder / "four.pt")["history"]
one = torch.load(folder / "one.pt")["history"]
shutil.rmtree(folder)

print("epoch   accuracy on 4 ranks   accuracy in one process")
for epoch in range(len(one)):
    print(f"{epoch + 1:5}{four[epoch][1]:22.1%}{one[epoch][1]:26.1%}")
assert np.allclose(four, one, rtol=0, atol=1e-6)

# %% [markdown]
# Both must agree in every epoch, to within a millionth. That is why we asked for 64-bit numbers with `--double`. With
# 32 bits, four ranks and one process round a little differently, because they add up the same gradients in a different
# order, and training can amplify such differences.
#
# `--standalone` means that there are no other machines. On a cluster, you drop it, start one torchrun on each node, and
# tell each of them where to find the others. [Lesson 13](13_gpu_nodes.ipynb) shows how to do that with Slurm, and what
# a program needs in order to resume after a crash.

# %% [markdown]
# ## What you take with you
#
# DDP is faster than a loop after the backward pass because it starts sending as soon as the first gradients are ready,
# and because it packs them into a few buckets. You can calculate how much communication stays exposed, from the times
# at which gradients are ready, $\alpha$ and $\beta$ of an all-reduce, and the size of a bucket. How much longer a step
# really takes also depends on how much sending slows down the computing, and on whether the library lets several
# messages share the link. A larger batch on each rank gives you more to hide behind, and splitting the same batch over
# more ranks gives you less. When the messages take as long as the backward pass, more machines hardly help.
#
# In the [exercises](../exercises/07_overlap.ipynb) you write the buckets and the hooks yourself. [Lesson
# 8](08_parameter_server.ipynb) asks what happens if workers don't wait for each other at all.
#
# **To read**
#
# - Shen Li and others, 2020, [PyTorch Distributed: Experiences on Accelerating Data Parallel
#   Training](https://arxiv.org/abs/2006.15704). Section 3 explains the design of DDP, including the size of its
#   buckets.
# - PyTorch's [notes on DDP](https://docs.pytorch.org/docs/stable/notes/ddp.html), which describe what happens inside
#   it, and when parameters without a gradient cause trouble.
