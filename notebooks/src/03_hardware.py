# The lesson on what limits one machine. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # What limits one machine?
#
# Suppose that a training step on your laptop takes three seconds. Would a processor that computes twice as fast bring
# this down to one and a half? Perhaps. But it is also possible that nothing would change, because your processor spends
# most of the step waiting for numbers to arrive from memory. Even the fastest machines have this problem. An NVIDIA
# H100, the GPU of lesson 0, can do 67 trillion additions per second. Have it add two long vectors, and it manages half
# a trillion, because it spends the rest of its time waiting.
#
# In this lesson you will measure how fast your machine computes and how fast it moves numbers. From these two figures
# you can calculate the least time that each layer of a network needs, and see whether a faster processor could help. At
# the end you compare your machine with those on which large models are trained.
#
# *45 minutes · builds on [lesson 2](02_autodiff_and_optimizers.ipynb) · no ranks*

# %%
import math
import os
import statistics
import time

import course_utils as course
from course_utils.machine import allowed_cores
from course_utils.measuring import Measured, is_busy, unless_busy

# import this before torch, because it also sets how torch's threads wait for each other
from course_utils.lessons.hardware import machine_rates, pictures, sentences
import torch

cores = allowed_cores()
torch.set_num_threads(cores)
print(f"You may use {cores} of the {os.cpu_count()} cores that the system counts")

# %% [markdown]
# ## Computing is one limit, moving numbers is the other
#
# Let's begin with computing. One addition or multiplication of two numbers is called a **FLOP**, a floating-point
# operation, and a billion of them are a GFLOP. When we multiply two matrices of 512 × 512 numbers, each of the 512²
# results is a sum of 512 products. If we count every product and every addition, that makes 2 × 512³, or about 268
# million FLOPs.
#
# The highest rate that your machine can reach is called its **peak**. Other programs use the computer too, and they can
# only slow a run down. So we time 500 runs on a single core, because one core is idle more often than all of them at
# once, take the fastest, and multiply its rate by the number of cores.
#
# torch uses one library for products of matrices and another for convolutions, and which is faster depends on the
# processor. So we also try a convolution with a window of a single pixel. For 32 images of 4 × 4 pixels, it multiplies
# 512 pixels of 512 numbers each by 512 × 512 weights, which is just as many FLOPs.


# %%
def measure(work, repeats=9):
    work()  # the first run also has to prepare things, so it doesn't count
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return Measured(tuple(seconds))  # keeps all of them


left, right = torch.rand(2, 512, 512)
pixels, weights = left.reshape(32, 512, 4, 4), right.reshape(512, 512, 1, 1)


def product():
    return torch.mm(left, right)


def convolution():
    return torch.conv2d(pixels, weights)


flops = 2 * 512**3
torch.set_num_threads(1)  # a single core
peak = 0
for program in (product, convolution):
    seconds = measure(program, repeats=500)
    fastest = flops / seconds.low
    print(f"{program.__name__:11}: {fastest / 1e9:4.0f} GFLOP per second and core")
    peak = max(peak, cores * fastest)
torch.set_num_threads(cores)
print(f"peak of {cores} cores: {peak / 1e9:.0f} GFLOP per second")

# %% [markdown]
# This is our estimate of the peak. It may be too low, if a different program makes better use of your processor than
# our two. It may also be too high, if the processor slows its clock down when all the cores compute, or if the system
# counts each core twice. We will notice that later on, when we compare real layers with it.
#
# The second limit is the **bandwidth** of the memory, the number of bytes per second that can move between memory and
# processor. A processor keeps the numbers that it used last in a **cache**, a small and fast memory next to its cores.
# To measure the large memory, we take arrays that are too long for the cache, and add two of them into a third. Each
# addition reads two 4-byte numbers and writes one, which makes 12 bytes. Some processors move more than that, and
# [Further](03_hardware_further.ipynb) finds out what yours does. Again we take the fastest run.

