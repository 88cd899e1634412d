# The lesson on overlap. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Why is DDP faster than my loop?
#
# The network ResNet-50 has 25.6 million weights of 4 bytes, so its gradient takes 102 MB. Suppose four machines train
# it together, and each has a link of 10 Gbit/s, which is 1.25 GB per second. In a ring of four, every machine sends 1.5
# times its gradient, as you know from lesson 5. That is 154 MB, and it takes 123 ms. If the forward and backward passes
# take 250 ms, a step of lesson 6's loop takes 373 ms, and the processors spend a third of it waiting. That adds up to
# eight hours a day.
#
# Most of this waiting can be avoided, although every byte still has to be sent. PyTorch's `DistributedDataParallel`
# does it, and in this lesson you build the same thing from two calls of PyTorch. You also learn to calculate how much
# waiting is left, and how many machines are worth paying for.
#
# *60 minutes · builds on [lesson 6](06_data_parallel.ipynb) · 4 ranks*

# %%
from functools import partial

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

import course_utils as course
from course_utils.measuring import unless_busy

ranks = course.start(4, link="400 Mbit/s")
linked = ranks.facts["network"] is not None  # False if your system allows no links
ranks.load_torch()

# %% [markdown]
# As in lesson 6, each of our four ranks is a **node** with a link of its own. The link carries 400 million bits per
# second, which is 50 MB. The links are emulated, and all four nodes share the processor of your computer.
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
# On this page we write several versions of `finish`. Each of our functions gets the model and returns a `Replica`,
# which holds two things: the module for the forward pass, and the function to call as `finish`. The first version is
# the loop of lesson 6, with one all-reduce for each gradient:


# %%
from course_utils.lessons.data_parallel import Replica


def loop(model):
    def finish():
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= dist.get_world_size()

    return Replica(model, finish)


# %% [markdown]
# We train VGG-11, a network of eight convolutions and one linear layer, with a quarter of its usual channels. Its 580
# thousand weights are kept in 34 arrays, so there are 34 gradients, and together they take 2.3 MB. Every rank takes 32
# images per step. Here is one step:

# %% tags=["figure:07_loop"]
from course_utils.lessons.overlap import behind_the_step, one_step

batch = 32  # images on each rank
steps = {"loop": one_step(ranks, loop, batch)}
behind_the_step(steps, "One step with the loop, on rank 0")

# %% [markdown]
# The upper lane shows what the processor of rank 0 is doing, and each thin line in the lower one is an all-reduce.
# During the forward and the backward pass, nothing is sent. Then the 34 all-reduces follow one after the other, and now
# it is the processor that has nothing to do. You pay for the processor and the network all the time, and one of them is
# always idle.
#
# ## The last layer's gradient is ready first
#
# Do the messages have to wait for the whole backward pass? In [lesson 2](02_autodiff_and_optimizers.ipynb) you saw that
# it works its way from the last layer to the first. The next cell measures when each layer's gradient is ready, while
# all four ranks are computing:

# %% tags=["figure:07_ready"]
from course_utils.lessons.autodiff_and_optimizers import gradient_readiness, layers
from course_utils.lessons.overlap import backward_times

times, names = ranks.run(backward_times, batch, 7, backend="gloo").results[0]
by_layer = layers(times, lambda layer: layer.replace("norm", "conv"))
gradient_readiness(
    by_layer, times.end, "The last layer's gradient is ready first", times.ends
)

# %% [markdown]
# A pink line begins when the gradient of that layer is complete. From then on it just lies in memory until the backward
# pass is over, although it could already be travelling. Sending messages while the processor is computing is called
# **overlap**. If some of them are still under way when the backward pass ends, the processor has to wait for them. This
# part of the communication is **exposed**, and the rest is hidden. Only the exposed part makes a step longer.
#
# Let's calculate an example. A network has three layers, and its backward pass takes 30 ms, so that the gradients of
# layers 3, 2 and 1 are ready after 10, 20 and 30 ms. Each all-reduce takes 12 ms. The loop sends nothing before 30 ms,
# and then it takes 3 × 12 ms, so all 36 ms are exposed.
#
# Now let each gradient leave as soon as it is ready, unless the link is still busy with the one before. The first
# all-reduce runs from 10 to 22 ms. The second gradient is ready at 20 ms but has to wait for the link, so its
# all-reduce runs from 22 to 34 ms, and the third from 34 to 46 ms. The backward pass ended at 30 ms, so only 16 ms are
# exposed instead of 36. A function can do this for any number of messages:


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
# The link is busy from 10 ms to 55 ms without a break, so 25 ms are exposed. The other 20 ms are hidden, because the
# link could already work from 10 to 30 ms.
#
# ## Two calls are enough
#
# To do this in PyTorch you need two things. The first is a **hook**, a function of yours that PyTorch calls when
# something has happened. With `register_post_accumulate_grad_hook` it calls your function as soon as the gradient of a
# parameter is complete, in the middle of `backward()`. The second is an all-reduce that doesn't wait. If you pass
# `async_op=True`, `dist.all_reduce` only starts the operation and returns an object at once. Its method `wait()` later
# waits for the end, like that of a request of `Isend` in lesson 4.


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
# begin when an all-reduce is *started*, and many of them then queue for the link. What matters is when the last one
# ends. All ranks run the same model, so they start their all-reduces in the same order, and the first of one rank is
# added to the first of the others.
#
# Is the result still right? As in lesson 6, one process trains with handwritten digits, in numbers of 8 bytes, and then
# four ranks do the same together. The losses of all 22 steps must agree:

# %%
from course_utils.lessons.data_parallel import train_replicas, train_serial

data = course.data.digits("float64")
serial = train_serial(data, batch_size=64, rate=0.2)


def difference_from_one_process(method):
    options = {"batch_size": 64, "rate": 0.2, "backend": "gloo"}
    run = ranks.run(train_replicas, data, method, **options)
    losses = np.mean([history.losses for history in run.results], axis=0)
    return np.abs(losses - serial.losses).max()


for name, method in {"loop": loop, "hooks": hooks}.items():
    difference = difference_from_one_process(method)
    assert difference <= 1e-6, difference
    print(f"{name}: 22 steps, and the losses differ by at most {difference:.0e}")

# %% [markdown]
# Now for the clock. We measure by turns, as in lesson 3: a step without any communication, a step with the loop, a step
# with hooks, and so on for three rounds. Whatever a step takes beyond the one without communication is exposed.

# %% tags=["figure:07_exposed"]
from course_utils.lessons.data_parallel import unsynchronised
from course_utils.lessons.overlap import ALONE, hiding_text, step_times

rounds = 3
methods = {ALONE: unsynchronised, "loop": loop, "hooks": hooks}
taken = step_times(ranks, methods, batch, rounds, warm_up=1)
course.draw.stacked_bars(taken.bars, hiding_text(taken, "hooks", "loop"))

# %% [markdown]
# In the picture with the two lanes you can see what is still exposed: the messages to the right of the dashed line,
# which the link hasn't carried by the end of the backward pass. We can't save any bytes here, but perhaps there needn't
# be 34 messages.
#
# ## A few large messages cost less than many small ones
#
# In lesson 5 the time of a message of $n$ bytes was $\alpha + \beta n$. A whole all-reduce on a given number of ranks
# follows the same formula, with an $\alpha$ and a $\beta$ of its own. With 34 all-reduces we pay $\alpha$ 34 times,
# although most of them hold only a few hundred bytes. It is cheaper to copy several gradients into one vector, a
# **bucket**, and to send that.
#
# But a bucket can leave only when the *last* of its gradients is ready. Look at the three layers again, and suppose
# that each gradient has 2 MB, that $\alpha$ is 9 ms, and that $\beta$ is 3 ms per MB. One gradient takes 9 + 2 × 3 = 15
# ms, and we already know that 25 ms are exposed if each is sent on its own. If all three are in one bucket, it leaves
# at 30 ms and takes 9 + 6 × 3 = 27 ms. We pay $\alpha$ only once, but nothing is hidden, and 27 ms are exposed.
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
# Gradient 3 is larger than the limit, so it gets a bucket of its own. Next we measure $\alpha$ and $\beta$ of
# all-reduces on our four ranks. The object `timing` keeps them, together with the number of bytes of each gradient and
# the time at which it is ready. From these, the function below calculates what is exposed for any size of bucket, just
# as you did by hand:

# %%
from course_utils.lessons.overlap import BucketModel, all_reduce_line, line_text
from course_utils.words import wrapped

alpha, beta = all_reduce_line(ranks)
timing = BucketModel.of(times, names, alpha, beta)
print(wrapped(line_text(alpha, beta, len(timing.sizes), sum(timing.sizes))))


def exposed_with(bucket_bytes):
    ready, durations = [], []
    for bucket in make_buckets(timing.sizes, bucket_bytes):
        ready.append(max(timing.ready[i] for i in bucket))
        nbytes = sum(timing.sizes[i] for i in bucket)
        durations.append(alpha + beta * nbytes)
    return exposed(ready, durations, timing.backward)


# %% [markdown]
# Is the calculation any good? We try several sizes on the ranks, among them the one that should be best. This takes
# hooks that fill buckets, which you will write in the second exercise; `overlapped` is our own version. In the picture,
# the blue area is the measured time for computing, and the line adds the exposed time that we calculate:

# %% tags=["figure:07_sweep"]
from course_utils.lessons.overlap import best_text, bucket_sweep, overlapped, sizes_to_try

best, sizes = sizes_to_try(timing)
of_size = {size: partial(overlapped, bucket_bytes=size) for size in sizes}
swept = step_times(ranks, {ALONE: unsynchronised} | of_size, batch, rounds, warm_up=1)
runs = {size: swept.seconds[size] for size in sizes}
computing = swept.median(ALONE)
title = unless_busy(swept.is_busy, best_text(best, runs))
bucket_sweep(runs, lambda n: computing + exposed_with(n), best, computing, title)

# %% [markdown]
# On the left, a bucket holds one gradient or a few very small ones, so $\alpha$ is paid most often. On the right, there
# is a single bucket and nothing can be hidden. The line has steps because with a few more bytes one more gradient fits
# into a bucket. It assumes that sending costs the processor nothing. In our emulation the processor has to move the
# messages as well, so some points may well lie above the line.
#
# This is a step with buckets, below the other two:

# %%
steps["buckets"] = one_step(ranks, of_size[best], batch)
behind_the_step(steps, "One step on rank 0, in three versions")

# %% [markdown]
# ## DDP does the same
#
# PyTorch's `DistributedDataParallel`, or **DDP** for short, works on the same idea. When you wrap a model in it, rank 0
# broadcasts its weights. During every backward pass, hooks fill buckets, each full bucket starts an all-reduce that
# doesn't wait, and `backward()` returns when all gradients are averaged. So `finish` has nothing left to do. DDP's
# hooks are written in C++, and ours in Python.
#
# **Predict.** With the same limit for the size of a bucket, how many times longer does a step take with our buckets
# than with DDP? If both take the same time, the answer is 1. (Anything within a factor of 1.1 counts as right.)

# %%
course.predict("overlap_ddp", within=1.1, times=...)

# %% tags=["figure:07_ddp"]
from course_utils.lessons.data_parallel import torch_ddp

ddp = partial(torch_ddp, bucket_bytes=best)  # wraps the model in DDP
methods = {ALONE: unsynchronised, "loop": loop, "ours": of_size[best], "DDP": ddp}
for name in ("ours", "DDP"):
    assert difference_from_one_process(methods[name]) <= 1e-6