# %%
length = machine_rates.array_bytes() // 4  # each array has twice the size of the cache
left, right, total = torch.ones(3, length)
seconds = measure(lambda: torch.add(left, right, out=total), repeats=100)
bandwidth = 12 * length / seconds.low
print(f"moving: at most {bandwidth / 1e9:.1f} GB per second")

# %% [markdown]
# Now put the two figures together. Suppose a machine computes 100 GFLOP per second and moves 20 GB per second. A number
# takes 4 bytes, so 20 GB are 5 billion numbers. In the time that it takes to move *one* number, our example machine can
# do 100 ÷ 5 = 20 operations. A program that does fewer than 20 operations for each number it moves keeps the processor
# waiting.
#
# **Predict.** How many operations can *your* machine do in the time that it takes to move one number? Calculate it from
# the figures above, in the same two steps.

# %%
course.predict("balance", within=1.1, operations=...)

# %%
course.answer("balance", operations=peak / (bandwidth / 4))

# %% [markdown]
# Adding vectors does only 1/3 of an operation for each number that moves, far fewer than a modern processor could do in
# that time. So a faster processor would gain nothing.
#
# ## A batch uses each weight many times
#
# Fortunately, networks use their numbers more than once. The **arithmetic intensity** of a program is the number of
# FLOPs that it does for each *byte* that it moves. With numbers of 4 bytes, that is a quarter of the operations for
# each number. So our example machine needs 5 FLOP per byte to be kept busy.
#
# Take a linear layer with 4,096 inputs and 4,096 outputs. Its weights are a matrix of 4,096² numbers. For a single
# image, each weight is multiplied by an input, and the product is added to an output. That makes 2 × 4,096², or 34
# million FLOPs. All the weights have to be read, which is 4 × 4,096² bytes, or 67 MB. The inputs and outputs are only
# 8,192 numbers and are negligible. So the intensity is 34 ÷ 67, or 0.5 FLOP per byte. On our example machine the
# arithmetic would take 0.3 ms, but moving the weights takes 3.4 ms.
#
# Now let a whole batch of images pass through the layer. The weights have to be read only once for all of them, but
# every image brings its own inputs, outputs and arithmetic. In code:


# %%
def linear_layer(images, inputs, outputs):
    """Return the FLOPs of a linear layer and the minimum number of bytes that it moves."""
    flops = 2 * images * inputs * outputs
    numbers = images * inputs + inputs * outputs + images * outputs
    return flops, 4 * numbers


# %% [markdown]
# **Predict.** What is the arithmetic intensity of this layer for a batch of 64 images? You can get a good estimate from
# the weights alone.

# %%
course.predict("intensity", within=1.1, flop_per_byte=...)

# %% tags=["nbval-check-output"]
for images in (1, 4, 16, 64, 256):
    flops, nbytes = linear_layer(images, 4096, 4096)
    print(f"{images:3} images: {flops / nbytes:6.2f} FLOP per byte")

flops, nbytes = linear_layer(64, 4096, 4096)
course.answer("intensity", flop_per_byte=flops / nbytes)

# %% [markdown]
# That is slightly below 64 × 0.5, because the inputs and outputs of 64 images are no longer quite negligible.
#
# ## The roofline
#
# A layer can't finish until its arithmetic is done and its bytes have moved. So its time $T$ is at least as long as the
# longer of these two times:
#
# $$T \ge \max\left(\frac{\text{FLOPs}}{\text{peak}},\ \frac{\text{bytes}}{\text{bandwidth}}\right)$$
#
# It can be as short as that, because a machine can compute while it is moving the next numbers.
#
# So how many FLOPs per second can the layer reach? The processor allows no more than the peak. The memory allows no
# more than the bandwidth times the intensity, because that is how many FLOPs can be done with the bytes that arrive in
# a second. If you plot the smaller of the two against the intensity, you get a slope that turns into a flat line. This
# picture is called the **roofline**, and the intensity at which it turns flat is its **ridge**.  To the left of the
# ridge the memory sets the limit, and to the right of it the processor.
#
# Let's measure our layer with the five batch sizes. Each becomes a dot in the picture, at the **median** of five runs,
# which is the value in the middle when they are sorted. The thin line through a dot reaches from the slowest run to the
# fastest.