taken = step_times(ranks, methods, batch, rounds)
pair = taken.compared("DDP", "ours")
busy = taken.is_busy or pair.is_busy
course.measured("overlap_ddp", busy=busy, times=round(pair.times, 2))
print(pair)
course.draw.stacked_bars(taken.bars, hiding_text(taken, "DDP", "loop"))

# %% [markdown]
# We would expect the two to be close. Nearly all of the time goes into computing gradients and carrying bytes, which
# are the same for both, and a few calls of Python per step hardly matter. So what DDP has over the loop is that it
# sends fewer messages, and that it sends them earlier.
#
# What is in DDP's buckets? We can look, because DDP lets us replace its all-reduce by a function of our own. Ours
# writes down what is in the bucket and then starts the usual all-reduce. We keep the default size and take two steps:

# %% tags=["nbval-check-output"]
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook

from course_utils.lessons.overlap import small_vgg
from course_utils.vgg import random_images


def buckets_of_ddp():
    model = small_vgg(seed=0)
    name_of = {parameter: name for name, parameter in model.named_parameters()}
    module = DistributedDataParallel(model)
    lines = []

    def write_down(_, bucket):
        names = [name_of[parameter] for parameter in bucket.parameters()]
        content = f"{len(names)} gradients, from {names[0]} to {names[-1]}"
        lines.append(f"  {bucket.buffer().nbytes:,} bytes: {content}")
        return allreduce_hook(None, bucket)

    module.register_comm_hook(None, write_down)
    x, y = random_images(8)
    for step in range(1, 3):
        lines.append(f"step {step}")
        cross_entropy(module(x), y).backward()
    return lines


print(*ranks.run(buckets_of_ddp, backend="gloo").results[0], sep="\n")

# %% [markdown]
# In its first step, DDP sends everything as one bucket and watches the order in which gradients become ready. From the
# second step on, it fills buckets in that order. The first of them has a limit of 1 MiB ($2^{20}$ bytes), so that it
# can leave early, and the others have a limit of 25 MiB. With `bucket_cap_mb` you can set another limit for all of
# them. Unlike `make_buckets`, DDP closes a bucket when it has *reached* the limit, so it may hold a little more.
#
# So leave out the first step if you time DDP. And if all your gradients fit into 25 MiB, as ours do, try a smaller
# limit.
#
# ## What can be hidden depends on the batch
#
# With 64 images on each rank instead of 32, a step computes about twice as long, but the gradients have as many bytes
# as before. In our example with three messages of 15 ms, gradients would be ready after 20, 40 and 60 ms. Each message
# is then over before the next gradient is ready, and only the last one is exposed, which makes 15 ms instead of 25.
#
# **Predict.** What happens to the exposed communication of *our* buckets if we take twice as many images?

# %%
course.predict(
    "overlap_batch",
    answer=...,  # "a", "b" or "c"
    choices={"a": "it doubles", "b": "it stays the same", "c": "it shrinks"},
)

# %% tags=["figure:07_larger_batch"]
from course_utils.lessons.overlap import batch_letter, batch_text

two = {ALONE: unsynchronised, "ours": methods["ours"]}
more = step_times(ranks, two, 2 * batch, rounds, warm_up=1)
busy = taken.is_busy or more.is_busy
course.measured("overlap_batch", busy=busy, answer=batch_letter(taken, more, "ours"))
bars = {f"{batch} images": taken.bars["ours"], f"{2 * batch} images": more.bars["ours"]}
course.draw.stacked_bars(bars, batch_text(taken, more, "ours"))

# %% [markdown]
# The exposed part can't become shorter than the last message. This message holds the gradient of the first layer, which
# is ready only at the very end, however long the backward pass is. If almost nothing else was exposed before, a larger
# batch doesn't help.
#
# All of this works because something else carries the messages while the processor computes, such as the network card
# of a node. If ranks on one computer exchange messages through its memory, a processor has to copy them, and when all
# cores are busy computing, there is nothing to hide them behind. [Further](07_overlap_further.ipynb) measures it.
#
# ## More workers have less to hide behind
#
# In the opposite case the batch stays the same, say 384 images, and we divide it among more and more workers. This is
# called **strong scaling**, and at best $P$ workers are $P$ times as fast as one. Each worker then computes for a
# shorter time, but it sends at least as many bytes as before, so there is less to hide them behind. Let's try it with
# DDP on one, two and four ranks:

# %% tags=["figure:07_strong"]
from course_utils.lessons.overlap import speed_up_text

both = {ALONE: unsynchronised, "DDP": ddp}
scaled = {}
for P in (1, 2, 4):
    scaled[P] = step_times(ranks, both, 384 // P, rounds, world_size=P)
alone = scaled[1].median(ALONE)
speed_ups = {P: alone / scaled[P].median("DDP") for P in (2, 4)}

cores = len({core for fact in ranks.facts["ranks"] for core in fact["cores"]})
busy = any(times.is_busy for times in scaled.values())
bars = {"1 rank": scaled[1].bars[ALONE]}
bars |= {f"{P} ranks": scaled[P].bars["DDP"] for P in (2, 4)}
course.draw.stacked_bars(bars, unless_busy(busy, speed_up_text(speed_ups, cores)))

# %% [markdown]
# The blue part of a bar is the computing. On your computer it can only shrink as long as every rank has a core to
# itself.
#
# Even on real nodes there is a limit, which Gene Amdahl described in 1967. Suppose a share $s$ of the work can't be
# divided, so that it takes as long with $P$ workers as with one. The rest, $1-s$, takes $\frac1P$ of its time. Then $P$
# workers are
#
# $$\frac{1}{s + \frac{1-s}{P}}$$
#
# times as fast as one. For example, if two workers are 1.6 times as fast, then $s + \frac{1-s}{2} = \frac{1}{1.6}$, and
# this gives $s = \frac{2}{1.6} - 1 = 0.25$. Four workers are then 1 ÷ (0.25 + 0.75 ÷ 4) = 2.3 times as fast, 64 workers
# are 3.8 times as fast, and no number of workers reaches $1/s = 4$. So it's worth timing two machines before you rent
# 64.

# %%
from course_utils.lessons.overlap import amdahl_text


def amdahl(s, P):
    return 1 / (s + (1 - s) / P)


share = 2 / speed_ups[2] - 1  # the share that two ranks can't divide
by_formula = {P: amdahl(share, P) for P in (4, 64)}
print(unless_busy(busy, wrapped(amdahl_text(share, by_formula, speed_ups))))

# %% [markdown]
# This is only a rough guide, because exposed communication, and on your computer the shared cores, count as work that
# can't be divided, and both change with the number of ranks. If you take a larger batch along with more workers, there
# is more to hide behind. Further follows this up, and also looks at wider networks and at what processors and links are
# doing meanwhile.
#
# ## Fewer messages
#
# If a batch doesn't fit into memory, you can cut it into **micro-batches** and run a forward and a backward pass for
# each of them. PyTorch adds every gradient to what is already in `parameter.grad`, and the optimizer takes its step
# after the last one. This is called **gradient accumulation**. By default, DDP averages gradients in *every* backward
# pass, although only their sum is needed. Inside `with module.no_sync():` it sends nothing.

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
# **Predict.** How many times fewer bytes leave a rank with `no_sync` than without it?

# %%
course.predict("overlap_accumulation", times=...)

# %%
if linked:
    often = ranks.run(bytes_of_a_step, True, backend="gloo").results
    once = ranks.run(bytes_of_a_step, False, backend="gloo").results
    course.measured("overlap_accumulation", times=round(sum(often) / sum(once), 1))
    print(fewer_bytes_text(often, once, micro_batches=4))
else:
    print("Without links, no bytes are counted.")

# %% [markdown]
# Only one of four backward passes sends its gradients, so a quarter of the bytes is sent. To get the gradient of the
# whole batch, you still have to weight each micro-batch by its share of the images. You will do that in the exercise
# `accumulate_gradients`. Another idea is to make the messages themselves smaller, which you can try out in Further.
# There you will also meet `nn.DataParallel`, PyTorch's older method for several GPUs in one process.

# %%
ranks.stop()

# %% [markdown]
# ## A whole program, started with torchrun
#
# Until now, the course has started the ranks for you and provided the model. Elsewhere you have to do that yourself. So
# here is a complete program that needs nothing but torch and torchvision. It trains VGG-11 with DDP on the images of
# CIFAR-10, and you can take it home:

# %%
from IPython.display import Markdown

from course_utils.lessons.overlap import TRAIN_PROGRAM

Markdown(f"```python\n{TRAIN_PROGRAM.read_text()}```")

# %% [markdown]
# You have met nearly all of its lines before. Three things are new:
#
# - **torchrun**, which comes with torch, starts the processes. It sets a few variables in the environment of each of
#   them. `RANK` and `WORLD_SIZE` are the rank and the number of processes, which `init_process_group` reads.
#   `LOCAL_RANK` is the number of the process on its own machine, and also the number of the GPU that it should use.
# - The `sums` of all ranks are added up by an all-reduce. Each rank tests the network on its own share of the test
#   images, so no image is counted twice.
# - The network has **group norm** in place of the batch norm of lesson 3. It takes its mean and variance within a
#   single image, so it doesn't matter how the images are distributed among the ranks.
#
# Now we start the program, first with four processes and then with one. A step takes 64 images in both cases, 16 on
# each rank or all 64 in one process. So that you needn't wait long, the network has an eighth of its channels. If
# CIFAR-10 can't be downloaded, the line below will tell you, and the same program trains on handwritten digits, which
# it enlarges from 8 × 8 to 32 × 32 pixels.

# %% tags=["here:07_train"]
import shutil
import tempfile
from pathlib import Path

from course_utils.lessons.overlap import images_for_training, run_torchrun

folder = Path(tempfile.mkdtemp())
shutil.copy(TRAIN_PROGRAM, folder / "train.py")
data = images_for_training(folder)
options = f"--data {data} --images 5000 --width 0.125 --epochs 4 --double"

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
# Loss and accuracy must agree in every epoch, to within a millionth. That is why we asked for 64-bit numbers with
# `--double`. Without it, the four ranks add up the same gradients in a different order, and every sum is rounded to 24
# binary digits. Training can amplify such tiny differences, so that after a few epochs the two accuracies may be a few
# percent apart, although neither run is better than the other.
#
# `--standalone` means that there are no other machines. On a cluster, the program stays as it is. You leave out
# `--standalone` and start one torchrun on each node, which you tell where to find the others. [Lesson
# 13](13_gpu_nodes.ipynb) shows how to do that with Slurm, and what a program needs for going on after a crash.

# %% [markdown]
# ## What you take with you
#
# DDP is faster than a loop after the backward pass because it starts sending as soon as the first gradients are ready,
# and because it packs them into a few buckets. Only exposed communication makes a step longer. You can calculate it
# from the times at which gradients are ready, $\alpha$ and $\beta$ of an all-reduce, and the size of a bucket. A larger
# batch on each rank hides more, and more ranks for the same batch hide less. From the speed of two workers, Amdahl's
# formula tells you what to expect of 64. And `train.py` is yours to keep.
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
# - Gene Amdahl, 1967, [Validity of the single processor approach to achieving large scale computing
#   capabilities](https://doi.org/10.1145/1465482.1465560). Where the limit of strong scaling comes from, on three
#   pages.