# %% tags=["figure:03_batches"]
layer = torch.nn.Linear(4096, 4096, bias=False)


def time_batch(images):
    x = torch.rand(images, 4096)
    with torch.no_grad():  # forward only
        return measure(lambda: layer(x), repeats=5)


seconds, dots = {}, {}
for images in (1, 4, 16, 64, 256):
    seconds[images] = time_batch(images)
    flops, nbytes = linear_layer(images, 4096, 4096)
    dots[f"batch {images}"] = (flops / nbytes, seconds[images].rate(flops))
title, found = sentences.batches_text(seconds)
pictures.roofline(dots, peak, bandwidth, title, found)

# %% [markdown]
# According to the roofline, extra images are almost free as long as the batch stays to the left of the ridge, because
# the weights have to be read anyway. To the right of it, twice the images take twice as long. This is one of the
# reasons why networks are trained with batches.
#
# The roof shows only what the machine allows. If a dot lies far below it, a better program could be faster, or other
# work disturbed this one. Then more images may also cost more time than the roofline promises. A dot can even lie above
# the roof, for example if some of its numbers were still in the cache.
#
# ## The layers of a real network
#
# Nearly all of the arithmetic of VGG-11 (lesson 2) is in its eight convolutions. A convolution moves a small window of
# weights over the image, so it uses each weight once for every *pixel* of every image. The fourth, conv4, works on
# images of 8 × 8 pixels. With a batch of 32, that makes 8 × 8 × 32 = 2,048 uses of each weight.
#
# Between the convolutions are smaller layers. A convolution turns an image into many pictures, which are called
# **channels**. **Batch norm** shifts and scales the numbers of each channel so that their mean is 0 and their spread is
# 1, and then applies a shift and a scale that it learns. ReLU replaces negative numbers with 0. **Pooling** keeps only
# the largest value in each 2 × 2 block of pixels. Here is the total arithmetic for each kind of layer, and the least
# data it can move, for a batch of 32 images:

# %% tags=["nbval-check-output"]
from course_utils.lessons.hardware import arithmetic_intensity, layer_costs
from course_utils.vgg import vgg11

batch = 32
model = vgg11(seed=0)
images = torch.randn(batch, 3, 32, 32)
costs = layer_costs.count_layers(model, images)  # FLOPs and bytes by kind of layer
for kind, (flops, nbytes) in costs.items():
    print(f"{kind:7} {flops / 1e9:7.3f} GFLOP {nbytes / 1e9:7.3f} GB")

# input: images, channels, height, width; weights: channels out and in, window
flops, nbytes, conv4 = arithmetic_intensity((batch, 256, 8, 8), (256, 256, 3, 3))
print(f"\nconv4: {flops:,} FLOPs, {nbytes:,} bytes, {conv4:.0f} FLOP per byte")

# %% [markdown]
# Working this out for a convolution is your first [exercise](../exercises/03_hardware.ipynb). conv4 also moves its
# inputs and outputs, which lowers its intensity.
#
# Batch norm, ReLU and pooling do only 0.4% of the arithmetic, but they move 0.058 + 0.039 + 0.020 = 0.117 GB. Our
# example machine needs at least 5.9 ms for that, and at least 98 ms for the 9.777 GFLOP of the convolutions. So if
# every layer reached the roof, the small layers would take 5.9 of 103.9 ms, or 5.7% of the time.
#
# **Predict.** What percentage of the time would the small layers take on *your* machine, if every layer reached the
# roof? Use its peak and its bandwidth.

# %%
course.predict("small_layers", within=1.1, percent=...)

# %%
small_seconds = sum(costs[kind][1] for kind in ("norm", "relu", "pool")) / bandwidth
conv_seconds = costs["conv"][0] / peak
calculated = small_seconds / (small_seconds + conv_seconds)
course.answer("small_layers", percent=100 * calculated)

# %% [markdown]
# Now let's measure each layer. Expect a different share, because real programs don't reach the roof.

# %%
timed = layer_costs.time_layers(model, images, peak, bandwidth)
ridge = peak / bandwidth
print(sentences.small_layers_sentence(timed, calculated, bandwidth))
print(sentences.layers_sentence(timed, ridge))
title = sentences.layers_title(timed, ridge)
pictures.layer_roofline(timed, peak, bandwidth, title)

# %% [markdown]
# Above, each dot is one layer, and a thin grey line leads from it to the roof. Below, a wide grey bar shows the least
# time by the roofline, and a narrow one the time that the layer actually took.
#
# A dot to the left of the ridge means that even an ideal program would wait for memory there, and a faster processor
# wouldn't help it. Libraries therefore try to *fuse* a small layer, such as a ReLU, with the convolution before it,
# which saves writing the results to memory and reading them back. But a program far below the slope doesn't reach the
# limit of the memory. There, the program itself can be improved. [Further](03_hardware_further.ipynb) finds out what
# slows down pooling.
#
# ## On the way back, a convolution computes two products
#
# A training **step** consists of a forward pass, a backward pass, and the optimizer's own step, which changes the
# weights. In the backward pass, a convolution or a linear layer computes two products, the gradient of its weights and
# the gradient of its inputs, which the layer before it needs. Each takes as many FLOPs as its forward pass. Only the
# first layer can skip the gradient of its inputs.
#
# If there were just two layers with 1 GFLOP each, that would be 2 GFLOP forward, and 1 + 2 = 3 GFLOP backward, so 1.5
# times as many.
#
# **Predict.** In its convolutions, VGG-11 does 9.777 GFLOP forward, and only 0.113 of them in its first layer. How many
# FLOPs does its backward pass do, as a multiple of that?

# %%
course.predict("backward", within=1.1, times_as_many=...)

# %% tags=["nbval-check-output"]
from torch.nn.functional import cross_entropy
from torch.utils.flop_counter import FlopCounterMode

classes = torch.arange(batch) % 10  # made up; they don't affect how long a step takes
with FlopCounterMode(display=False) as forward:
    loss = cross_entropy(model(images), classes)
with FlopCounterMode(display=False) as backward:
    loss.backward()
ratio = backward.get_total_flops() / forward.get_total_flops()
course.answer("backward", times_as_many=ratio)

# %% [markdown]
# This count is the same on any machine. Whether the clock agrees depends on how near to the roof each pass gets. Here
# are eight training steps:

# %% tags=["figure:03_shares"]
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


def training_step():
    start = time.perf_counter()
    loss = cross_entropy(model(images), classes)
    forward = time.perf_counter()
    loss.backward()
    backward = time.perf_counter()
    optimizer.step()
    optimizer.zero_grad()
    end = time.perf_counter()
    parts = {"forward": forward - start, "backward": backward - forward}
    return parts | {"step": end - backward}


training_step()  # doesn't count
steps = [training_step() for _ in range(8)]
ratio = statistics.median(step["backward"] / step["forward"] for step in steps)
busy = is_busy([[sum(step.values()) for step in steps]])
bars = {f"training step {number}": step for number, step in enumerate(steps, start=1)}
title = f"The backward pass takes {ratio:.1f} times as long as the forward pass"
course.draw.stacked_bars(bars, unless_busy(busy, title), "")

# %% [markdown]
# The factor of two explains why lesson 0 counted six operations for each parameter and each token: a multiplication and
# an addition on the way forward, and two of each on the way back.
#
# ## More cores help, up to a point
#
# To use more than one core, torch cuts a product into parts and gives them to several **threads**, which are workers
# inside one process that share its memory. How much do we gain from more threads?
#
# We measure **by turns**: one thread, two threads, and so on, and then we start again, five rounds in all. If the
# computer is slow for a moment, that affects all of them. Here we want to know what a run usually takes, so we compare
# medians. We call one program *faster* than another only if it won at least four rounds out of five and is more than 5%
# ahead in the median. Otherwise it's a tie. Every lesson follows this rule.

# %% tags=["figure:03_threads"]
from course_utils.lessons.hardware import threads

narrow = vgg11(width=0.5, seed=0)  # half as many channels, to save time


def forward_and_backward():
    narrow(images).sum().backward()


counts = threads.thread_counts(cores)  # up to twice as many threads as cores
times = {count: [] for count in counts}
for _ in range(5):
    for count in counts:
        torch.set_num_threads(count)
        times[count] += measure(forward_and_backward, repeats=1).values
torch.set_num_threads(cores)
times = {count: Measured(tuple(values)) for count, values in times.items()}
found = sentences.threads_sentence(times, cores)
title = "Forward and backward pass of a half-width VGG-11"
pictures.time_by_threads(times, cores, title, found)

# %% [markdown]
# The dashed line marks the number of cores that you may use. Threads beyond it can only take turns.
#
# Would a machine with a million cores be a million times as fast? That depends on the tasks, because some of them need
# the results of others. You can add up eight numbers one after the other, or in the form of a tree:

# %% tags=["figure:03_chain_and_tree"]
pictures.chain_and_tree()

# %% [markdown]
# Both need 7 additions. The number of tasks is called the **work** $W$. In the chain each addition has to wait for the
# one before it, while the tree can do four of them at once, then two, then one. The number of tasks on the longest path
# is called the **depth** $D$. It is 7 for the chain and 3 for the tree.
#
# Suppose each task takes one unit of time. Then $p$ **workers** need at least $W/p$ units, and also at least $D$, since
# each task on the longest path waits for the one before it. Nor do they need more than $W/p + D$, provided that no
# worker is idle while a task is ready. There are at most $W/p$ units of time in which every worker is busy, and each of
# the other units shortens the longest path that is left by one task. This upper bound is named after Brent
# ([1974](https://doi.org/10.1145/321812.321815)).
#
# $$\max(W/p,\ D)\ \le\ T_p\ \le\ W/p + D$$
#
# Let's add up 32 numbers as a tree. It has levels of 16, 8, 4, 2 and 1 additions, so $W$ is 31 and $D$ is 5. Two
# workers take 8 units of time for the first level, then 4, 2, 1 and 1, which makes 16. That is between 15.5 and 20.5.
#
# **Predict.** How many units of time do 4 workers need, and how many do 16 workers need?

# %%
course.predict("brent", within=1.05, four=..., sixteen=...)

# %% tags=["nbval-check-output"]
levels = (16, 8, 4, 2, 1)
units = {p: sum(math.ceil(level / p) for level in levels) for p in (1, 2, 4, 8, 16)}
print("units of time, by the number of workers:", units)
course.answer("brent", four=units[4], sixteen=units[16])

# %% [markdown]
# By counting, four workers need 4 + 2 + 1 + 1 + 1 = 9 units. Sixteen need 5, and more workers can't do better, because
# the depth is 5.
#
# In this program the workers are threads that sleep for 8 ms for each task. Sleeping needs no core, so any machine can
# run 16 of them at the same time.

# %% tags=["figure:03_bounds"]
from course_utils.lessons.hardware import brent_bounds, run_graph, tree_sum

tree = tree_sum(32)  # for each addition, the additions that it needs
unit = 0.008
measured, bounds = {}, {}
for p in (1, 2, 4, 8, 16):
    measured[p] = Measured(tuple(run_graph(tree, p, unit) / unit for _ in range(3)))
    bounds[p] = brent_bounds(tree, p)
found = sentences.brent_sentence(bounds, {p: measured[p].median for p in measured})
pictures.between_bounds(measured, bounds, {}, "32 numbers, added by p workers", found)

# %% [markdown]
# VGG-11 has enough tasks for millions of workers, as [Further](03_hardware_further.ipynb) calculates. The hard part is
# getting the numbers to them, and that is what the rest of this course is about.
#
# ## An H100 needs 590 operations for each number
#
# How does your machine compare with larger ones? The table assumes 4-byte numbers for your machine and for the server
# processor. For the others it assumes 2-byte numbers, which most large models have been trained with. A **link**
# connects a machine to another of the same kind, and its speed is given for each direction.

# %%
from course_utils.lessons.hardware import data_sheets

mine = data_sheets.this_machine(peak, bandwidth)
machines = [mine, *data_sheets.MACHINES]
sentences.MachinesTable(machines)

# %% [markdown]
# All rows but the first are peaks, taken or calculated from the documents in the last column. The module `data_sheets`
# has the details, and later lessons calculate with it.
#
# In the time that it takes to move one number, an H100 could do 590 operations, and a TPU 332. Putting many of them
# together changes neither figure, because every chip brings its own memory. The server processor could do 154.
#
# The 989 trillion operations per second of the H100 are for products of matrices, for which it has special circuits.
# Its ordinary ones do 133.8 trillion operations per second with 2-byte numbers, if each instruction multiplies and adds
# ([NVIDIA 2022](https://resources.nvidia.com/en-us-tensor-core/gtc22-whitepaper-hopper)). If it only adds, it manages
# half of that, 67 trillion. But each addition of two vectors moves 6 bytes. At 3.35 trillion bytes per second, that
# makes 0.56 trillion additions, about 1/120 of what it could compute.
#
# The picture shows all these rooflines together. Its horizontal axis counts operations per *number*, so that 4-byte and
# 2-byte machines can be compared. T, P and E are 10¹², 10¹⁵ and 10¹⁸. The dashed lines are three programs from this
# lesson.

# %% tags=["figure:03_machines"]
flops, nbytes = linear_layer(64, 4096, 4096)
programs = {"adding vectors": 1 / 3}
programs |= {"linear, batch 64": 4 * flops / nbytes, "conv4": 4 * conv4}
title = sentences.machines_title(data_sheets.H100, programs["linear, batch 64"])
pictures.rooflines(machines, programs, title)

# %% [markdown]
# Follow the dashed line of the linear layer upwards. On all the machines from the data sheets, it meets the roof on the
# slope, so a batch of 64 for each chip is too small to keep them busy.
#
# These rooflines add up the memories of many chips and leave out the links between them. Within a node, an H100 reaches
# another H100 through a link of 450 GB/s, which is about a seventh of the bandwidth of its own memory. The node itself
# has 400 GB/s to other nodes. That is 50 GB/s for each of its eight GPUs, 1/67 of the bandwidth of its memory.
#
# ## What you take with you
#
# Two measurements and a count tell you the least time that a program can take, and whether arithmetic or memory sets
# this limit. If a program does too few operations for each byte, a faster processor can't lift its limit, but a larger
# batch may. If it stays far below the roof, improve the program first. The backward pass does about twice as many FLOPs
# as the forward pass. No number of workers can finish in fewer steps than the depth. An H100 needs hundreds of
# operations for each number that it moves, and the links between machines are slower than their memory.
#
# Next come the [exercises](../exercises/03_hardware.ipynb). Then [lesson 4](04_messages.ipynb) shows how processes
# talk. [Further](03_hardware_further.ipynb) finds out what your memory really moves, reads photos from a disk, and
# repeats what three students measured with VGG-11 in 2020.
#
# **To read**
#
# - Williams, Waterman and Patterson 2009, [*Roofline: an insightful visual performance
#   model*](https://doi.org/10.1145/1498765.1498785), the article that introduced the picture
# - Austin and others 2025, [*How to Scale Your Model*](https://jax-ml.github.io/scaling-book/roofline/), which begins
#   with rooflines, for memory as well as for the links between machines
# - Horace He 2022, [*Making Deep Learning Go Brrrr From First Principles*](https://horace.io/brrr_intro.html), on what
#   limits a program on a GPU, and on fusing layers
